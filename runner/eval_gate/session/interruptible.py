"""A process that is a run's own: SIGINT and SIGTERM end it in good order, so that what was done is written and said."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from eval_gate.engine.run import Run
from eval_gate.errors import ExitCode

_SIGNALS = {
    signal.SIGINT: (ExitCode.INTERRUPTED, "interrupted (SIGINT)"),
    signal.SIGTERM: (ExitCode.TERMINATED, "ended from outside (SIGTERM)"),
}


@contextmanager
def own_process(run: Run) -> Iterator[list[ExitCode]]:
    """The first SIGINT or SIGTERM ends the run in good order, and its exit code is in the list; a second one ends us.

    As the first process of a container Python has no default action for SIGTERM, so both are handled here.
    """
    caught: list[ExitCode] = []
    loop = asyncio.get_running_loop()
    # what was loaded lives until the end: no collection needs to look at it while cases are timed
    gc.freeze()

    def stop(number: signal.Signals) -> None:
        code, reason = _SIGNALS[number]
        caught.append(code)
        run.stop(reason)
        loop.remove_signal_handler(number)

    for number in _SIGNALS:
        loop.add_signal_handler(number, stop, number)
    try:
        yield caught
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
