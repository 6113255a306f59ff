"""References in git's reftables, the default of Git 3 (git's documentation, "reftable")."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from eval_gate.files.git_index import parse_varint
from eval_gate.model.limits import GIT_INDEX_BYTES

_HEADER: Final = struct.Struct(">4sB3s")
_HEADER_BYTES: Final = {1: 24, 2: 28}
"""By version: magic, version, size of a block, two indexes; in the second one the kind of hash."""
_SHA1, _SHA256 = 20, 32
_OBJECT, _PEELED, _SYMBOLIC = 1, 2, 3
"""Kinds of values; 0 is a reference that was deleted."""
_MAX_TABLES: Final = 1_000
_MAX_STEPS: Final = 5
"""Symbolic references that git follows, too."""


def find_reftable_commit(folders: Sequence[Path]) -> str | None:
    """Find HEAD's commit in the `reftable` of a checkout and its repository; None without one or if it is broken."""
    try:
        stacks = [list(_iter_tables(folder)) for folder in folders]
        name = "HEAD"
        for _ in range(_MAX_STEPS):
            found = next(filter(None, (_find_value(tables, name) for tables in stacks)), "")
            if not found.startswith("ref: "):
                return found or None
            name = found.removeprefix("ref: ")
    except (OSError, ValueError, IndexError, struct.error):
        return None
    return None


def _iter_tables(folder: Path) -> Iterator[bytes]:
    """Yield the tables of a folder, newest first."""
    with (folder / "tables.list").open(encoding="ascii") as listed:
        names = listed.read(GIT_INDEX_BYTES).split()
    if len(names) > _MAX_TABLES or any("/" in name for name in names):
        raise ValueError("no list of tables")
    for name in reversed(names):
        with (folder / name).open("rb") as stream:
            yield stream.read(GIT_INDEX_BYTES)


def _find_value(tables: Sequence[bytes], name: str) -> str:
    """Find the commit, or `ref: ` and a name, that the newest table with a reference has; empty if it was deleted."""
    return next((value for table in tables for one, value in _iter_references(table) if one == name.encode()), "")


def _iter_references(table: bytes) -> Iterator[tuple[bytes, str]]:
    """Yield the names and values in the blocks of references, which come first."""
    magic, version, size = _HEADER.unpack_from(table)
    if magic != b"REFT" or version not in _HEADER_BYTES:
        raise ValueError("no reftable")
    digest = _SHA256 if version == max(_HEADER_BYTES) and table[24:28] == b"s256" else _SHA1
    block_bytes, start, at = int.from_bytes(size, "big"), 0, _HEADER_BYTES[version]
    while table[at : at + 1] == b"r":
        length = int.from_bytes(table[at + 1 : at + 4], "big")  # of the first block with the header of the file
        end = start + length - 2
        yield from _iter_block(table, at + 4, end - 3 * int.from_bytes(table[end : end + 2], "big"), digest)
        start = at = start + max(block_bytes, length, 1) if block_bytes else start + max(length, 1)


def _iter_block(table: bytes, at: int, end: int, digest: int) -> Iterator[tuple[bytes, str]]:
    name = b""
    while at < end:
        shared, at = parse_varint(table, at)
        packed, at = parse_varint(table, at)
        suffix, kind = divmod(packed, 8)
        name, at = name[:shared] + table[at : at + suffix], at + suffix
        _, at = parse_varint(table, at)  # when it was written
        value = ""
        if kind in {_OBJECT, _PEELED}:
            value, at = table[at : at + digest].hex(), at + digest * kind
        elif kind == _SYMBOLIC:
            length, at = parse_varint(table, at)
            value, at = f"ref: {table[at : at + length].decode()}", at + length
        yield name, value
