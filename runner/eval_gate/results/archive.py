"""Reads entries of untrusted zip archives within limits."""

from __future__ import annotations

import hashlib
import lzma
import os
import re
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import Final

from eval_gate.errors import GateError
from eval_gate.files.writing import open_new_file
from eval_gate.model import limits

MAX_ENTRIES: Final = limits.ARCHIVE_ENTRIES
_ENTRY_MARK: Final = b"PK\x01\x02"
"""Signature of each directory entry (APPNOTE.TXT 4.3.12)."""
_PIECE_BYTES: Final = 1_000_000
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
            found = [entry for entry in archive.infolist() if PurePosixPath(entry.filename).name == name]
            if len(found) > 1:
                raise ArchiveError(f"{len(found)} entries are named {name}, expected one")
            if not found:
                return None
            with archive.open(found[0]) as stream:
                return found[0].filename, stream.read(limit + 1)
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


def find_entry_in_same_folder(file: Path, known: str, name: str, limit: int) -> bytes | None:
    """Read the entry `name` beside the only entry called `known`; None without, or as in `find_top_entry`."""
    try:
        found = read_entry(file, known, 0)
    except ArchiveError:
        return None
    return find_top_entry(file, str(PurePosixPath(found[0]).with_name(name)), limit) if found else None


def extract_top_entry(file: Path, name: str, to: Path, limit: int) -> str | None:
    """Copy the one entry of this name, at the top of an archive, to `to`, where nothing is; its sha256 in hexadecimal.

    None where there is none, it is too large, or there is no place for it.
    """
    data = find_top_entry(file, name, limit)
    if data is None:
        return None
    try:
        descriptor = open_new_file(to)
        if descriptor is None:
            return None
        with os.fdopen(descriptor, "wb") as kept:
            kept.write(data)
    except (OSError, GateError):
        return None
    return hashlib.sha256(data).hexdigest()


def has_more_entries(file: Path, most: int) -> bool:
    """Whether an archive may have more than so many names. Raises OSError where it cannot be read.

    They are counted before its directory is read, which would keep them all, and because no reader goes by the number
    that the end of a directory announces: one that announces a single name is read to its last. Packed data does not
    hold thousands of these four bytes by chance.
    """
    found, kept = 0, b""
    with file.open("rb") as stream:
        while piece := stream.read(_PIECE_BYTES):
            found += (kept + piece).count(_ENTRY_MARK)
            kept = piece[1 - len(_ENTRY_MARK) :]  # the four bytes may lie across two pieces
    return found > most
