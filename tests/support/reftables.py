"""Git's reftables, as a test writes them."""

from __future__ import annotations

import struct
from pathlib import Path


def number(value: int) -> bytes:
    """A number of as many bytes as it needs."""
    found = [value & 0x7F]
    while value := value >> 7:
        value -= 1
        found.append(0x80 | (value & 0x7F))
    return bytes(reversed(found))


def record(name: str, value: str | None, shared: int = 0) -> bytes:
    """A reference: to a commit, to `ref: NAME`, or deleted. It shares so many letters with the one before."""
    kind = 0 if value is None else 3 if value.startswith("ref: ") else 1
    suffix = name.encode()[shared:]
    text = b"" if value is None else bytes.fromhex(value) if kind == 1 else value[5:].encode()
    body = text if kind != 3 else number(len(text)) + text
    return number(shared) + number(len(suffix) << 3 | kind) + suffix + number(0) + body


def table(*blocks: bytes, size: int = 256, version: int = 1) -> bytes:
    """A table with these blocks, each with one restart, padded to the size of a block unless that is 0."""
    made = b"REFT" + bytes([version]) + size.to_bytes(3, "big") + bytes(16) + (b"s256" if version == 2 else b"")
    for at, block in enumerate(blocks):
        before = 0 if at else len(made)
        length = before + 4 + len(block) + 5
        made += b"r" + length.to_bytes(3, "big") + block + (before + 4).to_bytes(3, "big") + struct.pack(">H", 1)
        made += bytes(-len(made) % size) if size else b""
    return made + bytes(40)


def write_tables(folder: Path, *tables: bytes) -> Path:
    """A checkout whose references are in these tables, oldest first."""
    git = folder / ".git"
    (git / "reftable").mkdir(parents=True, exist_ok=True)
    (git / "HEAD").write_text("ref: refs/heads/.invalid\n")
    (git / "refs").mkdir(exist_ok=True)
    (git / "refs" / "heads").write_text("this repository uses the reftable format\n")
    names = [f"0x{at:012x}.ref" for at in range(len(tables))]
    for name, data in zip(names, tables, strict=True):
        (git / "reftable" / name).write_bytes(data)
    (git / "reftable" / "tables.list").write_text("".join(f"{name}\n" for name in names))
    return folder
