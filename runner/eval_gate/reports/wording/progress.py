"""Wording for the progress of a run, and the progress lines of a log."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from eval_gate.engine.journal import TrialRecord
from eval_gate.engine.run_plan import RunPlan
from eval_gate.model.execution import Status
from eval_gate.text.escape import format_count, to_console_line

LOG_INTERVAL_SECONDS: Final = 10.0
MAX_WAITING_MESSAGE: Final = 400
"""Characters of a line about why the run waits."""


def format_opening_line(plan: RunPlan, total: int, finished: int) -> str:
    """Format the line that announces a run: its cases, suites, targets and concurrency, and what it reuses."""
    trials = f" × {plan.limits.trials} trials" if plan.limits.trials > 1 else ""
    resumed = f" · resuming, {finished} of {total} done" if finished else ""
    targets = plan.list_targets()
    against = ", ".join(target.identity.identity for target in targets)
    most = max(plan.get_concurrency(target) for target in targets)
    cases, suites = format_count(len(plan.list_runnable_cases()), "case"), format_count(len(plan.suites), "suite")
    reused = f"reusing {format_count(len(plan.reused), 'suite')}" if plan.reused else ""
    if not plan.suites:
        return f"running nothing: {reused}, because no measured file has changed"
    further = resumed or (reused and f" · {reused}")
    return f"running {cases}{trials} of {suites} against {against}, {most} at a time{further}"


class TrialCounts:
    """Counts of finished trials by status, and of re-runs."""

    def __init__(self, total: int = 0, finished: int = 0, plan: RunPlan | None = None) -> None:
        self.total, self.done = total, finished
        self.failed = self.errored = self.reruns = 0
        self._trials = plan.limits.trials if plan else 1
        self._own_trials = {one.key: one.trials for one in plan.list_runnable_cases() if one.trials} if plan else {}

    def add(self, trial_record: TrialRecord) -> bool:
        """Count a trial; return whether it is one of the total and not a re-run."""
        if trial_record.trial >= self._own_trials.get(trial_record.case, self._trials):
            self.reruns += 1
            return False
        self.done += 1
        self.failed += trial_record.status is Status.FAILED
        self.errored += trial_record.status is Status.ERROR
        return True

    def __str__(self) -> str:
        parts = [f"{self.done}/{self.total}"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.errored:
            parts.append(format_count(self.errored, "error"))
        if self.reruns:
            parts.append(format_count(self.reruns, "re-run"))
        return " · ".join(parts)


class LogProgress:
    """Progress in a log, at most a line every ten seconds and one at the end; `clock` returns seconds."""

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._say, self._clock = say, clock
        self._counts = TrialCounts()
        self._last_line = ""
        self._line_time = clock()

    def on_start(self, plan: RunPlan, total: int, finished: int) -> None:
        """Log the opening line."""
        self._counts = TrialCounts(total, finished, plan)
        self._last_line, self._line_time = str(self._counts), self._clock()
        self._say(format_opening_line(plan, total, finished))

    def on_trial(self, trial_record: TrialRecord) -> None:
        """Log the counts, at most every ten seconds."""
        self._counts.add(trial_record)
        if self._clock() - self._line_time >= LOG_INTERVAL_SECONDS:
            self._report_progress()

    def on_wait(self, message: str) -> None:
        """Log the message."""
        self._say(f"  {to_console_line(message, MAX_WAITING_MESSAGE)}")

    def close(self) -> None:
        """Log the last counts, unless the last line has them."""
        if str(self._counts) != self._last_line:
            self._report_progress()

    def _report_progress(self) -> None:
        self._last_line, self._line_time = str(self._counts), self._clock()
        self._say(f"  {self._last_line}")
