"""Live progress: one line that moves on a terminal, calm lines elsewhere."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from eval_gate.cli.terminal.console import Verbosity, ascii_only, columns_of, in_ci, listen_to, say
from eval_gate.engine.journal import TrialRecord
from eval_gate.engine.plan import RunPlan
from eval_gate.engine.trials import DEFECTS
from eval_gate.model.execution import Status
from eval_gate.process.ending import LAST
from eval_gate.reports.words.progress import MOST_SAID, CalmProgress, TrialCounts, opening_line
from eval_gate.session.run import RunObserver
from eval_gate.text.escape import console_line

if TYPE_CHECKING:
    from rich.progress import Progress as Bar


def progress_for(verbosity: Verbosity) -> RunObserver:
    """The display that fits where standard error goes."""
    if verbosity is Verbosity.QUIET:
        return CalmProgress(lambda _: None)
    if verbosity is Verbosity.VERBOSE:
        listen_to(DEFECTS)
    if sys.stderr.isatty() and not in_ci():
        return LiveProgress()
    return CalmProgress(say)


class LiveProgress:
    """One line that moves: how far it is, and which case was the last that did not pass. The summary names them all."""

    def __init__(self) -> None:
        self._counts = TrialCounts()
        self._bar: Bar | None = None
        self._last = ""

    def started(self, plan: RunPlan, total: int, done: int) -> None:
        """Draw the line."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.table import Column

        say(opening_line(plan, total, done))
        self._counts = TrialCounts(total, done, plan.limits.trials)
        wide = columns_of(sys.stderr)
        bar = [] if ascii_only(sys.stderr) else [BarColumn(bar_width=min(32, wide // 5))]
        self._bar = Progress(
            *bar,
            TimeElapsedColumn(),
            TextColumn(
                "{task.fields[counts]}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)
            ),
            console=Console(stderr=True, highlight=False, width=wide),
            transient=True,
            expand=True,
        )
        LAST.add(_show_cursor)
        self._bar.start()
        self._bar.add_task("cases", total=total, completed=done, counts=str(self._counts))

    def finished(self, record: TrialRecord) -> None:
        """Move the line."""
        first = self._counts.add(record)
        if record.status is not Status.PASSED:
            self._last = f" · last: {console_line(record.case_id, 60)}"
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], advance=int(first), counts=f"{self._counts}{self._last}")

    def waiting(self, said: str) -> None:
        """Say it above the line."""
        if self._bar is not None:
            self._bar.console.print(console_line(said, MOST_SAID), markup=False)

    def close(self) -> None:
        """Take the line away; the summary follows."""
        if self._bar is not None:
            self._bar.stop()
            LAST.discard(_show_cursor)


def _show_cursor() -> None:
    """Give the terminal back the cursor that the line hid, in the next line: no more than that, amid anything."""
    with suppress(OSError, ValueError):
        os.write(sys.stderr.fileno(), b"\x1b[?25h\n")
