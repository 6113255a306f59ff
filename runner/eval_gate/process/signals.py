"""Signal handling: cancel asynchronous work on the first signal, exit at once on the second.

A handler that raises inside the event loop can interrupt any line, such as the one after the start of a program, which
then runs on without an owner. So the first signal cancels the task there, and raises elsewhere; a second one ends the
process at once with the exit code of that signal. `defer_signals` delays both while a program is started.

Python runs a handler inside another handler, and fails with a RecursionError after a thousand of them. So a handler
first records that it runs, and a signal that arrives meanwhile does almost nothing.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final, NoReturn, TypeVar

from eval_gate.errors import TerminatedError

Done = TypeVar("Done")
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
RUNNING_GROUPS: Final = set[int]()
"""Process groups of running programs, by their leaders' ids, until the id of a leader is free again."""
FINAL_ACTIONS: Final = set[Callable[[], object]]()
"""Short actions before an exit at once, such as showing the cursor of the terminal again."""
_SIGNAL_EXIT_BASE: Final = 128
"""Difference of `ExitCode.INTERRUPTED` and `TERMINATED` from their signals' numbers."""


class _SignalState:
    """Signals received so far. Python delivers them to the main thread only, between any two instructions."""

    held = 0
    """Number of open `defer_signals` blocks of the main thread."""
    waiting = 0
    """The last deferred signal; 0 for none."""
    several = False
    """Whether more than one was deferred."""
    enough = False
    """Whether the next signal ends the process at once: the first one is being handled."""


def handle_signal(number: int, _frame: FrameType | None = None) -> None:
    """Handle a signal, after all `defer_signals` blocks: a handler.

    The first one raises KeyboardInterrupt or TerminatedError, and a second one ends the process at once.
    """
    if _SignalState.held:
        _SignalState.several = _SignalState.waiting != 0
        _SignalState.waiting = number
        return
    if _SignalState.enough:
        _exit_at_once(number)
    _SignalState.enough = True
    raise TerminatedError if number == signal.SIGTERM else KeyboardInterrupt


def _exit_at_once(number: int) -> NoReturn:
    _SignalState.held += 1  # later signals do nothing
    _kill_programs()
    for do in tuple(FINAL_ACTIONS):
        with suppress(Exception):
            do()
    os._exit(_SIGNAL_EXIT_BASE + number)


def run_async(work: Coroutine[Any, Any, Done]) -> Done:
    """Run a coroutine as `asyncio.run` does. Raises KeyboardInterrupt or TerminatedError if a signal ended it.

    The first signal cancels it, as asyncio's own handler of SIGINT does; another one ends the process at once.
    Signals without a Python handler are left as they are.
    """
    import asyncio  # not needed for `--help`

    received: list[KeyboardInterrupt] = []
    # made before they are needed
    errors: dict[int, KeyboardInterrupt] = {signal.SIGINT: KeyboardInterrupt(), signal.SIGTERM: TerminatedError()}

    async def cancelled_by_signals() -> Done:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()

        def cancel(number: int, _frame: FrameType | None) -> None:
            if received or task is None:
                _SignalState.enough = True
                handle_signal(number)
                return
            received.append(errors[number])
            task.cancel()
            loop.call_soon_threadsafe(lambda: None)  # wakes the loop, which may wait for input only

        handlers = {number: signal.signal(number, cancel) for number in listening}
        try:
            return await work
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    is_main = threading.current_thread() is threading.main_thread()
    listening = [number for number in _SIGNALS if is_main and callable(signal.getsignal(number))]
    try:
        return asyncio.run(cancelled_by_signals())
    finally:  # also if the work ended or failed by itself before it could be cancelled
        if received:
            raise received[0] from None


@contextmanager
def defer_signals() -> Iterator[None]:
    """Defer signals until the end of the block, which must be short; outside the main thread, do nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _SignalState.held += 1
    try:
        yield
    finally:
        _SignalState.held -= 1
        if _SignalState.waiting and not _SignalState.held:
            number, _SignalState.waiting = _SignalState.waiting, 0
            _SignalState.enough = _SignalState.enough or _SignalState.several
            handle_signal(number)


def end_programs() -> None:
    """End all running programs by force. From here on a signal ends this process at once."""
    _SignalState.enough = True
    with defer_signals():
        _kill_programs()


def _kill_programs() -> None:
    for group in tuple(RUNNING_GROUPS):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
