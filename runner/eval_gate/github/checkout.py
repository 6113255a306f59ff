"""Which commit is checked out, read from git's own files: the image holds no git, and needs none for this."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Final

_SHA: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REF: Final = re.compile(r"ref: (refs/[^\x00-\x20\x7f~^:?*\[\\]{1,1000})")
"""What git allows in a reference, which is nearly everything (git-check-ref-format)."""
_GIT_DIR: Final = re.compile(r"gitdir: ([^\x00\n]{1,4000})")
_ORIGIN: Final = '[remote "origin"]'
"""Where git keeps the address that a checkout was fetched from."""
_MAX_PACKED: Final = 16_000_000


def checked_out(workspace: Path) -> str | None:
    """The commit that HEAD of this checkout names, `git worktree` included; None where it cannot be told."""
    git = git_folder(workspace)
    head = _text(git / "HEAD") if git else None
    if git is None or head is None:
        return None
    if _SHA.fullmatch(head):
        return head
    match = _REF.fullmatch(head)
    if match is None or ".." in match[1]:
        return None
    common = _text(git / "commondir")  # of a worktree: where its repository keeps its branches
    for folder in (git, *([git / common] if common else [])):
        loose = _text(folder / match[1])
        if loose is not None:
            return loose if _SHA.fullmatch(loose) else None
        packed = _packed(folder / "packed-refs", match[1])
        if packed is not None:
            return packed
    return None


def repository_of_checkout(checkout: Path) -> str | None:
    """The `owner/name` that the checkout was fetched from, in small letters; None where its files do not say so."""
    git = git_folder(checkout)
    lines = [line.strip() for line in (_text(git / "config") or "").splitlines()] if git else []
    of_origin = lines[lines.index(_ORIGIN) + 1 :] if _ORIGIN in lines else []
    for line in takewhile(lambda one: not one.startswith("["), of_origin):
        name, _, address = line.partition("=")
        if name.strip() == "url":
            parts = address.strip().rstrip("/").removesuffix(".git").replace(":", "/").split("/")
            return "/".join(parts[-2:]).lower() if len(parts) > 1 else None
    return None


def checkout_around(workspace: Path, path: str | Path) -> Path | None:
    """The nearest checkout, in the workspace, that this path leads into, links followed; None where there is none."""
    root = Path(os.path.realpath(workspace))
    try:
        place = Path(os.path.realpath(root / path))
    except ValueError:  # it holds what no name can hold
        return None
    around = (one for one in (place, *place.parents) if one.is_relative_to(root))
    return next((one for one in around if _is_checkout(one)), None)


def checkouts_below(workspace: Path, path: str | Path) -> Iterator[Path]:
    """All checkouts that lie in the folder of this path; none where it is no folder."""
    yield from (git.parent for git in (workspace / path).rglob(".git") if _is_checkout(git.parent))


def git_folder(checkout: Path) -> Path | None:
    """The folder with git's own files of a checkout, `git worktree` included; None where this is none."""
    git = checkout / ".git"
    if git.is_dir():
        return git
    match = _GIT_DIR.fullmatch(_text(git) or "")
    return Path(os.path.realpath(checkout / match[1])) if match and _is_checkout(checkout) else None


def _is_checkout(folder: Path) -> bool:
    """Whether git takes it for one, `git worktree` and `--separate-git-dir` included, but for submodules."""
    git = folder / ".git"
    if git.is_dir():
        return True
    match = _GIT_DIR.fullmatch(_text(git) or "")
    return match is not None and not _is_submodule(folder, match[1])


def _is_submodule(folder: Path, git_dir: str) -> bool:
    """Whether git's files of it lie among those of a checkout around it, whose commit says which one it is of."""
    place = os.path.realpath(os.path.join(folder, git_dir))  # noqa: PTH118 (a Path would fold what links lead through)
    return any(Path(place).is_relative_to(os.path.realpath(one / ".git" / "modules")) for one in folder.parents)


def _packed(file: Path, ref: str) -> str | None:
    for line in (_text(file) or "").splitlines():
        sha, _, name = line.partition(" ")
        if name == ref and _SHA.fullmatch(sha):
            return sha
    return None


def _text(file: Path) -> str | None:
    try:
        with file.open(encoding="utf-8", errors="surrogateescape") as stream:
            return stream.read(_MAX_PACKED).strip()
    except (OSError, ValueError):
        return None
