"""Time that passes at once: an event loop whose timers are due as soon as nothing else is to be done."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Coroutine
from typing import Any


class VirtualTime:
    """A clock for `time.monotonic` and `time.time`, moved on by the loop that `run` uses."""

    def __init__(self, monkeypatch) -> None:
        self.now = 1_000.0
        self._began = time.time()
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "time", lambda: self._began + self.now - 1_000.0)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run to the end; what sleeps there takes no time."""
        clock = self

        class Selector(selectors.DefaultSelector):
            def select(self, timeout=None):
                found = super().select(timeout if timeout is None else 0)
                if timeout and not found:
                    clock.now += timeout
                return found

        def make_loop() -> asyncio.AbstractEventLoop:
            loop = asyncio.SelectorEventLoop(Selector())
            loop.time = lambda: clock.now

            def run_now(_executor, function, *arguments):
                future = loop.create_future()
                try:
                    future.set_result(function(*arguments))
                except Exception as error:  # noqa: BLE001 (it is raised where the result is awaited)
                    future.set_exception(error)
                return future

            loop.run_in_executor = run_now  # no timer is due while a thread works
            return loop

        with asyncio.Runner(loop_factory=make_loop) as runner:
            return runner.run(work)
