"""Joins the ledgers of runs that overlapped: none of them had ended when the others began, so none knows the others."""

from __future__ import annotations

from collections.abc import Sequence

from eval_gate.model.case import CaseKey
from eval_gate.results.ledger import MAX_RUNS, Ledger, LedgerCase, LedgerEntry, LedgerRun, case_of, construct_ledger


def join_ledgers(newest: Ledger, others: Sequence[Ledger]) -> Ledger:
    """All runs of these, each once; the newest run is that of the first, the others follow by when they were made.

    Levels stay those of the first: each is told from the run before it. Raises GateError for what is no ledger.
    """
    known = {run.run_id for run in newest.runs}
    more = [one for one in others if any(run.run_id not in known for run in one.runs)]
    if not newest.runs or not more:
        return newest
    ledgers = (newest, *more)
    runs = _in_order(ledgers)
    keys = dict.fromkeys(key for ledger in ledgers for key in ledger.every_key())
    suites: dict[str, dict[str, LedgerCase]] = {}
    for key in keys:
        seen = _seen(key, ledgers)
        suites.setdefault(key.suite, {})[key.case_id] = case_of([seen.get(run.run_id) for run in runs])
    return construct_ledger(runs, suites, newest.levels)


def _in_order(ledgers: Sequence[Ledger]) -> tuple[LedgerRun, ...]:
    first, *_ = ledgers[0].runs
    runs = {run.run_id: run for ledger in reversed(ledgers) for run in ledger.runs if run.run_id != first.run_id}
    older = sorted(runs.values(), key=lambda run: run.timestamp, reverse=True)
    return (first, *older)[:MAX_RUNS]


def _seen(key: CaseKey, ledgers: Sequence[Ledger]) -> dict[str, tuple[str, LedgerEntry]]:
    """What the runs saw of a case, by run: the yardstick, and the entry. Of two ledgers the first counts."""
    seen: dict[str, tuple[str, LedgerEntry]] = {}
    for ledger in reversed(ledgers):
        case = ledger.case(key)
        for run, entry in zip(ledger.runs, case.entries(), strict=False):
            if entry is None:
                seen.pop(run.run_id, None)
            else:
                seen[run.run_id] = case.yardsticks[entry.place], entry
    return seen
