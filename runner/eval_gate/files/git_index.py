"""Git's own folder of a checkout and the index in it, read without a git program."""

from __future__ import annotations

import os
import re
import struct
from pathlib import Path
from typing import Final

from eval_gate.model.limits import GIT_INDEX_BYTES

_GIT_DIR: Final = re.compile(r"gitdir: ([^\x00\n]{1,4000})")
_MAX_TEXT: Final = 16_000_000
_HEADER: Final = struct.Struct(">4sII")
_STATS: Final = 40
"""Bytes of an entry before the object's name: times, device, mode, owner, size."""
_SHA1, _SHA256 = 20, 32
_EXTENDED: Final = 0x4000
_VERSIONS: Final = frozenset({2, 3, 4})


def find_git_dir(checkout: Path) -> Path | None:
    """Find where git keeps what belongs to this checkout, worktree or submodule; None where it is none."""
    git = checkout / ".git"
    if git.is_dir():
        return git
    match = _GIT_DIR.fullmatch(read_git_text(git) or "")
    # a Path would fold what links lead through
    return Path(os.path.realpath(os.path.join(checkout, match[1]))) if match else None  # noqa: PTH118


def find_git_folder(checkout: Path) -> Path | None:
    """Find it as `find_git_dir` does, but not of a submodule: the commit of the checkout around it says what it is."""
    git = find_git_dir(checkout)
    around = (os.path.realpath(one / ".git" / "modules") for one in checkout.parents)
    return None if git is None or any(map(git.is_relative_to, around)) else git


def read_git_text(file: Path) -> str | None:
    """Read a text among git's own files, without the blanks around it; None if it cannot be read."""
    try:
        with file.open(encoding="utf-8", errors="surrogateescape") as stream:
            return stream.read(_MAX_TEXT).strip()
    except (OSError, ValueError):
        return None


def read_tracked_names(checkout: Path) -> frozenset[bytes] | None:
    """Read the paths in a checkout's index, including links and submodules; None if the index cannot be read."""
    folder = find_git_folder(checkout)
    try:
        with ((folder or checkout) / "index").open("rb") as stream:
            data = stream.read(GIT_INDEX_BYTES + 1)
    except OSError:
        return None
    if folder is None or len(data) > GIT_INDEX_BYTES:
        return None
    for digest in (_SHA1, _SHA256):
        try:
            return frozenset(_parse_index(data, digest))
        except (ValueError, IndexError, struct.error):
            continue
    return None


def _parse_index(data: bytes, digest: int) -> list[bytes]:
    """Parse the paths in a git index with object names of `digest` bytes."""
    magic, version, count = _HEADER.unpack_from(data)
    if magic != b"DIRC" or version not in _VERSIONS or count > len(data) // _STATS:
        raise ValueError("no index")
    at, names, before = _HEADER.size, list[bytes](), b""
    for _ in range(count):
        begin = at
        (flags,) = struct.unpack_from(">H", data, at + _STATS + digest)
        at += _STATS + digest + (4 if version > 2 and flags & _EXTENDED else 2)
        if version == 4:
            dropped, at = parse_varint(data, at)
            before = before[: len(before) - dropped]
        else:
            before = b""
        end = data.index(b"\0", at)
        before += data[at:end]
        at = end + 1 if version == 4 else begin + ((end - begin) // 8 + 1) * 8
        names.append(before)
    _check_index_end(data, at, digest)
    return names


def _check_index_end(data: bytes, at: int, digest: int) -> None:
    """Raise ValueError where more names are in another file, or what follows is no list of extensions."""
    while at < len(data) - digest:
        kind, size = struct.unpack_from(">4sI", data, at)
        if kind in {b"link", b"sdir"} or not kind.isalnum():
            raise ValueError("it holds a part of the names")
        at += 8 + size
    if at != len(data) - digest:
        raise ValueError("it breaks off")


def parse_varint(data: bytes, at: int) -> tuple[int, int]:
    """Parse a number as git writes it in indexes, packs and reftables, and return it with the position after it."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1
