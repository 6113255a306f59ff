"""Finds the ledger that belongs to a stored run: beside its record, in its folder or in its archive."""

from __future__ import annotations

import zipfile
from pathlib import Path

from eval_gate.errors import GateError
from eval_gate.files.reading import read_up_to
from eval_gate.results.archive import ArchiveError, read_one
from eval_gate.results.ledger import EMPTY, LEDGER_NAME, MAX_LEDGER_BYTES, Ledger, read_ledger


def ledger_file(file: Path) -> Ledger:
    """The ledger in this file. Raises GateError `ledger-corrupt`."""
    try:
        return read_ledger(read_up_to(file, MAX_LEDGER_BYTES), str(file))
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
