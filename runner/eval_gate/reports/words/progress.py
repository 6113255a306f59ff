"""A run's progress in words: what is about to happen, counts, and calm lines for a log."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from eval_gate.engine.journal import TrialRecord
from eval_gate.engine.plan import RunPlan
from eval_gate.model.execution import Status
from eval_gate.reports.words.numbers import count
from eval_gate.text.escape import console_line

CALM_SECONDS: Final = 10.0
MOST_SAID: Final = 400
"""Characters of a line about a target that is waited for."""


def opening_line(plan: RunPlan, total: int, done: int) -> str:
    """What is about to happen, in one line."""
    trials = f" × {plan.limits.trials} trials" if plan.limits.trials > 1 else ""
    resumed = f" · resuming, {done} of {total} done" if done else ""
    targets = plan.every_target()
    against = ", ".join(target.identity.identity for target in targets)
    most = max(plan.concurrency_of(target) for target in targets)
    cases, suites = count(len(plan.runnable()), "case"), count(len(plan.suites), "suite")
    return f"running {cases}{trials} of {suites} against {against}, {most} at a time{resumed}"


class TrialCounts:
    """Finished trials by status, and re-runs beside them; of `trials` each case has so many."""

    def __init__(self, total: int = 0, done: int = 0, trials: int = 1) -> None:
        self.total, self.done = total, done
        self.failed = self.errored = self.reruns = 0
        self._trials = trials

    def add(self, record: TrialRecord) -> bool:
        """Count one more; whether it was one of the total, and no re-run."""
        if record.trial >= self._trials:
            self.reruns += 1
            return False
        self.done += 1
        self.failed += record.status is Status.FAILED
        self.errored += record.status is Status.ERROR
        return True

    def __str__(self) -> str:
        parts = [f"{self.done}/{self.total}"]
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.errored:
            parts.append(count(self.errored, "error"))
        if self.reruns:
            parts.append(count(self.reruns, "re-run"))
        return " · ".join(parts)


class CalmProgress:
    """A line every ten seconds at most, and one at the end: readable in a log afterwards, however many cases there are.

    `clock` returns seconds from any point on.
    """

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._say, self._clock = say, clock
        self._counts = TrialCounts()
        self._said = ""
        self._said_at = clock()

    def started(self, plan: RunPlan, total: int, done: int) -> None:
        """Say what is about to happen."""
        self._counts = TrialCounts(total, done, plan.limits.trials)
        self._said, self._said_at = str(self._counts), self._clock()
        self._say(opening_line(plan, total, done))

    def finished(self, record: TrialRecord) -> None:
        """Say how far it is, now and then."""
        self._counts.add(record)
        if self._clock() - self._said_at >= CALM_SECONDS:
            self._tell()

    def waiting(self, said: str) -> None:
        """Say it."""
        self._say(f"  {console_line(said, MOST_SAID)}")

    def close(self) -> None:
        """Say how far it came, where that was not the last line."""
        if str(self._counts) != self._said:
            self._tell()

    def _tell(self) -> None:
        self._said, self._said_at = str(self._counts), self._clock()
        self._say(f"  {self._said}")
