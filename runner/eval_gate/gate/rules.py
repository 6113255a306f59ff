"""Apply the rules of the policy to a run: measured value, limit, and the sentence of a breach."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Final

from eval_gate.config.policy import FailOn, Policy
from eval_gate.gate import usage_increase
from eval_gate.gate.case_matching import GateCases
from eval_gate.gate.evidence.new_case_runs import NEW_CASE_CLASSES, is_failing, is_flaky
from eval_gate.gate.evidence.suite.score_noise import compute_drop_chance
from eval_gate.gate.must_pass import find_must_pass_cases, is_must_pass
from eval_gate.gate.reason_wording import (
    RegressionGroups,
    describe_count,
    describe_error_rise,
    describe_regressions,
    describe_score_drop,
    describe_suite_drop,
    format_error_kind_counts,
    group_regressions,
    has_regression_by_itself,
)
from eval_gate.gate.score_changes import exceeds_limit, format_limit
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseChange, CaseClass, Comparison, Reason, Rule, RuleCode
from eval_gate.model.evidence import ErrorFinding, GroundKind, ScoreFinding, SuiteFinding
from eval_gate.model.execution import ErrorKind, Status
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.model.setup_change import SetupChanges
from eval_gate.model.waiver import AppliedWaivers
from eval_gate.results.history import SCORE_DIGITS
from eval_gate.struct import FrozenStruct, field, replace
from eval_gate.text.distinct_values import format_value_and_limit
from eval_gate.text.escape import format_count, format_first_few

SCORE_SHARE: Final = 0.01
"""Accepted chance that scores which only vary count as a drop, over all graded cases together."""
BEYOND_LIMIT: Final = 0.05
"""Accepted chance that a score which fell by exactly the limit counts as a larger fall, of each case."""
_SMALLEST_DROP: Final = 10**-SCORE_DIGITS
"""Smallest drop of a score: stored scores are rounded, so two thirds are no drop from 0.6667."""
_FLAKY_CLASSES: Final = (CaseClass.INCONCLUSIVE, CaseClass.FLAKY, CaseClass.REGRESSION)
_KNOWN_ERRORS: Final = (CaseClass.STILL_ERRORED, CaseClass.REGRESSION, CaseClass.STILL_FAILING)


class RuleInput(FrozenStruct, dict=True):
    """Input of the rules: a run with the pass score applied, and its comparison."""

    run: RunResult
    comparison: Comparison | None = None
    cases: GateCases | None = None
    waiving: AppliedWaivers = field(default_factory=AppliedWaivers)

    @property
    def baseline(self) -> RunResult | None:
        """The baseline's run; None without one."""
        return self.cases.baseline if self.cases is not None else None

    def is_waived(self, key: CaseKey) -> bool:
        """Whether the failure of this case does not block."""
        return key in self._waived_keys

    @cached_property
    def _waived_keys(self) -> frozenset[CaseKey]:
        return self.waiving.keys

    def count_unwaived(self, *classes: CaseClass) -> int:
        """Count the unwaived cases of these classes."""
        return sum(change.change in classes for change in self.unwaived_changes)

    @cached_property
    def unwaived_changes(self) -> tuple[CaseChange, ...]:
        """The comparison of every case that is not waived; none without a baseline."""
        changes = self.comparison.changes if self.comparison else ()
        return tuple(change for change in changes if not self.is_waived(change.key))

    @property
    def is_refined(self) -> bool:
        """Whether histories and re-runs decided, and not the two runs alone."""
        return self.comparison is not None and self.comparison.false_alarm_rate is not None

    @cached_property
    def regressions(self) -> RegressionGroups:
        """The unwaived regressions, and those that are suspected."""
        return group_regressions(self.unwaived_changes)


class RuleFinding(FrozenStruct):
    """Result of one rule of the policy; `message` is the sentence for a violation.

    `inconclusive` means a violation for lack of data, which says nothing about the change.
    """

    code: RuleCode
    value: str
    limit: str
    ok: bool
    message: str
    inconclusive: bool = False

    @property
    def rule(self) -> Rule:
        """The rule as the verdict stores it."""
        return Rule(name=self.code.label, value=self.value, limit=self.limit, ok=self.ok)

    @property
    def reason(self) -> Reason:
        """The reason of a verdict, if the rule is violated."""
        return Reason(code=self.code, message=self.message)


def apply_rules(rule_input: RuleInput, policy: Policy) -> Iterator[RuleFinding]:
    """Yield the finding of each rule of the policy that applies, the most important one first."""
    if policy.can_fail:
        yield from _apply_change_rules(rule_input, policy)
        finding = rule_input.comparison.error_finding if rule_input.comparison is not None else None
        if finding is not None and finding.errors and policy.max_errors is None:
            yield _apply_agent_error_rule(finding)
    if FailOn.FAILURES in policy.fail_on:
        failing = sum(
            case.status is Status.FAILED and not rule_input.is_waived(key) for key, case in rule_input.run.iter_cases()
        )
        yield _build_count_finding(RuleCode.FAILURES, failing)
    if rule_input.comparison is not None and policy.max_score_drop is not None:
        yield _apply_score_drop_rule(rule_input, policy.max_score_drop)
    if policy.min_pass_rate is not None:
        yield _apply_pass_rate_rule(rule_input, policy.min_pass_rate)
    yield from _apply_usage_rules(rule_input, policy)
    if policy.can_fail:
        yield _apply_error_rule(rule_input, policy.max_errors)
    if policy.min_coverage is not None:
        yield _apply_coverage_rule(rule_input.run, policy.min_coverage)
    if FailOn.FLAKY in policy.fail_on:
        yield _build_count_finding(RuleCode.FLAKY, _count_flaky(rule_input))
    yield from _apply_setup_rules(rule_input, policy)
    if FailOn.STALE in policy.fail_on:
        yield _build_count_finding(RuleCode.STALE, sum(suite.stale for suite in rule_input.run.suites))


def _apply_change_rules(rule_input: RuleInput, policy: Policy) -> Iterator[RuleFinding]:
    if rule_input.comparison is not None:
        yield _apply_regression_rule(rule_input, policy.allowed_regressions)  # a failure too, and the more telling one
        if rule_input.comparison.suite_finding is not None:
            yield _apply_suite_rule(rule_input, rule_input.comparison.suite_finding)
        if rule_input.comparison.score_finding is not None:
            yield _apply_suite_score_rule(rule_input, rule_input.comparison.score_finding)
    if policy.must_pass:
        yield _apply_must_pass_rule(rule_input, policy)


def _apply_regression_rule(rule_input: RuleInput, allowed: int) -> RuleFinding:
    count = rule_input.count_unwaived(CaseClass.REGRESSION)
    words = format_count(count, "case that passed in the baseline failed", "cases that passed in the baseline failed")
    if rule_input.is_refined:
        words = describe_regressions(rule_input.regressions, rule_input.run) or words
    reason = f"{words} (limit {allowed})"
    return RuleFinding(RuleCode.REGRESSIONS, str(count), str(allowed), count <= allowed, reason)


def _apply_suite_rule(rule_input: RuleInput, finding: SuiteFinding) -> RuleFinding:
    """Build the finding about all cases together: many small drops that no single case shows."""
    assert rule_input.comparison is not None
    # with trials, all cases of a drop may pass: those that failed some are the ones that could be waived
    is_part_left = any(
        change.grounds is not None and change.grounds.kind is GroundKind.SUITE_DROP
        for change in rule_input.unwaived_changes
    )
    value, limit = f"{finding.failures} failing", f"{finding.expected:.1f} expected"
    reason = describe_suite_drop(finding, has_regressions=has_regression_by_itself(rule_input.comparison))
    return RuleFinding(RuleCode.SUITE_DROP, value, limit, not (finding.is_drop and is_part_left), reason)


def _apply_agent_error_rule(finding: ErrorFinding) -> RuleFinding:
    """Build the finding about the agent errors of the whole run, which an outage explains as well as the change."""
    return RuleFinding(
        RuleCode.AGENT_ERRORS,
        f"{finding.errors} of {finding.executions}",
        f"usually {round(finding.expected)}",
        not finding.is_unusual,
        describe_error_rise(finding),
        inconclusive=finding.is_unusual and not finding.is_caused_by_change,
    )


def _apply_suite_score_rule(rule_input: RuleInput, finding: ScoreFinding) -> RuleFinding:
    """Build the finding about all scores together; it holds if every case that scores lower is waived."""
    is_part_left = any(
        change.score_change is not None and change.score_change < 0 for change in rule_input.unwaived_changes
    )
    value, ok = f"{-finding.fall:+.2f} on average", not (finding.is_drop and is_part_left)
    return RuleFinding(RuleCode.SUITE_SCORES, value, "no drop", ok, describe_score_drop(finding))


def _apply_must_pass_rule(rule_input: RuleInput, policy: Policy) -> RuleFinding:
    """Count the must-pass cases that fail; a case that passed in a re-run is inconclusive."""
    inconclusive = _find_keys(rule_input, CaseClass.INCONCLUSIVE)
    failing = {
        key: case.id
        for key, case in rule_input.run.iter_cases()
        if case.status.is_scored
        and not case.passed
        and is_must_pass(case, policy.must_pass)
        and key not in inconclusive
        and not rule_input.is_waived(key)
    }
    finding = _build_count_finding(RuleCode.MUST_PASS, len(failing))
    if not failing:
        return finding
    reason = f"{finding.message}: {format_first_few(list(failing.values()), 3)}"
    return replace(finding, message=_describe_must_pass_regressions(rule_input, policy, len(failing)) or reason)


def _describe_must_pass_regressions(rule_input: RuleInput, policy: Policy, failing: int) -> str | None:
    """`1 of them is a must-pass case: pay/card`, if the failing must-pass cases are all among the regressions."""
    if not rule_input.is_refined or rule_input.count_unwaived(CaseClass.REGRESSION) <= policy.allowed_regressions:
        return None
    must = find_must_pass_cases(rule_input.run, policy.must_pass)
    case_ids = [one.key.case_id for one in rule_input.regressions.single if one.key in must]
    if len(case_ids) != failing:
        return None
    which = "is a must-pass case" if failing == 1 else "are must-pass cases"
    return f"{failing} of them {which}: {format_first_few(case_ids, 3)}"


def _count_flaky(rule_input: RuleInput) -> int:
    """Count the cases that passed and failed in their trials, are inconclusive, or are regressions."""
    flaky_keys, fresh = _find_keys(rule_input, *_FLAKY_CLASSES), _find_keys(rule_input, *NEW_CASE_CLASSES)
    return sum(
        (case.flaky or key in flaky_keys or (key in fresh and is_flaky(case))) and not rule_input.is_waived(key)
        for key, case in rule_input.run.iter_cases()
    )


def _find_keys(rule_input: RuleInput, *classes: CaseClass) -> set[CaseKey]:
    """Find the cases of these classes; none without a comparison."""
    return {change.key for change in (rule_input.comparison.select_changes(*classes) if rule_input.comparison else ())}


def _build_count_finding(code: RuleCode, count: int) -> RuleFinding:
    return RuleFinding(code, str(count), "0", count == 0, describe_count(code, count))


def find_fallen_scores(run: RunResult, comparison: Comparison, most: float | None) -> dict[CaseKey, float]:
    """Find the cases whose score fell by more than `most`, with the score that each fell from."""
    if most is None:
        return {}
    cases, drops = run.index_cases(), _compute_score_drops(run, comparison, most)
    return {key: min(cases[key].score + drop, 1.0) for key, drop in drops.items() if exceeds_limit(drop, most)}


def _compute_score_drops(run: RunResult, comparison: Comparison, most: float) -> dict[CaseKey, float]:
    """Compute the drop of every graded case that can be compared."""
    share, cases = compute_score_share(comparison), run.index_cases()
    return {
        one.key: compute_score_drop(one, cases[one.key].score, most, share)
        for one in comparison.changes
        if one.score_change is not None
    }


def _apply_score_drop_rule(rule_input: RuleInput, most: float) -> RuleFinding:
    """Apply the limit of score drops to all comparable graded cases, whatever their class."""
    assert rule_input.comparison is not None
    drops_by_key = _compute_score_drops(rule_input.run, rule_input.comparison, most)
    drops = [drop for key, drop in drops_by_key.items() if not rule_input.is_waived(key)]
    count = sum(exceeds_limit(drop, most) for drop in drops)
    largest, limit = format_limit(max([0.0, *drops])), format_limit(most)
    graded = [one.score_history for one in rule_input.comparison.changes if one.score_change is not None]
    histories = [one for one in graded if one is not None and one.degrees_of_freedom]
    more = " and by more than scores vary" if histories else ""
    note = "; how much scores vary is estimated from all cases, because there is only one earlier run"
    assumed = note if any(history.from_one_run for history in histories) else ""
    what = f"the score of {format_count(count, 'case')} fell by more than {limit}{more} (largest drop: {largest})"
    return RuleFinding(RuleCode.SCORE_DROP, largest, limit, count == 0, f"{what}{assumed}")


def compute_score_share(comparison: Comparison) -> float:
    """Compute the accepted chance of calling the score of one case a drop when it only varied."""
    return SCORE_SHARE / max(sum(one.score_change is not None for one in comparison.changes), 1)


def compute_score_drop(change: CaseChange, score: float, most: float, limit: float) -> float:
    """Compute the fall of a score from the mean of its history; 0 if the variation of scores explains it.

    `limit` is the chance below which variation does not explain it. If variation explains what exceeds `most` (at
    `BEYOND_LIMIT`), the fall counts as `most`: the rule is about the quality of a response, not about a single grade.
    Without a known variation, the fall is that from the one earlier run.
    """
    assert change.score_change is not None
    history = change.score_history
    chance = compute_drop_chance(history, score) if history is not None else None
    if history is None or chance is None:
        return -change.score_change
    fell = history.mean - score
    if chance > limit or fell < _SMALLEST_DROP:
        return 0.0
    beyond = compute_drop_chance(history, score + most)
    return fell if beyond is not None and beyond <= BEYOND_LIMIT else min(fell, most)


def _apply_pass_rate_rule(rule_input: RuleInput, least: float) -> RuleFinding:
    """Apply the minimum pass rate to the scored cases, without quarantined ones."""
    quarantined = rule_input.waiving.quarantined_keys
    scored = ((key, case) for key, case in rule_input.run.iter_cases() if case.status.is_scored)
    counted = [case.passed for key, case in scored if key not in quarantined]
    rate = sum(counted) / len(counted) if counted else 0.0
    value, limit = (f"{number} %" for number in format_value_and_limit(rate, least, 1, scale=100))
    if not counted:
        what = f"no pass rate: no case with a score counts (limit {limit})"
        return RuleFinding(RuleCode.PASS_RATE, "–", limit, ok=least <= 0, message=what, inconclusive=least > 0)
    what = f"pass rate {value} of {format_count(len(counted), 'case')} with a score is below {limit}"
    return RuleFinding(RuleCode.PASS_RATE, value, limit, rate >= least, what)


def _apply_usage_rules(rule_input: RuleInput, policy: Policy) -> Iterator[RuleFinding]:
    kinds = (
        (RuleCode.LATENCY, policy.max_latency_increase, usage_increase.get_latency_ms),
        (RuleCode.COST, policy.max_cost_increase, usage_increase.get_cost_usd),
        (RuleCode.TOKENS, policy.max_token_increase, usage_increase.count_tokens),
    )
    if rule_input.comparison is None or rule_input.baseline is None:
        return
    run = rule_input.run.without_reused
    for code, most, measure in kinds:
        if most is not None:
            pairs = usage_increase.pair_values(rule_input.comparison, run, rule_input.baseline, measure)
            yield _build_increase_finding(code, most, usage_increase.compute_increase(pairs, most / 100))


def _build_increase_finding(code: RuleCode, most: float, increase: usage_increase.UsageIncrease) -> RuleFinding:
    if increase.unknown:
        cases, has = format_count(increase.missing_cases, "case"), "has" if increase.missing_cases == 1 else "have"
        what = (
            f"{cases} had {code.label.lower()} in the baseline and {has} none in this run, so the limit of "
            f"+{most:g} % cannot be checked"
        )
        return RuleFinding(code, "unknown", f"+{most:g} %", ok=False, message=what, inconclusive=True)
    if increase.ratio is None:
        return RuleFinding(code, "unknown", f"+{most:g} %", ok=True, message="")
    change, limit = format_value_and_limit((increase.ratio - 1) * 100, most, 0)
    change = f"{'' if change.startswith('-') else '+'}{change} %" if math.isfinite(increase.ratio) else "up from 0"
    limit = f"+{limit} %"
    unsure = increase.ratio > 1 + most / 100 and not increase.exceeds_limit
    value = f"{change} ({format_count(increase.cases, 'case')}, may be chance)" if unsure else change
    what = f"{code.label.lower()} of the typical case: {change} since the baseline (limit {limit})"
    return RuleFinding(code, value, limit, not increase.exceeds_limit, what)


def iter_new_errors(run: RunResult, comparison: Comparison | None, max_errors: int | None) -> Iterator[CaseResult]:
    """Yield the errors that the baseline does not have and that do not count as regressions or suspects.

    Without a limit (`max_errors` is None), agent errors that those of the whole run or of the branch explain do not
    count: the test of the run decides about them.
    """
    changes = comparison.changes if comparison else ()
    excluded_kinds = {GroundKind.GATE_FAILED, *((GroundKind.AGENT_ERRORS,) if max_errors is None else ())}
    known_keys = {
        one.key
        for one in changes
        if one.change in _KNOWN_ERRORS or (one.grounds is not None and one.grounds.kind in excluded_kinds)
    }
    return (case for key, case in run.iter_cases() if case.status is Status.ERROR and key not in known_keys)


def _apply_error_rule(rule_input: RuleInput, limit: int | None) -> RuleFinding:
    """Apply the limit of errors: too many agent errors fail the gate, too many others make it inconclusive."""
    errors, allowed = list(iter_new_errors(rule_input.run, rule_input.comparison, limit)), limit or 0
    count, of_the_agent = len(errors), sum(not _is_external_error(case) for case in errors)
    kinds = format_error_kind_counts(case.error_kind for case in errors)
    what = f"{format_count(count, 'new error')} (limit {allowed}){f': {kinds}' if kinds else ''}"
    return RuleFinding(
        RuleCode.ERRORS,
        str(count),
        str(allowed),
        count <= allowed,
        what,
        inconclusive=of_the_agent <= allowed < count,
    )


def _is_external_error(case: CaseResult) -> bool:
    """Whether an error is not the agent's: it was unreachable, or the evaluation failed."""
    return case.status is Status.ERROR and case.error_kind in {ErrorKind.AGENT_UNREACHABLE, ErrorKind.EVALUATION_ERROR}


def _apply_coverage_rule(run: RunResult, least: float) -> RuleFinding:
    """Apply the minimum share of cases with a score; skipped cases have none."""
    summary = run.summary
    scored, total = summary.passed + summary.failed, summary.total_cases
    external_errors = sum(_is_external_error(case) for _, case in run.iter_cases())
    share, at_most = ((many / total if total else 0.0) for many in (scored, scored + external_errors))
    value, limit = (f"{number} %" for number in format_value_and_limit(share, least, 1, scale=100))
    what = f"{value} of the cases have a score, below the limit of {limit}"
    return RuleFinding(RuleCode.COVERAGE, value, limit, share >= least, what, inconclusive=share < least <= at_most)


def _apply_setup_rules(rule_input: RuleInput, policy: Policy) -> Iterator[RuleFinding]:
    if rule_input.comparison is None:
        return
    measured = rule_input.comparison.setup_changes or SetupChanges()
    if FailOn.REMOVED in policy.fail_on:
        yield _build_count_finding(RuleCode.REMOVED_CASES, measured.removed_cases)
    if FailOn.CHANGED in policy.fail_on:
        yield _build_count_finding(RuleCode.CHANGED_CASES, measured.changed_cases)
        yield _build_count_finding(RuleCode.LOOSENED_RULES, measured.loosened_rules)
    if FailOn.NEW_FAILURES in policy.fail_on:
        fresh = _find_keys(rule_input, *NEW_CASE_CLASSES)
        failing = sum(
            key in fresh and is_failing(case) and not rule_input.is_waived(key)
            for key, case in rule_input.run.iter_cases()
        )
        yield _build_count_finding(RuleCode.NEW_FAILURES, failing)
