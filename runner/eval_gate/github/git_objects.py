"""Git objects of a commit (trees and files), read from the repository folder without a git program.

Who wrote that folder need not be trusted. Every object is known by the hash of its content, and is held to it, so that
whoever knows the name of a commit finds in it what that commit holds, or nothing
(git-scm.com/docs/gitformat-pack, git-scm.com/book "Git Objects").
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Final

from eval_gate.files.git_index import parse_varint, read_git_text
from eval_gate.model.limits import GIT_OBJECT_BYTES
from eval_gate.struct import FrozenStruct

MAX_DELTAS: Final = 4_096
"""The longest chain of differences that git writes."""
MAX_STORES: Final = 20
"""Folders of objects that lead to each other."""
_KINDS: Final = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}
_BY_OFFSET, _BY_NAME = 6, 7
_HEADER: Final = re.compile(rb"(commit|tree|blob|tag) (\d{1,12})\0")
_TREE_OF: Final = re.compile(rb"tree ([0-9a-f]{40}|[0-9a-f]{64})\n")


class TreeEntry(FrozenStruct):
    """Entry of a git tree."""

    kind: str
    """`40000` a folder, `120000` a link, `160000` a commit of a submodule; else a file."""
    name: str
    """The object's, in hexadecimal digits."""

    @property
    def is_folder(self) -> bool:
        """Whether it is a tree."""
        return self.kind in {"40000", "040000"}

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link, whose target is its content."""
        return self.kind == "120000"

    @property
    def is_submodule(self) -> bool:
        """Whether it is a commit of another repository."""
        return self.kind == "160000"


class GitObjects:
    """Objects of one repository. A missing, damaged or too large object is None."""

    def __init__(self, git_dir: Path) -> None:
        self._git_dir = git_dir
        self._trees = dict[str, Mapping[str, TreeEntry] | None]()

    def find_tree(self, commit: str) -> str | None:
        """Return the object name of the commit's tree, or None if the commit cannot be read."""
        data = self.read_object(commit, b"commit")
        match = _TREE_OF.match(data) if data else None
        return match[1].decode() if match else None

    def get_entries(self, tree: str) -> Mapping[str, TreeEntry] | None:
        """Return the entries of a tree by name (with surrogates if not UTF-8), or None if it cannot be read."""
        if tree not in self._trees:
            data = self.read_object(tree, b"tree")
            self._trees[tree] = None if data is None else dict(_iter_entries(data, len(tree) // 2))
        return self._trees[tree]

    def read_object(self, name: str, kind: bytes) -> bytes | None:
        """Read the content of the object with this name and kind, held to the name, or return None."""
        for store in self._stores:
            for found in (_read_loose(store, name), *self._iter_packed(name, store)):
                if found is not None and found[0] == kind and name == compute_object_name(kind, found[1], len(name)):
                    return found[1]
        return None

    @cached_property
    def _stores(self) -> tuple[Path, ...]:
        """The folders of objects: its own, the common one of a worktree, and those that it borrows from."""
        common = read_git_text(self._git_dir / "commondir")
        begin = [self._git_dir / "objects", *([self._git_dir / common / "objects"] if common else [])]
        found: list[Path] = []
        while begin and len(found) < MAX_STORES:
            store = begin.pop(0)
            if store in found or not store.is_dir():
                continue
            found.append(store)
            lines = (read_git_text(store / "info" / "alternates") or "").splitlines()
            begin += [store / line for line in lines if line and not line.startswith("#") and "\0" not in line]
        return tuple(found)

    @cached_property
    def _packs(self) -> Mapping[Path, tuple[Path, ...]]:
        with_index = {store: tuple(sorted((store / "pack").glob("*.idx"))) for store in self._stores}
        return {store: packs for store, packs in with_index.items() if packs}

    def _iter_packed(self, name: str, store: Path) -> Iterator[tuple[bytes, bytes] | None]:
        for index in self._packs.get(store, ()):
            with suppress(OSError, ValueError, struct.error, zlib.error, IndexError):
                offset = _find_offset(index, name)
                if offset is not None:
                    yield self._unpack_object(index.with_suffix(".pack"), offset, len(name) // 2)

    def _unpack_object(self, pack: Path, offset: int, width: int) -> tuple[bytes, bytes] | None:
        """Read the object at this offset of a pack, deltas applied; `width` is an object name's length in bytes."""
        deltas: list[bytes] = []
        with pack.open("rb") as stream:
            while len(deltas) <= MAX_DELTAS:
                stream.seek(offset)
                head = stream.read(64)
                kind, at, size = _parse_head(head)
                base: int | str | None = None
                if kind == _BY_OFFSET:
                    back, at = parse_varint(head, at)
                    base = offset - back
                elif kind == _BY_NAME:
                    base, at = head[at : at + width].hex(), at + width
                if size > GIT_OBJECT_BYTES:
                    return None
                stream.seek(offset + at)
                data = _inflate_data(stream.read(size + size // 1_000 + 1_024), size)
                if base is None:
                    made = _apply_deltas(data, deltas)
                    return (_KINDS[kind], made) if kind in _KINDS else None
                deltas.append(data)
                if isinstance(base, int):
                    offset = base
                    continue
                beside = _find_offset(pack.with_suffix(".idx"), base)
                if beside is None:
                    return None
                offset = beside
        return None


def compute_object_name(kind: bytes, content: bytes, digits: int) -> str:
    """Compute git's name of an object: SHA-1 for 40 `digits`, SHA-256 for 64."""
    digest = hashlib.sha1(usedforsecurity=False) if digits == 40 else hashlib.sha256()
    digest.update(b"%b %d\0" % (kind, len(content)))
    digest.update(content)
    return digest.hexdigest()


def _iter_entries(data: bytes, width: int) -> Iterator[tuple[str, TreeEntry]]:
    at = 0
    while at < len(data):
        end = data.index(b"\0", at)
        kind, _, name = data[at:end].partition(b" ")
        at = end + 1 + width
        yield os.fsdecode(name), TreeEntry(kind.decode("ascii", "replace"), data[end + 1 : at].hex())


def _read_loose(store: Path, name: str) -> tuple[bytes, bytes] | None:
    try:
        with (store / name[:2] / name[2:]).open("rb") as stream:
            packed = stream.read(GIT_OBJECT_BYTES)
        data = zlib.decompressobj().decompress(packed, GIT_OBJECT_BYTES + 32)
    except (OSError, zlib.error):
        return None
    match = _HEADER.match(data)
    return (match[1], data[match.end() :]) if match and len(data) <= GIT_OBJECT_BYTES else None


def _find_offset(index: Path, name: str) -> int | None:
    """Where in its pack the object of this name lies, by version 2 of an index."""
    wanted, width = bytes.fromhex(name), len(name) // 2
    with index.open("rb") as stream:
        if stream.read(8) != b"\xfftOc\0\0\0\2":
            return None
        counts = struct.unpack(">256I", stream.read(1_024))
        low, high, total = counts[wanted[0] - 1] if wanted[0] else 0, counts[wanted[0]], counts[255]
        while low < high:
            middle = (low + high) // 2
            stream.seek(1_032 + middle * width)
            found = stream.read(width)
            if found == wanted:
                break
            low, high = (middle + 1, high) if found < wanted else (low, middle)
        else:
            return None
        offsets = 1_032 + total * (width + 4)
        stream.seek(offsets + middle * 4)
        (offset,) = struct.unpack(">I", stream.read(4))
        if offset < 0x8000_0000:
            return int(offset)
        stream.seek(offsets + total * 4 + (offset - 0x8000_0000) * 8)
        return int(struct.unpack(">Q", stream.read(8))[0])


def _parse_head(data: bytes) -> tuple[int, int, int]:
    """Parse the header of a packed object: its kind, the position after the header, and its size in bytes."""
    kind, size, shift, at = data[0] >> 4 & 7, data[0] & 15, 4, 1
    while data[at - 1] & 0x80:
        size |= (data[at] & 0x7F) << shift
        shift, at = shift + 7, at + 1
    return kind, at, size


def _inflate_data(data: bytes, size: int) -> bytes:
    """Decompress the data of a packed object to exactly `size` bytes."""
    found = zlib.decompressobj().decompress(data, size + 1)
    if len(found) != size:
        raise ValueError("not as large as it says")
    return found


def _apply_deltas(base: bytes, deltas: list[bytes]) -> bytes:
    """Apply the deltas to the base, the last one first, and empty the list. Raises ValueError and IndexError."""
    while deltas:
        base = _apply_delta(base, deltas.pop())
    return base


def _apply_delta(base: bytes, delta: bytes) -> bytes:
    size, at = _parse_number(delta, 0)
    result, at = _parse_number(delta, at)
    if size != len(base) or result > GIT_OBJECT_BYTES:
        raise ValueError("a difference from something else")
    out = bytearray()
    while at < len(delta):
        sign, at = delta[at], at + 1
        if not sign & 0x80:
            out += delta[at : at + sign]
            at += sign
            continue
        numbers = []
        for bits, first in ((4, 0), (3, 4)):
            value = 0
            for bit in range(bits):
                if sign >> first + bit & 1:
                    value, at = value | delta[at] << 8 * bit, at + 1
            numbers.append(value)
        begin, length = numbers[0], numbers[1] or 0x10000
        out += base[begin : begin + length]
        if len(out) > result:
            raise ValueError("longer than it says")
    if len(out) != result:
        raise ValueError("not as long as it says")
    return bytes(out)


def _parse_number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        part, at = data[at], at + 1
        value |= (part & 0x7F) << shift
        shift += 7
        if not part & 0x80:
            return value, at
