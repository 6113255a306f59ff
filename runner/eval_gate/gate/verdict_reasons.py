"""Decide outcome, exit code and reasons of a verdict from the findings of the rules. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from eval_gate.config.policy import Policy, parse_report_only
from eval_gate.errors import ExitCode
from eval_gate.gate.case_comparison import MAX_REASON
from eval_gate.gate.case_matching import (
    AbsentCases,
    PossibleRenames,
    describe_missing_coverage,
    find_possible_renames,
    find_uncovered_cases,
    has_all_cases,
)
from eval_gate.gate.failure_causes import drop_error_prefix
from eval_gate.gate.lost_baseline import LostBaseline
from eval_gate.gate.must_pass import find_lost_patterns, is_must_pass
from eval_gate.gate.prompt_fields import describe_difference
from eval_gate.gate.reason_wording import GROUND_TEXTS, describe_unconfirmed
from eval_gate.gate.rules import RuleInput, apply_rules
from eval_gate.gate.score_changes import exceeds_limit
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseChange, CaseClass, Outcome, Reason, ReasonCode, RuleCode, Verdict
from eval_gate.model.execution import Status
from eval_gate.model.result import NO_JUDGE, WAITS_FOR_GATE, RunResult
from eval_gate.model.run_totals import summarize_cases
from eval_gate.model.waiver import WaiverStanding
from eval_gate.results.baseline import NoBaseline
from eval_gate.struct import replace
from eval_gate.text.escape import format_count, format_first_few, shorten_error
from eval_gate.text.quoting import describe_name

_NO_RESULT = frozenset({Status.SKIPPED, Status.ERROR})
"""Statuses without a result of the agent. Cases that were not run have a reason of their own: the run is incomplete."""

_UNINTENDED_SKIPS = frozenset({WAITS_FOR_GATE, NO_JUDGE})
"""Reasons for skipping a case that no setting asks for."""
_MISTAKEN = "the eval file has only unknown expectations, which check nothing"
_ALL_AGENT_ERRORS = Reason(
    code=ReasonCode.ALL_AGENT_ERRORS,
    message="the agent failed with an error in every case. If it was down during the run, re-run the job; if not, the "
    "change broke it",
)
"""Reason that names a possible outage of the agent, added to regressions of a run without any score."""
HISTORY_CODES: Final = frozenset(
    {RuleCode.REGRESSIONS, RuleCode.SUITE_DROP, RuleCode.SUITE_SCORES, ReasonCode.UNCONFIRMED_REGRESSIONS}
)
"""Reasons that rest on the history, which more runs make surer: `reportOnly` softens no other, and no limit."""


def build_verdict(
    rule_input: RuleInput, policy: Policy, absent: NoBaseline | None = None, lost: LostBaseline | None = None
) -> Verdict:
    """Decide the outcome, exit code and reasons of a run that has the policy's pass score applied.

    `absent` says why there is no comparison, if there is none, and `lost` what could have been compared under another
    name. An inconclusive outcome has exit code 3.

    - A confirmed regression: failed, exit code 1, even if most cases have no score.
    - No case has a score, or more than half of them have none: inconclusive.
    - A rule about the agent is broken: failed, exit code 1, whatever else could not be measured.
    - Cases were not run, and nothing counts against the change: inconclusive, since a gate never passes unseen
      cases.
    - A case that passed before, or that must pass, has an unknown result here: inconclusive. The same holds for a
      must-pass pattern that matched cases of the baseline and matches none here.
    - A failure may be a regression, but the baseline is not available, or does not have the case because a part of
      it is missing or because it has other cases: inconclusive, since a missing comparison is no pass.
    - A case of another tool fails that passed in the baseline with another prompt or expectation: inconclusive, since
      nothing tells who edited it.
    - A failure of a test runner has a name that the baseline does not have, and cases that passed there are removed
      or skipped: inconclusive, since it may be one of these.
    - It is unknown whether a rule holds, and nothing counts against the change: inconclusive.
    - More agent errors in the whole run than usual: inconclusive, unless the base agent, run in the same minutes, has
      far fewer. Then failed, exit code 1.
    - More agent errors than a limit that the user set: failed, exit code 1, with its own reason. If the limit is
      exceeded only together with unreachable agents and evaluation errors: inconclusive.
    - Otherwise: passed.
    """
    run = rule_input.run
    unmeasurable = _find_unmeasurable_reason(run)
    incomplete = (
        *_find_incomplete_reasons(run),
        *_find_unconfirmed_reasons(rule_input, policy),
        *_iter_missing_result_reasons(rule_input, policy),
        *_find_unexplained_reasons(rule_input, policy, absent, lost),
    )
    findings = tuple(apply_rules(rule_input, policy))
    broken = tuple(one.reason for one in findings if not one.ok and not one.inconclusive)
    incomplete += tuple(one.reason for one in findings if one.inconclusive)
    about_the_change = any(reason.code not in {RuleCode.ERRORS, RuleCode.COVERAGE} for reason in broken)
    if unmeasurable is not None and any(reason.code == RuleCode.REGRESSIONS for reason in broken):
        has_score = run.summary.passed + run.summary.failed
        outcome, reasons = Outcome.FAILED, (*broken, *(() if has_score else (_ALL_AGENT_ERRORS,)), *incomplete)
    elif unmeasurable is not None:
        outcome, reasons = Outcome.INCONCLUSIVE, (unmeasurable, *incomplete)
    elif incomplete and not about_the_change:
        outcome, reasons = Outcome.INCONCLUSIVE, (*incomplete, *broken)
    elif broken:
        outcome, reasons = Outcome.FAILED, (*broken, *incomplete)
    else:
        outcome, reasons = Outcome.PASSED, (_build_pass_reason(rule_input, policy, lost),)
    rules = tuple(one.rule for one in findings)
    softens = outcome is Outcome.FAILED and unmeasurable is None
    runs_left = _count_runs_left(rule_input, policy, reasons) if softens else None
    return Verdict(
        outcome=outcome,
        exit_code=outcome.exit_code if runs_left is None else ExitCode.PASSED,
        runs_until_failing=runs_left,
        reasons=reasons,
        rules=rules,
        pass_score=policy.pass_score,
    )


def _count_runs_left(rule_input: RuleInput, policy: Policy, reasons: Iterable[Reason]) -> int | None:
    """Count the runs that the history lacks for `reportOnly` to end; None if it does not soften these reasons."""
    evidence = rule_input.comparison.evidence if rule_input.comparison else None
    if policy.report_only is None or evidence is None or evidence.comparable_runs is None:
        return None
    runs_left = parse_report_only(policy.report_only) - evidence.comparable_runs
    cases = rule_input.run.index_cases()
    is_kept = any(is_must_pass(cases[one.key], policy.must_pass) for one in _list_open_changes(rule_input)) or any(
        one.change is CaseClass.REGRESSION and not cases[one.key].status.is_scored
        for one in rule_input.unwaived_changes
    )
    softened = all(one.code in HISTORY_CODES for one in reasons) and not is_kept
    return runs_left if softened and runs_left > 0 else None


def _find_unmeasurable_reason(run: RunResult) -> Reason | None:
    """Find why there is no verdict: no case that was executed has a score, or more than half of these have none."""
    summary = run.summary
    if run.baseline_suites:
        summary = summarize_cases([case for _, case in run.without_reused.iter_cases()])
        if summary.total_cases == summary.skipped:
            return None
    runnable = summary.total_cases - summary.skipped
    scored = summary.passed + summary.failed
    if scored == 0:
        why = _describe_skipped(run) if runnable == 0 and summary.total_cases else "no case has a score"
        stopped = run.stop_reason and drop_error_prefix(run.stop_reason)
        return Reason(code=ReasonCode.NO_SCORED_CASES, message=stopped or _describe_first_error(run) or why)
    if summary.errored * 2 > scored + summary.errored:
        message = f"{summary.errored} of {scored + summary.errored} cases have no score, more than half"
        return Reason(code=ReasonCode.TOO_FEW_SCORED_CASES, message=message)
    return None


def _describe_first_error(run: RunResult) -> str | None:
    errors = [case.error for _, case in run.iter_cases() if case.status is Status.ERROR and case.error]
    if not errors:
        return None
    differ = "; the first error is" if len(set(errors)) > 1 else ""
    return f"no case has a score{differ}: {shorten_error(drop_error_prefix(errors[0]), MAX_REASON)}"


def _describe_skipped(run: RunResult) -> str:
    """Describe why every case was skipped, by the first of them."""
    why = next((case.error for _, case in run.iter_cases() if case.error), None)
    return f"all cases were skipped{f'; the first because {why}' if why else ''}"


def _find_incomplete_reasons(run: RunResult) -> tuple[Reason, ...]:
    if run.summary.not_run == 0:
        # `not_run` does not count the cases of a part that was not merged
        message = run.stop_reason or "the run is incomplete"
        return () if run.complete else (Reason(code=ReasonCode.RUN_INCOMPLETE, message=message),)
    why = f"{run.stop_reason}: " if run.stop_reason else ""
    were = "was" if run.summary.not_run == 1 else "were"
    message = f"{why}{run.summary.not_run} of {run.summary.total_cases} cases {were} not run"
    return (Reason(code=ReasonCode.RUN_INCOMPLETE, message=message),)


def _find_unconfirmed_reasons(rule_input: RuleInput, policy: Policy) -> tuple[Reason, ...]:
    """Find failures that the run neither confirms nor clears, unless the verdict would be the same if all are real."""
    if rule_input.comparison is None or not policy.can_fail:
        return ()
    open_cases = _list_open_changes(rule_input)
    cases = rule_input.run.index_cases()
    matters = any(is_must_pass(cases[change.key], policy.must_pass) for change in open_cases)
    worst = len(open_cases) + rule_input.count_unwaived(CaseClass.REGRESSION)
    if not open_cases or (worst <= policy.allowed_regressions and not matters):
        return ()
    return tuple(
        Reason(code=ReasonCode.UNCONFIRMED_REGRESSIONS, message=describe_unconfirmed(count, kind))
        for kind, text in GROUND_TEXTS.items()
        if text.unconfirmed
        and (count := sum(one.grounds is not None and one.grounds.kind is kind for one in open_cases))
    )


def _list_open_changes(rule_input: RuleInput) -> list[CaseChange]:
    """List the unwaived failures that the run neither confirms nor clears."""
    changes = rule_input.unwaived_changes
    return [one for one in changes if one.grounds is not None and one.grounds.kind.is_inconclusive]


def _iter_missing_result_reasons(rule_input: RuleInput, policy: Policy) -> Iterator[Reason]:
    """Yield reasons about cases without a result that passed before or must pass, if no other reason names them."""
    if not policy.can_fail:
        return
    if must := _list_unscored_must_pass(rule_input, policy):
        counted = format_count(len(must), "must-pass case has", "must-pass cases have")
        message = f"{counted} no result in this run: {format_first_few(must, 3)}"
        yield Reason(code=ReasonCode.MISSING_MUST_PASS_RESULT, message=message)
    for pattern, matches in _find_lost_patterns(rule_input, policy).items():
        message = f"must-pass {describe_name(pattern)} matches no case in this run; in the baseline it matches "
        yield Reason(code=ReasonCode.MISSING_MUST_PASS_RESULT, message=f"{message}{format_first_few(matches, 3)}")
    passed_keys = _find_passed_before(rule_input)
    skipped: dict[str, list[str]] = defaultdict(list)
    for key, case in rule_input.run.iter_cases():
        if key in passed_keys and case.status is Status.SKIPPED and (case.mistakes or case.error in _UNINTENDED_SKIPS):
            skipped[_MISTAKEN if case.mistakes else case.error or ""].append(key.case_id)
    for why, ids in skipped.items():
        which = format_count(len(ids), "case that passed in the baseline was", "cases that passed in the baseline were")
        message = f"{which} not run: {format_first_few(ids, 3)}; {why}"
        yield Reason(code=ReasonCode.MISSING_CASE_RESULT, message=message)
    if lost := [key for key in _find_absent_cases(rule_input).unknown if key in passed_keys]:
        many = format_count(len(lost), "case that passed in the baseline has", "cases that passed in the baseline have")
        message = f"{many} no result in this run, and the run gives no reason"
        yield Reason(code=ReasonCode.MISSING_CASE_RESULT, message=message)


def _list_unscored_must_pass(rule_input: RuleInput, policy: Policy) -> list[str]:
    """List the ids of must-pass cases without a result, also of those that the selection of cases leaves out."""
    run = rule_input.run
    regressed = (
        {one.key for one in rule_input.comparison.select_changes(CaseClass.REGRESSION)} if rule_input.comparison else ()
    )
    case_ids = [
        case.id
        for key, case in run.iter_cases()
        if case.status in _NO_RESULT and key not in regressed and is_must_pass(case, policy.must_pass)
    ]
    if not run.partial or run.shard is not None or rule_input.baseline is None or not policy.must_pass:
        return case_ids
    absent, baseline_cases = _find_absent_cases(rule_input), rule_input.baseline.index_cases()
    by_name = any(one.names_single_cases for one in run.selections)
    keys = (*absent.removed, *absent.unknown, *(() if by_name else absent.not_selected))
    return case_ids + [key.case_id for key in keys if is_must_pass(baseline_cases[key], policy.must_pass)]


def _find_lost_patterns(rule_input: RuleInput, policy: Policy) -> Mapping[str, tuple[str, ...]]:
    """Find must-pass patterns that lost all cases; of a partial run, `_list_unscored_must_pass` lists the missing."""
    if rule_input.baseline is None or not has_all_cases(rule_input.run):
        return {}
    return find_lost_patterns(rule_input.baseline, rule_input.run, policy.must_pass)


def _find_absent_cases(rule_input: RuleInput) -> AbsentCases:
    return AbsentCases() if rule_input.cases is None else rule_input.cases.absent


def _find_passed_before(rule_input: RuleInput) -> Collection[CaseKey]:
    """Find the cases that passed in the last run that scored them, by their baseline and current names."""
    if rule_input.cases is None or rule_input.comparison is None:
        return ()
    lost = rule_input.comparison.evidence.unscored_in_baseline if rule_input.comparison.evidence else ()
    passed_keys = {key for key, case in rule_input.cases.baseline_cases.items() if case.passed}
    passed_keys |= {one.key for one in lost if 2 * one.passes > one.executions}
    return passed_keys | {key for key, earlier in rule_input.cases.earlier_keys.items() if earlier in passed_keys}


def _find_unexplained_reasons(
    rule_input: RuleInput, policy: Policy, absent: NoBaseline | None, lost: LostBaseline | None
) -> tuple[Reason, ...]:
    """Find failures and low scores that only a missing baseline could explain; without any, it is not needed."""
    if absent is None:
        return tuple(_iter_uncompared_reasons(rule_input, policy))
    if lost is not None and policy.can_fail:
        lost = replace(lost, worse_cases=tuple(key for key in lost.worse_cases if not rule_input.is_waived(key)))
        if lost.worse_cases or lost.altered_cases:
            return (Reason(code=ReasonCode.BASELINE_LOST, message=lost.describe_loss(), hint=lost.hint),)
    if not absent.unavailable:
        return ()
    run = rule_input.run
    waived = rule_input.waiving.count_cases(WaiverStanding.REGRESSED, WaiverStanding.FAILS)
    if policy.compares_failures and (count := run.summary.failed - waived) > 0:
        open_cases = format_count(count, "failing case")
    elif policy.max_score_drop is not None and (low := _count_possible_drops(rule_input, policy.max_score_drop)):
        open_cases = format_count(low, "low score")
    else:
        return ()
    message = f"{open_cases} cannot be compared with the baseline: {absent.reason}"
    return (Reason(code=absent.code, message=message, hint=absent.hint),)


def _iter_uncompared_reasons(rule_input: RuleInput, policy: Policy) -> Iterator[Reason]:
    """Yield reasons about failures that the baseline cannot explain, if they may be more than the policy allows.

    It lacks the cases, or knows them by another name, or another tool's cases have another prompt or expectation there:
    nothing tells who edited them.
    """
    run, cases, comparison = rule_input.run, rule_input.cases, rule_input.comparison
    if cases is None or comparison is None:
        return
    failed = {key for key, case in run.iter_cases() if case.status is Status.FAILED}

    def select_unwaived(keys: Iterable[CaseKey]) -> list[CaseKey]:
        failing = [key for key in keys if not rule_input.is_waived(key)]
        worst = len(failing) + rule_input.count_unwaived(CaseClass.REGRESSION)
        return failing if policy.compares_failures and worst > policy.allowed_regressions else []

    renames = find_possible_renames(cases) if policy.min_coverage != 0 else PossibleRenames()
    message = None
    if failing := select_unwaived(key for key in find_uncovered_cases(cases, comparison) if key in failed):
        message = f": {describe_missing_coverage(cases)}"
    elif failing := select_unwaived(renames.failing):
        which = format_count(len(renames.old_cases), "case that passed there is", "cases that passed there are")
        names, old_names = (format_first_few([key.case_id for key in keys], 3) for keys in (failing, renames.old_cases))
        message = f" ({names}), and {which} missing or skipped in this run ({old_names}): a case may have been renamed"
    if message is not None:
        which = format_count(len(failing), "failing case is", "failing cases are")
        yield Reason(code=ReasonCode.NOT_IN_BASELINE, message=f"{which} not in the baseline{message}")
    if run.is_external:
        failed &= {*_find_passed_before(rule_input)}
        changes = comparison.select_changes(CaseClass.INCOMPARABLE)
        if keys := select_unwaived(one.key for one in changes if one.key in failed):
            which = format_count(len(keys), "failing case passed", "failing cases passed")
            why = _describe_differences(rule_input, keys)
            message = f"{which} in the baseline and cannot be compared with it: {why}"
            yield Reason(code=ReasonCode.NOT_COMPARABLE, message=message)


def _describe_differences(rule_input: RuleInput, keys: Sequence[CaseKey]) -> str:
    """Describe why the first of these cases of another tool cannot be compared; empty for own evals."""
    cases = rule_input.cases
    if cases is None or not cases.run.is_external:
        return ""
    sides = ((cases.current_cases[key], cases.get_earlier(key)) for key in keys if key in cases.current_cases)
    pairs = [(case, earlier) for case, earlier in sides if earlier is not None]
    return format_first_few(pairs, 3, lambda pair: f"{pair[0].id[:100]} ({describe_difference(*pair)})")


def _count_possible_drops(rule_input: RuleInput, most: float) -> int:
    """Count the graded cases whose score may have dropped by more than `most`."""
    cases = [
        case
        for key, case in rule_input.run.iter_cases()
        if case.graded and case.status.is_scored and not rule_input.is_waived(key)
    ]
    return sum(exceeds_limit(1.0 - case.score, most) for case in cases)


def _build_pass_reason(rule_input: RuleInput, policy: Policy, lost: LostBaseline | None) -> Reason:
    """Build the reason of a gate that passed: above all what it could not compare."""
    run, comparison = rule_input.run, rule_input.comparison
    code = ReasonCode.NO_BASELINE
    if not policy.can_fail:
        code, message = ReasonCode.REPORT_ONLY, "the policy only reports: nothing fails this gate"
    elif lost is not None:
        message = f"all rules hold, but {lost.describe_name()}"
    elif comparison is None and policy.compares_failures:
        message = "no baseline to compare with: regressions cannot be distinguished from known failures"
        if run.summary.passed == run.summary.total_cases:  # regressions and known failures are both absent
            message = "every case passed; no baseline to compare with"
    elif comparison is None and policy.max_score_drop is not None:
        message = "no baseline to compare with: score drops cannot be detected"
    elif comparison is not None and not any(one.change.is_compared for one in comparison.changes):
        code = ReasonCode.NO_COMPARABLE_CASES
        message = "no case can be compared: the baseline has no score for any case with the same prompt and expectation"
        if differences := _describe_differences(rule_input, [one.key for one in comparison.changes][:1]):
            message = f"{message}: {differences}"
    else:
        code = ReasonCode.PASSED
        message = f"all rules hold for {format_count(run.summary.total_cases, 'case')}"
    return Reason(code=code, message=message)
