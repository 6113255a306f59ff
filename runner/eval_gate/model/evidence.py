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
    agent_errors: Annotated[int, Meta(ge=0)] = 0
    """How many of the failures gave no answer to judge: HTTP 5xx, broken off, malformed, too late."""

    @property
    def executions(self) -> int:
        """Executions that say something about the target."""
        return self.passes + self.failures

    @property
    def is_failing(self) -> bool:
        """Failed at least as often as it passed: a case passes when more than half of its executions do."""
        return self.executions > 0 and self.failures >= self.passes

    @property
    def inverse(self) -> "Counts":
        """The same with passes for failures: every question about failing is one about passing."""
        return Counts(passes=self.failures, failures=self.passes)

    def add(self, other: "Counts") -> "Counts":
        """Return the sum of both counts of executions."""
        if not other.executions:
            return self  # as of nearly every case, which was not run again
        return Counts(
            passes=self.passes + other.passes,
            failures=self.failures + other.failures,
            agent_errors=self.agent_errors + other.agent_errors,
        )

    @property
    def without_agent_errors(self) -> "Counts":
        """Only the executions with an answer that was judged."""
        return Counts(passes=self.passes, failures=self.failures - self.agent_errors) if self.agent_errors else self


NO_EXECUTIONS: Final = Counts()


class RunReference(Record, kw_only=True):
    """An earlier run, as far as people tell runs apart."""

    run_id: str
    sha: str | None = None
    """The commit that it evaluated; None where unknown."""


class Stability(StrEnum):
    """What the record of a case says about it."""

    UNKNOWN = "unknown"
    """There is no record of it."""
    PASSING = "passing"
    FAILING = "failing"
    CHANGED = "changed"
    """Passes and failures, but in a row each: perhaps it was broken or mended once, perhaps it is flaky."""
    FLAKY = "flaky"
    """Passes and failures by turns."""


class CaseHistorySummary(Record, kw_only=True):
    """A case over the recent runs of the default branch, as far back as it was the same case at the same level."""

    counts: Counts = NO_EXECUTIONS
    """First executions only: whether it was run again because it failed must not change its rate."""
    stability: Stability = Stability.UNKNOWN
    evidence_run_ids: tuple[str, ...] = ()
    """Ids of the runs that had the rarer of the two results, newest first; all that had both. Empty when steady."""
    newest_run: Counts = NO_EXECUTIONS
    """Of these the first executions in the newest run."""
    newest_failed: bool = False
    """It failed in the newest run that judged it, its re-runs included: the branch itself is broken."""
    broken_since: RunReference | None = None
    """The oldest of the newest runs that all failed it; None where the newest did not, or none ever passed it."""
    oldest_run_id: str | None = None
    """Id of the oldest run that counts, when older ones were left out because the case broke or was mended after."""

    @property
    def without_newest_run(self) -> Counts:
        """The answers without those of the newest run; all of them where there is no other run.

        Whoever leaves out the cases that the newest run failed has to leave that run out of the others as well: else
        what is left of their records is too good, because it was chosen for passing.
        """
        counts, newest = self.counts.without_agent_errors, self.newest_run.without_agent_errors
        left = Counts(passes=max(counts.passes - newest.passes, 0), failures=max(counts.failures - newest.failures, 0))
        return left if left.executions else counts

    @property
    def failure_rate(self) -> float | None:
        """Failures of judged executions, 0 to 1; None without a record."""
        return self.counts.failures / self.counts.executions if self.counts.executions else None


NO_HISTORY: Final = CaseHistorySummary()


class GroundKind(StrEnum):
    """What decided about a case. Words for it belong to the reports."""

    MAIN_BROKE = "main_broke"
    """It fails in the newest run of the default branch too, which had passed it before."""
    USUAL_RESULT = "usual_result"
    """As its record says it mostly is, although the baseline's one run was otherwise."""
    EVIDENCE = "evidence"
    """Too often for its record, at the error rate that was asked for."""
    EVERY_RUN = "every_run"
    """Every time, which is all that so few re-runs can show; the evidence is less than the error rate asks for."""
    SUITE_DROP = "suite"
    """The suite as a whole fails more than its record, and this case is part of that."""
    BASE_AGENT = "base_agent"
    """The base branch's agent, asked the same in the same minutes, fails it too: it is not of this change."""
    MUST_PASS = "must_pass"  # noqa: S105 (a rule for cases, not a password)
    """It must pass whatever its record, and failed twice."""
    RECOVERED = "recovered"
    """It passed again, so that the evidence does not suffice."""
    MIXED = "mixed"
    """Both results were seen here, more passes than failures."""
    MISSING_RERUNS = "missing_reruns"
    """Re-runs that would have decided are missing: they broke, or the run ended."""
    GATE_FAILED = "gate_failed"
    """It was not run again, or not often enough: the gate was red for certain by other cases."""

    BUDGET_USED = "budget_used"
    """Re-runs that would have decided are missing: the budget for them was spent."""
    TIMEOUTS = "timeouts"
    """It got no answer in time, as so many others that this is no property of single cases."""

    @property
    def is_inconclusive(self) -> bool:
        """Whether nobody knows what became of the case."""
        return self in {GroundKind.MISSING_RERUNS, GroundKind.GATE_FAILED, GroundKind.BUDGET_USED, GroundKind.TIMEOUTS}


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

    kind: GroundKind
    current: Counts
    """First execution (or trials) and re-runs together."""
    history: Counts
    reruns: int = 0
    """How many of those here were re-runs."""
    cases_before: Annotated[int, Meta(ge=0)] = 0
    """How many cases of its suite were executed before it in each re-run, because it works on their files."""
    chance: float | None = None
    """That a case with this record does this here, or worse, when nothing has changed; None when nothing was tested."""
    base_agent: Counts = NO_EXECUTIONS
    """What the base branch's agent answered when it was asked in the same minutes; none where it was not, or gave no
    answer that could be judged."""
    newest_failed: bool = False
    """It failed in the newest run on record too."""
    broken_since: RunReference | None = None
    """Since which run the default branch itself fails it, where that is why."""
    repeats: Repeats | None = None
    """That all re-runs repeated the first failure, and how fast; None where any said something else."""
    required_failures: int | None = None
    """The failures in a row, the first execution included, that would have been sure; None where none would."""

    @property
    def is_suspected(self) -> bool:
        """Whether it was not run again because the gate was red for certain by other cases."""
        return self.kind is GroundKind.GATE_FAILED

    @property
    def one_in(self) -> int | None:
        """The chance as "1 in so many", to one leading digit (two below 100), rounded down; None when not tested."""
        if self.chance is None:
            return None
        return MOST_ODDS if self.chance * MOST_ODDS <= 1 else _round_to_leading_digit(1 / self.chance)


BASE_AGENT_LIMIT: Final = 0.05
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
    steady_cases_only: bool = False
    """These are only the cases that seldom fail: they show more than all cases together, some of which got better."""
    chance_if_runs_equal: float | None = None
    """The chance if runs of the branch did not differ as a whole; None where its record does not show that they do."""
    base_agent: Counts = NO_EXECUTIONS
    """What the base branch's agent answered when it was asked all of them in the same minutes; none if it was not."""
    base_agent_chance: float | None = None
    """Of so many failures here when both agents are the same; None where that was not looked at."""

    @property
    def is_lower(self) -> bool:
        """Whether the suite as a whole fails more than its record."""
        return self.chance <= self.limit

    @property
    def is_drop(self) -> bool:
        """Whether that holds against the base branch's agent too, where it was asked."""
        return self.is_lower and (self.base_agent_chance is None or self.base_agent_chance <= BASE_AGENT_LIMIT)

    @property
    def is_run_variation(self) -> bool:
        """Whether it would be a drop if the branch's own runs did not differ as they do."""
        return self.chance_if_runs_equal is not None and self.chance_if_runs_equal <= self.limit < self.chance


class ScoreFinding(Record, kw_only=True):
    """The scores of all graded cases against their records, without the cases that are regressions by themselves."""

    cases: int
    """Graded cases that could be compared."""
    lower_cases: int
    """How many of them score lower here than on average on record."""
    fall: float
    """By how much they score lower here, on average over the cases; below 0 where they score higher."""
    chance: float
    """Of such a fall or a larger one when nothing has changed; 1 where it is too small to be looked at."""
    limit: float
    """The chance from which on it is called a drop."""
    base_agent_fall: float | None = None
    """By how much they score lower here than with the base branch's agent in the same minutes; None where it was not
    asked about all of them."""
    base_agent_chance: float | None = None
    """Of such a fall when both agents are the same; None where that was not looked at."""

    @property
    def is_lower(self) -> bool:
        """Whether the scores as a whole are lower than their records."""
        return self.chance <= self.limit

    @property
    def is_drop(self) -> bool:
        """Whether that holds against the base branch's agent too, where it was asked."""
        return self.is_lower and (self.base_agent_chance is None or self.base_agent_chance <= BASE_AGENT_LIMIT)

    @property
    def one_in(self) -> int:
        """The chance as "1 in so many", rounded as that of a case."""
        return MOST_ODDS if self.chance * MOST_ODDS <= 1 else _round_to_leading_digit(1 / self.chance)


class FailurePrior(Record, kw_only=True):
    """What is known of any case of a suite before it runs: as many passes and failures as if they had been seen."""

    passes: Annotated[float, Meta(gt=0)]
    failures: Annotated[float, Meta(gt=0)]
    weights: tuple[float, ...] = ()
    """The share of cases of each failure rate that a case can have; of an older run empty, and the two numbers do."""
    steady_share: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Of the cases of the least rate the part that failed next to never until now."""


class BranchRun(Record, kw_only=True):
    """One run of the branch as a whole: how many first executions failed, of the cases that pass and fail there.

    `expected` are as many as their records let expect of any run, and `variance` by how much that varies (its square)
    where runs do not differ as a whole.
    """

    failures: Annotated[int, Meta(ge=0)]
    expected: Annotated[float, Meta(ge=0)]
    variance: Annotated[float, Meta(ge=0)]


class UnscoredCase(CaseName, kw_only=True):
    """A case without a score in the baseline: its passes and executions in the newest earlier run that scored it.

    `run` is that run, `score` the mean score.
    """

    passes: Annotated[int, Meta(ge=0)]
    executions: Annotated[int, Meta(ge=1)]
    score: float
    run: RunReference | None = None


class Evidence(Record, kw_only=True):
    """What a verdict rests on, beside the cases' own records and executions.

    With it a stored run is judged again as it was judged first, wherever that is done.
    """

    baseline_run_id: str
    cases: Annotated[int, Meta(ge=1)]
    """Cases that share the error rate: all of the plan, also in a shard and where only some were chosen."""
    false_alarm_rate: Annotated[float, Meta(gt=0, lt=1)]
    reruns: Annotated[int, Meta(ge=0)]
    trials: Annotated[int, Meta(ge=1)] = 1
    """How often a case is executed whatever comes of it, before it may be run again."""
    pass_score: Annotated[float, Meta(gt=0, le=1)]
    prior: FailurePrior
    required_evidence: float | None = None
    """The evidence (an e-value) that a case needs, worked out for the records of these cases; None: N / error rate."""
    required_evidence_if_all_failed: float | None = None
    """The evidence that is enough of a case that failed every time here, and now and then on record."""
    history_runs: Annotated[int, Meta(ge=0)] = 0
    """Runs of the record that are at the level of the newest one."""
    branch_runs: Annotated[tuple[BranchRun, ...], Meta(max_length=1000)] = ()
    """These runs as a whole, newest first: how much they differ from each other is learned from them."""
    unscored_in_baseline: tuple[UnscoredCase, ...] = ()
    """What earlier runs say of cases that the baseline could not judge, whether they are still here or not."""

    @property
    def evidence_limit(self) -> float:
        """The evidence (an e-value) that the error rate asks of one case."""
        most = self.cases / self.false_alarm_rate
        return most if self.required_evidence is None else min(self.required_evidence, most)


def _round_to_leading_digit(odds: float) -> int:
    whole = int(odds)
    step = 10 ** (len(str(whole)) - 1)
    return whole if whole < 100 else whole // step * step
