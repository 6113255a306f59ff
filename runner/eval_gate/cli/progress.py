"""Live progress: a bar on a terminal, calm lines elsewhere."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from eval_gate.cli.console import Verbosity, ascii_only, in_ci, listen_to, say
from eval_gate.engine.journal import TrialRecord
from eval_gate.engine.plan import RunPlan
from eval_gate.engine.trials import DEFECTS
from eval_gate.model.execution import Status
from eval_gate.reports.words.progress import CalmProgress, Counts, opening_line
from eval_gate.session.run import Progress
from eval_gate.text.escape import console_line

if TYPE_CHECKING:
    from rich.progress import Progress as Bar


def progress_for(verbosity: Verbosity) -> Progress:
    """The display that fits where standard error goes."""
    if verbosity is Verbosity.QUIET:
        return Silent()
    if verbosity is Verbosity.VERBOSE:
        listen_to(DEFECTS)
    if sys.stderr.isatty() and not in_ci():
        return LiveProgress()
    return CalmProgress(say)


class Silent:
    """Says nothing."""

    def started(self, plan: RunPlan, total: int, done: int) -> None:
        """Ignore."""

    def finished(self, record: TrialRecord) -> None:
        """Ignore."""

    def close(self) -> None:
        """Nothing to put away."""


class LiveProgress:
    """A bar that moves, and every failure as it happens."""

    def __init__(self) -> None:
        self._counts = Counts()
        self._bar: Bar | None = None

    def started(self, plan: RunPlan, total: int, done: int) -> None:
        """Draw the bar."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        say(opening_line(plan, total, done))
        self._counts = Counts(total, done, plan.limits.trials)
        plain = ascii_only(sys.stderr)
        self._bar = Progress(
            TextColumn("running"),
            *([] if plain else [BarColumn(bar_width=32)]),
            TextColumn("{task.fields[counts]}", markup=False),
            TimeElapsedColumn(),
            console=Console(stderr=True, highlight=False),
            transient=True,
        )
        self._bar.start()
        self._bar.add_task("cases", total=total, completed=done, counts=str(self._counts))

    def finished(self, record: TrialRecord) -> None:
        """Move the bar; what did not pass is named above it."""
        first = self._counts.add(record)
        if self._bar is not None:
            if record.status is not Status.PASSED:
                line = console_line(f"{record.case_id}: {record.error or record.status.value}", 300)
                self._bar.console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
            self._bar.update(self._bar.task_ids[0], advance=int(first), counts=str(self._counts))

    def close(self) -> None:
        """Take the bar away; the summary follows."""
        if self._bar is not None:
            self._bar.stop()
