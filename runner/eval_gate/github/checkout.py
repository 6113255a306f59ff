"""Git checkouts: where they lie, HEAD commit, origin, tracked files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Final

from eval_gate.files.git_folder import find_git_folder, read_git_text
from eval_gate.process.git import read_head_commit, read_tracked_names

_SHA: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_ORIGIN: Final = '[remote "origin"]'
"""Where git keeps the address that a checkout was fetched from."""


def find_head_commit(workspace: Path) -> str | None:
    """Find the commit that HEAD of a checkout or worktree names; None if it cannot be determined."""
    git = find_git_folder(workspace)
    commit = read_head_commit(git) if git else None
    return commit if commit and _SHA.fullmatch(commit) else None


def find_origin_repository(checkout: Path) -> str | None:
    """Find the `owner/name` in lower case that the checkout was fetched from; None if it is unknown."""
    git = find_git_folder(checkout)
    lines = [line.strip() for line in (read_git_text(git / "config") or "").splitlines()] if git else []
    of_origin = lines[lines.index(_ORIGIN) + 1 :] if _ORIGIN in lines else []
    for line in takewhile(lambda one: not one.startswith("["), of_origin):
        name, _, address = line.partition("=")
        if name.strip() == "url":
            parts = address.strip().rstrip("/").removesuffix(".git").replace(":", "/").split("/")
            return "/".join(parts[-2:]).lower() if len(parts) > 1 else None
    return None


def find_checkout(workspace: Path, path: str | Path) -> Path | None:
    """Find the nearest checkout in the workspace around this path, with links resolved; None if there is none."""
    root = Path(os.path.realpath(workspace))
    try:
        place = Path(os.path.realpath(root / path))
    except ValueError:  # it holds what no name can hold
        return None
    folders = (one for one in (place, *place.parents) if one.is_relative_to(root))
    return next((one for one in folders if find_git_folder(one)), None)


def find_submodule(workspace: Path, path: str | Path) -> Path | None:
    """Find the submodule in the workspace that contains this path, with links resolved; None outside of one."""
    root = Path(os.path.realpath(workspace))
    place = Path(os.path.realpath(root / path))
    folders = (one for one in (place, *place.parents) if one.is_relative_to(root) and one != root)
    return next((one for one in folders if (one / ".git").is_file() and not find_git_folder(one)), None)


def iter_checkouts(workspace: Path, path: str | Path) -> Iterator[Path]:
    """All checkouts that lie in the folder of this path; none where it is no folder."""
    yield from (git.parent for git in (workspace / path).rglob(".git") if find_git_folder(git.parent))


class TrackedFiles:
    """Files that git tracks in the checkouts of a workspace. Each index is read once, on first use."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._read: dict[Path, frozenset[bytes] | None] = {}

    def is_tracked(self, file: Path) -> bool | None:
        """Whether this file, or what leads to it, is committed; None where no checkout can say so.

        A tracked link or submodule on the way counts: its commit chose its target.
        """
        path, real = Path(os.path.abspath(file)), Path(os.path.realpath(file))  # noqa: PTH100 (links are kept)
        answers = [self._is_path_tracked(path), self._is_path_tracked(real)]
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
        if checkout not in self._read:
            git = find_git_folder(checkout)
            self._read[checkout] = read_tracked_names(git) if git else None
        names = self._read[checkout]
        if names is None:
            return None
        path = file.relative_to(checkout)
        return any(os.fsencode(one) in names for one in (path, *path.parents))
