"""Finds the history of a stored run, and joins the histories of runs that overlapped in time."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

from eval_gate.errors import GateError
from eval_gate.files.reading import read_limited_result
from eval_gate.model.case import CaseKey
from eval_gate.model.result import RunResult
from eval_gate.results.archive import ArchiveError, read_entry
from eval_gate.results.history import (
    EMPTY_HISTORY,
    HISTORY_NAME,
    MAX_EXECUTIONS,
    MAX_HISTORY_BYTES,
    MAX_RUNS,
    CaseHistory,
    History,
    HistoryEntry,
    HistoryRun,
    assemble_history,
    build_case_history,
    build_history_run,
    compute_result_fingerprint,
    parse_history,
    split_executions,
)
from eval_gate.struct import replace


def read_history_file(file: Path) -> History:
    """Read the history in `file`. Raises GateError `invalid-history`."""
    try:
        return parse_history(read_limited_result(file, MAX_HISTORY_BYTES), str(file))
    except OSError as error:
        raise GateError(
            "invalid-history", f"{file} cannot be read: {error.strerror}", "give another history file, or none"
        ) from error


def find_history(record: Path) -> History:
    """Find the history stored with a run result, in its folder or in its archive.

    Return an empty history if there is none. Raises GateError `invalid-history` if it exists and cannot be read.
    """
    if zipfile.is_zipfile(record):
        return _read_archived_history(record)
    beside = record.parent / HISTORY_NAME
    return read_history_file(beside) if beside.is_file() else EMPTY_HISTORY


def trim_to_run(history: History, run: RunResult) -> History:
    """Up to this run, of which it says what the run's own record does; all of it where it does not know the run.

    The record of a case is all that a verdict asks of the past. A ledger that was changed, or is of another run of this
    id, would say that the baseline failed what it passed. Raises GateError `invalid-history` for what is no ledger.
    """
    if all(one.run_id != run.run_id for one in history.runs):
        return history
    known = history.trim_to(run)
    return known if _is_same_run(known, run) else known.drop_newest(1).with_run(run).with_levels(known.levels)


def trim_to_run_id(history: History, run_id: str) -> History:
    """Up to the run of this id; an empty one where it does not know it."""
    start = next((at for at, one in enumerate(history.runs) if one.run_id == run_id), len(history.runs))
    return history.drop_newest(start)


def _is_same_run(known: History, run: RunResult) -> bool:
    """Whether its newest run is this one, with the cases that it has and what they did."""
    if replace(known.runs[0], sha=run.sha) != build_history_run(run):
        return False
    cases, found = run.index_cases(), 0
    for key in known.iter_keys():
        of_case = known.get_case(key)
        entry = next(iter(of_case.decode_entries()), None)
        if entry is None:
            continue
        found += 1
        if (case := cases.get(key)) is None or of_case.fingerprints[
            entry.fingerprint_index
        ] != compute_result_fingerprint(case):
            return False
        first, again = split_executions(case)
        if (entry.first, entry.reruns) != (first[:MAX_EXECUTIONS], again[:MAX_EXECUTIONS]):
            return False
    return found == sum(bool(split_executions(case)[0]) for case in cases.values())


def _read_archived_history(file: Path) -> History:
    try:
        found = read_entry(file, HISTORY_NAME, MAX_HISTORY_BYTES)
    except ArchiveError as error:
        raise GateError(
            "invalid-history", f"the history in {file} cannot be read: {error}", "give another run"
        ) from error
    if found is None:
        return EMPTY_HISTORY
    path, data = found
    return parse_history(data, f"{file}!{path}")


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
