"""What a verdict on one case rests on, as data: counts, the record of the case, and what decided."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from pydantic import Field

from runner.model.base import Record


class Counts(Record):
    """How often a case passed and failed. Executions that could not be judged are in neither."""

    passes: int = Field(default=0, ge=0)
    failures: int = Field(default=0, ge=0)

    @property
    def runs(self) -> int:
        """Judged executions."""
        return self.passes + self.failures

    @property
    def fails(self) -> bool:
        """Failed at least as often as it passed: a case passes when more than half of its executions do."""
        return self.runs > 0 and self.failures >= self.passes

    @property
    def swapped(self) -> Counts:
        """The same with passes for failures: every question about failing is one about passing."""
        return Counts(passes=self.failures, failures=self.passes)

    def plus(self, other: Counts) -> Counts:
        """Both together."""
        return Counts(passes=self.passes + other.passes, failures=self.failures + other.failures)


NO_RUNS: Final = Counts()


class Steadiness(StrEnum):
    """What the record of a case says about it."""

    UNKNOWN = "unknown"
    """There is no record."""
    PASSING = "passing"
    FAILING = "failing"
    CHANGED = "changed"
    """Passes and failures, but in a row each: perhaps it was broken or mended once, perhaps it is flaky."""
    FLAKY = "flaky"
    """Passes and failures by turns."""


class CaseRecord(Record):
    """A case over the recent runs of the default branch, as far back as it was the same case at the same level."""

    counts: Counts = NO_RUNS
    """First executions only: whether it was run again because it failed must not change its rate."""
    steadiness: Steadiness = Steadiness.UNKNOWN
    shown_by: tuple[str, ...] = ()
    """Ids of the runs that had the rarer of the two results, newest first; all that had both. Empty when steady."""
    newest_failed: bool = False
    """It failed in the newest run that judged it: perhaps the branch itself is broken since."""
    since: str | None = None
    """Id of the oldest run that counts, when older ones were left out because the case broke or was mended after."""

    @property
    def failure_rate(self) -> float | None:
        """Failures of judged executions, 0 to 1; None without a record."""
        return self.counts.failures / self.counts.runs if self.counts.runs else None


NO_RECORD: Final = CaseRecord()


class Why(StrEnum):
    """What decided about a case. Words for it belong to the reports."""

    KNOWN = "known"
    """As its record says it mostly is, although the baseline's one run was otherwise."""
    EVIDENCE = "evidence"
    """Too often for its record, at the error rate that was asked for."""
    EVERY_RUN = "every-run"
    """Every time, which is all that so few re-runs can show; the evidence is less than the error rate asks for."""
    SUITE = "suite"
    """The suite as a whole fails more than its record, and this case is part of that."""
    MUST_PASS = "must-pass"  # noqa: S105 (a rule for cases, not a password)
    """It must pass whatever its record, and failed twice."""
    RECOVERED = "recovered"
    """It passed again, so that the evidence does not suffice."""
    MIXED = "mixed"
    """Both results were seen here, more passes than failures."""
    NOT_RERUN = "not-rerun"
    """Re-runs that would have decided are missing: they broke, or the run ended."""


MOST_ODDS: Final = 1_000_000
"""Nothing is called rarer than one in a million: no model of an agent is that good."""


class Grounds(Record):
    """Why a case got its class: what was seen here, what its record says, and how likely that is by chance."""

    why: Why
    here: Counts
    """First execution (or trials) and re-runs together."""
    record: Counts
    reruns: int = 0
    """How many of those here were re-runs."""
    chance: float | None = None
    """That a case with this record does this here, or worse, when nothing has changed; None when nothing was tested."""
    newest_failed: bool = False
    """It failed in the newest run on record too."""

    @property
    def one_in(self) -> int | None:
        """The chance as "1 in so many", to one leading digit (two below 100), rounded down; None when not tested."""
        if self.chance is None:
            return None
        return MOST_ODDS if self.chance * MOST_ODDS <= 1 else _leading(1 / self.chance)


class SuiteFinding(Record):
    """The suite as a whole against its record, without the cases that are regressions by themselves."""

    cases: int
    """Cases that could be compared."""
    failures: int
    """Failed first executions here."""
    expected: float
    """As many as the records let expect."""
    chance: float
    """Of at least so many failures when nothing has changed."""
    limit: float
    """The chance from which on it is called a drop."""

    @property
    def dropped(self) -> bool:
        """Whether the suite as a whole fails more than its record."""
        return self.chance <= self.limit


def _leading(odds: float) -> int:
    whole = int(odds)
    step = 10 ** (len(str(whole)) - 1)
    return whole if whole < 100 else whole // step * step
