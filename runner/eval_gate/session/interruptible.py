"""A run that SIGINT and SIGTERM end in good order, so that what was done is written and said."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eval_gate.engine.plan import RunPlan
from eval_gate.engine.run import Observer, Run
from eval_gate.errors import ExitCode
from eval_gate.model.result import RunResult

_SIGNALS = {
    signal.SIGINT: (ExitCode.INTERRUPTED, "interrupted (SIGINT)"),
    signal.SIGTERM: (ExitCode.TERMINATED, "ended from outside (SIGTERM)"),
}


async def execute(plan: RunPlan, output_dir: Path, observer: Observer) -> tuple[RunResult, ExitCode | None]:
    """The result, and the exit code of the signal that ended the run early, if one did. Closes the target."""
    run = Run(plan, output_dir, observer)
    try:
        with _stopped_by_signals(run) as caught:
            result = await run.execute()
    finally:
        await plan.aclose()
    return result, caught[0] if caught else None


@contextmanager
def _stopped_by_signals(run: Run) -> Iterator[list[ExitCode]]:
    """The first SIGINT or SIGTERM ends the run in good order; a second one ends the process.

    As the first process of a container Python has no default action for SIGTERM, so both are handled here.
    """
    caught: list[ExitCode] = []
    loop = asyncio.get_running_loop()

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
