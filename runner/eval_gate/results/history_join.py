"""Joins the histories of runs that overlapped in time."""

from __future__ import annotations

from collections.abc import Sequence

from eval_gate.model.case import CaseKey
from eval_gate.results.history import (
    MAX_RUNS,
    CaseHistory,
    History,
    HistoryEntry,
    HistoryRun,
    assemble_history,
    build_case_history,
)


def join_histories(newest: History, others: Sequence[History]) -> History:
    """All runs of these, each once; the newest run is that of the first, the others follow by when they were made.

    Levels stay those of the first: each is told from the run before it. Raises GateError for what is no ledger.
    """
    known = {run.run_id for run in newest.runs}
    more = [one for one in others if any(run.run_id not in known for run in one.runs)]
    if not newest.runs or not more:
        return newest
    ledgers = (newest, *more)
    runs = _merge_runs(ledgers)
    keys = dict.fromkeys(key for ledger in ledgers for key in ledger.iter_keys())
    suites: dict[str, dict[str, CaseHistory]] = {}
    for key in keys:
        seen = _collect_entries(key, ledgers)
        behaviours = _collect_behaviours(key, ledgers)
        suites.setdefault(key.suite, {})[key.case_id] = build_case_history(
            [seen.get(run.run_id) for run in runs], [behaviours.get(run.run_id, "") for run in runs]
        )
    return assemble_history(runs, suites, newest.levels)


def _merge_runs(ledgers: Sequence[History]) -> tuple[HistoryRun, ...]:
    first, *_ = ledgers[0].runs
    runs = {run.run_id: run for ledger in reversed(ledgers) for run in ledger.runs if run.run_id != first.run_id}
    older = sorted(runs.values(), key=lambda run: run.timestamp, reverse=True)
    return (first, *older)[:MAX_RUNS]


def _collect_behaviours(key: CaseKey, ledgers: Sequence[History]) -> dict[str, str]:
    """Collect the digest of a case's behaviour, by run id. If several histories have a run, the first counts."""
    return {
        run.run_id: word
        for ledger in reversed(ledgers)
        for run, word in zip(ledger.runs, ledger.get_case(key).list_behaviour_words(), strict=False)
    }


def _collect_entries(key: CaseKey, ledgers: Sequence[History]) -> dict[str, tuple[str, HistoryEntry]]:
    """Collect the fingerprint and entry of a case, by run id; the first history that has a run counts."""
    seen: dict[str, tuple[str, HistoryEntry]] = {}
    for ledger in reversed(ledgers):
        case = ledger.get_case(key)
        for run, entry in zip(ledger.runs, case.decode_entries(), strict=False):
            if entry is None:
                seen.pop(run.run_id, None)
            else:
                seen[run.run_id] = case.fingerprints[entry.fingerprint_index], entry
    return seen
