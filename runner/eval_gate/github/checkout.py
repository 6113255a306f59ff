"""Git checkouts, read from git's own files: HEAD commit, origin, tracked files. Needs no git program."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Final

from eval_gate.github.reftables import find_reftable_commit
from eval_gate.model.limits import GIT_INDEX_BYTES

_SHA: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REF: Final = re.compile(r"ref: (refs/[^\x00-\x20\x7f~^:?*\[\\]{1,1000})")
"""What git allows in a reference, which is nearly everything (git-check-ref-format)."""
_HEAD_IN_REFTABLE: Final = "ref: refs/heads/.invalid"
"""What `HEAD` says for programs that look for references in files, where git keeps them in tables."""
_GIT_DIR: Final = re.compile(r"gitdir: ([^\x00\n]{1,4000})")
_ORIGIN: Final = '[remote "origin"]'
"""Where git keeps the address that a checkout was fetched from."""
_MAX_PACKED: Final = 16_000_000
_HEADER: Final = struct.Struct(">4sII")
_STATS: Final = 40
"""Bytes of an entry before the object's name: times, device, mode, owner, size."""
_SHA1, _SHA256 = 20, 32
_EXTENDED: Final = 0x4000
_VERSIONS: Final = frozenset({2, 3, 4})


def find_head_commit(workspace: Path) -> str | None:
    """Find the commit that HEAD of this checkout names, or return None if it cannot be determined.

    Worktrees of `git worktree` are supported.
    """
    git = find_git_folder(workspace)
    head = _read_text(git / "HEAD") if git else None
    if git is None or head is None:
        return None
    if head == _HEAD_IN_REFTABLE:
        common = _read_text(git / "commondir")
        found = find_reftable_commit([folder / "reftable" for folder in (git, *([git / common] if common else []))])
        return found if found and _SHA.fullmatch(found) else None
    if _SHA.fullmatch(head):
        return head
    match = _REF.fullmatch(head)
    if match is None or ".." in match[1]:
        return None
    common = _read_text(git / "commondir")  # of a worktree: where its repository keeps its branches
    for folder in (git, *([git / common] if common else [])):
        loose = _read_text(folder / match[1])
        if loose is not None:
            return loose if _SHA.fullmatch(loose) else None
        packed = _find_packed_ref(folder / "packed-refs", match[1])
        if packed is not None:
            return packed
    return None


def find_origin_repository(checkout: Path) -> str | None:
    """Find the `owner/name` that the checkout was fetched from, in lower case.

    Returns None if git's configuration does not say so.
    """
    git = find_git_folder(checkout)
    lines = [line.strip() for line in (_read_text(git / "config") or "").splitlines()] if git else []
    of_origin = lines[lines.index(_ORIGIN) + 1 :] if _ORIGIN in lines else []
    for line in takewhile(lambda one: not one.startswith("["), of_origin):
        name, _, address = line.partition("=")
        if name.strip() == "url":
            parts = address.strip().rstrip("/").removesuffix(".git").replace(":", "/").split("/")
            return "/".join(parts[-2:]).lower() if len(parts) > 1 else None
    return None


def find_checkout(workspace: Path, path: str | Path) -> Path | None:
    """Find the nearest checkout in the workspace that contains this path, with links resolved.

    Returns None if no checkout contains it.
    """
    root = Path(os.path.realpath(workspace))
    try:
        place = Path(os.path.realpath(root / path))
    except ValueError:  # it holds what no name can hold
        return None
    around = (one for one in (place, *place.parents) if one.is_relative_to(root))
    return next((one for one in around if _is_checkout(one)), None)


def find_submodule(workspace: Path, path: str | Path) -> Path | None:
    """Find the submodule in the workspace that contains this path, with links resolved; None outside of one."""
    root = Path(os.path.realpath(workspace))
    place = Path(os.path.realpath(root / path))
    around = (one for one in (place, *place.parents) if one.is_relative_to(root) and one != root)
    return next((one for one in around if (one / ".git").is_file() and not _is_checkout(one)), None)


def iter_checkouts(workspace: Path, path: str | Path) -> Iterator[Path]:
    """All checkouts that lie in the folder of this path; none where it is no folder."""
    yield from (git.parent for git in (workspace / path).rglob(".git") if _is_checkout(git.parent))


def find_git_folder(checkout: Path) -> Path | None:
    """Find the folder with git's own files of a checkout, or return None if it is not a checkout.

    Worktrees of `git worktree` are supported.
    """
    git = checkout / ".git"
    if git.is_dir():
        return git
    match = _GIT_DIR.fullmatch(_read_text(git) or "")
    return Path(os.path.realpath(checkout / match[1])) if match and _is_checkout(checkout) else None


def _is_checkout(folder: Path) -> bool:
    """Whether git takes it for one, `git worktree` and `--separate-git-dir` included, but for submodules."""
    git = folder / ".git"
    if git.is_dir():
        return True
    match = _GIT_DIR.fullmatch(_read_text(git) or "")
    return match is not None and not _is_submodule(folder, match[1])


def _is_submodule(folder: Path, git_dir: str) -> bool:
    """Whether git's files of it lie among those of a checkout around it, whose commit says which one it is of."""
    place = os.path.realpath(os.path.join(folder, git_dir))  # noqa: PTH118 (a Path would fold what links lead through)
    return any(Path(place).is_relative_to(os.path.realpath(one / ".git" / "modules")) for one in folder.parents)


def _find_packed_ref(file: Path, ref: str) -> str | None:
    for line in (_read_text(file) or "").splitlines():
        sha, _, name = line.partition(" ")
        if name == ref and _SHA.fullmatch(sha):
            return sha
    return None


def _read_text(file: Path) -> str | None:
    try:
        with file.open(encoding="utf-8", errors="surrogateescape") as stream:
            return stream.read(_MAX_PACKED).strip()
    except (OSError, ValueError):
        return None


class TrackedFiles:
    """Files that git tracks in the checkouts of a workspace. Each index is read once, on first use."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._read: dict[Path, frozenset[bytes] | None] = {}

    def is_tracked(self, file: Path) -> bool | None:
        """Whether this file, or what leads to it, is committed; None where no checkout can say so.

        A link or a submodule on the way counts: whoever committed it chose what lies behind it.
        """
        written, real = Path(os.path.abspath(file)), Path(os.path.realpath(file))  # noqa: PTH100 (links are kept)
        answers = [self._is_path_tracked(written), self._is_path_tracked(real)]
        if any(answers):
            return True
        return None if None in answers else False

    def _is_path_tracked(self, file: Path) -> bool | None:
        workspace = Path(os.path.abspath(self._workspace))  # noqa: PTH100 (links are kept)
        roots = (workspace, Path(os.path.realpath(workspace)))
        if not any(file.is_relative_to(root) for root in roots):
            return False  # outside of every checkout: a step put it there
        inside = [one for one in file.parents if any(one.is_relative_to(root) for root in roots)]
        checkout = next((one for one in inside if find_git_folder(one)), None)
        if checkout is None:
            return None
        names = self._get_names(checkout)
        if names is None:
            return None
        path = file.relative_to(checkout)
        return any(os.fsencode(one) in names for one in (path, *path.parents))

    def _get_names(self, checkout: Path) -> frozenset[bytes] | None:
        if checkout not in self._read:
            self._read[checkout] = read_tracked_names(checkout)
        return self._read[checkout]


def read_tracked_names(checkout: Path) -> frozenset[bytes] | None:
    """Read the paths in a checkout's index, including links and submodules.

    Returns None if the index cannot be read.
    """
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
    """Parse the paths in a git index with object names of `digest` bytes.

    Raises ValueError, IndexError or struct.error if `data` is not such an index.
    """
    magic, version, count = _HEADER.unpack_from(data)
    if magic != b"DIRC" or version not in _VERSIONS or count > len(data) // _STATS:
        raise ValueError("no index")
    at, names, before = _HEADER.size, list[bytes](), b""
    for _ in range(count):
        begin = at
        (flags,) = struct.unpack_from(">H", data, at + _STATS + digest)
        at += _STATS + digest + (4 if version > 2 and flags & _EXTENDED else 2)
        if version == 4:
            dropped, at = _parse_varint(data, at)
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


def _parse_varint(data: bytes, at: int) -> tuple[int, int]:
    """Parse a number in the encoding of pack offsets, and return it with the position after it."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1
