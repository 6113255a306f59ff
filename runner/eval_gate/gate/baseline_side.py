"""The other side of a comparison, copied into it: the baseline's side of each changed case, and the runs before it.

So one file is enough to look at both sides, long after the baseline is gone. Earlier runs are counted, and a case has a
letter for each of them. They decide nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Final

from eval_gate.config.settings import Keeping, Store
from eval_gate.gate.evidence.past import counts_of_executions
from eval_gate.gate.moved_cases import earlier_keys
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseChange, Comparison, PastRun
from eval_gate.model.execution import BaselineSide
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.results.ledger import Ledger, LedgerCase, LedgerEntry, alike, yardstick_of
from eval_gate.results.lessening import error_unquoted, is_as_before, unquoted, without_answer, without_prompts
from eval_gate.results.masking import TextMasking, baseline_side_with
from eval_gate.struct import replace
from eval_gate.text.javascript.regex import PatternError, replaced_at_once
from eval_gate.text.secret import MASK

PASSED: Final = "P"
FAILED: Final = "F"
BOTH: Final = "M"
CRASHED: Final = "C"
NOT_JUDGED: Final = "E"
NOTHING: Final = "-"
"""What became of a case in an earlier run, in a letter."""


def with_baseline_sides(
    comparison: Comparison,
    run: RunResult,
    baseline: RunResult,
    ledger: Ledger,
    pass_score: float,
    keeping: Keeping,
) -> Comparison:
    """The comparison with the baseline's side of what has changed, and with the runs up to the baseline.

    `baseline` is held to `pass_score`, and `ledger` ends with it.
    """
    there, earlier = baseline.by_key(), earlier_keys(baseline, run)
    sides = {
        change.key: before
        for change in comparison.changes
        if not is_as_before(change)
        if (before := there.get(earlier.get(change.key, change.key))) is not None and before.status.judged
    }
    here = run.by_key()
    history, past = _looking_back(run.comparison, baseline, ledger, pass_score)
    if past is None:
        letters = letters_of(ledger, {earlier.get(key, key): here[key] for key in sides}, pass_score)
        past = {key: letters[earlier.get(key, key)] for key in sides}
    known, kept = past, {key: before_of(case) for key, case in sides.items()}
    if keeping.store is Store.NONE:
        kept = {key: unquoted_before(side) for key, side in kept.items()}
    if keeping.patterns:
        kept = _redacted(kept, keeping.patterns)

    def told(change: CaseChange) -> CaseChange:
        side = kept.get(change.key)
        return change if side is None else replace(change, before=side, past=known.get(change.key, ""))

    return replace(comparison, changes=tuple(map(told, comparison.changes)), history=history)


def before_of(case: CaseResult) -> BaselineSide:
    """What the baseline keeps of a case, without what its judges were told."""
    return BaselineSide(
        status=case.status,
        score=case.score,
        duration_ms=case.duration_ms,
        error=case.error,
        details=case.details,
        evaluator_results=without_prompts(case.evaluator_results),
        executions=tuple(trial.status for trial in case.trials) if len(case.trials) > 1 else (),
        input_tokens=case.usage.input_tokens if case.usage else None,
        output_tokens=case.usage.output_tokens if case.usage else None,
        cost_usd=case.cost_usd,
    )


def _redacted(sides: Mapping[CaseKey, BaselineSide], patterns: Sequence[str]) -> dict[CaseKey, BaselineSide]:
    """Without what the patterns find; without any text where they cannot look through all of them."""
    masked = TextMasking()
    for side in sides.values():
        baseline_side_with(side, masked.find)
    try:
        masked.learn(replaced_at_once(patterns, masked.texts, MASK))
    except PatternError:
        masked.learn(None)
    return {key: baseline_side_with(side, masked.put) for key, side in sides.items()}


def unquoted_before(side: BaselineSide) -> BaselineSide:
    """The same without a word of the answer: the baseline may have been stored when answers were still kept."""
    error, results = side.error, side.evaluator_results
    return replace(
        side,
        details=without_answer(side.details),
        evaluator_results=unquoted(results),
        error=error and error_unquoted(error, side.status, None, results),
    )


def _looking_back(
    recorded: Comparison | None, baseline: RunResult, ledger: Ledger, pass_score: float
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
    return past_runs(ledger, pass_score), None


def past_runs(ledger: Ledger, pass_score: float) -> tuple[PastRun, ...]:
    """The runs of the ledger, newest first, with what became of their cases; each case is counted once."""
    counts = [dict.fromkeys((PASSED, FAILED, NOT_JUDGED), 0) for _ in ledger.runs]
    for key in ledger.every_key():
        for entry, run in zip(ledger.case(key).words(), counts, strict=False):
            if entry is not None:
                run[_outcome(entry, pass_score)] += 1
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


def letters_of(ledger: Ledger, cases: Mapping[CaseKey, CaseResult], pass_score: float) -> Mapping[CaseKey, str]:
    """What the runs of the ledger said of these cases, which are named as they were in the newest of them.

    A run that measured a case by another yardstick says nothing of it; one that only graded with others does where
    nothing else is known.
    """
    return {
        key: _letters(ledger.case(key), yardstick_of(case), pass_score, len(ledger.runs)) for key, case in cases.items()
    }


def _letters(known: LedgerCase, yardstick: str, pass_score: float, runs: int) -> str:
    entries = known.entries()
    fits = [alike(one, yardstick) for one in known.yardsticks]
    same = {place for place, fit in enumerate(fits) if fit.all}
    if not _names_any(entries, same):
        same = {place for place, fit in enumerate(fits) if fit.question}
    if not _names_any(entries, same):
        return ""
    letters = (_letter(one, pass_score) if one is not None and one.place in same else NOTHING for one in entries)
    return "".join(letters).ljust(runs, NOTHING)


def _names_any(entries: Collection[LedgerEntry | None], places: Collection[int]) -> bool:
    return any(entry is not None and entry.place in places for entry in entries)


@lru_cache(maxsize=10_000)
def _letter(entry: LedgerEntry, pass_score: float) -> str:
    counts = counts_of_executions((*entry.first, *entry.again), pass_score)
    if counts.passes and counts.failures:
        return BOTH
    if counts.passes:
        return PASSED
    if counts.failures > counts.crashes:
        return FAILED
    return CRASHED if counts.crashes else NOT_JUDGED


@lru_cache(maxsize=10_000)
def _outcome(entry: LedgerEntry, pass_score: float) -> str:
    """As a case counts: by the majority of its judged executions."""
    answered = counts_of_executions((*entry.first, *entry.again), pass_score).answered
    if not answered.runs:
        return NOT_JUDGED
    return FAILED if answered.fails else PASSED
