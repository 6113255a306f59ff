"""Finds the history of a stored run: beside its result, in its folder or in its archive."""

from __future__ import annotations

import zipfile
from pathlib import Path

from eval_gate.errors import GateError
from eval_gate.files.reading import read_limited_result
from eval_gate.model.result import RunResult
from eval_gate.results.archive import ArchiveError, read_entry
from eval_gate.results.history import (
    EMPTY_HISTORY,
    HISTORY_NAME,
    MAX_EXECUTIONS,
    MAX_HISTORY_BYTES,
    History,
    build_history_run,
    compute_result_fingerprint,
    parse_history,
    split_executions,
)
from eval_gate.struct import replace


def read_history_file(file: Path) -> History:
    """The ledger in this file. Raises GateError `ledger-corrupt`."""
    try:
        return parse_history(read_limited_result(file, MAX_HISTORY_BYTES), str(file))
    except OSError as error:
        raise GateError(
            "ledger-corrupt", f"{file} cannot be read: {error.strerror}", "name another ledger, or none"
        ) from error


def find_history(record: Path) -> History:
    """The ledger beside a run record, or beside the record in a zip; an empty one where there is none.

    Raises GateError `ledger-corrupt` for one that is there and cannot be read.
    """
    if zipfile.is_zipfile(record):
        return _read_archived_history(record)
    beside = record.parent / HISTORY_NAME
    return read_history_file(beside) if beside.is_file() else EMPTY_HISTORY


def trim_to_run(ledger: History, run: RunResult) -> History:
    """Up to this run, of which it says what the run's own record does; all of it where it does not know the run.

    The record of a case is all that a verdict asks of the past. A ledger that was changed, or is of another run of this
    id, would say that the baseline failed what it passed. Raises GateError `ledger-corrupt` for what is no ledger.
    """
    if all(one.run_id != run.run_id for one in ledger.runs):
        return ledger
    known = ledger.trim_to(run)
    return known if _is_same_run(known, run) else known.drop_newest(1).with_run(run).with_levels(known.levels)


def trim_to_run_id(ledger: History, run_id: str) -> History:
    """Up to the run of this id; an empty one where it does not know it."""
    start = next((at for at, one in enumerate(ledger.runs) if one.run_id == run_id), len(ledger.runs))
    return ledger.drop_newest(start)


def _is_same_run(known: History, run: RunResult) -> bool:
    """Whether its newest run is this one, with the cases that it has and what they did."""
    if replace(known.runs[0], sha=run.sha) != build_history_run(run):
        return False
    cases, found = run.by_key(), 0
    for key in known.iter_keys():
        of_case = known.get_case(key)
        entry = next(iter(of_case.decode_entries()), None)
        if entry is None:
            continue
        found += 1
        if (case := cases.get(key)) is None or of_case.yardsticks[
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
            "ledger-corrupt", f"the ledger in {file} cannot be read: {error}", "name another run"
        ) from error
    if found is None:
        return EMPTY_HISTORY
    path, data = found
    return parse_history(data, f"{file}!{path}")
