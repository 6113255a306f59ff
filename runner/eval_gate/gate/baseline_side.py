"""Baseline's side of each changed case and the earlier runs, copied into the comparison.

So one file is enough to look at both sides, long after the baseline is gone. Earlier runs are counted, and a case has a
letter for each of them. They decide nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Final

from eval_gate.config.settings import ResponseRetention, RetentionRules
from eval_gate.gate.case_matching import GateCases
from eval_gate.gate.evidence.case_history import count_executions
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseChange, CaseClass, Comparison, RecentRun
from eval_gate.model.execution import BaselineResult
from eval_gate.model.execution_usage import measure_execution
from eval_gate.model.result import CaseResult
from eval_gate.results.detail_truncation import (
    drop_error_quotes,
    drop_judge_prompts,
    drop_quotes,
    drop_response,
    is_unchanged,
)
from eval_gate.results.history import (
    MAX_RUNS,
    CaseHistory,
    History,
    HistoryEntry,
    compute_result_fingerprint,
    match_fingerprints,
)
from eval_gate.results.masking import TextMasking, map_baseline_side
from eval_gate.struct import replace
from eval_gate.text.javascript.regex import PatternError, replace_matches_sync
from eval_gate.text.mask import MASK

PASSED: Final = "P"
FAILED: Final = "F"
MIXED: Final = "M"
AGENT_ERROR: Final = "C"
NOT_JUDGED: Final = "E"
NO_RESULT: Final = "-"
"""Outcome of a case in an earlier run, as one letter."""


def add_baseline_sides(
    comparison: Comparison, cases: GateCases, branch_history: History, retention: RetentionRules
) -> Comparison:
    """Add the baseline's side of each changed case, and the runs of a history that ends with it, to a comparison."""
    sides = {
        change.key: earlier
        for change in comparison.changes
        if not is_unchanged(change)
        if (earlier := cases.get_earlier(change.key)) is not None and earlier.status.is_scored
    }
    history, recent = _find_earlier_runs(cases, branch_history)
    if recent is None:
        by_earlier_key = {cases.get_earlier_key(key): cases.current_cases[key] for key in sides}
        letters = summarize_outcomes(branch_history, by_earlier_key, cases.pass_score)
        recent = {key: letters[cases.get_earlier_key(key)] for key in sides}
    copies = {key: build_baseline_side(case, cases.current_cases.get(key)) for key, case in sides.items()}
    if retention.keep_responses is not ResponseRetention.ALL:
        no_text = {one.key for one in comparison.changes if _keeps_no_response(one, retention.keep_responses)}
        copies = {key: drop_response_text(side) if key in no_text else side for key, side in copies.items()}
    if retention.patterns:
        copies = _redact_sides(copies, retention.patterns)

    def add_baseline_side(change: CaseChange) -> CaseChange:
        side = copies.get(change.key)
        return (
            change if side is None else replace(change, baseline_result=side, recent_results=recent.get(change.key, ""))
        )

    return replace(comparison, changes=tuple(map(add_baseline_side, comparison.changes)), recent_runs=history)


def _keeps_no_response(change: CaseChange, retention: ResponseRetention) -> bool:
    """Whether nothing of a response is kept of a case: of none, or of one that passes as before."""
    passes = change.change is CaseClass.STILL_PASSING and not change.score_drop
    return retention is ResponseRetention.NONE or (retention is ResponseRetention.FAILING and passes)


def build_baseline_side(case: CaseResult, current: CaseResult | None = None) -> BaselineResult:
    """Build the baseline's side of a case, without prompts of LLM judges and expectations that `current` has too."""
    one = measure_execution(case)
    expected = frozenset(current.text.expectation) if current and current.text else None
    return BaselineResult(
        status=case.status,
        score=case.score,
        duration_ms=one.duration_ms,
        error=case.error,
        failed_turn=case.failed_turn,
        details=case.details,
        evaluator_results=drop_judge_prompts(case.evaluator_results),
        executions=tuple(trial.status for trial in case.trials) if len(case.trials) > 1 else (),
        input_tokens=one.usage.input_tokens if one.usage else None,
        output_tokens=one.usage.output_tokens if one.usage else None,
        cost_usd=one.cost_usd,
        expectation=()
        if expected is None or case.text is None
        else tuple(line for line in case.text.expectation if line not in expected),
    )


def _redact_sides(sides: Mapping[CaseKey, BaselineResult], patterns: Sequence[str]) -> dict[CaseKey, BaselineResult]:
    """Mask the matches of the patterns; remove all text if the patterns cannot search everything in time."""
    masked = TextMasking()
    for side in sides.values():
        map_baseline_side(side, masked.collect_text)
    try:
        masked.set_masked(replace_matches_sync(patterns, masked.texts, MASK))
    except PatternError:
        masked.set_masked(None)
    return {key: map_baseline_side(side, masked.mask_text) for key, side in sides.items()}


def drop_response_text(side: BaselineResult) -> BaselineResult:
    """Remove the text of the response from the baseline's side, which may be from when responses were still kept."""
    error, results = side.error, side.evaluator_results
    return replace(
        side,
        details=drop_response(side.details),
        evaluator_results=drop_quotes(results),
        error=error and drop_error_quotes(error, side.status, None, results),
    )


def _find_earlier_runs(
    cases: GateCases, history: History
) -> tuple[tuple[RecentRun, ...], Mapping[CaseKey, str] | None]:
    """Return the earlier runs, with outcomes from the run result if the history of a stored run is gone since."""
    recorded = cases.run.comparison
    if (
        recorded is not None
        and recorded.baseline.run_id == cases.baseline.run_id
        and len(recorded.recent_runs) > len(_list_shown_places(history))
    ):
        return recorded.recent_runs, {change.key: change.recent_results for change in recorded.changes}
    return summarize_runs(history, cases.pass_score), None


def _list_shown_places(history: History) -> list[int]:
    """List the newest runs of a history that executed a case: runs that only reused results did nothing."""
    return [place for place in range(len(history.runs)) if place not in history.reused_places][:MAX_RUNS]


def summarize_runs(history: History, pass_score: float) -> tuple[RecentRun, ...]:
    """Count the passed and failed cases that each run of `history` executed, newest first; each case once per run."""
    counts = [dict.fromkeys((PASSED, FAILED, NOT_JUDGED), 0) for _ in history.runs]
    for key in history.iter_keys():
        for entry, run in zip(history.get_case(key).decode_entries_unchecked(), counts, strict=False):
            if entry is not None:
                run[_find_majority_outcome(entry, pass_score)] += 1
    return tuple(
        RecentRun(
            run_id=run.run_id,
            timestamp=run.timestamp,
            sha=run.sha,
            passed=count[PASSED],
            failed=count[FAILED],
            errored=count[NOT_JUDGED],
        )
        for run, count in ((history.runs[place], counts[place]) for place in _list_shown_places(history))
    )


def summarize_outcomes(
    history: History, cases: Mapping[CaseKey, CaseResult], pass_score: float
) -> Mapping[CaseKey, str]:
    """Summarize what the runs of `history` say of these cases, one letter for each run.

    The cases are named as in the newest of these runs. A run with another case fingerprint says nothing of a case.
    Runs that only have another setup fingerprint are used if no run has the same one.
    """
    places = _list_shown_places(history)
    return {
        key: _format_outcomes(history.get_case(key), compute_result_fingerprint(case), pass_score, places)
        for key, case in cases.items()
    }


def _format_outcomes(case_history: CaseHistory, fingerprints: str, pass_score: float, places: Sequence[int]) -> str:
    own = case_history.decode_entries()
    entries = [own[place] if place < len(own) else None for place in places]
    fits = [match_fingerprints(one, fingerprints) for one in case_history.fingerprints]
    same = {place for place, fit in enumerate(fits) if fit.same_setup}
    if not _has_entry_at(entries, same):
        same = {place for place, fit in enumerate(fits) if fit.same_case}
    if not _has_entry_at(entries, same):
        return ""
    letters = (
        _format_outcome(one, pass_score) if one is not None and one.fingerprint_index in same else NO_RESULT
        for one in entries
    )
    return "".join(letters)


def _has_entry_at(entries: Collection[HistoryEntry | None], places: Collection[int]) -> bool:
    return any(entry is not None and entry.fingerprint_index in places for entry in entries)


@lru_cache(maxsize=10_000)
def _format_outcome(entry: HistoryEntry, pass_score: float) -> str:
    counts = count_executions((*entry.first, *entry.reruns), pass_score)
    if counts.passes and counts.failures:
        return MIXED
    if counts.passes:
        return PASSED
    if counts.failures:
        return FAILED
    return AGENT_ERROR if counts.agent_errors else NOT_JUDGED


@lru_cache(maxsize=10_000)
def _find_majority_outcome(entry: HistoryEntry, pass_score: float) -> str:
    """Return the outcome of the majority of the scored executions, as a case counts."""
    answered = count_executions((*entry.first, *entry.reruns), pass_score)
    if not answered.executions:
        return NOT_JUDGED
    return FAILED if answered.is_failing else PASSED
