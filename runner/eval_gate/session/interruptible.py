"""A process that is a run's own: SIGINT and SIGTERM end it in good order, so that what was done is written and said."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from eval_gate.engine.run import Run
from eval_gate.errors import ExitCode
from eval_gate.session.uncollected import seldom_collected

_SIGNALS = {
    signal.SIGINT: (ExitCode.INTERRUPTED, "interrupted (SIGINT)"),
    signal.SIGTERM: (ExitCode.TERMINATED, "ended from outside (SIGTERM)"),
}


@contextmanager
def own_process(run: Run, ended: Callable[[], object] | None = None) -> Iterator[list[ExitCode]]:
    """The first SIGINT or SIGTERM ends the run in good order, and its exit code is in the list; a second one ends us.

    `ended` is told of the first one too.
    As the first process of a container Python has no default action for SIGTERM, so both are handled here.
    """
    caught: list[ExitCode] = []
    loop = asyncio.get_running_loop()

    def stop(number: signal.Signals) -> None:
        code, reason = _SIGNALS[number]
        caught.append(code)
        run.stop(reason)
        if ended is not None:
            ended()
        _forget(loop, number)

    for number in _SIGNALS:
        _listen(loop, number, stop)
    try:
        with seldom_collected():
            yield caught
    finally:
        for number in _SIGNALS:
            _forget(loop, number)


def _listen(loop: asyncio.AbstractEventLoop, number: signal.Signals, stop: Callable[[signal.Signals], None]) -> None:
    try:
        loop.add_signal_handler(number, stop, number)
    except NotImplementedError:  # on Windows no loop can: the interpreter hears of it, and tells the loop
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop, number))


def _forget(loop: asyncio.AbstractEventLoop, number: signal.Signals) -> None:
    try:
        loop.remove_signal_handler(number)
    except NotImplementedError:
        signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)
