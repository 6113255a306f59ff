"""The runs before this one as people look back on them: counted, and of a case a letter each. It decides nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Final

from eval_gate.gate.evidence.past import counts_of_executions
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import PastRun
from eval_gate.model.result import CaseResult
from eval_gate.results.ledger import Ledger, LedgerCase, LedgerEntry, alike, yardstick_of

PASSED: Final = "P"
FAILED: Final = "F"
BOTH: Final = "M"
CRASHED: Final = "C"
NOT_JUDGED: Final = "E"
NOTHING: Final = "-"


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
