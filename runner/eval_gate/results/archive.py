"""Writes results as zip archives, and reads entries of untrusted ones within limits."""

from __future__ import annotations

import hashlib
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Final

from eval_gate.errors import GateError
from eval_gate.files.writing import open_new_file
from eval_gate.model import limits
from eval_gate.results.result_names import RUN_NAME

MAX_ENTRIES: Final = limits.ARCHIVE_ENTRIES
_ENTRY_MARK: Final = b"PK\x01\x02"
"""Signature of each directory entry (APPNOTE.TXT 4.3.12)."""
_PIECE_BYTES: Final = 1_000_000
_REPORTS: Final = frozenset({".json", ".html", ".xml", ".md"})
ARCHIVE_ERRORS: Final = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError, RuntimeError, ValueError, EOFError)
"""Exceptions for an archive that is damaged, truncated or encrypted."""


class ArchiveError(Exception):
    """A damaged or unsafe archive. The message continues a sentence."""


def read_entry(file: Path, name: str, limit: int) -> tuple[str, bytes] | None:
    """Read the only entry called `name` in any folder of the archive; return None if there is none.

    Return its path and at most `limit` + 1 bytes of it. Raises ArchiveError if the archive cannot be read, has too
    many entries, has an entry whose path leads out of it, or has several entries of this name.
    """
    try:
        if has_more_entries(file, MAX_ENTRIES):
            raise ArchiveError(f"more than {MAX_ENTRIES:,} entries")
        with zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                path = PurePosixPath(entry.filename.replace("\\", "/"))
                if path.is_absolute() or ".." in path.parts or re.match(r"[A-Za-z]:", entry.filename):
                    raise ArchiveError(f'the entry "{entry.filename[:100]}" points outside the archive')
            entries = [entry for entry in archive.infolist() if PurePosixPath(entry.filename).name == name]
            if len(entries) > 1:
                raise ArchiveError(f"{len(entries)} entries are named {name}, expected one")
            if not entries:
                return None
            with archive.open(entries[0]) as stream:
                return entries[0].filename, stream.read(limit + 1)
    except ARCHIVE_ERRORS as error:
        raise ArchiveError(f"the archive cannot be read: {error}") from error


def find_top_entry(file: Path, name: str, limit: int) -> bytes | None:
    """Read the entry `name` at the top of an archive.

    Return None if the entry is missing or larger than `limit` bytes, or if the archive cannot be read or has too
    many entries.
    """
    try:
        if has_more_entries(file, MAX_ENTRIES):
            return None
        with zipfile.ZipFile(file) as archive, archive.open(name) as stream:
            data = stream.read(limit + 1)
    except (KeyError, *ARCHIVE_ERRORS):
        return None
    return data if len(data) <= limit else None


def find_entry_in_same_folder(file: Path, known_name: str, name: str, limit: int) -> bytes | None:
    """Read the entry `name` from the folder of the only entry called `known_name`; None as in `find_top_entry`."""
    try:
        neighbour = read_entry(file, known_name, 0)
    except ArchiveError:
        return None
    return find_top_entry(file, str(PurePosixPath(neighbour[0]).with_name(name)), limit) if neighbour else None


def extract_top_entry(file: Path, name: str, to: Path, limit: int) -> str | None:
    """Copy the entry of this name at the top of an archive to the new file `to`, and return its SHA-256 in hexadecimal.

    Return None if there is no such entry, if it is too large, or if it cannot be written.
    """
    data = find_top_entry(file, name, limit)
    if data is None:
        return None
    try:
        descriptor = open_new_file(to)
        if descriptor is None:
            return None
        with os.fdopen(descriptor, "wb") as target:
            target.write(data)
    except (OSError, GateError):
        return None
    return hashlib.sha256(data).hexdigest()


def iter_result_files(record: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files of a result archive with their names, without the journal: only a run in progress needs it."""
    from eval_gate.targets.model.recording import RECORDING_NAME  # not needed to read one

    yield record, RUN_NAME
    recording = record.parent / RECORDING_NAME
    if recording.is_file() and not recording.is_symlink():
        yield recording, RECORDING_NAME
    for file in sorted(record.parent.iterdir()):
        if file.suffix in _REPORTS and file != record and file.is_file() and not file.is_symlink():
            yield file, file.name


def write_archive(files: Iterable[tuple[Path, str]], to: Path | IO[bytes]) -> None:
    """Write a zip archive of the files to `to`, each under its given name."""
    with zipfile.ZipFile(to, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as packed:
        for file, name in files:
            packed.write(file, name)


def has_more_entries(file: Path, most: int) -> bool:
    """Whether an archive may have more than `most` names. Raises OSError if it cannot be read.

    The marks of entries are counted before the directory is read into memory. The number that the end of the directory
    states is not used, because readers ignore it. Packed data does not hold thousands of these four bytes by chance.
    """
    count, rest = 0, b""
    with file.open("rb") as stream:
        while piece := stream.read(_PIECE_BYTES):
            count += (rest + piece).count(_ENTRY_MARK)
            rest = piece[1 - len(_ENTRY_MARK) :]  # the four bytes may lie across two pieces
    return count > most
