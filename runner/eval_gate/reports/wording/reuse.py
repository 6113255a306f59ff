"""Wording for reused suites: what was reused, since which commit, what it saved, and why the other suites ran.

Names, patterns and commits are in backticks, and reports escape them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from eval_gate.model.comparison import CaseClass
from eval_gate.model.result import RunResult
from eval_gate.model.reuse import ReusedResult, ReuseOff, ReuseSource, RunReason, StatePart, SuiteDecision
from eval_gate.reports.run_statistics import is_possible_regression
from eval_gate.reports.wording.numbers import extract_day, format_money, quote_in_backticks
from eval_gate.reports.wording.verdict import list_unwaived_changes
from eval_gate.text.escape import format_count, format_first_few, truncate_text

MAX_NAMED: Final = 3
"""Suites that a sentence names."""
MAX_NAME: Final = 60
MAX_PROBLEM: Final = 200
PART_WORDS: Final = {StatePart.MEASURES: "patterns of `measures`", StatePart.PROGRAM: "version of Eval Gate"}
"""What a part is called if its own name does not say it."""
REASON_WORDS: Final = {
    RunReason.NO_MEASURES: "no `measures`",
    RunReason.UNREADABLE: "a problem with its measured files",
    RunReason.FILES_CHANGED: "measured files changed",
    RunReason.SETUP_CHANGED: "the setup changed",
    RunReason.NO_EARLIER_RESULT: "no earlier result",
    RunReason.NOT_PASSED: "the earlier run did not pass, or is incomplete",
    RunReason.NOT_SCORED: "a case has no score in the earlier run",
    RunReason.RECHECK: "re-checked",
}
OFF_WORDS: Final = {
    ReuseOff.TURNED_OFF: "`reuse` is off",
    ReuseOff.RERUN_ATTEMPT: "this is a re-run attempt",
    ReuseOff.OTHER_EVENT: "only pushes and pull requests reuse results",
    ReuseOff.SELECTED_CASES: "this run has only a part of the cases",
    ReuseOff.RESUMED: "this run continues an interrupted run",
    ReuseOff.RECORDING: "responses of models are recorded or replayed",
    ReuseOff.WARM_UP: "the history has fewer runs than `warmUp`",
    ReuseOff.NO_BASELINE: "there is no baseline whose results may be reused",
}


def describe_reuse(run: RunResult) -> str | None:
    """Describe what was reused and what that saved, or why nothing was; None if no suite has measures."""
    if run.reuse is None or not (run.reuse.off or run.reuse.suites):
        return None
    if run.reuse.off is not None:
        return f"Nothing was reused: {OFF_WORDS[run.reuse.off]}."
    suites = [suite for suite in run.suites if suite.reused]
    if not suites:
        return f"Every suite ran: {'; '.join(dict.fromkeys(map(describe_reason, run.reuse.suites)))}."
    saved = [format_count(run.reuse.saved_executions, "execution")] if run.reuse.saved_executions else []
    saved += [format_money(run.reuse.saved_usd)] if run.reuse.saved_usd else []
    cases = f"{sum(len(suite.cases) for suite in suites):,} of {format_count(run.summary.total_cases, 'case')}"
    names = f", {_format_names(suite.eval_file for suite in suites)}" if len(suites) < len(run.suites) else ""
    number, unchanged = format_count(len(run.suites), "suite"), _describe_unchanged([one.reused for one in suites])
    savings = f" Saved: {', '.join(saved)}." if saved else ""
    return f"Reused {len(suites):,} of {number} ({cases}){names}: {unchanged}.{savings}"


def describe_reason(one: SuiteDecision) -> str:
    """Describe why a suite ran, in a few words; empty if it was reused."""
    parts = f" ({', '.join(PART_WORDS.get(part, part) for part in one.parts)})" if one.parts else ""
    last = f", last executed at {_name_origin(one.last_executed)}" if one.last_executed else ""
    return f"{REASON_WORDS[one.reason]}{parts}{last}" if one.reason else ""


def describe_origins(run: RunResult) -> Mapping[str, str]:
    """Describe by eval file where a reused result comes from, or why the suite ran; empty without decisions."""
    problems = {one.suite: one.problem for one in run.evaluated_state.suites} if run.evaluated_state else {}
    origins = {}
    for one in run.reuse.suites if run.reuse else ():
        # a file that changed during the run did not cause the execution, but its result cannot be reused
        reason = "" if one.reason is RunReason.UNREADABLE and problems.get(one.suite) else describe_reason(one)
        words = "; ".join(filter(None, (reason, problems.get(one.suite))))
        origins[one.suite] = f"executed: {truncate_text(words, MAX_PROBLEM)}"
    own = {ReuseSource.BASELINE: "", ReuseSource.OWN_RUN: " (not the baseline)"}
    reused = {suite.eval_file: suite.reused for suite in run.suites if suite.reused}
    return origins | {file: f"reused from {_name_origin(one)}{own[one.source]}" for file, one in reused.items()}


def describe_nothing_changed(run: RunResult) -> str | None:
    """Describe since which commit nothing changed, in a few words; None if the run executed a suite."""
    origins = [suite.reused for suite in run.suites]
    if not origins or None in origins:
        return None
    commits = _list_commits(origins)
    return f"nothing measured has changed since {commits[0] if len(commits) == 1 else 'the last executions'}"


def describe_outside_cause(run: RunResult) -> str | None:
    """Describe why the change is not the cause in suites that ran although nothing changed; None without any."""
    worse = _find_worse_suites(run)
    suites = [one for one in (run.reuse.rechecked_suites if run.reuse else ()) if one.suite in worse]
    if not suites:
        return None
    names, were = _format_names(one.suite for one in suites), "was" if len(suites) == 1 else "were"
    unchanged = _describe_unchanged([one.last_executed for one in suites])
    cause = "the cause is outside of the measured files (model, data, an unmeasured file)"
    return f"{names} {were} re-checked, and {unchanged}: {cause}."


def is_cause_outside(run: RunResult) -> bool:
    """Whether only re-checked suites got worse; for a rule about many cases, whether only such suites ran."""
    rechecked = {one.suite for one in run.reuse.rechecked_suites} if run.reuse else set[str]()
    worse, executed = _find_worse_suites(run), {suite.eval_file for suite in run.suites} - run.reused_suites
    return bool(rechecked) and (worse or executed) <= rechecked


def _find_worse_suites(run: RunResult) -> set[str]:
    changes, doubtful = list_unwaived_changes(run), {CaseClass.INCONCLUSIVE, CaseClass.ERRORED}
    return {one.suite for one in changes if is_possible_regression(one) or one.change in doubtful or one.score_drop}


def _describe_unchanged(origins: Sequence[ReusedResult | None]) -> str:
    """Describe since when nothing changed that the suites of these origins measure."""
    measure, commits = "it measures" if len(origins) == 1 else "they measure", _list_commits(origins)
    return f"nothing that {measure} has changed since {commits[0] if len(commits) == 1 else 'they last ran'}"


def _list_commits(origins: Iterable[ReusedResult | None]) -> list[str]:
    return [*dict.fromkeys(_name_commit(one) for one in origins if one)]


def _name_origin(one: ReusedResult) -> str:
    day = extract_day(one.timestamp)
    return f"{_name_commit(one)}{f' of {day}' if day else ''}"


def _name_commit(one: ReusedResult) -> str:
    """Name the evaluated commit, or the run if the commit is unknown."""
    return quote_in_backticks(one.sha[:7], 7) if one.sha else f"run {quote_in_backticks(one.run_id, MAX_NAME)}"


def _format_names(suites: Iterable[str]) -> str:
    return format_first_few([quote_in_backticks(name, MAX_NAME) for name in suites], MAX_NAMED)
