"""Wording for the evidence about a case: why it is a regression or not.

Branch names are unescaped; the reports escape them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from eval_gate.gate.reason_wording import GROUND_TEXTS, format_chance
from eval_gate.gate.waivers.wording import KIND_WORDS
from eval_gate.model.comparison import CaseChange, CaseClass
from eval_gate.model.evidence import (
    CaseHistorySummary,
    Counts,
    GroundKind,
    Grounds,
    RunReference,
    Stability,
)
from eval_gate.reports.context import ReportContext
from eval_gate.reports.wording.numbers import format_seconds
from eval_gate.text.escape import format_count, format_first_few, to_one_line

MAX_BRANCH: Final = 60
MAX_RUNS: Final = 5
"""Runs that are named as evidence that a case is flaky."""
_NOT_IN_NAME: Final = re.compile(r"[^0-9A-Za-z-]")
_UNKNOWN_PLACE: Final = "in the history"
"""Place of the history if the branch is unknown."""
_PASSING: Final = frozenset({CaseClass.NEW_PASS, CaseClass.STILL_PASSING})
_TESTED: Final = frozenset(
    {CaseClass.REGRESSION, CaseClass.SUSPECTED_REGRESSION, CaseClass.INCONCLUSIVE, CaseClass.ERRORED}
)


def describe_missing_evidence(kinds: Iterable[GroundKind]) -> str:
    """Describe what unconfirmed cases lack: re-runs if every case lacks them, else evidence."""
    return "with missing re-runs" if all(kind.lacks_reruns for kind in kinds) else "with too little evidence"


def format_place(context: ReportContext) -> str:
    """Return the place of the history: `on main`, or `in the history` if the branch is unknown."""
    return f"on {to_one_line(context.branch, MAX_BRANCH)}" if context.branch else _UNKNOWN_PLACE


def describe_evidence(change: CaseChange, place: str) -> str | None:
    """`failed 4 of 4 here, 1 of 20 on main`; None if only the two runs were compared."""
    if change.grounds:
        return _describe_counts(change.change, change.grounds, place)
    return "fails as in the baseline" if change.permitted else None


def format_conclusion(change: CaseChange) -> str | None:
    """Return the word that the evidence of a case begins with, such as `confirmed`; None without one."""
    grounds = change.grounds
    if grounds is None or change.change in {CaseClass.STILL_FAILING, CaseClass.STILL_PASSING}:
        return None
    if grounds.kind is GroundKind.EVERY_RUN:
        return "passed every time" if change.change in _PASSING else "failed every time"
    return "flaky" if change.change is CaseClass.FLAKY else GROUND_TEXTS[grounds.kind].conclusion


def join_conclusion(conclusion: str, evidence: str) -> str:
    """Join the conclusion and the evidence: `confirmed: failed 4 of 4 here`, `failed every time: 4 of 4 here`."""
    verb = conclusion.partition(" every time")[0]
    return f"{conclusion}: {evidence.removeprefix(f'{verb} ')}"


def describe_chance(change: CaseChange) -> str | None:
    """`chance without a real change: 1 in 50,000`; None if no chance decided."""
    grounds = change.grounds
    if grounds is None or not GROUND_TEXTS[grounds.kind].is_tested or _fails_on_branch(grounds):
        return None
    return format_chance(grounds.one_in)


def _fails_on_branch(grounds: Grounds) -> bool:
    """Whether a must-pass case counts although it fails on the branch, which no chance explains."""
    return grounds.kind is GroundKind.MUST_PASS and (grounds.newest_failed or grounds.history.is_failing)


def _describe_counts(change: CaseClass, grounds: Grounds, place: str) -> str:
    current, record = grounds.current, grounds.history
    passes = change in _PASSING
    if current.agent_errors and not current.executions:
        return f"agent error in {current.agent_errors} of {current.attempts} here, {_describe_responses(record, place)}"
    verb, number = ("passed", current.passes) if passes else ("failed", current.failures)
    result = _format_count(verb, number, current, "here")
    if not record.executions:
        return f"{result}, {_describe_missing_history(place)}"
    return f"{result}, {_format_count('', record.passes if passes else record.failures, record, place)}"


def _format_count(verb: str, number: int, counts: Counts, place: str) -> str:
    """`failed 4 of 4 here`; with agent errors `failed 4 of 4 here (and 1 agent error)`."""
    errors = f" (and {format_count(counts.agent_errors, 'agent error')})" if counts.agent_errors else ""
    return f"{verb} {number} of {counts.executions} {place}{errors}".strip()


def _describe_missing_history(place: str) -> str:
    return "no earlier score" if place == _UNKNOWN_PLACE else f"no score {place}"


def _describe_responses(counts: Counts, place: str) -> str:
    """Describe how often the history has a response, right or wrong, for comparison with agent errors."""
    if not counts.executions:
        return _describe_missing_history(place)
    wrong = f" ({counts.failures} wrong)" if counts.failures else ""
    return f"responded in {counts.executions} of {counts.attempts} {place}{wrong}"


def format_run_name(run: RunReference) -> str:
    """Format an earlier run's commit, or start of its id, without characters that no name has: it is untrusted."""
    return _NOT_IN_NAME.sub("?", run.sha[:7] if run.sha else run.run_id[:8])


def describe_broken_main(change: CaseChange, place: str) -> str | None:
    """Describe that the branch itself broke a case: `has failed on main since abc1234`.

    Return None unless the case is still failing because the branch fails it. If no earlier run is known to have
    passed, the text says that the newest run failed too.
    """
    record, why = change.case_history, change.grounds.kind if change.grounds else None
    if change.change is not CaseClass.STILL_FAILING or record is None or why is GroundKind.MUST_PASS:
        return None
    since = record.broken_since if record.newest_failed else None
    if since is not None and (why is GroundKind.MAIN_BROKE or record.stability is not Stability.FLAKY):
        where = place if place != _UNKNOWN_PLACE else "on the default branch"
        return f"has failed {where} since {format_run_name(since)}"
    return f"it failed in the newest run {place} too" if why is GroundKind.MAIN_BROKE else None


def describe_permission(change: CaseChange, place: str) -> str | None:
    """Describe the permission of a regression of the branch: `waived until 2026-12-01, still failing on main`."""
    permitted, where = change.permitted, "" if place == _UNKNOWN_PLACE else f" {place}"
    if permitted is None:
        return None
    if permitted.waiver is None:
        return f"allowed in an earlier run, still failing{where}"
    until = f"{KIND_WORDS[permitted.waiver]} until {permitted.until}"
    if permitted.taken_back:
        return f"{until}{where}, taken back here"
    return f"{until}, still {'failing' if permitted.score is None else 'lower'}{where}"


def is_failing_as_flaky(change: CaseChange) -> bool:
    """Whether a case fails here as it often does on the branch, where it is flaky and not broken."""
    is_flaky = change.case_history is not None and change.case_history.stability is Stability.FLAKY
    return change.change is CaseClass.STILL_FAILING and is_flaky and describe_broken_main(change, "") is None


def list_further_evidence(change: CaseChange, place: str, *, arithmetic: bool = True) -> tuple[str, ...]:
    """List the evidence that the counts do not show, as phrases.

    Without `arithmetic`, the list omits how many failures confirm a regression.
    """
    grounds = change.grounds
    elsewhere = _describe_other_run(change)
    if grounds is None:
        phrases = [describe_permission(change, place), describe_broken_main(change, place), elsewhere]
        return tuple(filter(None, phrases))
    # with a rule, failures in a row say little
    has_rule = change.current is not None and change.current.meets_rule is not None
    phrases = [
        describe_permission(change, place),
        _describe_decision(change.change, grounds, place),
        _describe_preparatory_cases(grounds),
        describe_base_agent_result(grounds),
        _describe_needed_failures(change.change, grounds) if arithmetic and not has_rule else None,
        describe_repeats(grounds),
        describe_broken_main(change, place),
    ]
    is_open = change.change in {CaseClass.REGRESSION, CaseClass.INCONCLUSIVE}
    if grounds.newest_failed and is_open and grounds.kind is not GroundKind.MUST_PASS:
        phrases.append(f"it failed in the newest run {place} too")
    if change.case_history is not None and change.change not in _PASSING:
        phrases.append(describe_flakiness(change.case_history, place))
    return tuple(filter(None, [*phrases, elsewhere]))


def _describe_preparatory_cases(grounds: Grounds) -> str | None:
    """`each re-run included the 2 cases before it`, because the case depends on their files."""
    if not (grounds.reruns and grounds.cases_before):
        return None
    which = "case" if grounds.cases_before == 1 else f"{grounds.cases_before:,} cases"
    return f"each re-run included the {which} before it"


def describe_base_agent_result(grounds: Grounds) -> str | None:
    """Describe the result of the base agent; None if it gave no response with a score.

    Example: `the base agent passed 0 of 3 in the same minutes`.
    """
    counts = grounds.base_agent
    if not counts.executions:
        return None
    alone = counts.failures > counts.passes
    words = f"the base agent passed {counts.passes} of {counts.executions} in the same minutes"
    if grounds.kind is not GroundKind.BASE_AGENT:
        return words
    addition = "" if alone else " and fails as often over all cases"
    return f"{words}{addition}, so this change is not the cause"


def _describe_other_run(change: CaseChange) -> str | None:
    """Describe the earlier run that the case is compared with; None for the baseline."""
    if change.compared_with is None:
        return None
    return f"compared with {format_run_name(change.compared_with)}, because the baseline has no score for it"


def _describe_needed_failures(change: CaseClass, grounds: Grounds) -> str | None:
    """Describe how many failures would be conclusive, in the same units as the evidence."""
    if grounds.chance is None or change not in _TESTED:
        return None  # nothing was tested
    if grounds.kind in {GroundKind.MUST_PASS, GroundKind.EVIDENCE}:
        return None  # it is decided
    alone = " by itself" if grounds.kind is GroundKind.SUITE_DROP else ""
    needed = grounds.required_failures
    if needed is None:
        return f"confirming it{alone} would take more re-runs than the setting reruns allows"
    return f"{format_count(needed, 'failure', 'failures in a row')} would confirm it{alone}"


def describe_repeats(grounds: Grounds) -> str | None:
    """`3 re-runs returned the same response, in 4 ms at most, the first failure in 2.1 s; this looks like a cache …`.

    None unless they were much faster: a deterministic agent repeats its responses without a cache.
    """
    repeats = grounds.repeats
    if repeats is None or not repeats.cached:
        return None
    text = f"{format_count(grounds.reruns, 're-run')} returned the same response byte for byte"
    took = f"in {format_seconds(repeats.slowest_ms)} at most, the first failure in {format_seconds(repeats.first_ms)}"
    return f"{text}, {took}; this looks like a cache that re-runs do not get past"


def _describe_decision(change: CaseClass, grounds: Grounds, place: str) -> str | None:
    match grounds.kind:
        case GroundKind.SUITE_DROP:
            which = f"more often than {place}" if change is CaseClass.FLAKY else "at once"
            return f"it counts because too many cases fail {which}"
        case GroundKind.MUST_PASS:
            fails = _fails_on_branch(grounds)
            return f"it counts although it fails {place} too" if fails else "every failure of a must-pass case counts"
        case GroundKind.RECOVERED if not grounds.current.passes:
            return "its history may explain this"
        case GroundKind.USUAL_RESULT if change is CaseClass.FLAKY:
            return f"it sometimes passes {place} too"
        case GroundKind.USUAL_RESULT:
            return f"the newest run {place} was an exception"
    return GROUND_TEXTS[grounds.kind].decision


def describe_flakiness(history: CaseHistorySummary, place: str) -> str | None:
    """`flaky on main: fails 15 % of the time`; None for a case that is not flaky there."""
    words = _format_failure_rate(history)
    return f"flaky {place}: {words}" if words else None


def describe_history(history: CaseHistorySummary, place: str, *, with_runs: bool = True) -> str:
    """Describe the whole history of a case; `with_runs` names the runs that show that it is flaky.

    Example: `passed 17 of 20 on main; flaky: fails 15 % of the time, 3 runs show it (a, b, c)`.
    """
    phrases = [f"passed {history.counts.passes} of {history.counts.executions} {place}"]
    if flaky := _format_failure_rate(history):
        count = format_count(len(history.evidence_run_ids), "run shows it", "runs show it")
        run_ids = format_first_few(history.evidence_run_ids, MAX_RUNS, lambda run: to_one_line(run)[:8])
        phrases.append(f"flaky: {flaky}, {count}{f' ({run_ids})' if run_ids else ''}" if with_runs else flaky)
    if history.oldest_run_id is not None:
        phrases.append("older runs do not count, because the case broke or was fixed after them")
    return "; ".join(phrases)


def _format_failure_rate(history: CaseHistorySummary) -> str | None:
    if history.stability is not Stability.FLAKY or history.failure_rate is None:
        return None
    return f"fails {history.failure_rate * 100:.0f} % of the time"
