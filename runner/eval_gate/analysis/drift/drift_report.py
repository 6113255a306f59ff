"""Drift report: the issue, the part of the job summary, and the console lines."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Final

from eval_gate.analysis.drift.branch_drift import FALSE_ALARM_RUNS, MIN_RUNS, Degradation, Drift, ModelChange
from eval_gate.analysis.drift.case_drift import CaseDegradation
from eval_gate.gate.model_changes import format_model_names
from eval_gate.reports.context import ReportContext
from eval_gate.reports.wording.numbers import MINUS
from eval_gate.results.history import HistoryRun
from eval_gate.results.levels import LevelKind, RunLevels
from eval_gate.text import escape
from eval_gate.text.distinct_values import format_distinct_decimals
from eval_gate.text.escape import format_count
from eval_gate.text.quoting import capitalize_first

LEVEL_NAMES: Final = {
    LevelKind.FAILING: "failing cases",
    LevelKind.FAILING_BEFORE_RERUNS: "failures before re-runs",
    LevelKind.SCORE: "scores",
    LevelKind.JUDGE: "the judge",
    LevelKind.TIME: "time",
    LevelKind.COST: "cost",
}
_TIME_PATTERN: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d", re.ASCII)
_OUTSIDE_CAUSE: Final = " The cause is outside of it: the model behind the agent, a service, or data."
CASES_NAME: Final = "single cases"
MAX_CASES: Final = 10


def list_degraded_names(drift: Drift) -> tuple[str, ...]:
    """List the degraded levels by name, and "single cases" if any case is broken."""
    return (*(LEVEL_NAMES[one.kind] for one in drift.degradations), *((CASES_NAME,) if drift.broken_cases else ()))


def format_issue_title(branch: str, name: str | None) -> str:
    """Format the title of the drift issue, which never changes for a branch and gate."""
    gate = f" ({escape.to_one_line(name, 60)})" if name else ""
    return f"{escape.to_one_line(branch, 80)} got worse over several runs{gate}"


def render_issue(drift: Drift, branch: str, context: ReportContext) -> str:
    """Render the body of the drift issue, without its marker."""
    label = escape.format_code_span(branch)
    head = (
        "got worse over several runs, and chance does not explain it."
        if drift.has_degraded
        else "had got worse. Its newest runs no longer show it."
    )
    lines = [f"**{label} {head}**", "", *_iter_findings(drift, branch, context), ""]
    newest = drift.newest
    if newest is not None:
        run = f"[the newest run]({context.run_url})" if context.run_url else "the newest run"
        lines += [
            (
                f"As of {run}, {_format_commit_link(newest, context)}, with "
                f"{format_count(drift.runs, 'run')} in the history."
            ),
            "",
        ]
    lines.append(
        f"<sub>Eval Gate compares all runs of {label}. Without a real change, such an alarm occurs at most once in "
        f"{FALSE_ALARM_RUNS} runs. Eval Gate updates this issue, and closes it when the newest runs are as good as"
        " before. To accept the current state, close it yourself: it returns only for another change.</sub>"
    )
    return "\n".join(lines)


def render_summary_part(drift: Drift, branch: str, context: ReportContext, issue_url: str | None = None) -> str:
    """Render the drift part, which comes last in the job summary of a run of the branch."""
    label = escape.format_code_span(branch)
    if not drift.can_detect:
        return (
            f"\n<sub>Drift of {label} cannot be detected yet: the history has {format_count(drift.runs, 'run')}, "
            f"{MIN_RUNS} are needed.{_describe_model_alone(drift, context)}</sub>\n"
        )
    if not drift.has_degraded:
        return (
            f"\n<sub>{label} did not get worse over {format_count(drift.runs, 'run')}."
            f"{_describe_model_alone(drift, context)}</sub>\n"
        )
    more = [f"[Issue about this drift]({issue_url})"] if issue_url else []
    return "\n".join(
        ["", f"### {label} got worse over several runs", "", *_iter_findings(drift, branch, context), "", *more, ""]
    )


def render_recovery_comment(drift: Drift, branch: str, context: ReportContext) -> str:
    """Render the comment that closes the drift issue after recovery."""
    until = f", up to {_format_commit_link(drift.newest, context)}," if drift.newest else ""
    return f"{escape.format_code_span(branch)} has recovered: its newest runs{until} are as good as before."


def render_lost_notice(branch: str) -> str:
    """Render the notice for an issue whose runs are no longer in the history."""
    return (
        f"**The history no longer has the runs before this**, so newer runs of {escape.format_code_span(branch)} are "
        "compared with its current state. No recovery was seen: close this issue when you know the cause."
    )


def iter_console_lines(drift: Drift) -> Iterator[str]:
    """Yield the drift report as lines for a terminal."""
    if not drift.can_detect:
        yield f"not known: {format_count(drift.runs, 'run')} in the history, {MIN_RUNS} are needed"
        yield from _iter_model_lines(drift)
        return
    if not drift.has_degraded:
        yield f"nothing got worse over {format_count(drift.runs, 'run')}"
    yield from _iter_model_lines(drift)
    for one in drift.degradations:
        yield escape.to_console_line(f"WORSE  {_describe_degradation(one)}")
        yield escape.to_console_line(f"       {_describe_since_plain(one)}")
        if one.model_change is not None:
            yield escape.to_console_line(f"       {_describe_model_change(one.model_change, code=False)}")
        for case in one.cases[:MAX_CASES]:
            yield escape.to_console_line(f"       {case.key.case_id} ({case.key.suite}): {_format_rates(case)}")
    for case in drift.broken_cases:
        yield escape.to_console_line(f"BROKEN {case.key.case_id} ({case.key.suite}): {_format_rates(case)}")
        yield escape.to_console_line(
            f"       last good: {_format_short_run(case.last_good)}, first bad: {_format_short_run(case.first_bad)}"
        )
    yield f"without a real change: at most one alarm in {FALSE_ALARM_RUNS} runs"


def _iter_model_lines(drift: Drift) -> Iterator[str]:
    change = _find_separate_change(drift)
    if change is None:
        return
    between = f"{_format_span(change.old_run, change.new_run)} in between"
    if change.same_commit:
        between = f"the repository did not change ({_format_short_run(change.new_run)} before and since)"
    yield escape.to_console_line(
        f"MODEL  {_describe_model_change(change, code=False)}, {format_count(change.runs, 'run')}; {between}"
    )


def _iter_findings(drift: Drift, branch: str, context: ReportContext) -> Iterator[str]:
    for one in drift.degradations:
        yield f"- **{_describe_degradation(one)}** {_describe_since(one, branch, context)}"
        yield from _iter_case_lines(one.cases, None)
    if drift.broken_cases:
        yield "- **Cases that no longer pass:**"
        yield from _iter_case_lines(drift.broken_cases, context)
    if alone := _describe_model_alone(drift, context).strip():
        yield f"- {alone}"


def _describe_model_alone(drift: Drift, context: ReportContext) -> str:
    """Describe the newest model change if no degradation mentions one, after a leading space."""
    change = _find_separate_change(drift)
    if change is None:
        return ""
    what = f"{capitalize_first(_describe_model_change(change, code=True))} ({format_count(change.runs, 'run')})"
    if change.same_commit:
        return f" {what}; the repository did not change."
    return f" {what}; in between: {_format_commit_range(change.old_run, change.new_run, context)}."


def _find_separate_change(drift: Drift) -> ModelChange | None:
    has_explanation = any(one.model_change is not None for one in drift.degradations)
    return None if has_explanation else next(iter(drift.model_changes), None)


def _describe_model_change(change: ModelChange, *, code: bool) -> str:
    old, new = (format_model_names(one.models) for one in (change.old_run, change.new_run))
    if code:
        old, new = escape.format_code_span(old), escape.format_code_span(new)
    return f"the model behind it changed on {_format_day(change.new_run.timestamp)}: {old} before, {new} since"


def _iter_case_lines(cases: tuple[CaseDegradation, ...], context: ReportContext | None) -> Iterator[str]:
    """Yield a line for each of the first cases; with a context also the commits in which it broke."""
    for case in cases[:MAX_CASES]:
        where = f"; {_format_commit_range(case.last_good, case.first_bad, context)}" if context else ""
        name = f"{escape.format_code_span(case.key.case_id)} in {escape.format_code_span(case.key.suite)}"
        yield f"  - {name}: {_format_rates(case)}{where}"
    if (more_cases := len(cases) - MAX_CASES) > 0:
        yield f"  - and {more_cases} more"


def _format_rates(case: CaseDegradation) -> str:
    since, earlier = case.counts_since, case.counts_before
    return (
        f"failed in {since.failures} of {format_count(since.executions, 'run')} since, in {earlier.failures} of "
        f"{earlier.executions} before"
    )


def _describe_degradation(one: Degradation) -> str:
    match one.kind:
        case LevelKind.FAILING:
            return (
                f"The failure rate rose by {_format_points(one.level_now - one.level_before)}: {_format_percents(one)}."
            )
        case LevelKind.FAILING_BEFORE_RERUNS:
            return (
                f"The failure rate before re-runs rose by {_format_points(one.level_now - one.level_before)}: "
                f"{_format_percents(one)}."
            )
        case LevelKind.SCORE:
            old_score, new_score = format_distinct_decimals(one.level_before, one.level_now, 2)
            return f"Scores fell from {old_score} to {new_score}."
        case LevelKind.JUDGE:
            fell = f"{MINUS}{one.level_before - one.level_now:.2f}"
            return f"The judge gives lower scores to the same responses: {fell} on average."
        case LevelKind.TIME:
            return f"A case takes {math.exp(min(one.level_now - one.level_before, 50.0)):.1f} × as long."
        case LevelKind.COST:
            return f"A case costs {math.exp(min(one.level_now - one.level_before, 50.0)):.1f} × as much."


def _format_points(share: float) -> str:
    return f"{share * 100:.1f} points"


def _format_percents(one: Degradation) -> str:
    share_then, share_now = (min(max(share, 0.0), 1.0) for share in (one.level_before, one.level_now))
    old_percent, new_percent = format_distinct_decimals(share_then, share_now, 1, scale=100)
    return f"{old_percent} % before, {new_percent} % now"


def _describe_since(one: Degradation, branch: str, context: ReportContext) -> str:
    when = f"Since {_format_day(one.first_bad.timestamp)} ({format_count(one.runs, 'run')})"
    if one.same_commit:
        return (
            f"{when}. **The repository did not change**: "
            f"{_format_commit_link(one.first_bad, context)} ran before and since."
            f"{_format_model_sentence(one) or _OUTSIDE_CAUSE}"
        )
    commits = _format_commit_range(one.last_good, one.first_bad, context)
    probable = f"{when}. Probable cause: {commits}"
    wide = (one.last_surely_good, one.first_surely_bad)
    if [one.run_id for one in wide] == [one.last_good.run_id, one.first_bad.run_id]:
        return f"{probable}.{_format_model_sentence(one)}"
    return f"{probable}, in any case {_format_commit_range(*wide, context)}.{_format_model_sentence(one)}"


def _format_model_sentence(one: Degradation) -> str:
    change = one.model_change
    return f" {capitalize_first(_describe_model_change(change, code=True))}." if change is not None else ""


def _describe_since_plain(one: Degradation) -> str:
    when = f"since {_format_day(one.first_bad.timestamp)}, {format_count(one.runs, 'run')}"
    if one.same_commit:
        return f"{when}; the repository did not change ({_format_short_run(one.first_bad)} before and since)"
    wide = _format_span(one.last_surely_good, one.first_surely_bad)
    return f"{when}; probably {_format_span(one.last_good, one.first_bad)}, in any case {wide}"


def _format_day(timestamp: str) -> str:
    return escape.escape_markdown(timestamp[:10], 10) or "an unknown day"


def _format_time(run: HistoryRun | RunLevels) -> str:
    """To the minute; it identifies a run without a commit."""
    minute = run.timestamp[:16].replace("T", " ")
    return minute if _TIME_PATTERN.fullmatch(minute) else "an unknown time"


def _format_short_run(run: HistoryRun | RunLevels) -> str:
    return run.sha[:7] if run.sha else f"the run of {_format_time(run)}"


def _format_span(good: HistoryRun | RunLevels, bad: HistoryRun | RunLevels) -> str:
    if good.sha and bad.sha:
        return f"{good.sha[:7]}..{bad.sha[:7]}"
    return f"between {_format_short_run(good)} and {_format_short_run(bad)}"


def _format_commit_link(run: HistoryRun | RunLevels, context: ReportContext) -> str:
    if run.sha is None or not run.sha.isalnum():
        return f"the run of {_format_time(run)}"
    return _format_link(run.sha[:7], f"commit/{run.sha}", context)


def _format_link(text: str, path: str, context: ReportContext) -> str:
    return f"[{text}]({context.server_url}/{context.repository}/{path})" if context.repository else f"`{text}`"


def _format_commit_range(good: HistoryRun | RunLevels, bad: HistoryRun | RunLevels, context: ReportContext) -> str:
    """Format the commits after `good` up to `bad`, or name the two runs if a commit is unknown."""
    if good.sha is None or bad.sha is None or not (good.sha.isalnum() and bad.sha.isalnum()):
        return f"the commits between {_format_commit_link(good, context)} and {_format_commit_link(bad, context)}"
    if good.sha == bad.sha:
        return f"not in the repository ({_format_commit_link(bad, context)} before and since)"
    return _format_link(f"{good.sha[:7]}…{bad.sha[:7]}", f"compare/{good.sha}...{bad.sha}", context)
