"""Comparison of a run with its baseline, case by case, and the gate verdict."""

from enum import StrEnum
from typing import Final, Self

from msgspec import field

from eval_gate.errors import ExitCode
from eval_gate.model.base import Record
from eval_gate.model.behaviour_change import BehaviourChanges
from eval_gate.model.case import CaseName, Location
from eval_gate.model.evidence import (
    CaseHistorySummary,
    ErrorFinding,
    Evidence,
    GroundKind,
    Grounds,
    PermittedRegression,
    RunReference,
    ScoreFinding,
    SuiteFinding,
)
from eval_gate.model.execution import BaselineResult
from eval_gate.model.metric_change import MetricChanges
from eval_gate.model.setup_change import SetupChanges

DEFAULT_SCORE_TOLERANCE: Final = 0.1
"""Default score drop that is not reported: scores of an LLM judge vary this much between runs."""


class CaseClass(StrEnum):
    """How a case changed between the baseline and this run."""

    REGRESSION = "regression"
    SUSPECTED_REGRESSION = "suspected_regression"
    """Fails in this run, without enough evidence: re-runs are missing because the gate had failed already or the budget
    was used, or every re-run failed too, but executions of one run belong together."""
    NEW_PASS = "new_pass"  # noqa: S105 (a class of cases, not a password)
    STILL_FAILING = "still_failing"
    STILL_PASSING = "still_passing"
    ADDED = "added"
    REMOVED = "removed"
    FLAKY = "flaky"
    """Passes in this run by majority, but has both passes and failures."""
    INCONCLUSIVE = "inconclusive"
    """The evidence is insufficient to tell whether the case regressed."""
    ERRORED = "errored"
    """Has no score in this run, but has one in the newest run of the baseline's branch; or failed, and its re-runs are
    missing: nothing can make any (`NOT_RERUN`), or they have no result (`MISSING_RERUNS`)."""
    STILL_ERRORED = "still_errored"
    """Has no score in this run, nor in the newest run of the baseline's branch."""
    NOT_RUN = "not_run"
    INCOMPARABLE = "incomparable"
    """The prompt or expectation changed, or no earlier run scored the case."""

    @property
    def is_compared(self) -> bool:
        """Whether both runs scored the case with the same fingerprint. No other case can be a regression."""
        return self in _COMPARED


_COMPARED: Final = frozenset(
    {
        *(CaseClass.REGRESSION, CaseClass.NEW_PASS, CaseClass.STILL_FAILING, CaseClass.STILL_PASSING),
        *(CaseClass.FLAKY, CaseClass.INCONCLUSIVE),
    }
)


class PassCount(Record, kw_only=True):
    """Passed executions out of all scored executions, and the mean score."""

    passes: int
    executions: int
    score: float
    meets_rule: bool | None = None
    """Whether the case passed by its pass rule; None without one, or if it does not decide."""

    @property
    def passed(self) -> bool:
        """Whether the case passed: by its rule, else if more than half of its scored executions did."""
        return self.passes * 2 > self.executions if self.meets_rule is None else self.meets_rule


class ScoreHistory(Record, kw_only=True):
    """Scores of one graded case over the runs of the branch with the same fingerprint."""

    runs: int
    mean: float
    spread: float
    """Standard deviation from run to run, estimated from this case and all graded cases; 0 to 1."""
    degrees_of_freedom: int = 0
    """Degrees of freedom of the spread; 0 if nothing is known about it."""
    from_one_run: bool = False
    """Only one earlier run exists: the spread is how much the scores of all graded cases differ between the two
    runs."""
    by_run: tuple[float | None, ...] = ()
    """Score in each recent run of the branch, newest first; None for a run without a comparable score. Empty if this
    run has another fingerprint, because no score is comparable."""


class CaseChange(CaseName, kw_only=True):
    """One case in the baseline and in this run. A side is None if the case was absent or never scored."""

    change: CaseClass
    baseline: PassCount | None = None
    current: PassCount | None = None
    compared_with: RunReference | None = None
    """The newest earlier run that scored the case with the same fingerprint, if it is not the baseline."""
    score_history: ScoreHistory | None = None
    """Scores of a graded case in the recent runs of the baseline's branch."""
    reason: str | None = None
    """What failed in this run, or why the case cannot be compared, in one line."""
    location: Location | None = None
    stale: bool = False
    graded: bool = False
    """The scores range from 0 to 1, instead of only 0 or 1."""
    score_change: float | None = None
    """Current score minus baseline score, of a graded case that both runs scored with the same fingerprint; else
    None."""
    score_drop: bool = False
    """The score of the case or of one of its evaluators dropped by more than the tolerance of the comparison."""
    behaves_differently: bool = False
    """The case passes in both runs and behaves differently: `Comparison.behaviour_changes` has how."""
    grounds: Grounds | None = None
    """Evidence for the class, if it rests on more than the two runs."""
    case_history: CaseHistorySummary | None = None
    """Summary of the case in the recent runs of the branch."""
    permitted: PermittedRegression | None = None
    """Permission with which the case became a regression of the branch, where nothing permits it in this run."""
    baseline_evaluator_scores: dict[str, float] = field(default_factory=dict)
    """Baseline scores of a graded case's evaluators, by name, if they differ from the current scores."""
    baseline_result: BaselineResult | None = None
    """Stored baseline result of a changed case that the baseline scored."""
    recent_results: str = ""
    """Results of the case in `Comparison.recent_runs`, one letter for each run: `P` passed, `F` failed, `M` both, `C`
    agent error, `E` no score, `-` not run or another fingerprint. Empty if nothing is known."""

    @property
    def counts_as_suspected(self) -> bool:
        """Whether reports count it with the regressions: it was not re-run, because the gate had already failed."""
        return self.grounds is not None and self.grounds.kind is GroundKind.GATE_FAILED


class UnscoredRun(Record, kw_only=True):
    """Run closer than the baseline that was passed over, because fewer than half of its cases have a score."""

    run_id: str
    sha: str | None = None
    scored: int
    cases: int


class BaselineFacts(Record, kw_only=True):
    """Facts about the baseline. Ages are set by the caller, which knows the clock and the git history."""

    run_id: str
    timestamp: str
    source: str
    """The baseline as the user named it: a path, a run id or an artifact."""
    sha: str | None = None
    age_days: float | None = None
    commits_behind: int | None = None
    base_sha: str | None = None
    """Commit that the change is compared with: the baseline is of this commit or an earlier one. None if unknown."""
    commits_since: int | None = None
    """Commits between the baseline and the base. Their effects are part of this comparison too."""
    pass_rate: float | None = None
    passed: int = 0
    total_cases: int = 0
    ran_cases: int | None = None
    """Cases that passed, failed or had an error; None if unknown."""
    suite_passes: dict[str, int] = field(default_factory=dict)
    """Number of passed cases by eval file."""
    total_duration_ms: float | None = None
    estimated_cost_usd: float | None = None
    """Like the duration, None if unknown, and if the baseline re-ran cases."""
    unscored_runs: tuple[UnscoredRun, ...] = ()
    """Closer runs that were passed over because too few cases have a score, closest first."""


class RecentRun(Record, kw_only=True):
    """Counts of one earlier run of the baseline's branch."""

    run_id: str
    timestamp: str
    sha: str | None = None
    passed: int = 0
    failed: int = 0
    errored: int = 0


class Comparison(Record, kw_only=True):
    """Comparison of all cases of both runs, in file order, with removed cases last."""

    baseline: BaselineFacts
    changes: tuple[CaseChange, ...] = ()
    notes: tuple[str, ...] = ()
    """What could not be compared, and why, in sentences."""
    suite_finding: SuiteFinding | None = None
    """Test of all cases together against their history; None with `reruns: 0`."""
    score_finding: ScoreFinding | None = None
    """Test of all scores together against their history; None for too few cases or with `reruns: 0`."""
    error_finding: ErrorFinding | None = None
    """Test of the agent errors of the whole run; None with `reruns: 0`."""
    false_alarm_rate: float | None = None
    """Accepted chance of a reported regression without a real change; None with `reruns: 0`."""
    evidence: Evidence | None = None
    """Further data behind the classes."""
    setup_changes: SetupChanges | None = None
    """Changes of the evaluation setup since the baseline; None until the verdict is decided."""
    behaviour_changes: BehaviourChanges | None = None
    """How cases that pass in both runs behave differently; None until the verdict is decided."""
    metric_changes: MetricChanges | None = None
    """How evaluators and tags compare with the baseline; None until the verdict is decided."""
    recent_runs: tuple[RecentRun, ...] = ()
    """Newest runs of the baseline's branch up to the baseline, newest first; at most 50."""
    score_tolerance: float = DEFAULT_SCORE_TOLERANCE
    """Score drop of a graded case above which `scoreDrop` is set."""

    def select_changes(self, *classes: CaseClass) -> tuple[CaseChange, ...]:
        """Return the changes that belong to these classes, in order."""
        return tuple(change for change in self.changes if change.change in classes)

    def list_score_drops(self) -> tuple[CaseChange, ...]:
        """Scores that fell by more than the tolerance, the largest drop first; regressions say so themselves."""
        dropped = [one for one in self.changes if one.score_drop and one.change is not CaseClass.REGRESSION]
        return tuple(sorted(dropped, key=lambda one: one.score_change or 0.0))


class Outcome(StrEnum):
    """Outcome of the gate. An inconclusive gate never passes."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"

    @property
    def exit_code(self) -> ExitCode:
        """Exit code of a command that ends with this outcome."""
        match self:
            case Outcome.PASSED:
                return ExitCode.PASSED
            case Outcome.FAILED:
                return ExitCode.FAILED
            case Outcome.INCONCLUSIVE:
                return ExitCode.INCOMPLETE


class RuleCode(StrEnum):
    """Code of a rule; a violation has the same code in the verdict's reasons.

    `label` is the name of the rule in tables and results.
    """

    label: str

    def __new__(cls, code: str, label: str) -> Self:
        """Create a member with `code` as its value and `label` as its name for people."""
        member = str.__new__(cls, code)
        member._value_, member.label = code, label
        return member

    REGRESSIONS = "regressions", "Regressions"
    SUITE_DROP = "suite-drop", "Suite test"
    SUITE_SCORES = "suite-score-drop", "All scores together"
    MUST_PASS = "must-pass", "Must pass"
    FAILURES = "failures", "Failures"
    SCORE_DROP = "max-score-drop", "Score drop"
    PASS_RATE = "min-pass-rate", "Pass rate"
    LATENCY = "max-latency-increase", "Latency"
    COST = "max-cost-increase", "Cost"
    TOKENS = "max-token-increase", "Tokens"
    AGENT_ERRORS = "agent-errors", "Agent errors"
    """Test of the agent errors of the whole run. A violation may be an outage."""
    ERRORS = "max-errors", "Errors"
    """Limit of execution errors. A violation says nothing about the change."""
    COVERAGE = "min-coverage", "Coverage"
    """Minimum share of cases with a score. A violation says nothing about the change."""
    FLAKY = "flaky", "Flaky cases"
    REMOVED_CASES = "removed", "Removed cases"
    CHANGED_CASES = "changed", "Changed cases"
    LOOSENED_RULES = "loosened-rules", "Loosened rules"
    NEW_FAILURES = "new-failures", "New failures"
    STALE = "stale", "Stale suites"


class ReasonCode(StrEnum):
    """Code of a reason of a verdict that is no rule, or of why there is no baseline."""

    PASSED = "passed"
    REPORT_ONLY = "report-only"
    NO_BASELINE = "no-baseline"
    NO_COMPARABLE_CASES = "no-comparable-cases"
    NO_VERDICT = "no-verdict"
    NO_SCORED_CASES = "no-scored-cases"
    TOO_FEW_SCORED_CASES = "too-few-scored-cases"
    RUN_INCOMPLETE = "run-incomplete"
    ALL_AGENT_ERRORS = "all-agent-errors"
    UNCONFIRMED_REGRESSIONS = "unconfirmed-regressions"
    MISSING_MUST_PASS_RESULT = "missing-must-pass-result"  # noqa: S105 (a code, not a password)
    MISSING_CASE_RESULT = "missing-case-result"
    NOT_IN_BASELINE = "not-in-baseline"
    NOT_COMPARABLE = "not-comparable"
    BASELINE_NOT_REQUESTED = "baseline-not-requested"
    NO_RUN_YET = "no-run-yet"
    NO_PASSING_BASELINE = "no-passing-baseline"
    BASELINE_LOST = "baseline-lost"
    BASELINE_UNAVAILABLE = "baseline-unavailable"
    BASELINE_BRANCH_NOT_FOUND = "baseline-branch-not-found"
    BASELINE_ARTIFACT_NOT_FOUND = "baseline-artifact-not-found"
    BRANCH_RENAMED = "branch-renamed"


class Reason(Record, kw_only=True):
    """One reason of a verdict, with a stable code such as `regressions` or `min-pass-rate`.

    `code` is a `RuleCode` or a `ReasonCode`, or in a stored result any text.
    """

    code: str
    message: str
    hint: str | None = None
    """What to do, as half a sentence, if that is known better than the advice of the code says it."""


class Rule(Record, kw_only=True):
    """One rule with its measured value, its limit and whether it holds."""

    name: str
    value: str
    limit: str
    ok: bool

    @property
    def code(self) -> RuleCode | None:
        """Code of the rule; None for a rule of a newer version."""
        return next((code for code in RuleCode if code.label == self.name), None)


class Verdict(Record, kw_only=True):
    """Gate verdict with its reasons, the decisive one first, and the rules that applied.

    `pass_score` is the score from which a graded case counts as passed in this verdict, whatever its status.
    """

    outcome: Outcome
    exit_code: ExitCode
    runs_until_failing: int | None = None
    """Further runs of history before which this failed gate exits with 0 (`reportOnly`); None for any other verdict."""
    reasons: tuple[Reason, ...] = ()
    rules: tuple[Rule, ...] = ()
    pass_score: float = 1.0

    def find_rule(self, code: RuleCode) -> Rule | None:
        """Return the rule with this code, or None if it did not apply."""
        return next((rule for rule in self.rules if rule.code is code), None)
