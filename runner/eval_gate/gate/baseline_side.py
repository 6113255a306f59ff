"""Baseline's side of each changed case and the earlier runs, copied into the comparison.

So one file is enough to look at both sides, long after the baseline is gone. Earlier runs are counted, and a case has a
letter for each of them. They decide nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Final

from eval_gate.config.settings import ResponseRetention, RetentionRules
from eval_gate.gate.case_matching import find_earlier_keys
from eval_gate.gate.evidence.case_history import count_executions
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseChange, Comparison, PastRun
from eval_gate.model.execution import BaselineSide
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.results.detail_truncation import (
    drop_error_quotes,
    drop_judge_prompts,
    drop_quotes,
    drop_response,
    is_unchanged,
)
from eval_gate.results.history import CaseHistory, History, HistoryEntry, compute_result_fingerprint, match_fingerprints
from eval_gate.results.masking import TextMasking, map_baseline_side
from eval_gate.struct import replace
from eval_gate.text.javascript.regex import PatternError, replace_matches_sync
from eval_gate.text.secret import MASK

PASSED: Final = "P"
FAILED: Final = "F"
MIXED: Final = "M"
AGENT_ERROR: Final = "C"
NOT_JUDGED: Final = "E"
NO_RESULT: Final = "-"
"""What became of a case in an earlier run, in a letter."""


def add_baseline_sides(
    comparison: Comparison,
    run: RunResult,
    baseline: RunResult,
    ledger: History,
    pass_score: float,
    keeping: RetentionRules,
) -> Comparison:
    """The comparison with the baseline's side of what has changed, and with the runs up to the baseline.

    `baseline` is held to `pass_score`, and `ledger` ends with it.
    """
    there, earlier = baseline.by_key(), find_earlier_keys(baseline, run)
    sides = {
        change.key: before
        for change in comparison.changes
        if not is_unchanged(change)
        if (before := there.get(earlier.get(change.key, change.key))) is not None and before.status.judged
    }
    here = run.by_key()
    history, past = _find_earlier_runs(run.comparison, baseline, ledger, pass_score)
    if past is None:
        letters = summarize_outcomes(ledger, {earlier.get(key, key): here[key] for key in sides}, pass_score)
        past = {key: letters[earlier.get(key, key)] for key in sides}
    known, kept = past, {key: build_baseline_side(case) for key, case in sides.items()}
    if keeping.store is ResponseRetention.NONE:
        kept = {key: drop_response_text(side) for key, side in kept.items()}
    if keeping.patterns:
        kept = _redact_sides(kept, keeping.patterns)

    def told(change: CaseChange) -> CaseChange:
        side = kept.get(change.key)
        return change if side is None else replace(change, before=side, past=known.get(change.key, ""))

    return replace(comparison, changes=tuple(map(told, comparison.changes)), history=history)


def build_baseline_side(case: CaseResult) -> BaselineSide:
    """What the baseline keeps of a case, without what its judges were told."""
    return BaselineSide(
        status=case.status,
        score=case.score,
        duration_ms=case.duration_ms,
        error=case.error,
        details=case.details,
        evaluator_results=drop_judge_prompts(case.evaluator_results),
        executions=tuple(trial.status for trial in case.trials) if len(case.trials) > 1 else (),
        input_tokens=case.usage.input_tokens if case.usage else None,
        output_tokens=case.usage.output_tokens if case.usage else None,
        cost_usd=case.cost_usd,
    )


def _redact_sides(sides: Mapping[CaseKey, BaselineSide], patterns: Sequence[str]) -> dict[CaseKey, BaselineSide]:
    """Without what the patterns find; without any text where they cannot look through all of them."""
    masked = TextMasking()
    for side in sides.values():
        map_baseline_side(side, masked.collect_text)
    try:
        masked.set_masked(replace_matches_sync(patterns, masked.texts, MASK))
    except PatternError:
        masked.set_masked(None)
    return {key: map_baseline_side(side, masked.mask_text) for key, side in sides.items()}


def drop_response_text(side: BaselineSide) -> BaselineSide:
    """The same without a word of the answer: the baseline may have been stored when answers were still kept."""
    error, results = side.error, side.evaluator_results
    return replace(
        side,
        details=drop_response(side.details),
        evaluator_results=drop_quotes(results),
        error=error and drop_error_quotes(error, side.status, None, results),
    )


def _find_earlier_runs(
    recorded: Comparison | None, baseline: RunResult, ledger: History, pass_score: float
) -> tuple[tuple[PastRun, ...], Mapping[CaseKey, str] | None]:
    """The earlier runs, and where the run's own record knows more of them than the ledger at hand, what it says.

    Whoever judges a stored run again may have its baseline and no ledger any more.
    """
    if (
        recorded is not None
        and recorded.baseline.run_id == baseline.run_id
        and len(recorded.history) > len(ledger.runs)
    ):
        return recorded.history, {change.key: change.past for change in recorded.changes}
    return summarize_runs(ledger, pass_score), None


def summarize_runs(ledger: History, pass_score: float) -> tuple[PastRun, ...]:
    """The runs of the ledger, newest first, with what became of their cases; each case is counted once."""
    counts = [dict.fromkeys((PASSED, FAILED, NOT_JUDGED), 0) for _ in ledger.runs]
    for key in ledger.iter_keys():
        for entry, run in zip(ledger.get_case(key).decode_entries_unchecked(), counts, strict=False):
            if entry is not None:
                run[_find_majority_outcome(entry, pass_score)] += 1
    return tuple(
        PastRun(
            run_id=run.run_id,
            timestamp=run.timestamp,
            sha=run.sha,
            passed=count[PASSED],
            failed=count[FAILED],
            errored=count[NOT_JUDGED],
        )
        for run, count in zip(ledger.runs, counts, strict=True)
    )


def summarize_outcomes(
    ledger: History, cases: Mapping[CaseKey, CaseResult], pass_score: float
) -> Mapping[CaseKey, str]:
    """What the runs of the ledger said of these cases, which are named as they were in the newest of them.

    A run that measured a case by another yardstick says nothing of it; one that only graded with others does where
    nothing else is known.
    """
    return {
        key: _format_outcomes(ledger.get_case(key), compute_result_fingerprint(case), pass_score, len(ledger.runs))
        for key, case in cases.items()
    }


def _format_outcomes(known: CaseHistory, yardstick: str, pass_score: float, runs: int) -> str:
    entries = known.decode_entries()
    fits = [match_fingerprints(one, yardstick) for one in known.yardsticks]
    same = {place for place, fit in enumerate(fits) if fit.same_setup}
    if not _has_entry_at(entries, same):
        same = {place for place, fit in enumerate(fits) if fit.same_case}
    if not _has_entry_at(entries, same):
        return ""
    letters = (
        _format_outcome(one, pass_score) if one is not None and one.fingerprint_index in same else NO_RESULT
        for one in entries
    )
    return "".join(letters).ljust(runs, NO_RESULT)


def _has_entry_at(entries: Collection[HistoryEntry | None], places: Collection[int]) -> bool:
    return any(entry is not None and entry.fingerprint_index in places for entry in entries)


@lru_cache(maxsize=10_000)
def _format_outcome(entry: HistoryEntry, pass_score: float) -> str:
    counts = count_executions((*entry.first, *entry.reruns), pass_score)
    if counts.passes and counts.failures:
        return MIXED
    if counts.passes:
        return PASSED
    if counts.failures > counts.crashes:
        return FAILED
    return AGENT_ERROR if counts.crashes else NOT_JUDGED


@lru_cache(maxsize=10_000)
def _find_majority_outcome(entry: HistoryEntry, pass_score: float) -> str:
    """As a case counts: by the majority of its judged executions."""
    answered = count_executions((*entry.first, *entry.reruns), pass_score).answered
    if not answered.runs:
        return NOT_JUDGED
    return FAILED if answered.fails else PASSED
