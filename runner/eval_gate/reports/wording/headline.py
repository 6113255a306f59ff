"""Headline of a verdict: a symbol and a few words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from eval_gate.gate.evidence.new_case_runs import NEW_CASE_CLASSES, is_failing, is_flaky
from eval_gate.model.comparison import CaseChange, CaseClass, Outcome, ReasonCode, RuleCode, Verdict
from eval_gate.model.evidence import GroundKind
from eval_gate.model.execution import ErrorCause, ErrorKind, Status
from eval_gate.model.result import RunResult
from eval_gate.reports.context import ReportContext
from eval_gate.reports.run_statistics import (
    Outage,
    compute_pass_rates,
    exclude_waived,
    find_fallen_evaluators,
    find_outage,
    has_no_comparable_case,
    select_counted_changes,
)
from eval_gate.reports.wording.advice import find_advice
from eval_gate.reports.wording.advice_table import ADVICE_BY_REASON
from eval_gate.reports.wording.grounds import describe_broken_main, describe_missing_evidence, is_failing_as_flaky
from eval_gate.reports.wording.metrics import MAX_METRIC_NAME
from eval_gate.reports.wording.numbers import format_percent, quote_in_backticks
from eval_gate.reports.wording.reuse import describe_nothing_changed
from eval_gate.reports.wording.verdict import (
    NO_VERDICT,
    find_base_agent_failures,
    format_new_errors,
    group_unwaived_regressions,
    list_unwaived_changes,
)
from eval_gate.reports.wording.waivers import format_waived_counts
from eval_gate.text.escape import format_count

FAIL, PASS, WARN, BROKEN = "❌", "✅", "⚠️", "🛠️"
MAX_EVALUATORS: Final = 2
"""Fallen evaluators that a heading names."""
_SUITE_DROP = "the whole suite fails more than usual"
_STEADY_SUITE_DROP = "cases that seldom fail do so more than usual"


def build_headline(run: RunResult, verdict: Verdict, absent: str, *, baseline_is_stale: bool) -> tuple[str, str]:
    """Build the symbol and the headline of a verdict; `absent` is the text for a missing baseline."""
    match verdict.outcome:
        case Outcome.INCONCLUSIVE:
            return BROKEN, "no verdict yet" if verdict.reasons == (NO_VERDICT,) else _format_inconclusive(run, verdict)
        case Outcome.FAILED:
            fell = format_fallen_evaluators(run)
            first = _format_failed(run, verdict)
            details = [fell] if fell and fell != first else []
            heading = ", ".join([first, *details, *_describe_earlier_commits(run), *format_waived_counts(run)])
            if verdict.runs_until_failing is None:
                return FAIL, heading
            period = format_count(verdict.runs_until_failing, "more run")
            return WARN, f"would have failed: {heading} (reported only for {period})"
    if (
        worse := format_regressions(run)
        if select_counted_changes(run, CaseClass.REGRESSION)
        else _describe_suite_test(run)
    ):
        allowed = verdict.find_rule(RuleCode.REGRESSIONS)
        return WARN, ", ".join(
            [
                worse,
                *_describe_earlier_commits(run),
                "allowed" if allowed else "reported only",
                *format_waived_counts(run),
            ]
        )
    doubts = (_count_loosened_rules(run), _list_unconfirmed(run), _count_new_flaky(run), _find_new_failures(run))
    doubtful = any(doubts) or format_fallen_evaluators(run) or any(case.mistakes for _, case in run.iter_cases())
    return WARN if doubtful else PASS, _format_passed(run, verdict, absent, baseline_is_stale=baseline_is_stale)


def _describe_earlier_commits(run: RunResult) -> Iterator[str]:
    """Describe which earlier commits count too, if the base of the change has no result of its own."""
    counted = find_earlier_commits(run)
    if counted is not None and (select_counted_changes(run, CaseClass.REGRESSION) or _describe_suite_test(run)):
        commits, between = counted
        yield f"including {format_count(commits, 'earlier commit')} ({between})"


def find_earlier_commits(run: RunResult) -> tuple[int, str] | None:
    """Find the number and the range of the commits between baseline and change; None without any.

    After a push, the base commit is the change itself and does not count.
    """
    facts = run.comparison.baseline if run.comparison else None
    if facts is None or not (facts.commits_since and facts.base_sha and facts.sha):
        return None
    is_own = run.sha == facts.base_sha
    commits = facts.commits_since - is_own
    return (commits, f"{facts.sha[:7]}..{facts.base_sha[:7]}{'^' * is_own}") if commits else None


def _format_inconclusive(run: RunResult, verdict: Verdict) -> str:
    summary = run.summary
    scored = summary.passed + summary.failed
    if scored and summary.not_run:
        return f"inconclusive, ended at {scored} of {format_count(summary.total_cases, 'case')}"
    advice = find_advice(run, verdict, ReportContext())
    if advice and verdict.reasons and verdict.reasons[0].code == RuleCode.AGENT_ERRORS:
        return "inconclusive: more agent errors than usual"
    is_about_run = not verdict.reasons or verdict.reasons[0].code in _RUN_REASONS
    default = ": no case ran" if not summary.ran and summary.total_cases else ""
    return f"inconclusive{_CAUSE_PHRASES.get(advice.cause, default) if advice and is_about_run else default}"


_RUN_REASONS: Final = {ReasonCode.NO_SCORED_CASES, ReasonCode.TOO_FEW_SCORED_CASES, ReasonCode.RUN_INCOMPLETE}
_CAUSE_PHRASES: Final[dict[str, str]] = {
    ErrorCause.NO_CONNECTION: ": agent unreachable",
    ErrorCause.AGENT_GONE: ": agent unreachable",
    ErrorKind.AGENT_UNREACHABLE: ": agent unreachable",
    ErrorCause.TIMED_OUT: ": agent timed out",
}
"""Phrases for the heading of an inconclusive gate."""


def format_regressions(run: RunResult) -> str:
    """Format the regressions: `12 regressions, 25 more suspected`; or the outage or suite drop that they are."""
    groups = group_unwaived_regressions(run)
    if groups.is_suite_drop_alone:
        return f"{_format_suite_drop(run)}: {format_count(len(groups.suite_drop), 'case')} failed at first"
    counted, suspected = [*groups.single, *groups.suite_drop], [*groups.suspects]
    words = []
    if outage := find_outage(run):
        counted, suspected = ([one for one in group if one.key not in outage.cases] for group in (counted, suspected))
        words = [format_outage(outage)]
    if counted or not outage:
        words += [format_count(len(counted), f"{'other ' if outage else ''}regression")]
    in_drop = sum(one in groups.suite_drop for one in counted)
    share = "all" if in_drop == len(counted) else f"{in_drop} of them"
    words += [f"{share} in a drop of the whole suite"] if in_drop else []
    words += [f"{len(suspected)} {'more ' if counted else ''}suspected"] if suspected else []
    return ", ".join(words)


def format_outage(outage: Outage) -> str:
    """Format an outage: `the agent answered 503 in 37 of 60 cases (usually 0)`."""
    what = f"answered {outage.status}" if outage.status else "timed out" if outage.timed_out else "had the same error"
    usual = outage.usual
    usual_text = "" if usual is None else f" (usually {'about ' if round(usual) else ''}{round(usual)})"
    return f"the agent {what} in {len(outage.cases)} of {format_count(outage.ran, 'case')}{usual_text}"


def format_fallen_evaluators(run: RunResult) -> str | None:
    """Format which evaluators fell: "the score of `tone` fell in 5 of 20 cases"; None if none fell in several cases."""
    evaluators = find_fallen_evaluators(run)[:MAX_EVALUATORS]
    words = (
        f"the score of {quote_in_backticks(one.name, MAX_METRIC_NAME)} fell in {one.cases} of {one.scored} cases"
        for one in evaluators
    )
    return ", ".join(words) if evaluators else None


def _format_failed(run: RunResult, verdict: Verdict) -> str:
    code = verdict.reasons[0].code if verdict.reasons else ""
    rule = next((rule for rule in verdict.rules if rule.code == code), None)
    if rule is not None and (words := _format_failed_rule(run, rule.code)):
        return words
    heading = ADVICE_BY_REASON[rule.code].heading if rule is not None and rule.code else ()
    if rule is not None and isinstance(heading, str):
        return heading.format(value=rule.value, limit=rule.limit)
    # the value of the rule, which leaves out waived cases; a stored result is untrusted
    if rule is not None and heading and rule.value.isdecimal() and len(rule.value) < 10:
        return format_count(int(rule.value), *heading)
    return (
        format_count(run.summary.flaky, "flaky case")
        if code == RuleCode.FLAKY
        else format_count(run.summary.failed, "failing case")
    )


def _format_failed_rule(run: RunResult, code: RuleCode | None) -> str | None:
    """Format what broke a rule whose headline says more than its value; None for any other rule."""
    match code:
        case RuleCode.REGRESSIONS:
            return format_regressions(run)
        case RuleCode.SUITE_DROP:
            return _format_suite_drop(run)
        case RuleCode.SUITE_SCORES:
            return format_fallen_evaluators(run)
        case RuleCode.ERRORS:
            outage = find_outage(run)
            return format_outage(outage) if outage else next(iter(format_new_errors(run)), None)
        case RuleCode.PASS_RATE:
            rates = compute_pass_rates(run)
            return f"pass rate {format_percent(rates.current)} of {format_count(rates.judged, 'case')} is too low"
        case RuleCode.STALE:
            return format_count(sum(suite.stale for suite in run.suites), "stale suite")
        case _:
            return None


def _format_passed(run: RunResult, verdict: Verdict, absent: str, *, baseline_is_stale: bool) -> str:
    passed = "passed on threshold" if verdict.find_rule(RuleCode.PASS_RATE) else "passed"
    waived = format_waived_counts(run)
    if run.comparison is None:
        return ", ".join([passed, absent, *waived])
    if has_no_comparable_case(run):
        return ", ".join([passed, "baseline not comparable", *waived])
    unchanged = describe_nothing_changed(run)
    first = f"passed, {unchanged}" if unchanged else "no regressions"
    parts = ["passed" if any("regression" in words for words in waived) else first, *waived]
    parts += _iter_doubts(run)
    if drops := exclude_waived(run, run.comparison.list_score_drops()):
        parts.append(format_fallen_evaluators(run) or format_count(len(drops), "score drop"))
    still = select_counted_changes(run, CaseClass.STILL_FAILING)
    if broken := sum(describe_broken_main(one, "") is not None for one in still):
        parts.append(f"{format_count(broken, 'case')} broken before this change")
    if flaky := sum(is_failing_as_flaky(one) for one in still):
        parts.append(format_count(flaky, "flaky case fails", "flaky cases fail"))
    parts += format_new_errors(run)
    if undecided := _list_unconfirmed(run):
        parts.append(f"{format_count(len(undecided), 'case')} {describe_missing_evidence(undecided)}")
    if loosened := _count_loosened_rules(run):
        parts.append(format_count(loosened, "loosened rule"))
    if baseline_is_stale:
        parts.append("baseline is stale")
    return ", ".join(parts)


def _iter_doubts(run: RunResult) -> Iterator[str]:
    """Yield texts about failures with the base agent too, inconclusive cases, and flaky new cases."""
    if failures := len(find_base_agent_failures(run)):
        yield f"{format_count(failures, 'case fails', 'cases fail')} with the base agent too"
    if inconclusive := len(_find_inconclusive(run)):
        yield format_count(inconclusive, "inconclusive case")
    if new := _count_new_flaky(run):
        yield format_count(new, "flaky new case")
    if failing := _find_new_failures(run):
        yield format_new_failures(failing)


def _count_loosened_rules(run: RunResult) -> int:
    return run.comparison.setup_changes.loosened_rules if run.comparison and run.comparison.setup_changes else 0


def _count_new_flaky(run: RunResult) -> int:
    """Count the new and changed cases that both passed and failed."""
    cases = run.index_cases()
    return sum(one.key in cases and is_flaky(cases[one.key]) for one in select_counted_changes(run, *NEW_CASE_CLASSES))


def _find_new_failures(run: RunResult) -> list[CaseClass]:
    """Find the classes of the new and changed cases that fail, if there are others to compare."""
    if run.comparison is None or has_no_comparable_case(run):
        return []
    cases = run.index_cases()
    changes = select_counted_changes(run, *NEW_CASE_CLASSES)
    return [one.change for one in changes if one.key in cases and is_failing(cases[one.key])]


def format_new_failures(classes: Iterable[CaseClass | None]) -> str:
    """Format how many cases without a comparable baseline fail: `1 new case fails, 2 changed cases fail`."""
    numbers = Counter("new case" if one is CaseClass.ADDED else "changed case" for one in classes)
    return ", ".join(
        format_count(number, f"{word} fails", f"{word}s fail") for word, number in sorted(numbers.items(), reverse=True)
    )


def _find_inconclusive(run: RunResult) -> list[CaseChange]:
    """Find the inconclusive cases, except errors and failures with the base agent too."""
    broken = {key for key, case in run.iter_cases() if case.status is Status.ERROR}
    cleared = {one.key for one in find_base_agent_failures(run)}
    return [one for one in select_counted_changes(run, CaseClass.INCONCLUSIVE) if one.key not in broken | cleared]


def _describe_suite_test(run: RunResult) -> str | None:
    """Describe a drop that the suite test found although no rule reports it; return None without a drop."""
    failures, scores = (run.comparison.suite_finding, run.comparison.score_finding) if run.comparison else (None, None)
    if failures is not None and failures.is_drop:
        return _format_suite_drop(run)
    return (
        format_fallen_evaluators(run) or "the scores of the whole suite fell"
        if scores is not None and scores.is_drop
        else None
    )


def _format_suite_drop(run: RunResult) -> str:
    """Return the headline of a suite drop, in words for the steady cases or for all cases."""
    finding = run.comparison.suite_finding if run.comparison else None
    return _STEADY_SUITE_DROP if finding is not None and finding.steady_cases_only else _SUITE_DROP


def _list_unconfirmed(run: RunResult) -> list[GroundKind]:
    kinds = (one.grounds.kind for one in list_unwaived_changes(run) if one.grounds is not None)
    return [kind for kind in kinds if kind.is_inconclusive]
