"""Wording for a verdict: its reasons, and changes since the last push."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from eval_gate.gate.evidence.day_effects import MIN_RUNS, find_bad_days
from eval_gate.gate.failure_causes import drop_error_prefix
from eval_gate.gate.reason_wording import RegressionGroups, describe_failed_cases, group_regressions
from eval_gate.gate.rules import iter_new_errors
from eval_gate.gate.score_changes import format_limit
from eval_gate.model.comparison import CaseChange, CaseClass, Outcome, Reason, ReasonCode, RuleCode, Verdict
from eval_gate.model.evidence import BranchRun, GroundKind
from eval_gate.model.result import CaseResult, RunResult, Summary
from eval_gate.reports.context import ReportContext
from eval_gate.reports.links import compute_case_digest
from eval_gate.reports.run_statistics import (
    compute_pass_rates,
    count_passing_cases,
    exclude_waived,
    select_counted_changes,
)
from eval_gate.reports.wording.case_errors import (
    CALLS_UNKNOWN_EXPLANATION,
    has_unknown_calls,
    summarize_errors,
)
from eval_gate.reports.wording.grounds import is_failing_as_flaky
from eval_gate.reports.wording.numbers import format_pass_counts
from eval_gate.reports.wording.waivers import format_waived_counts
from eval_gate.text.escape import format_count, to_one_line
from eval_gate.text.quoting import capitalize_first

NO_VERDICT: Final = Reason(
    code=ReasonCode.NO_VERDICT,
    message="the run is complete; to get a verdict, run `eval-gate compare BASELINE RUN`",
)
"""Reason of a run without a verdict, such as one that was merged from parts."""
INCONCLUSIVE: Final = "Inconclusive:"


def describe_verdict(run: RunResult, verdict: Verdict) -> str:
    """Describe the reasons of a verdict in a few sentences."""
    match verdict.outcome:
        case Outcome.FAILED:
            first, *rest = list_reasons(run, verdict) or ["a rule of the policy does not hold"]
            reasons = [f"{first.rstrip('.')}.", *map(to_sentence, rest)]  # the first continues the text before it
            counts = [_describe_pass_count(run), *_describe_waived(run, verdict), *_describe_pass_score(run, verdict)]
            return " ".join([*reasons, *counts, *iter_report_only(run, verdict)])
        case Outcome.INCONCLUSIVE:
            return explain_inconclusive(run, verdict)
    return _describe_pass(run, verdict)


def iter_report_only(run: RunResult, verdict: Verdict) -> Iterator[str]:
    """Yield a sentence about `reportOnly` if it softens a verdict."""
    if verdict.runs_until_failing is not None and run.policy is not None:
        more = format_count(verdict.runs_until_failing, "more run")
        until = to_one_line(run.policy.report_only or "", 40)
        yield f"This gate exits with 0 until the history has {more} of the default branch (reportOnly: {until})."


def list_reasons(run: RunResult, verdict: Verdict) -> list[str]:
    """List the reasons of a verdict as texts; a suite drop without any confirmed case is only one reason."""
    codes = {reason.code for reason in verdict.reasons}
    is_one = RuleCode.SUITE_DROP in codes and group_unwaived_regressions(run).is_suite_drop_alone
    return [one.message for one in verdict.reasons if not (is_one and one.code == RuleCode.REGRESSIONS)]


def group_unwaived_regressions(run: RunResult) -> RegressionGroups:
    """Group the regressions of a run that count."""
    return group_regressions(list_unwaived_changes(run))


def describe_bad_day(run: RunResult, place: str) -> str | None:
    """Describe other explanations of a suite drop, and how to distinguish them.

    Return None if a case is a regression by itself. Return None as well if the base agent ran, because its results
    tell a bad day from a regression. `place` is the origin of the history, such as `on main`.
    """
    comparison = run.comparison
    drop = comparison.suite_finding if comparison is not None else None
    if comparison is None or drop is None or not drop.is_drop or run.base_agent is not None:
        return None
    kinds = [one.grounds.kind for one in list_unwaived_changes(run) if one.grounds]
    if group_regressions(comparison.changes).single or GroundKind.SUITE_DROP not in kinds:
        return None
    days = _describe_earlier_bad_days(comparison.evidence.branch_runs if comparison.evidence else (), place)
    return f"{_NO_SINGLE_CASE} {days} {_TELL_APART}"


_NO_SINGLE_CASE: Final = (
    "No single case is confirmed as a regression: only the number of failures over all cases is unusual. "
    "A bad day of the model or the network looks the same."
)
_TELL_APART: Final = (
    "A base agent tells the two apart: set `base-agent-endpoint` or `base-agent-command` in the workflow."
)


def _describe_earlier_bad_days(days: Sequence[BranchRun], place: str) -> str:
    """Describe the runs that look like a bad day: `2 of the last 20 runs on main were such days: …`."""
    if len(days) < MIN_RUNS:
        runs = format_count(len(days), "run")
        return f"{runs} {place} {'is' if len(days) == 1 else 'are'} too few to know earlier bad days."
    bad = find_bad_days(days)
    if not bad:
        return f"None of the last {len(days)} runs {place} was such a day."
    least, most = (pick(day.failures for day in bad) for pick in (min, max))
    failures = f"{least} failures" if least == most else f"{least} to {most} failures"
    usual_failures = [day.failures for day in days if day not in bad]
    usual = round(sum(usual_failures) / len(usual_failures)) if usual_failures else 0
    was = "was such a day" if len(bad) == 1 else "were such days"
    expected = f"about {usual}" if usual else "fewer than 1"
    return f"{len(bad)} of the last {len(days)} runs {place} {was}: {failures} at first (usually {expected})."


def explain_inconclusive(run: RunResult, verdict: Verdict) -> str:
    """Explain why the gate is inconclusive, and how far the run came, as a text to follow a colon."""
    why = run.stop_reason or next((reason.message for reason in verdict.reasons), "the run did not finish")
    lacking = sum(has_unknown_calls(case) for _, case in run.iter_cases())
    unknown = f" In {format_count(lacking, 'case')}, {CALLS_UNKNOWN_EXPLANATION}." if lacking else ""
    return f"{drop_error_prefix(why).rstrip('.')}. {_describe_progress(run.summary)}{unknown}"


def _describe_pass(run: RunResult, verdict: Verdict) -> str:
    rule = verdict.find_rule(RuleCode.PASS_RATE)
    words = [_describe_pass_count(run), *([f"Pass rate {rule.value} (threshold {rule.limit})."] if rule else [])]
    still = select_counted_changes(run, CaseClass.STILL_FAILING)
    if number := sum(not is_failing_as_flaky(one) for one in still):
        words.append(f"{number} still failing.")
    words += _describe_base_agent_failures(run)
    words += _describe_waived(run, verdict)
    stated_codes = {ReasonCode.PASSED, ReasonCode.NO_BASELINE}
    words += [to_sentence(reason.message) for reason in verdict.reasons if reason.code not in stated_codes]
    return " ".join([*words, *_describe_pass_score(run, verdict)])


def _describe_base_agent_failures(run: RunResult) -> list[str]:
    """Describe the failures that do not count because the base agent has them too."""
    if not (count := len(find_base_agent_failures(run))):
        return []
    which = "The base agent fails it too" if count == 1 else "The base agent fails them too"
    return [f"{describe_failed_cases(count)}. {which} in the same minutes, so this change is not the cause."]


def _describe_pass_score(run: RunResult, verdict: Verdict) -> list[str]:
    """Describe the score that counts as a pass, if it is not the specification's 1 and cases are graded."""
    graded = any(case.graded for _, case in run.iter_cases())
    if not graded or verdict.pass_score >= 1.0:
        return []
    return [f"Graded cases pass with a score of {format_limit(verdict.pass_score)} or more."]


def _describe_waived(run: RunResult, verdict: Verdict) -> list[str]:
    """Describe the waived and quarantined cases that are left out of the numbers."""
    words = [f"Not counted: {', '.join(counts)}."] if (counts := format_waived_counts(run)) else []
    quarantined = compute_pass_rates(run).quarantined
    if quarantined and verdict.find_rule(RuleCode.PASS_RATE):
        words.append(f"Pass rates leave out {format_count(quarantined, 'quarantined case')}.")
    return words


def to_sentence(words: str) -> str:
    """Capitalize the first word, unless it is an identifier, and end the text with exactly one period."""
    return f"{capitalize_first(words).rstrip('.')}."


def _describe_progress(summary: Summary) -> str:
    """`3 of 8 cases have a score, 5 errors.`; if none has, which the reason says, `8 cases: 5 errors, 3 not run.`."""
    scored, cases = summary.passed + summary.failed, format_count(summary.total_cases, "case")
    words = []
    if summary.errored:
        words.append(format_count(summary.errored, "error"))
    if summary.not_run:
        words.append(f"{summary.not_run} not run")
    if summary.skipped:
        words.append(f"{summary.skipped} skipped")
    if not scored and words:
        return f"{cases}: {', '.join(words)}."
    have = "has" if scored == 1 or summary.total_cases == 1 else "have"
    return f"{', '.join([f'{scored} of {cases} {have} a score', *words])}."


def _describe_pass_count(run: RunResult) -> str:
    """Describe how many cases pass: `7 of 8 cases pass (baseline: 8 of 8) after re-runs, 2 not run`."""
    passed = {key for key, case in run.iter_cases() if case.passed}
    is_recovered = any(one.key in passed for one in select_counted_changes(run, CaseClass.REGRESSION))
    other_counts = {"not run": run.summary.not_run, "skipped": run.summary.skipped}
    more = "".join(f", {number} {words}" for words, number in other_counts.items() if number)
    words = format_pass_counts(counts := count_passing_cases(run))
    words = words.replace(" pass", " case passes" if counts.ran == 1 else " cases pass", 1)
    return to_sentence(f"{words}{' after re-runs' if is_recovered else ''}{more}")


def find_base_agent_failures(run: RunResult) -> list[CaseChange]:
    """Find the unwaived failures that this change did not cause, because the base agent has them too.

    The base agent ran in the same minutes.
    """
    return [
        one
        for one in list_unwaived_changes(run)
        if one.grounds is not None and one.grounds.kind is GroundKind.BASE_AGENT
    ]


def list_unwaived_changes(run: RunResult) -> list[CaseChange]:
    """List the comparison with the baseline of every case that is not waived."""
    return exclude_waived(run, run.comparison.changes if run.comparison else ())


def format_new_errors(run: RunResult) -> tuple[str, ...]:
    """Format the number of new errors: `2 agent errors`, `4 cases without a score`; empty without any."""
    errors = find_new_errors(run)
    return (summarize_errors(case.error_kind for case in errors).partition(":")[0],) if errors else ()


def find_new_errors(run: RunResult) -> list[CaseResult]:
    """Find the errors that the policy of the run counts."""
    return list(iter_new_errors(run, run.comparison, run.policy.max_errors if run.policy else None))


def describe_changes_since_push(run: RunResult, context: ReportContext) -> str | None:
    """`Since your last push: 2 fixed, 1 new`; None if nothing changed or is known.

    A case is fixed if it was a regression and passes now. A removed, waived or inconclusive case is neither.
    """
    previous = context.previous_regressions
    if previous is None or run.comparison is None:
        return None
    current = {one.key for one in select_counted_changes(run, CaseClass.REGRESSION)}
    passing = (key for key, case in run.iter_cases() if case.passed and key not in current)
    fixed = sum(compute_case_digest(key) in previous for key in passing)
    new = sum(compute_case_digest(key) not in previous for key in current)
    counts = [f"{number} {word}" for number, word in ((fixed, "fixed"), (new, "new")) if number]
    since = (
        f"`{to_one_line(context.previous_regressions_sha)[:7]}`"
        if context.previous_regressions_sha
        else "your last push"
    )
    return f"Since {since}: {', '.join(counts)}" if counts else None
