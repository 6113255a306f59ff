"""What has become worse on the default branch over its runs: the issue, the part of the summary, and the console."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Final

from eval_gate.analysis.drift.cases import CaseSince
from eval_gate.analysis.drift.drift import FALSE_ALARM_RUNS, LEAST_RUNS, Drift, ModelChange, Worse
from eval_gate.errors import PAGES
from eval_gate.gate.answering_models import names
from eval_gate.reports.context import ReportContext
from eval_gate.reports.words.numbers import MINUS, count
from eval_gate.results.ledger import LedgerRun
from eval_gate.results.levels import LevelKind, RunLevels
from eval_gate.text import escape
from eval_gate.text.apart import decimals_apart

PAGE: Final = f"{PAGES}/drift.md"
NAMES: Final = {
    LevelKind.FAILING: "failing cases",
    LevelKind.FIRST: "failures at first",
    LevelKind.SCORE: "scores",
    LevelKind.GRADING: "the judge",
    LevelKind.TIME: "time",
    LevelKind.COST: "cost",
}
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d", re.ASCII)
CASES: Final = "single cases"
MOST_CASES: Final = 10


def names_of(drift: Drift) -> tuple[str, ...]:
    """What is worse, in a word each."""
    return (*(NAMES[one.measured] for one in drift.worse), *((CASES,) if drift.broken else ()))


def title_of(branch: str, name: str | None) -> str:
    """The issue's title, which never changes."""
    gate = f" ({escape.one_line(name, 60)})" if name else ""
    return f"{escape.one_line(branch, 80)} got worse over its runs{gate}"


def render_issue(drift: Drift, branch: str, context: ReportContext) -> str:
    """The issue's body, without its marker."""
    shown = escape.code_span(branch)
    head = (
        "is worse than it was, and it is not chance."
        if drift.anything_worse
        else "was worse, and nothing of that is seen now."
    )
    lines = [f"**{shown} {head}**", "", *_findings(drift, branch, context), ""]
    newest = drift.newest
    if newest is not None:
        run = f"[the newest run]({context.run_url})" if context.run_url else "the newest run"
        lines += [f"As of {run}, {_commit(newest, context)}, with {count(drift.runs, 'run')} on record.", ""]
    lines.append(
        f"<sub>Found by Eval Gate over the runs of {shown}, not by one of them: while nothing changes this happens once"
        f" in {FALSE_ALARM_RUNS} runs or less. This issue is kept up to date, and is closed when the newest runs are as"
        " they were before. Close it yourself to accept what is now; it comes back only for something else.</sub>"
    )
    return "\n".join(lines)


def render_part(drift: Drift, branch: str, context: ReportContext, issue_url: str | None = None) -> str:
    """What the job summary of a run of the branch says below everything else."""
    shown = escape.code_span(branch)
    if not drift.could_find:
        return (
            f"\n<sub>Whether {shown} gets worse over its runs is not known yet: {count(drift.runs, 'run')} of the"
            f" {LEAST_RUNS} that this takes are on record.{_model_alone(drift, context)}</sub>\n"
        )
    if not drift.anything_worse:
        return (
            f"\n<sub>{shown} has not become worse over {count(drift.runs, 'run')}."
            f"{_model_alone(drift, context)}</sub>\n"
        )
    more = [f"[The issue about it]({issue_url})"] if issue_url else []
    return "\n".join(
        ["", f"### {shown} got worse over its runs", "", *_findings(drift, branch, context), "", *more, ""]
    )


def mended_words(drift: Drift, branch: str, context: ReportContext) -> str:
    """The comment with which the issue is closed."""
    until = f" up to {_commit(drift.newest, context)}" if drift.newest else ""
    return f"{escape.code_span(branch)} is as it was before, by its newest runs{until}."


def lost_words(branch: str) -> str:
    """What is written below the issue when the runs that it is about are on record no more."""
    return (
        f"**The runs before this are no longer on record**, so {escape.code_span(branch)} is taken as it is now. It has"
        " not been seen to recover: close this issue when you know."
    )


def console_lines(drift: Drift) -> Iterator[str]:
    """The same for a terminal."""
    if not drift.could_find:
        yield f"not known: {count(drift.runs, 'run')} on record, {LEAST_RUNS} are needed"
        yield from _model_line(drift)
        return
    if not drift.anything_worse:
        yield f"nothing has become worse over {count(drift.runs, 'run')}"
    yield from _model_line(drift)
    for one in drift.worse:
        yield escape.console_line(f"WORSE  {_sentence(one)}")
        yield escape.console_line(f"       {_since_plain(one)}")
        if one.model is not None:
            yield escape.console_line(f"       {_model(one.model, code=False)}")
        for case in one.cases[:MOST_CASES]:
            yield escape.console_line(f"       {case.key.case_id} ({case.key.suite}): {_rates(case)}")
    for case in drift.broken:
        yield escape.console_line(f"BROKEN {case.key.case_id} ({case.key.suite}): {_rates(case)}")
        yield escape.console_line(f"       good at {_short(case.good)}, not since {_short(case.bad)}")
    yield f"while nothing changes, one alarm in {FALSE_ALARM_RUNS} runs or less"


def _model_line(drift: Drift) -> Iterator[str]:
    change = _not_told(drift)
    if change is None:
        return
    between = f"{_span(change.before, change.since)} in between"
    if change.same_commit:
        between = f"nothing in the repository changed then ({_short(change.since)} before and since)"
    yield escape.console_line(f"MODEL  {_model(change, code=False)}, {count(change.runs, 'run')}; {between}")


def _findings(drift: Drift, branch: str, context: ReportContext) -> Iterator[str]:
    for one in drift.worse:
        yield f"- **{_sentence(one)}** {_since(one, branch, context)}"
        yield from _cases(one.cases)
    if drift.broken:
        yield "- **Cases that passed and do not any more:**"
        for case in drift.broken[:MOST_CASES]:
            where = _range(case.good, case.bad, context)
            yield f"  - {_case(case)}: {_rates(case)}; {where}"
        if left := len(drift.broken) - MOST_CASES:
            yield from ([f"  - and {left} more"] if left > 0 else [])
    if alone := _model_alone(drift, context).strip():
        yield f"- {alone}"


def _model_alone(drift: Drift, context: ReportContext) -> str:
    """The newest change of the model, where nothing that is worse is said with it; one blank before it."""
    change = _not_told(drift)
    if change is None:
        return ""
    what = f"{_capital(_model(change, code=True))} ({count(change.runs, 'run')})"
    if change.same_commit:
        return f" {what}; nothing in the repository changed then."
    return f" {what}; in between: {_range(change.before, change.since, context)}."


def _not_told(drift: Drift) -> ModelChange | None:
    told = [one.model for one in drift.worse if one.model is not None]
    return next(iter(drift.models), None) if not told else None


def _model(change: ModelChange, *, code: bool) -> str:
    before, since = (names(one.models) for one in (change.before, change.since))
    if code:
        before, since = escape.code_span(before), escape.code_span(since)
    return f"the model behind it is another one since {_day(change.since.timestamp)}: {before} before, {since} since"


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _cases(cases: tuple[CaseSince, ...]) -> Iterator[str]:
    for case in cases[:MOST_CASES]:
        yield f"  - {_case(case)}: {_rates(case)}"
    if (left := len(cases) - MOST_CASES) > 0:
        yield f"  - and {left} more"


def _case(case: CaseSince) -> str:
    return f"{escape.code_span(case.key.case_id)} in {escape.code_span(case.key.suite)}"


def _rates(case: CaseSince) -> str:
    since, before = case.since, case.before
    return (
        f"failed in {since.failures} of {count(since.runs, 'run')} since, in {before.failures} of {before.runs} before"
    )


def _sentence(one: Worse) -> str:
    match one.measured:
        case LevelKind.FAILING:
            return f"{_points(one.now - one.then)} of all cases more fail: {_percents(one)}."
        case LevelKind.FIRST:
            return f"{_points(one.now - one.then)} of all cases more fail at first, before re-runs: {_percents(one)}."
        case LevelKind.SCORE:
            then, now = decimals_apart(one.then, one.now, 2)
            return f"Scores fell from {then} to {now}."
        case LevelKind.GRADING:
            return f"The judge gives less for the same answers: {MINUS}{one.then - one.now:.2f} on average."
        case LevelKind.TIME:
            return f"A case takes {math.exp(min(one.now - one.then, 50.0)):.1f} × as long."
        case LevelKind.COST:
            return f"A case costs {math.exp(min(one.now - one.then, 50.0)):.1f} × as much."


def _points(share: float) -> str:
    return f"{share * 100:.1f} points"


def _percents(one: Worse) -> str:
    share_then, share_now = (min(max(share, 0.0), 1.0) for share in (one.then, one.now))
    then, now = decimals_apart(share_then, share_now, 1, scale=100)
    return f"{then} % before, {now} % now"


def _since(one: Worse, branch: str, context: ReportContext) -> str:
    when = f"since {_day(one.since.timestamp)}, {count(one.runs, 'run')}"
    if one.same_commit:
        return (
            f"It is so {when}, **and nothing in the repository changed then**: {_commit(one.since, context)} was"
            f" run before and since. {_outside(one)}"
        )
    probable = f"It is so {when}, probably by {_range(one.before, one.since, context)}"
    wide = (one.safely_before, one.at_latest)
    if [one.run_id for one in wide] == [one.before.run_id, one.since.run_id]:
        return f"{probable}.{_with_model(one)}"
    return f"{probable}; in any case by {_range(*wide, context)}.{_with_model(one)}"


def _outside(one: Worse) -> str:
    if one.model is not None:
        return f"{_capital(_model(one.model, code=True))}."
    return "What did is outside of it: the model behind the agent, a service, data."


def _with_model(one: Worse) -> str:
    return f" {_capital(_model(one.model, code=True))}." if one.model is not None else ""


def _since_plain(one: Worse) -> str:
    when = f"since {_day(one.since.timestamp)}, {count(one.runs, 'run')}"
    if one.same_commit:
        return f"{when}; nothing in the repository changed then ({_short(one.since)} before and since)"
    wide = _span(one.safely_before, one.at_latest)
    return f"{when}; probably {_span(one.before, one.since)}, in any case {wide}"


def _day(timestamp: str) -> str:
    return escape.plain(timestamp[:10], 10) or "an unknown day"


def _moment(run: LedgerRun | RunLevels) -> str:
    """When it was made, to the minute: what a run is known by that says no commit."""
    shown = run.timestamp[:16].replace("T", " ")
    return shown if _TIME.fullmatch(shown) else "an unknown time"


def _short(run: LedgerRun | RunLevels) -> str:
    return run.sha[:7] if run.sha else f"the run of {_moment(run)}"


def _span(good: LedgerRun | RunLevels, bad: LedgerRun | RunLevels) -> str:
    if good.sha and bad.sha:
        return f"{good.sha[:7]}..{bad.sha[:7]}"
    return f"between {_short(good)} and {_short(bad)}"


def _commit(run: LedgerRun | RunLevels, context: ReportContext) -> str:
    if run.sha is None or not run.sha.isalnum():
        return f"the run of {_moment(run)}"
    base = f"{context.server_url}/{context.repository}"
    return f"[{run.sha[:7]}]({base}/commit/{run.sha})" if context.repository else f"`{run.sha[:7]}`"


def _range(good: LedgerRun | RunLevels, bad: LedgerRun | RunLevels, context: ReportContext) -> str:
    """The commits after the good one, up to the bad one; else the runs between which they are."""
    if good.sha is None or bad.sha is None or not (good.sha.isalnum() and bad.sha.isalnum()):
        return f"what came between {_commit(good, context)} and {_commit(bad, context)}"
    if good.sha == bad.sha:
        return f"nothing in the repository ({_commit(bad, context)} before and since)"
    base = f"{context.server_url}/{context.repository}"
    shown = f"{good.sha[:7]}…{bad.sha[:7]}"
    return f"[{shown}]({base}/compare/{good.sha}...{bad.sha})" if context.repository else f"`{shown}`"
