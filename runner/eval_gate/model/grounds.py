"""What a verdict on one case rests on, as data: counts, the record of the case, and what decided."""

from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta

from eval_gate.model.base import Record
from eval_gate.model.case import CaseName


class Counts(Record, kw_only=True):
    """How often a case passed, and how often it did not: it answered wrong, or it crashed.

    Executions that say nothing about the target (no connection, a broken judge) are in neither.
    """

    passes: Annotated[int, Meta(ge=0)] = 0
    failures: Annotated[int, Meta(ge=0)] = 0
    crashes: Annotated[int, Meta(ge=0)] = 0
    """How many of the failures gave no answer to judge: HTTP 5xx, broken off, malformed, too late."""

    @property
    def runs(self) -> int:
        """Executions that say something about the target."""
        return self.passes + self.failures

    @property
    def fails(self) -> bool:
        """Failed at least as often as it passed: a case passes when more than half of its executions do."""
        return self.runs > 0 and self.failures >= self.passes

    @property
    def swapped(self) -> "Counts":
        """The same with passes for failures: every question about failing is one about passing."""
        return Counts(passes=self.failures, failures=self.passes)

    def plus(self, other: "Counts") -> "Counts":
        """The executions of both, counted together."""
        if not other.runs:
            return self  # as of nearly every case, which was not run again
        return Counts(
            passes=self.passes + other.passes,
            failures=self.failures + other.failures,
            crashes=self.crashes + other.crashes,
        )

    @property
    def answered(self) -> "Counts":
        """Only the executions with an answer that was judged."""
        return Counts(passes=self.passes, failures=self.failures - self.crashes) if self.crashes else self


NO_RUNS: Final = Counts()


class RunName(Record, kw_only=True):
    """An earlier run, as far as people tell runs apart."""

    run_id: str
    sha: str | None = None
    """The commit that it evaluated; None where unknown."""


class Steadiness(StrEnum):
    """What the record of a case says about it."""

    UNKNOWN = "unknown"
    """There is no record of it."""
    PASSING = "passing"
    FAILING = "failing"
    CHANGED = "changed"
    """Passes and failures, but in a row each: perhaps it was broken or mended once, perhaps it is flaky."""
    FLAKY = "flaky"
    """Passes and failures by turns."""


class CaseRecord(Record, kw_only=True):
    """A case over the recent runs of the default branch, as far back as it was the same case at the same level."""

    counts: Counts = NO_RUNS
    """First executions only: whether it was run again because it failed must not change its rate."""
    steadiness: Steadiness = Steadiness.UNKNOWN
    shown_by: tuple[str, ...] = ()
    """Ids of the runs that had the rarer of the two results, newest first; all that had both. Empty when steady."""
    newest: Counts = NO_RUNS
    """Of these the first executions in the newest run."""
    newest_failed: bool = False
    """It failed in the newest run that judged it, its re-runs included: the branch itself is broken."""
    broken_since: RunName | None = None
    """The oldest of the newest runs that all failed it; None where the newest did not, or none ever passed it."""
    since: str | None = None
    """Id of the oldest run that counts, when older ones were left out because the case broke or was mended after."""

    @property
    def before_newest(self) -> Counts:
        """The answers without those of the newest run; all of them where there is no other run.

        Whoever leaves out the cases that the newest run failed has to leave that run out of the others as well: else
        what is left of their records is too good, because it was chosen for passing.
        """
        counts, newest = self.counts.answered, self.newest.answered
        left = Counts(passes=max(counts.passes - newest.passes, 0), failures=max(counts.failures - newest.failures, 0))
        return left if left.runs else counts

    @property
    def failure_rate(self) -> float | None:
        """Failures of judged executions, 0 to 1; None without a record."""
        return self.counts.failures / self.counts.runs if self.counts.runs else None


NO_RECORD: Final = CaseRecord()


class GroundKind(StrEnum):
    """What decided about a case. Words for it belong to the reports."""

    MAIN_BROKE = "main-broke"
    """It fails in the newest run of the default branch too, which had passed it before."""
    KNOWN = "known"
    """As its record says it mostly is, although the baseline's one run was otherwise."""
    EVIDENCE = "evidence"
    """Too often for its record, at the error rate that was asked for."""
    EVERY_RUN = "every-run"
    """Every time, which is all that so few re-runs can show; the evidence is less than the error rate asks for."""
    SUITE = "suite"
    """The suite as a whole fails more than its record, and this case is part of that."""
    CONTROL = "control"
    """The base branch's agent, asked the same in the same minutes, fails it too: it is not of this change."""
    MUST_PASS = "must-pass"  # noqa: S105 (a rule for cases, not a password)
    """It must pass whatever its record, and failed twice."""
    RECOVERED = "recovered"
    """It passed again, so that the evidence does not suffice."""
    MIXED = "mixed"
    """Both results were seen here, more passes than failures."""
    NOT_RERUN = "not-rerun"
    """Re-runs that would have decided are missing: they broke, or the run ended."""
    NOT_ASKED = "not-asked"
    """It was not run again, or not often enough: the gate was red for certain by other cases."""

    SPENT = "spent"
    """Re-runs that would have decided are missing: the budget for them was spent."""
    SLOW = "slow"
    """It got no answer in time, as so many others that this is no property of single cases."""

    @classmethod
    def _missing_(cls, value: object) -> "GroundKind | None":
        """Read the ground of older results that an earlier version found in several runs of a change together."""
        return cls.EVIDENCE if value == "pushes" else None

    @property
    def undecided(self) -> bool:
        """Whether nobody knows what became of the case."""
        return self in {GroundKind.NOT_RERUN, GroundKind.NOT_ASKED, GroundKind.SPENT, GroundKind.SLOW}


MOST_ODDS: Final = 1_000_000
"""Nothing is called rarer than one in a million: no model of an agent is that good."""


class Repeats(Record, kw_only=True):
    """Re-runs of one case that all answered byte for byte as its first failure did."""

    slowest_ms: float
    """How long the slowest re-run took."""
    first_ms: float
    """How long the first failure took."""
    cached: bool = False
    """They were so much faster that they look as if they came from a cache."""


class Grounds(Record, kw_only=True):
    """Why a case got its class: what was seen here, what its record says, and how likely that is by chance."""

    why: GroundKind
    here: Counts
    """First execution (or trials) and re-runs together."""
    record: Counts
    reruns: int = 0
    """How many of those here were re-runs."""
    cases_before: Annotated[int, Meta(ge=0)] = 0
    """How many cases of its suite were executed before it in each re-run, because it works on their files."""
    chance: float | None = None
    """That a case with this record does this here, or worse, when nothing has changed; None when nothing was tested."""
    control: Counts = NO_RUNS
    """What the base branch's agent answered when it was asked in the same minutes; none where it was not, or gave no
    answer that could be judged."""
    newest_failed: bool = False
    """It failed in the newest run on record too."""
    broken_since: RunName | None = None
    """Since which run the default branch itself fails it, where that is why."""
    repeats: Repeats | None = None
    """That all re-runs repeated the first failure, and how fast; None where any said something else."""
    needed: int | None = None
    """The failures in a row, the first execution included, that would have been sure; None where none would."""

    @property
    def spared(self) -> bool:
        """Whether it was not run again because the gate was red for certain by other cases."""
        return self.why is GroundKind.NOT_ASKED

    @property
    def one_in(self) -> int | None:
        """The chance as "1 in so many", to one leading digit (two below 100), rounded down; None when not tested."""
        if self.chance is None:
            return None
        return MOST_ODDS if self.chance * MOST_ODDS <= 1 else _leading(1 / self.chance)


CONTROL_LIMIT: Final = 0.05
"""The chance up to which a drop of the whole holds against fresh runs of the base branch's agent: it has been found
unlikely by the record before, so that this is only asked of few runs in which nothing changed."""


class SuiteFinding(Record, kw_only=True):
    """The suite as a whole against its record, without the cases that are regressions by themselves."""

    cases: int
    """Cases that could be compared."""
    failures: int
    """How many of them failed their first execution here; with trials, how many executions failed."""
    expected: float
    """As many as the records let expect."""
    chance: float
    """Of at least so many failures when nothing has changed."""
    limit: float
    """The chance from which on it is called a drop."""
    executions: int | None = None
    """First executions here of all these cases together; None where each case has one."""
    steady: bool = False
    """These are only the cases that seldom fail: they show more than all cases together, some of which got better."""
    if_alike: float | None = None
    """The chance if runs of the branch did not differ as a whole; None where its record does not show that they do."""
    control: Counts = NO_RUNS
    """What the base branch's agent answered when it was asked all of them in the same minutes; none if it was not."""
    control_chance: float | None = None
    """Of so many failures here when both agents are the same; None where that was not looked at."""

    @property
    def lower(self) -> bool:
        """Whether the suite as a whole fails more than its record."""
        return self.chance <= self.limit

    @property
    def dropped(self) -> bool:
        """Whether that holds against the base branch's agent too, where it was asked."""
        return self.lower and (self.control_chance is None or self.control_chance <= CONTROL_LIMIT)

    @property
    def excused(self) -> bool:
        """Whether it would be a drop if the branch's own runs did not differ as they do."""
        return self.if_alike is not None and self.if_alike <= self.limit < self.chance


class ScoreFinding(Record, kw_only=True):
    """The scores of all graded cases against their records, without the cases that are regressions by themselves."""

    cases: int
    """Graded cases that could be compared."""
    lower: int
    """How many of them score lower here than on average on record."""
    fall: float
    """By how much they score lower here, on average over the cases; below 0 where they score higher."""
    chance: float
    """Of such a fall or a larger one when nothing has changed; 1 where it is too small to be looked at."""
    limit: float
    """The chance from which on it is called a drop."""
    control_fall: float | None = None
    """By how much they score lower here than with the base branch's agent in the same minutes; None where it was not
    asked about all of them."""
    control_chance: float | None = None
    """Of such a fall when both agents are the same; None where that was not looked at."""

    @property
    def lower_than_record(self) -> bool:
        """Whether the scores as a whole are lower than their records."""
        return self.chance <= self.limit

    @property
    def dropped(self) -> bool:
        """Whether that holds against the base branch's agent too, where it was asked."""
        return self.lower_than_record and (self.control_chance is None or self.control_chance <= CONTROL_LIMIT)

    @property
    def one_in(self) -> int:
        """The chance as "1 in so many", rounded as that of a case."""
        return MOST_ODDS if self.chance * MOST_ODDS <= 1 else _leading(1 / self.chance)


class Belief(Record, kw_only=True):
    """What is known of any case of a suite before it runs: as many passes and failures as if they had been seen."""

    passes: Annotated[float, Meta(gt=0)]
    failures: Annotated[float, Meta(gt=0)]
    weights: tuple[float, ...] = ()
    """The share of cases of each failure rate that a case can have; of an older run empty, and the two numbers do."""
    steady: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Of the cases of the least rate the part that failed next to never until now."""


class RunDay(Record, kw_only=True):
    """One run of the branch as a whole: how many first executions failed, of the cases that pass and fail there.

    `expected` are as many as their records let expect of any run, and `variance` by how much that varies (its square)
    where runs do not differ as a whole.
    """

    failures: Annotated[int, Meta(ge=0)]
    expected: Annotated[float, Meta(ge=0)]
    variance: Annotated[float, Meta(ge=0)]


class LostCase(CaseName, kw_only=True):
    """A case that the baseline could not judge: passes `k` of `n` judged executions of the newest earlier run that did.

    `run` is that run, `score` the mean score.
    """

    k: Annotated[int, Meta(ge=0)]
    n: Annotated[int, Meta(ge=1)]
    score: float
    run: RunName | None = None


class Evidence(Record, kw_only=True):
    """What a verdict rests on, beside the cases' own records and executions.

    With it a stored run is judged again as it was judged first, wherever that is done.
    """

    baseline_run_id: str
    cases: Annotated[int, Meta(ge=1)]
    """Cases that share the error rate: all of the plan, also in a shard and where only some were chosen."""
    error_rate: Annotated[float, Meta(gt=0, lt=1)]
    confirm: Annotated[int, Meta(ge=0)]
    trials: Annotated[int, Meta(ge=1)] = 1
    """How often a case is executed whatever comes of it, before it may be run again."""
    pass_score: Annotated[float, Meta(gt=0, le=1)]
    belief: Belief
    sure: float | None = None
    """The evidence (an e-value) that a case needs, worked out for the records of these cases; None: N / error rate."""
    every: float | None = None
    """The evidence that is enough of a case that failed every time here, and now and then on record."""
    runs: Annotated[int, Meta(ge=0)] = 0
    """Runs of the record that are at the level of the newest one."""
    days: Annotated[tuple[RunDay, ...], Meta(max_length=1000)] = ()
    """These runs as a whole, newest first: how much they differ from each other is learned from them."""
    lost: tuple[LostCase, ...] = ()
    """What earlier runs say of cases that the baseline could not judge, whether they are still here or not."""

    @property
    def bar(self) -> float:
        """The evidence (an e-value) that the error rate asks of one case."""
        most = self.cases / self.error_rate
        return most if self.sure is None else min(self.sure, most)


def _leading(odds: float) -> int:
    whole = int(odds)
    step = 10 ** (len(str(whole)) - 1)
    return whole if whole < 100 else whole // step * step
