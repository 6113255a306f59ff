"""Live progress: one updating line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from eval_gate.cli.terminal.console import (
    Verbosity,
    attach_log_handler,
    get_width,
    is_ascii_only,
    is_in_ci,
    print_progress,
)
from eval_gate.engine.journal import TrialRecord
from eval_gate.engine.run_plan import RunPlan
from eval_gate.engine.trials import DEFECT_LOGGER
from eval_gate.model.execution import Status
from eval_gate.process.signals import FINAL_ACTIONS
from eval_gate.reports.wording.progress import MAX_WAITING_MESSAGE, LogProgress, TrialCounts, format_opening_line
from eval_gate.session.run import RunObserver
from eval_gate.text.escape import to_console_line

if TYPE_CHECKING:
    from rich.progress import Progress as Bar


def create_progress(verbosity: Verbosity) -> RunObserver:
    """Create the progress display that fits standard error and the verbosity."""
    if verbosity is Verbosity.QUIET:
        return LogProgress(lambda _: None)
    if verbosity is Verbosity.VERBOSE:
        attach_log_handler(DEFECT_LOGGER)
    if sys.stderr.isatty() and not is_in_ci():
        return LiveProgress()
    return LogProgress(print_progress)


class LiveProgress:
    """One updating line: progress, and the last case that did not pass."""

    def __init__(self) -> None:
        self._counts = TrialCounts()
        self._bar: Bar | None = None
        self._last = ""

    def on_start(self, plan: RunPlan, total: int, completed: int) -> None:
        """Draw the line."""
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
        from rich.table import Column

        print_progress(format_opening_line(plan, total, completed))
        self._counts = TrialCounts(total, completed, plan)
        wide = get_width(sys.stderr)
        bar = [] if is_ascii_only(sys.stderr) else [BarColumn(bar_width=min(32, wide // 5))]
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
        FINAL_ACTIONS.add(_show_cursor)
        self._bar.start()
        self._bar.add_task("cases", total=total, completed=completed, counts=str(self._counts))

    def on_trial(self, trial_record: TrialRecord) -> None:
        """Move the line."""
        first = self._counts.add(trial_record)
        if trial_record.status is not Status.PASSED:
            self._last = f" · last: {to_console_line(trial_record.case_id, 60)}"
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], advance=int(first), counts=f"{self._counts}{self._last}")

    def on_wait(self, message: str) -> None:
        """Print the message above the line."""
        if self._bar is not None:
            self._bar.console.print(to_console_line(message, MAX_WAITING_MESSAGE), markup=False)

    def close(self) -> None:
        """Remove the line; the summary follows."""
        if self._bar is not None:
            self._bar.stop()
            FINAL_ACTIONS.discard(_show_cursor)


def _show_cursor() -> None:
    """Show the cursor again that the line hid, in the next line; nothing more, since this may run at any time."""
    with suppress(OSError, ValueError):
        os.write(sys.stderr.fileno(), b"\x1b[?25h\n")
