"""This run beside an earlier one, case by case, and what the policy makes of it."""

from enum import StrEnum
from typing import Final, Self

from msgspec import field

from eval_gate.errors import ExitCode
from eval_gate.model.base import Record
from eval_gate.model.case import CaseName, Location
from eval_gate.model.evidence import CaseHistorySummary, Evidence, Grounds, RunReference, ScoreFinding, SuiteFinding
from eval_gate.model.execution import BaselineResult
from eval_gate.model.setup_change import SetupChanges

DEFAULT_SCORE_TOLERANCE: Final = 0.1
"""A drop of a score that is not pointed out: what a judge gives one day and not the next."""


class CaseClass(StrEnum):
    """What became of a case between the baseline and this run."""

    REGRESSION = "regression"
    NEW_PASS = "new_pass"  # noqa: S105 (a class of cases, not a password)
    STILL_FAILING = "still_failing"
    STILL_PASSING = "still_passing"
    ADDED = "added"
    REMOVED = "removed"
    FLAKY = "flaky"
    """Passes here by majority, but both passes and failures were seen."""
    INCONCLUSIVE = "inconclusive"
    """Neither a regression nor clearly none: the evidence does not decide."""
    ERRORED = "errored"
    """Could not be judged here, unlike in the newest run of the baseline's branch."""
    STILL_ERRORED = "still_errored"
    """Could not be judged here, and not in the newest run of the baseline's branch either."""
    NOT_RUN = "not_run"
    INCOMPARABLE = "incomparable"
    """The question or the expectation is another one, or no earlier run ever judged it."""

    @property
    def is_compared(self) -> bool:
        """Whether both sides judged it by the same question. No other case is ever a regression by its answer."""
        return self in _COMPARED


_COMPARED: Final = frozenset(
    {
        *(CaseClass.REGRESSION, CaseClass.NEW_PASS, CaseClass.STILL_FAILING, CaseClass.STILL_PASSING),
        *(CaseClass.FLAKY, CaseClass.INCONCLUSIVE),
    }
)


class PassCount(Record, kw_only=True):
    """Passes `passes` of `executions` judged trials, and the mean score."""

    passes: int
    executions: int
    score: float

    @property
    def passed(self) -> bool:
        """Whether more than half of the judged trials passed, which is when a case does."""
        return self.passes * 2 > self.executions


class ScoreHistory(Record, kw_only=True):
    """The scores of one graded case over so many runs, by the same yardstick."""

    runs: int
    mean: float
    spread: float
    """The standard deviation from run to run, as its own record and those of all graded cases say; 0 to 1."""
    degrees_of_freedom: int = 0
    """How much is known of the spread: degrees of freedom; 0 for nothing."""
    from_one_run: bool = False
    """There is one earlier run: the spread is how the scores of all graded cases here differ from theirs there."""
    by_run: tuple[float | None, ...] = ()
    """The score in each of the branch's recent runs, the newest first; None where a run has none by this yardstick.
    Empty where this run measures by another one, so that there is nothing to be held against."""


class CaseChange(CaseName, kw_only=True):
    """One case on both sides. A side is None where the case was absent or never judged."""

    change: CaseClass
    baseline: PassCount | None = None
    current: PassCount | None = None
    compared_with: RunReference | None = None
    """The earlier run that judged it last by the same yardstick, where that was not the baseline."""
    score_history: ScoreHistory | None = None
    """The scores of a graded case over the recent runs of the baseline's branch."""
    reason: str | None = None
    """What failed here, or why there is nothing to compare, in one line."""
    location: Location | None = None
    stale: bool = False
    graded: bool = False
    """The scores are grades from 0 to 1, not just a yes or no."""
    score_change: float | None = None
    """Score here minus score then, of a graded case that both sides judged by the same question; else None."""
    score_drop: bool = False
    """The score fell by more than the comparison's tolerance."""
    grounds: Grounds | None = None
    """Why it is of this class, where more than the two runs was looked at."""
    case_history: CaseHistorySummary | None = None
    """What the branch's recent runs say about it."""
    baseline_evaluator_scores: dict[str, float] = field(default_factory=dict)
    """What the evaluators of a graded case gave in the baseline, by name, where it was another score than here."""
    baseline_result: BaselineResult | None = None
    """What the baseline's record keeps of it: of a case that is not as it was, and that the baseline judged."""
    recent_results: str = ""
    """What the runs of `Comparison.history` said of it, a letter each in their order: `P` passed, `F` failed, `M` both,
    `C` crashed, `E` not judged, `-` not run or by another yardstick. Empty where nothing is known."""


class UnscoredRun(Record, kw_only=True):
    """A run that was passed over as a baseline although it was nearer: fewer than half of its cases were judged."""

    run_id: str
    sha: str | None = None
    scored: int
    cases: int


class BaselineFacts(Record, kw_only=True):
    """Which earlier run this is. Ages are filled in by whoever knows the clock and the history."""

    run_id: str
    timestamp: str
    source: str
    """What the person named: a path, a run id, an artifact."""
    sha: str | None = None
    age_days: float | None = None
    commits_behind: int | None = None
    base_sha: str | None = None
    """The commit that the change is held against; this run is of it, or of one before it. None where nobody knows."""
    commits_since: int | None = None
    """How many commits the base has that this run's commit has not: what they did counts here too."""
    pass_rate: float | None = None
    passed: int = 0
    total_cases: int = 0
    suite_passes: dict[str, int] = field(default_factory=dict)
    """How many cases passed, by eval file."""
    total_duration_ms: float | None = None
    estimated_cost_usd: float | None = None
    unscored_runs: tuple[UnscoredRun, ...] = ()
    """Nearer runs that could not be measured, the nearest first."""


class RecentRun(Record, kw_only=True):
    """One earlier run of the baseline's branch, counted."""

    run_id: str
    timestamp: str
    sha: str | None = None
    passed: int = 0
    failed: int = 0
    errored: int = 0


class Comparison(Record, kw_only=True):
    """All cases of both runs, in file order, removed ones last."""

    baseline: BaselineFacts
    changes: tuple[CaseChange, ...] = ()
    notes: tuple[str, ...] = ()
    """Sentences about what could not be compared and why."""
    suite_finding: SuiteFinding | None = None
    """All cases together against their records; None where the plain rule was asked for."""
    score_finding: ScoreFinding | None = None
    """All scores together against their records; None where that is too few cases, or the plain rule was asked for."""
    false_alarm_rate: float | None = None
    """The accepted chance of a regression where nothing has changed; None with the plain rule."""
    evidence: Evidence | None = None
    """What else the classes rest on; None where an older version did not say."""
    setup_changes: SetupChanges | None = None
    """What differs in how the two runs were measured; None where an older version did not say."""
    recent_runs: tuple[RecentRun, ...] = ()
    """The newest runs of the baseline's branch up to the baseline, the newest first; at most 50."""
    score_tolerance: float = DEFAULT_SCORE_TOLERANCE
    """The drop of a graded case's score beyond which it is a `score_drop`."""

    def select_changes(self, *classes: CaseClass) -> tuple[CaseChange, ...]:
        """Return the changes that belong to these classes, in order."""
        return tuple(change for change in self.changes if change.change in classes)

    def list_score_drops(self) -> tuple[CaseChange, ...]:
        """Scores that fell by more than the tolerance, the largest drop first; regressions say so themselves."""
        dropped = [one for one in self.changes if one.score_drop and one.change is not CaseClass.REGRESSION]
        return tuple(sorted(dropped, key=lambda one: one.score_change or 0.0))


class Outcome(StrEnum):
    """What the gate says. `error`: it could not decide, which never counts as a pass."""

    PASSED = "passed"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"


class RuleCode(StrEnum):
    """A rule by the code that its breach has among the reasons; `label` is its name in a table and on record."""

    label: str

    def __new__(cls, code: str, shown: str) -> Self:
        """Create a member with `code` as its value and `shown` as its name for people."""
        made = str.__new__(cls, code)
        made._value_, made.label = code, shown
        return made

    REGRESSIONS = "regressions", "Regressions"
    SUITE_DROP = "suite-drop", "All cases together"
    SUITE_SCORES = "suite-score-drop", "All scores together"
    MUST_PASS = "must-pass", "Must pass"
    FAILURES = "failures", "Failures"
    SCORE_DROP = "max-score-drop", "Score drop"
    PASS_RATE = "min-pass-rate", "Pass rate"
    LATENCY = "max-latency-increase", "Latency"
    COST = "max-cost-increase", "Cost"
    TOKENS = "max-token-increase", "Tokens"
    ERRORS = "max-errors", "Errors"
    """About execution errors: its breach says nothing about the change."""
    COVERAGE = "min-coverage", "Coverage"
    """About how much was judged at all: its breach says nothing about the change either."""
    FLAKY = "flaky", "Flaky cases"
    REMOVED_CASES = "removed", "Removed cases"
    CHANGED_CASES = "changed", "Changed cases"
    LOOSENED_RULES = "loosened-rules", "Loosened rules"
    NEW_FAILURES = "new-failures", "New failures"
    STALE = "stale", "Stale suites"


class Reason(Record, kw_only=True):
    """One sentence of a verdict, with a stable code such as `regressions` or `min-pass-rate`."""

    code: str
    message: str


class Rule(Record, kw_only=True):
    """One line of the rule table: what was measured, what was allowed, whether that is fine."""

    name: str
    value: str
    limit: str
    ok: bool

    @property
    def code(self) -> RuleCode | None:
        """Which rule it is; None where a newer version named one that is not known here."""
        return next((code for code in RuleCode if code.label == self.name), None)


class Verdict(Record, kw_only=True):
    """The policy's answer. `reasons` are all there are, the decisive one first; `rules` are those that applied.

    `pass_score` is the score from which a graded case counts as passing in all of it, whatever its status.
    """

    outcome: Outcome
    exit_code: ExitCode
    reasons: tuple[Reason, ...] = ()
    rules: tuple[Rule, ...] = ()
    pass_score: float = 1.0

    def find_rule(self, code: RuleCode) -> Rule | None:
        """Return the rule with this code, or None if it did not apply."""
        return next((rule for rule in self.rules if rule.code is code), None)
