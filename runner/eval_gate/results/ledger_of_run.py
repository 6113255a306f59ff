"""Finds the ledger that belongs to a stored run: beside its record, in its folder or in its archive."""

from __future__ import annotations

import zipfile
from pathlib import Path

from eval_gate.errors import GateError
from eval_gate.files.reading import read_left_up_to
from eval_gate.model.result import RunResult
from eval_gate.results.archive import ArchiveError, read_one
from eval_gate.results.ledger import (
    EMPTY,
    LEDGER_NAME,
    MAX_EXECUTIONS,
    MAX_LEDGER_BYTES,
    Ledger,
    executions_of,
    ledger_run,
    read_ledger,
    yardstick_of,
)
from eval_gate.struct import replace


def ledger_file(file: Path) -> Ledger:
    """The ledger in this file. Raises GateError `ledger-corrupt`."""
    try:
        return read_ledger(read_left_up_to(file, MAX_LEDGER_BYTES), str(file))
    except OSError as error:
        raise GateError(
            "ledger-corrupt", f"{file} cannot be read: {error.strerror}", "name another ledger, or none"
        ) from error


def ledger_beside(record: Path) -> Ledger:
    """The ledger beside a run record, or beside the record in a zip; an empty one where there is none.

    Raises GateError `ledger-corrupt` for one that is there and cannot be read.
    """
    if zipfile.is_zipfile(record):
        return _in_archive(record)
    beside = record.parent / LEDGER_NAME
    return ledger_file(beside) if beside.is_file() else EMPTY


def ending_with(ledger: Ledger, run: RunResult) -> Ledger:
    """Up to this run, of which it says what the run's own record does; all of it where it does not know the run.

    The record of a case is all that a verdict asks of the past. A ledger that was changed, or is of another run of this
    id, would say that the baseline failed what it passed. Raises GateError `ledger-corrupt` for what is no ledger.
    """
    if all(one.run_id != run.run_id for one in ledger.runs):
        return ledger
    known = ledger.up_to(run)
    return known if _says_the_same(known, run) else known.without_newest(1).with_run(run).with_levels(known.levels)


def ending_at(ledger: Ledger, run_id: str) -> Ledger:
    """Up to the run of this id; an empty one where it does not know it."""
    start = next((at for at, one in enumerate(ledger.runs) if one.run_id == run_id), len(ledger.runs))
    return ledger.without_newest(start)


def _says_the_same(known: Ledger, run: RunResult) -> bool:
    """Whether its newest run is this one, with the cases that it has and what they did."""
    if replace(known.runs[0], sha=run.sha) != ledger_run(run):
        return False
    cases, found = run.by_key(), 0
    for key in known.every_key():
        of_case = known.case(key)
        entry = next(iter(of_case.entries()), None)
        if entry is None:
            continue
        found += 1
        if (case := cases.get(key)) is None or of_case.yardsticks[entry.place] != yardstick_of(case):
            return False
        first, again = executions_of(case)
        if (entry.first, entry.again) != (first[:MAX_EXECUTIONS], again[:MAX_EXECUTIONS]):
            return False
    return found == sum(bool(executions_of(case)[0]) for case in cases.values())


def _in_archive(file: Path) -> Ledger:
    try:
        found = read_one(file, LEDGER_NAME, MAX_LEDGER_BYTES)
    except ArchiveError as error:
        raise GateError(
            "ledger-corrupt", f"the ledger in {file} cannot be read: {error}", "name another run"
        ) from error
    if found is None:
        return EMPTY
    path, data = found
    return read_ledger(data, f"{file}!{path}")
