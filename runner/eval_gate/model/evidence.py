"""Evidence for the class of a case: counts, its history and the decisive grounds."""

from datetime import date
from enum import StrEnum
from typing import Annotated, Final

from msgspec import Meta

from eval_gate.model.base import Record
from eval_gate.model.case import CaseName, PassRule
from eval_gate.model.waiver import WaiverKind


class Counts(Record, kw_only=True):
    """Passed and failed responses to a case, and its agent errors, which are neither.

    Executions that say nothing about the target (agent unreachable, evaluation error) are not counted.
    """

    passes: Annotated[int, Meta(ge=0)] = 0
    failures: Annotated[int, Meta(ge=0)] = 0
    agent_errors: Annotated[int, Meta(ge=0)] = 0
    """Executions without a response to score: HTTP 5xx, broken off, malformed or timed out."""

    @property
    def executions(self) -> int:
        """Executions with a scored response."""
        return self.passes + self.failures

    @property
    def attempts(self) -> int:
        """Executions with a scored response or an agent error."""
        return self.executions + self.agent_errors

    @property
    def is_failing(self) -> bool:
        """Failed at least as often as it passed: a case passes when more than half of its executions do."""
        return self.executions > 0 and self.failures >= self.passes

    @property
    def inverse(self) -> "Counts":
        """Counts with passes and failures exchanged."""
        return Counts(passes=self.failures, failures=self.passes)

    def add(self, other: "Counts") -> "Counts":
        """Return the sum of both counts of executions."""
        if not other.attempts:
            return self  # as of nearly every case, which was not run again
        return Counts(
            passes=self.passes + other.passes,
            failures=self.failures + other.failures,
            agent_errors=self.agent_errors + other.agent_errors,
        )

    @property
    def without_agent_errors(self) -> "Counts":
        """The scored responses alone, for comparison with others."""
        return Counts(passes=self.passes, failures=self.failures) if self.agent_errors else self


NO_EXECUTIONS: Final = Counts()


class RunReference(Record, kw_only=True):
    """Reference to an earlier run by id and commit."""

    run_id: str
    sha: str | None = None
    """The evaluated commit; None if unknown."""


class Stability(StrEnum):
    """Stability of a case in its history."""

    UNKNOWN = "unknown"
    """The case has no history."""
    PASSING = "passing"
    FAILING = "failing"
    CHANGED = "changed"
    """Passes and failures in a row each: the case may have broken, been fixed, or be flaky."""
    FLAKY = "flaky"
    """Passes and failures alternate."""


class CaseHistorySummary(Record, kw_only=True):
    """Recent runs of a case on the default branch, back to its last change in fingerprint or pass rate."""

    counts: Counts = NO_EXECUTIONS
    """Counts of first executions only: re-runs would change the failure rate, because only failures are re-run."""
    stability: Stability = Stability.UNKNOWN
    evidence_run_ids: tuple[str, ...] = ()
    """Ids of the runs with the rarer of the two results, newest first, and of those with both. Empty for a stable
    case."""
    newest_run: Counts = NO_EXECUTIONS
    """Counts of the first executions in the newest of these runs."""
    newest_failed: bool = False
    """The newest run that scored the case failed it, including its re-runs: the branch itself is broken."""
    broken_since: RunReference | None = None
    """Oldest of the newest runs that all failed the case. None if the newest passed it, or if no run ever passed it."""
    oldest_run_id: str | None = None
    """Id of the oldest run that counts, if older runs are excluded because the case broke or was fixed since."""

    @property
    def without_newest_run(self) -> Counts:
        """Scored responses without those of the newest run; all of them if there is no other run.

        To exclude the cases that the newest run failed, a caller must exclude that run from the other cases too.
        Otherwise their histories are too good, because they were selected for passing.
        """
        counts, newest = self.counts.without_agent_errors, self.newest_run
        older = Counts(passes=max(counts.passes - newest.passes, 0), failures=max(counts.failures - newest.failures, 0))
        return older if older.executions else counts

    @property
    def failure_rate(self) -> float | None:
        """Failures out of scored executions, 0 to 1; None without a history."""
        return self.counts.failures / self.counts.executions if self.counts.executions else None


NO_HISTORY: Final = CaseHistorySummary()


class GroundKind(StrEnum):
    """Decisive grounds for the class of a case. The reports have the text for each."""

    MAIN_BROKE = "main_broke"
    """The case also fails in the newest run of the default branch, but passed there before."""
    USUAL_RESULT = "usual_result"
    """The result is the usual one in the history, although the baseline's single run differs."""
    EVIDENCE = "evidence"
    """The case fails too often for its history, at the configured false alarm rate."""
    EVERY_RUN = "every_run"
    """The case failed every time: the strongest result of so few re-runs, but weaker than the false alarm rate
    requires."""
    SUITE_DROP = "suite_drop"
    """All cases together fail more often than in their history, and this case contributes."""
    BASE_AGENT = "base_agent"
    """The base agent, run at the same time, fails the case too: the change is not the cause."""
    MUST_PASS = "must_pass"  # noqa: S105 (a rule for cases, not a password)
    """The case must pass whatever its history, and failed twice."""
    RECOVERED = "recovered"
    """A re-run passed, so the evidence is insufficient."""
    MIXED = "mixed"
    """The case has passes and failures in this run, with more passes."""
    MISSING_RERUNS = "missing_reruns"
    """Decisive re-runs are missing: they ended with an error, or the run ended."""
    NOT_RERUN = "not_rerun"
    """Nothing can re-run the case, and the executions that its tool made decide nothing."""
    GATE_FAILED = "gate_failed"
    """The case was not re-run, or not often enough, because other cases already failed the gate."""

    BUDGET_USED = "budget_used"
    """Decisive re-runs are missing because the re-run budget is used up."""
    RUN_SHARE = "run_share"
    """The case failed every time, but executions of one run belong together here. Only another run could confirm
    it, but attempts are not added up; a waiver covers it."""
    AGENT_ERRORS = "agent_errors"
    """The case has only agent errors, and so has the run, or main, so often that the case need not be the cause."""

    @property
    def is_inconclusive(self) -> bool:
        """Whether the class of the case is unknown."""
        return self in {
            GroundKind.MISSING_RERUNS,
            GroundKind.NOT_RERUN,
            GroundKind.GATE_FAILED,
            GroundKind.BUDGET_USED,
            GroundKind.RUN_SHARE,
        }

    @property
    def lacks_reruns(self) -> bool:
        """Whether the class is unknown because re-runs are missing that could have been made."""
        return self in {GroundKind.MISSING_RERUNS, GroundKind.GATE_FAILED, GroundKind.BUDGET_USED}


MOST_ODDS: Final = 1_000_000
"""Smallest reported chance, 1 in a million: no statistical model of an agent is more precise."""


class Repeats(Record, kw_only=True):
    """Re-runs of one case whose responses are all byte-identical to its first failure."""

    slowest_ms: float
    """Duration of the slowest re-run, in milliseconds."""
    first_ms: float
    """Duration of the first failure, in milliseconds."""
    cached: bool = False
    """The re-runs are so much faster that their responses seem to come from a cache."""


class Grounds(Record, kw_only=True):
    """Evidence for the class of a case: results in this run, its history, and the chance without a real change."""

    kind: GroundKind
    current: Counts
    """Counts in this run: first execution (or trials) and re-runs."""
    history: Counts
    reruns: int = 0
    """Number of re-runs among the executions of this run."""
    cases_before: Annotated[int, Meta(ge=0)] = 0
    """Cases of the suite that each re-run executed first, because this case depends on their files."""
    chance: float | None = None
    """Chance that a case with this history has this result or a worse one without a real change. None if not tested."""
    base_agent: Counts = NO_EXECUTIONS
    """Counts of the base agent, run at the same time. Empty if it was not run, or if no response could be scored."""
    newest_failed: bool = False
    """The case also failed in the newest run of the history."""
    broken_since: RunReference | None = None
    """First run in which the default branch itself fails the case, if that is the reason."""
    repeats: Repeats | None = None
    """Set if all re-runs repeated the first failure, with their durations; None if any response differs."""
    required_failures: int | None = None
    """Failures in a row, including the first execution, that would be sufficient evidence. None if no number is."""

    @property
    def one_in(self) -> int | None:
        """The n of "1 in n" chances, rounded down to one leading digit (two below 100); None if not tested."""
        if self.chance is None:
            return None
        return MOST_ODDS if self.chance * MOST_ODDS <= 1 else _round_to_leading_digit(1 / self.chance)


BASE_AGENT_LIMIT: Final = 0.05
"""Maximum chance at which a drop of all cases together is confirmed by fresh runs of the base agent. The history
already made the drop unlikely, so that this test is needed in few runs without a real change."""


class SuiteFinding(Record, kw_only=True):
    """Test of all cases together against their history, without cases that are regressions by themselves."""

    cases: int
    """Number of comparable cases."""
    failures: int
    """Number of these cases that failed their first execution; with trials, the number of failed executions."""
    expected: float
    """Number of failures expected from the history."""
    chance: float
    """Chance of at least this many failures without a real change."""
    limit: float
    """Chance at or below which the result is a drop."""
    executions: int | None = None
    """First executions of all these cases in this run; None if each case has one."""
    steady_cases_only: bool = False
    """Only the cases that rarely fail are tested: they show the drop more clearly than all cases, some improved."""
    chance_if_runs_equal: float | None = None
    """Chance if runs of the branch did not vary as a whole; None if the history shows no such variation."""
    base_agent: Counts = NO_EXECUTIONS
    """Counts of the base agent, run on all these cases at the same time; empty if it was not run."""
    base_agent_chance: float | None = None
    """Chance of this many failures if both agents are equal; None if not tested."""

    @property
    def is_lower(self) -> bool:
        """Whether all cases together fail more often than in their history."""
        return self.chance <= self.limit

    @property
    def is_drop(self) -> bool:
        """Whether the result is a drop, also compared with the base agent if it was run."""
        return self.is_lower and (self.base_agent_chance is None or self.base_agent_chance <= BASE_AGENT_LIMIT)

    @property
    def is_run_variation(self) -> bool:
        """Whether the result would be a drop if runs of the branch did not vary as a whole."""
        return self.chance_if_runs_equal is not None and self.chance_if_runs_equal <= self.limit < self.chance


class ErrorFinding(Record, kw_only=True):
    """Test of the agent errors of a run against the runs of the branch, without cases that are regressions.

    It counts first executions (or trials): only cases with an error or a wrong response have more.
    """

    errors: Annotated[int, Meta(ge=0)]
    """First executions that ended in an agent error."""
    executions: Annotated[int, Meta(ge=0)]
    """First executions that ended in an agent error or have a scored response."""
    expected: Annotated[float, Meta(ge=0)]
    """Errors expected from the runs of the branch."""
    chance: float
    """Chance of at least this many errors without a real change."""
    limit: float
    """Chance at or below which the errors are more than usual."""
    base_agent: Counts = NO_EXECUTIONS
    """Counts of the base agent, run at the same time; empty if it was not run."""
    base_agent_chance: float | None = None
    """Chance of so few errors of the base agent if both agents are equal; None if not tested."""

    @property
    def is_unusual(self) -> bool:
        """Whether the run has more agent errors than the runs of the branch explain."""
        return self.chance <= self.limit

    @property
    def is_caused_by_change(self) -> bool:
        """Whether the base agent, run in the same minutes, has far fewer errors."""
        return self.is_unusual and self.base_agent_chance is not None and self.base_agent_chance <= BASE_AGENT_LIMIT


class ScoreFinding(Record, kw_only=True):
    """Test of the scores of all graded cases against their history.

    Cases that are regressions by themselves are left out.
    """

    cases: int
    """Number of comparable graded cases."""
    lower_cases: int
    """Number of cases that score lower than their average in the history."""
    fall: float
    """Average score drop over the cases; negative if scores are higher."""
    chance: float
    """Chance of this drop or a larger one without a real change; 1 if the drop is too small to test."""
    limit: float
    """Chance at or below which the result is a drop."""
    base_agent_fall: float | None = None
    """Average score drop compared with the base agent, run at the same time. None if it did not run on all these
    cases."""
    base_agent_chance: float | None = None
    """Chance of this drop if both agents are equal; None if not tested."""

    @property
    def is_lower(self) -> bool:
        """Whether the scores of all cases together are lower than in their history."""
        return self.chance <= self.limit

    @property
    def is_drop(self) -> bool:
        """Whether the result is a drop, also compared with the base agent if it was run."""
        return self.is_lower and (self.base_agent_chance is None or self.base_agent_chance <= BASE_AGENT_LIMIT)

    @property
    def one_in(self) -> int:
        """The n of "1 in n" chances, rounded like that of a case."""
        return MOST_ODDS if self.chance * MOST_ODDS <= 1 else _round_to_leading_digit(1 / self.chance)


class FailurePrior(Record, kw_only=True):
    """Prior knowledge of any case of a suite: how many cases have each possible failure rate."""

    weights: Annotated[tuple[Annotated[float, Meta(gt=0, le=1)], ...], Meta(min_length=15, max_length=15)]
    """Share of cases at each possible failure rate."""
    steady_share: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Share of the cases with the lowest failure rate that have almost never failed."""


class RunShare(Record, kw_only=True, frozen=True):
    """Possible shares of a case's variance that belong to the run, with their weight.

    `trials` is the correlation of two first executions of a case in one run, `reruns` that of a re-run and a first
    execution.
    """

    trials: Annotated[float, Meta(ge=0, lt=1)]
    reruns: Annotated[float, Meta(ge=0, lt=1)]
    weight: Annotated[float, Meta(gt=0, le=1)]


class BranchRun(Record, kw_only=True):
    """Failed first executions in one run of the branch, of the cases that both pass and fail there.

    `expected` is the number of failures expected from the history, and `variance` its variance if runs do not vary as a
    whole.
    """

    failures: Annotated[int, Meta(ge=0)]
    expected: Annotated[float, Meta(ge=0)]
    variance: Annotated[float, Meta(ge=0)]


class ErrorRun(Record, kw_only=True):
    """Agent errors among the first executions of one run of the branch."""

    errors: Annotated[int, Meta(ge=0)]
    executions: Annotated[int, Meta(ge=1)]
    """First executions that ended in an agent error or have a scored response."""


class UnscoredCase(CaseName, kw_only=True):
    """Case without a score in the baseline, with the counts of the newest earlier run that scored it.

    `run` is that run, `score` the mean score.
    """

    passes: Annotated[int, Meta(ge=0)]
    executions: Annotated[int, Meta(ge=1)]
    score: float
    run: RunReference | None = None


class PermittedRegression(CaseName, kw_only=True, omit_defaults=True):
    """Regression that the branch still has because a run of it was allowed to pass with it."""

    waiver: WaiverKind | None = None
    """What permitted it; None for `allowedRegressions`, which permits it in one run."""
    until: date | None = None
    """Last day of the permission, in UTC; None if it has no day."""
    score: float | None = None
    """Score that the case fell from, if it passes with a lower score; None for a failing case."""
    taken_back: bool = False
    """This run has not got the permission although its last day has not passed."""


class Evidence(Record, kw_only=True):
    """Data behind a verdict in addition to the history and executions of the cases.

    With it, a stored run gets the same verdict wherever it is evaluated again.
    """

    baseline_run_id: str
    cases: Annotated[int, Meta(ge=1)]
    """Cases that share the false alarm rate: all cases of the plan, also in a shard or with a case selection."""
    false_alarm_rate: Annotated[float, Meta(gt=0, lt=1)]
    reruns: Annotated[int, Meta(ge=0)]
    trials: Annotated[int, Meta(ge=1)] = 1
    """Executions of each case before any re-run."""
    pass_rule: PassRule | None = None
    """The most frequent pass rule of the cases; None if none has one."""
    pass_score: Annotated[float, Meta(gt=0, le=1)]
    prior: FailurePrior
    required_evidence: float | None = None
    """Evidence (an e-value) that a case needs, calculated from the history of these cases. None: cases / false alarm
    rate."""
    required_evidence_if_all_failed: float | None = None
    """Evidence that is sufficient for a case that failed every time in this run and occasionally in its history."""
    required_evidence_if_never_failed: float = 0.0
    """Evidence that is sufficient for a case that failed every time in this run and never in its history."""
    run_share: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    """Share of a case's variance that re-runs without a wait have in common with the first execution. Re-runs wait
    because of it; 0 if too few runs show it."""
    shares: Annotated[tuple[RunShare, ...], Meta(max_length=100)] = ()
    """Possible shares of this run; empty if its executions are independent."""
    history_worth: Annotated[float, Meta(gt=0, le=1)] = 1.0
    """Independent executions that one in the history is worth, because trials of one run belong together."""
    history_runs: Annotated[int, Meta(ge=0)] = 0
    """Runs of the history at the level of the newest run."""
    comparable_runs: Annotated[int, Meta(ge=0)] | None = None
    """Usable runs of the same target in the history; None if the run does not say."""
    branch_runs: Annotated[tuple[BranchRun, ...], Meta(max_length=1000)] = ()
    """Totals of these runs, newest first, to estimate how much runs vary."""
    error_runs: Annotated[tuple[ErrorRun, ...], Meta(max_length=1000)] = ()
    """Agent errors of the runs of the history, newest first."""
    unscored_in_baseline: tuple[UnscoredCase, ...] = ()
    """Earlier results of cases without a score in the baseline, including cases that were removed since."""
    permitted_regressions: tuple[PermittedRegression, ...] = ()
    """Regressions that the baseline has because they were permitted, by their names there."""


def _round_to_leading_digit(odds: float) -> int:
    whole = int(odds)
    step = 10 ** (len(str(whole)) - 1)
    return whole if whole < 100 else whole // step * step
