"""Wording for a verdict: its reasons, the next step, and changes since the last push."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from eval_gate.gate.case_comparison import has_no_response
from eval_gate.gate.evidence.day_effects import MIN_RUNS, find_bad_days
from eval_gate.gate.rules import iter_new_errors
from eval_gate.gate.score_changes import format_limit
from eval_gate.model.comparison import CaseChange, CaseClass, Outcome, Reason, RuleCode, Verdict
from eval_gate.model.evidence import BranchRun, GroundKind
from eval_gate.model.execution import ErrorKind, Status
from eval_gate.model.result import RunResult, Summary
from eval_gate.reports.context import ReportContext
from eval_gate.reports.links import compute_case_digest
from eval_gate.reports.run_statistics import (
    compute_pass_rates,
    exclude_waived,
    find_error_kind,
    find_error_kinds,
    has_no_comparable_case,
    select_counted_changes,
)
from eval_gate.reports.wording.case_errors import (
    CALLS_UNKNOWN_EXPLANATION,
    CALLS_UNKNOWN_REMEDY,
    has_unknown_calls,
    summarize_errors,
)
from eval_gate.reports.wording.grounds import describe_score_finding, describe_suite_finding
from eval_gate.reports.wording.numbers import format_count, format_percent, format_points
from eval_gate.reports.wording.waivers import format_waived_counts
from eval_gate.text.escape import to_one_line

NO_VERDICT: Final = Reason(
    code="no-verdict",
    message="the run is complete, and no gate has decided on it: `eval-gate compare BASELINE RUN` does",
)
"""In place of a verdict: of a run that was joined of parts, for one."""
UNRELATED_TO_CHANGE: Final = "This says nothing about your change."
INCONCLUSIVE: Final = "The gate could not decide:"
RUN_REASONS: Final = frozenset({"no-scored-cases", "too-few-scored-cases", "run-incomplete"})
"""Reasons for no verdict that lie in the run itself; the others are about failures that nobody could explain."""
_NEXT_STEPS: Final = {
    RuleCode.REGRESSIONS: "see below what changed; where that is meant, bring the evals up to date",
    RuleCode.SUITE_DROP: "see below what the failing cases have in common: no single one of them decides",
    RuleCode.SUITE_SCORES: "look for what made many answers a little worse: no single case decides",
    RuleCode.MUST_PASS: "mend the cases below that must pass, whatever they did before",
    RuleCode.FAILURES: "mend the cases below, or their evals: every case has to pass here",
    RuleCode.SCORE_DROP: "see below what the scores lost",
    RuleCode.PASS_RATE: "see below which cases fail: more of them have to pass",
    RuleCode.LATENCY: "see what makes the answers slower, or allow more with `max-latency-increase`",
    RuleCode.COST: "see what makes the answers dearer, or allow more with `max-cost-increase`",
    RuleCode.TOKENS: "see what makes the answers longer, or allow more with `max-token-increase`",
    RuleCode.ERRORS: "see below what kept cases from being judged, mend it, and run the job again",
    RuleCode.COVERAGE: "see below what kept cases from being judged, mend it, and run the job again",
    RuleCode.FLAKY: "mend the cases below that fail now and then, or quarantine them",
    RuleCode.REMOVED_CASES: "have it reviewed that these cases go",
    RuleCode.CHANGED_CASES: "have it reviewed that these cases are measured otherwise",
    RuleCode.LOOSENED_RULES: "have the rules reviewed that ask for less",
    RuleCode.NEW_FAILURES: "make the new and changed cases pass before they come in",
    RuleCode.STALE: "make the stale evals anew from the tools as they are now",
}
"""What to do first where a rule does not hold. The words are ours: nothing foreign is in them."""


def describe_verdict(run: RunResult, verdict: Verdict) -> str:
    """Why, in a few plain sentences."""
    match verdict.outcome:
        case Outcome.FAILED:
            said = [*_format_reasons(run, verdict), *_describe_pass_rate(run, verdict), *_describe_waived(run)]
            return " ".join([*said, *_describe_pass_score(run, verdict)])
        case Outcome.INCONCLUSIVE:
            why = explain_inconclusive(run, verdict)
            if is_likely_outage(run, verdict):
                why = f"this looks like an outage. {to_sentence(why)}"
            words = " ".join([why, *_describe_alternative(run, verdict)])
            return words if format_lead(run, verdict) == INCONCLUSIVE else to_sentence(words)
    return _describe_pass(run, verdict)


def format_reason(run: RunResult, reason: Reason) -> str:
    """Format a reason of the verdict as text that names what decided: the history, or one baseline run."""
    errors = run.verdict.find_rule(RuleCode.ERRORS) if run.verdict else None
    if reason.code == RuleCode.ERRORS and errors is not None:
        return f"{_format_counted_errors(run)} (allowed: {errors.limit})"
    if run.comparison is None or run.comparison.false_alarm_rate is None:
        return reason.message
    if reason.code == RuleCode.SUITE_DROP and run.comparison.suite_finding is not None:
        return describe_suite_drop(run)
    if reason.code == RuleCode.SUITE_SCORES and run.comparison.score_finding is not None:
        return describe_score_finding(run.comparison.score_finding)
    rule = run.verdict.find_rule(RuleCode.REGRESSIONS) if run.verdict else None
    apart = _format_errors_and_drops(run) if reason.code == RuleCode.REGRESSIONS else None
    return f"{apart} (allowed: {rule.limit})" if rule is not None and apart else reason.message


def _format_counted_errors(run: RunResult) -> str:
    """Format the new errors that count, among all cases without a score.

    The other cases without a score are regressions, or had no score in the baseline either.
    """
    words, counted = summarize_new_errors(run), len(list(iter_new_errors(run, run.comparison)))
    if counted == run.summary.errored:
        return words
    which = words.partition(": ")[2] or words
    count_words = "counts" if counted == 1 else "count"
    return f"{counted} of the {run.summary.errored} cases that could not be judged {count_words}: {which}"


def _format_errors_and_drops(run: RunResult) -> str | None:
    """How many cases crash for themselves, and how many are only called regressions because all dropped.

    None where there are none of these: then the gate's own sentence says it all.
    """
    alone, dropped = split_regressions(run)
    broken = {key for key, case in run.iter_cases() if case.status is Status.ERROR}
    crash = sum(one.key in broken for one in alone)
    if not crash and not dropped:
        return None
    if not alone:
        return (
            f"{format_count(len(dropped), 'case that usually passes', 'cases that usually pass')} failed here at first"
        )
    said = []
    if len(alone) > crash:
        said.append(format_count(len(alone) - crash, "case that usually passes fails", "cases that usually pass fail"))
    if crash:
        said.append(format_count(crash, "case that usually passes crashes", "cases that usually pass crash"))
    return f"{' and '.join(said)} here{f', and {len(dropped)} more failed at first' if dropped else ''}"


def describe_suite_drop(run: RunResult) -> str:
    """How all cases together compare with their records."""
    assert run.comparison is not None
    assert run.comparison.suite_finding is not None
    grounds = [one.grounds for one in run.comparison.select_changes(CaseClass.REGRESSION)]
    alone = any(one is not None and one.kind is not GroundKind.SUITE_DROP for one in grounds)
    return describe_suite_finding(run.comparison.suite_finding, others=alone)


def describe_bad_day(run: RunResult, place: str) -> str | None:
    """Describe what else a suite drop may be, and how to find out.

    Return None if a case is a regression by itself. Return None as well if the base agent ran, because its results
    tell a bad day from a regression. `place` is the origin of the history, such as `on main`.
    """
    found = run.comparison
    if found is None or found.suite_finding is None or not found.suite_finding.is_drop or run.base_agent is not None:
        return None
    grounds = [one.grounds for one in found.select_changes(CaseClass.REGRESSION)]
    together = [one for one in list_unwaived_changes(run) if one.grounds and one.grounds.kind is GroundKind.SUITE_DROP]
    if not all(one is not None and one.kind is GroundKind.SUITE_DROP for one in grounds) or not together:
        return None
    return " ".join(
        [
            _NO_SINGLE_CASE,
            _describe_earlier_bad_days(found.evidence.branch_runs if found.evidence else (), place),
            _TELL_APART,
        ]
    )


_NO_SINGLE_CASE: Final = (
    "No single case is confirmed as a regression: only the test of all cases together failed. "
    "A bad day of the model or the network looks the same."
)
_TELL_APART: Final = (
    "To tell the two apart, re-run the job and see whether the drop repeats, "
    "or configure a base agent (`base-agent-endpoint` or `base-agent-command`)."
)


def _describe_earlier_bad_days(days: Sequence[BranchRun], place: str) -> str:
    """How many runs look like a bad day, and how much failed: `2 of the last 20 runs on main look like one: …`."""
    if len(days) < MIN_RUNS:
        runs = format_count(len(days), "run")
        return f"Nothing is known of earlier bad days yet: {runs} {place} {'is' if len(days) == 1 else 'are'} too few."
    bad = find_bad_days(days)
    if not bad:
        return f"None of the last {len(days)} runs {place} looks like one."
    least, most = (pick(day.failures for day in bad) for pick in (min, max))
    failures = f"{least} failures" if least == most else f"{least} to {most} failures"
    others = [day.failures for day in days if day not in bad]
    usual = round(sum(others) / len(others)) if others else 0
    are = f"about {usual} {'is' if usual == 1 else 'are'}" if usual else "fewer than 1 is"
    look = "looks" if len(bad) == 1 else "look"
    return f"{len(bad)} of the last {len(days)} runs {place} {look} like one: {failures} at first, where {are} usual."


def explain_inconclusive(run: RunResult, verdict: Verdict) -> str:
    """Why there is no verdict, and how far the run came; to be read after a colon."""
    why = run.stop_reason or next(
        (format_reason(run, reason) for reason in verdict.reasons), "the run was not finished"
    )
    lacking = sum(has_unknown_calls(case) for _, case in run.iter_cases())
    unknown = f" In {format_count(lacking, 'case')}, {CALLS_UNKNOWN_EXPLANATION}." if lacking else ""
    return f"{why.rstrip('.')}. {_describe_progress(run.summary)}{unknown}"


def _describe_alternative(run: RunResult, verdict: Verdict) -> list[str]:
    """Describe what else a likely outage may be: a change that keeps the target from starting.

    The same applies to agent errors that left the run without a verdict.
    """
    if is_likely_outage(run, verdict):
        return [f"If this change keeps the agent from starting, or from answering in time, {_SAME_NEXT_TIME}."]
    if ErrorKind.AGENT_ERROR in find_error_kinds(run) and verdict.reasons and verdict.reasons[0].code in RUN_REASONS:
        return [f"The agent may have been down; if this change is what breaks it, {_SAME_NEXT_TIME}."]
    return []


_SAME_NEXT_TIME: Final = "the next run will say the same"


def _describe_pass(run: RunResult, verdict: Verdict) -> str:
    rule = verdict.find_rule(RuleCode.PASS_RATE)
    words = [f"{_format_pass_count(run, *([f'threshold {rule.limit}'] if rule else []))}{_format_unscored(run)}."]
    if still := select_counted_changes(run, CaseClass.STILL_FAILING):
        words.append(f"{len(still)} still failing.")
    words += _describe_base_agent_failures(run)
    words += _describe_waived(run)
    known = {"passed", "no-baseline"}
    words += [to_sentence(format_reason(run, reason)) for reason in verdict.reasons if reason.code not in known]
    return " ".join([*words, *_describe_pass_score(run, verdict)])


def _describe_base_agent_failures(run: RunResult) -> list[str]:
    """Describe the failures that do not count because the base agent has them too."""
    if not (found := len(find_base_agent_failures(run))):
        return []
    which = format_count(found, "case that usually passes fails", "cases that usually pass fail")
    them = "it" if found == 1 else "them"
    return [f"{which} here; the base branch's agent, asked in the same minutes, fails {them} too: not of this change."]


def _describe_pass_score(run: RunResult, verdict: Verdict) -> list[str]:
    """Describe the score that counts as a pass, if it is not the specification's 1 and cases are graded."""
    graded = any(case.graded for _, case in run.iter_cases())
    if not graded or verdict.pass_score >= 1.0:
        return []
    return [f"Graded cases pass from {format_limit(verdict.pass_score)} on."]


def _describe_waived(run: RunResult) -> list[str]:
    """Describe the waived and quarantined cases that are left out of the numbers."""
    words = [f"Not counted: {', '.join(found)}."] if (found := format_waived_counts(run)) else []
    aside = compute_pass_rates(run).quarantined
    if aside:
        words.append(f"{format_count(aside, 'case')} in quarantine {'is' if aside == 1 else 'are'} in no pass rate.")
    return words


def _format_reasons(run: RunResult, verdict: Verdict) -> list[str]:
    """Format the reasons of the verdict as sentences; the first continues the text before it."""
    first, *others = [format_reason(run, reason) for reason in verdict.reasons] or ["the rules do not hold"]
    return [f"{first.rstrip('.')}.", *map(to_sentence, others)]


def to_sentence(words: str) -> str:
    """Capitalize the first letter and end the text with exactly one period."""
    return f"{words[:1].upper()}{words[1:].rstrip('.')}."


def _describe_progress(summary: Summary) -> str:
    judged = summary.passed + summary.failed
    were = "was" if 1 in {judged, summary.total_cases} else "were"
    words = [f"{judged} of {format_count(summary.total_cases, 'case')} {were} judged"]
    if summary.errored:
        words.append(f"{summary.errored} could not be")
    if summary.not_run:
        words.append(f"{summary.not_run} {'was' if summary.not_run == 1 else 'were'} not run")
    if summary.skipped:
        words.append(f"{summary.skipped} skipped")
    return ", ".join(words) + "."


def _describe_pass_rate(run: RunResult, verdict: Verdict) -> list[str]:
    rates = compute_pass_rates(run)
    now, before = rates.current, rates.baseline
    if any(reason.code == RuleCode.PASS_RATE for reason in verdict.reasons):
        return (
            []
            if now is None or before is None
            else [f"Baseline {format_percent(before)} ({format_points(before, now)})."]
        )
    return [f"{_format_pass_count(run)}{_format_unscored(run)}."]


def _format_pass_count(run: RunResult, *more: str) -> str:
    """`7 of 8 judged cases pass (87.5 %, baseline 90.0 %, −2.5 pp)`; `after re-runs` where these did it."""
    rates = compute_pass_rates(run)
    if not rates.judged:
        return "No case was judged"
    which = f"{'judged ' if _format_unscored(run) else ''}{'case passes' if rates.judged == 1 else 'cases pass'}"
    passed = {key for key, case in run.iter_cases() if case.passed}
    again = any(one.key in passed for one in select_counted_changes(run, CaseClass.REGRESSION))
    rate = ", ".join([_format_rates(run), *more])
    return f"{rates.passed} of {rates.judged} {which}{' after re-runs' if again else ''} ({rate})"


def _format_unscored(run: RunResult) -> str:
    """`, 2 could not be judged`: what a pass rate says nothing about."""
    summary = run.summary
    numbers = {"could not be judged": summary.errored, "not run": summary.not_run, "skipped": summary.skipped}
    return "".join(f", {number} {words}" for words, number in numbers.items() if number)


def _format_rates(run: RunResult) -> str:
    rates = compute_pass_rates(run)
    now, before = rates.current, rates.baseline
    if now is None or before is None or has_no_comparable_case(run):
        return format_percent(now)
    return f"{format_percent(now)}, baseline {format_percent(before)}, {format_points(before, now)}"


def split_regressions(run: RunResult) -> tuple[list[CaseChange], list[CaseChange]]:
    """Regressions by themselves, and those that are part of a drop of all cases together."""
    found = select_counted_changes(run, CaseClass.REGRESSION)
    dropped = [one for one in found if one.grounds is not None and one.grounds.kind is GroundKind.SUITE_DROP]
    return [one for one in found if one not in dropped], dropped


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


def summarize_new_errors(run: RunResult) -> str:
    """`2 cases crashed`, `4 cases could not be judged: 2 crashed, 1 unreachable, 1 not graded`: those that count."""
    silent = has_no_response(run)
    return summarize_errors(find_error_kind(case, silent=silent) for case in iter_new_errors(run, run.comparison))


def format_new_errors(run: RunResult) -> tuple[str, ...]:
    """Format the number of new errors: `4 cases could not be judged`; empty without any."""
    return (summarize_new_errors(run).partition(":")[0],) if any(iter_new_errors(run, run.comparison)) else ()


def format_lead(run: RunResult, verdict: Verdict) -> str | None:
    """Return the bold text before the opening sentence of a verdict, or None if there is none."""
    if verdict.reasons == (NO_VERDICT,):
        return None
    if verdict.outcome is Outcome.INCONCLUSIVE:
        return UNRELATED_TO_CHANGE if is_unrelated_to_change(run, verdict) else INCONCLUSIVE
    return "Gate failed:" if verdict.outcome is Outcome.FAILED else None


def is_unrelated_to_change(run: RunResult, verdict: Verdict) -> bool:
    """Whether the change cannot be why there is no verdict: nothing is known against it, and what broke is ours.

    Calls that the target does not list may well be why: a path was mistyped, or the agent was changed.
    """
    if verdict.reasons and verdict.reasons[0].code not in RUN_REASONS:
        return False
    suspect = run.summary.failed or select_counted_changes(run, CaseClass.REGRESSION, CaseClass.INCONCLUSIVE)
    return not suspect and set(find_error_kinds(run)) <= {ErrorKind.EVALUATION_ERROR} and not _has_unknown_calls(run)


def _has_unknown_calls(run: RunResult) -> bool:
    return any(has_unknown_calls(case) for _, case in run.iter_cases())


def has_missing_cases(run: RunResult) -> bool:
    """Whether cases are missing by nobody's choice: those of a shard, or of a workflow that chose others than asked."""
    return run.partial and not run.complete and not run.selections


def is_likely_outage(run: RunResult, verdict: Verdict) -> bool:
    """Whether it looks as if the target could not be reached, or hung on everything."""
    mine = verdict.outcome is Outcome.INCONCLUSIVE and bool(verdict.reasons) and verdict.reasons[0].code in RUN_REASONS
    found = find_error_kinds(run)
    return mine and found.count(ErrorKind.AGENT_UNREACHABLE) * 2 > len(found)


def suggest_remedy(run: RunResult, verdict: Verdict) -> str:
    """Where to look if a run without a verdict ends the same way again."""
    if verdict.reasons and verdict.reasons[0].code == "baseline-unavailable":
        return "GitHub or the permissions of the job need a look, not this change"
    if has_missing_cases(run):
        return "see why the workflow that ran the evals left cases out"
    if is_unrelated_to_change(run, verdict):
        return "the judge or the engine needs a look, not this change"
    if is_likely_outage(run, verdict):
        return "see whether the agent starts and answers in time with this change, then at its host or provider"
    if _has_unknown_calls(run):
        return CALLS_UNKNOWN_REMEDY
    return "see what the target does with this change, and without it"


def suggest_next_step(verdict: Verdict, *, acceptable: bool) -> str | None:
    """Suggest what to do about a failed gate, and also a waiver if `acceptable`.

    Return None if an older version named no reason that this version knows.
    """
    code = verdict.reasons[0].code if verdict.reasons else ""
    words = next((words for rule, words in _NEXT_STEPS.items() if rule == code), None)
    return f"{words}, or accept it for now" if words and acceptable else words


def describe_changes_since_push(run: RunResult, context: ReportContext) -> str | None:
    """`Since your last push: 2 mended, 1 new`; None where nothing changed, or nothing is known.

    A case is mended when it was a regression and passes now. One that is gone, accepted or not sure is neither.
    """
    before = context.previous_regressions
    if before is None or run.comparison is None:
        return None
    now = {one.key for one in select_counted_changes(run, CaseClass.REGRESSION)}
    mended = sum(
        case.passed and key not in now and compute_case_digest(key) in before for key, case in run.iter_cases()
    )
    new = sum(compute_case_digest(key) not in before for key in now)
    said = [f"{number} {word}" for number, word in ((mended, "mended"), (new, "new")) if number]
    since = (
        f"`{to_one_line(context.previous_regressions_sha)[:7]}`"
        if context.previous_regressions_sha
        else "your last push"
    )
    return f"Since {since}: {', '.join(said)}" if said else None
