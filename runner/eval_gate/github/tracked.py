"""Which files of a checkout git tracks, read from its index: the image holds no git (gitformat-index)."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Final

from eval_gate.github.checkout import git_folder
from eval_gate.model.limits import GIT_INDEX_BYTES

_HEADER: Final = struct.Struct(">4sII")
_STATS: Final = 40
"""Bytes of an entry before the object's name: times, device, mode, owner, size."""
_SHA1, _SHA256 = 20, 32
_EXTENDED: Final = 0x4000
_VERSIONS: Final = frozenset({2, 3, 4})


class TrackedFiles:
    """What git tracks in the checkouts of a workspace; each index is read once, when it is first asked about."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._read: dict[Path, frozenset[bytes] | None] = {}

    def has(self, file: Path) -> bool | None:
        """Whether this file, or what leads to it, is committed; None where no checkout can say so.

        A link or a submodule on the way counts: whoever committed it chose what lies behind it.
        """
        written, real = Path(os.path.abspath(file)), Path(os.path.realpath(file))  # noqa: PTH100 (links are kept)
        answers = [self._tracks(written), self._tracks(real)]
        if any(answers):
            return True
        return None if None in answers else False

    def _tracks(self, file: Path) -> bool | None:
        workspace = Path(os.path.abspath(self._workspace))  # noqa: PTH100 (links are kept)
        roots = (workspace, Path(os.path.realpath(workspace)))
        if not any(file.is_relative_to(root) for root in roots):
            return False  # outside of every checkout: a step put it there
        inside = [one for one in file.parents if any(one.is_relative_to(root) for root in roots)]
        checkout = next((one for one in inside if git_folder(one)), None)
        if checkout is None:
            return None
        names = self._names(checkout)
        if names is None:
            return None
        path = file.relative_to(checkout)
        return any(os.fsencode(one) in names for one in (path, *path.parents))

    def _names(self, checkout: Path) -> frozenset[bytes] | None:
        if checkout not in self._read:
            self._read[checkout] = tracked_names(checkout)
        return self._read[checkout]


def tracked_names(checkout: Path) -> frozenset[bytes] | None:
    """The paths in a checkout's index, links and submodules included; None where it cannot be read."""
    folder = git_folder(checkout)
    try:
        with ((folder or checkout) / "index").open("rb") as stream:
            data = stream.read(GIT_INDEX_BYTES + 1)
    except OSError:
        return None
    if folder is None or len(data) > GIT_INDEX_BYTES:
        return None
    for digest in (_SHA1, _SHA256):
        try:
            return frozenset(_names_in(data, digest))
        except (ValueError, IndexError, struct.error):
            continue
    return None


def _names_in(data: bytes, digest: int) -> list[bytes]:
    """Raises ValueError, IndexError or struct.error for what is no index with object names of so many bytes."""
    magic, version, count = _HEADER.unpack_from(data)
    if magic != b"DIRC" or version not in _VERSIONS or count > len(data) // _STATS:
        raise ValueError("no index")
    at, names, before = _HEADER.size, list[bytes](), b""
    for _ in range(count):
        begin = at
        (flags,) = struct.unpack_from(">H", data, at + _STATS + digest)
        at += _STATS + digest + (4 if version > 2 and flags & _EXTENDED else 2)
        if version == 4:
            dropped, at = _varint(data, at)
            before = before[: len(before) - dropped]
        else:
            before = b""
        end = data.index(b"\0", at)
        before += data[at:end]
        at = end + 1 if version == 4 else begin + ((end - begin) // 8 + 1) * 8
        names.append(before)
    _refuse_split(data, at, digest)
    return names


def _refuse_split(data: bytes, at: int, digest: int) -> None:
    """Raise ValueError where more names are in another file, or what follows is no list of extensions."""
    while at < len(data) - digest:
        kind, size = struct.unpack_from(">4sI", data, at)
        if kind in {b"link", b"sdir"} or not kind.isalnum():
            raise ValueError("it holds a part of the names")
        at += 8 + size
    if at != len(data) - digest:
        raise ValueError("it breaks off")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number as packs write offsets, and where it ends."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1
