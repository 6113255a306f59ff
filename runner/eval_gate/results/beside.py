"""Finds the ledger that belongs to a stored run: beside its record, in its folder or in its archive."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from eval_gate.errors import GateError
from eval_gate.model import limits
from eval_gate.results.entries import has_more_entries
from eval_gate.results.ledger import EMPTY, LEDGER_NAME, MAX_LEDGER_BYTES, Ledger, read_ledger

_UNREADABLE = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, RuntimeError, ValueError, EOFError)


def ledger_file(file: Path) -> Ledger:
    """The ledger in this file. Raises GateError `ledger-corrupt`."""
    try:
        with file.open("rb") as stream:
            return read_ledger(stream.read(MAX_LEDGER_BYTES + 1), str(file))
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
        if has_more_entries(file, limits.ARCHIVE_ENTRIES):
            raise zipfile.BadZipFile(f"more than {limits.ARCHIVE_ENTRIES:,} entries")
        with zipfile.ZipFile(file) as archive:
            names = [name for name in archive.namelist() if PurePosixPath(name).name == LEDGER_NAME]
            if not names:
                return EMPTY
            with archive.open(names[0]) as stream:
                data = stream.read(MAX_LEDGER_BYTES + 1)
    except _UNREADABLE as error:
        raise GateError(
            "ledger-corrupt", f"the ledger in {file} cannot be read: {error}", "name another run"
        ) from error
    return read_ledger(data, f"{file}!{names[0]}")
