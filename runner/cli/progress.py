"""Live progress: a bar on a terminal, calm lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Protocol

from runner.cli.console import Verbosity, ascii_only, in_ci, say
from runner.engine.journal import TrialRecord
from runner.engine.plan import RunPlan
from runner.engine.run import Observer
from runner.model.result import Status
from runner.text.escape import console_line

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

CALM_SECONDS = 30.0
CALM_SHARE = 0.1


class Progress(Observer, Protocol):
    """An observer that has to be put away."""

    def close(self) -> None:
        """Leave the terminal as it was."""
        ...


def progress_for(verbosity: Verbosity) -> Progress:
    """The display that fits where standard error goes."""
    if verbosity is Verbosity.QUIET:
        return Silent()
    if sys.stderr.isatty() and not in_ci():
        return LiveProgress()
    return CalmProgress()


def opening_line(plan: RunPlan, total: int, done: int) -> str:
    """What is about to happen, in one line."""
    cases = len(plan.runnable())
    trials = f" × {plan.limits.trials} trials" if plan.limits.trials > 1 else ""
    resumed = f" · resuming, {done} of {total} done" if done else ""
    suites = len(plan.suites)
    return (
        f"running {cases} case{'s' if cases != 1 else ''}{trials} of {suites} suite{'s' if suites != 1 else ''} "
        f"against {plan.target.identity.identity}, {plan.limits.concurrency} at a time{resumed}"
    )


class Silent:
    """Says nothing."""

    def started(self, plan: RunPlan, total: int, done: int) -> None:
        """Ignore."""

    def finished(self, record: TrialRecord) -> None:
        """Ignore."""

    def close(self) -> None:
        """Nothing to put away."""


class _Counts:
    """Finished trials by status."""

    def __init__(self, total: int, done: int) -> None:
        self.total, self.done = total, done
        self.failed = self.errored = 0

    def add(self, record: TrialRecord) -> None:
        self.done += 1
        self.failed += record.status is Status.FAILED
        self.errored += record.status is Status.ERROR

    def __str__(self) -> str:
        parts = [f"{self.done}/{self.total}"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.errored:
            parts.append(f"{self.errored} error{'s' if self.errored != 1 else ''}")
        return " · ".join(parts)


class CalmProgress:
    """A line at every tenth of the way or every 30 seconds: readable in a log afterwards."""

    def __init__(self) -> None:
        self._counts = _Counts(0, 0)
        self._said_at = time.monotonic()
        self._next = 0.0

    def started(self, plan: RunPlan, total: int, done: int) -> None:
        """Say what is about to happen."""
        self._counts = _Counts(total, done)
        self._next = done + total * CALM_SHARE
        say(opening_line(plan, total, done))

    def finished(self, record: TrialRecord) -> None:
        """Say how far it is, now and then."""
        counts = self._counts
        counts.add(record)
        now = time.monotonic()
        if counts.done >= self._next or now - self._said_at >= CALM_SECONDS:
            say(f"  {counts}")
            self._said_at = now
            self._next = counts.done + counts.total * CALM_SHARE

    def close(self) -> None:
        """Nothing to put away."""


class LiveProgress:
    """A bar that moves, and every failure as it happens."""

    def __init__(self) -> None:
        self._counts = _Counts(0, 0)
        self._bar: Bar | None = None

    def started(self, plan: RunPlan, total: int, done: int) -> None:
        """Draw the bar."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        say(opening_line(plan, total, done))
        self._counts = _Counts(total, done)
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
        self._counts.add(record)
        if self._bar is not None:
            if record.status is not Status.PASSED:
                line = console_line(f"{record.case_id}: {record.error or record.status.value}", 300)
                self._bar.console.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
            self._bar.update(self._bar.task_ids[0], advance=1, counts=str(self._counts))

    def close(self) -> None:
        """Take the bar away; the summary follows."""
        if self._bar is not None:
            self._bar.stop()
