"""Git's own folder of a checkout, found without a git program."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

_GIT_DIR: Final = re.compile(r"gitdir: ([^\x00\n]{1,4000})")
_MAX_TEXT: Final = 16_000_000


def find_git_dir(checkout: Path) -> Path | None:
    """Find the git folder of this checkout, worktree or submodule; None if it is not one."""
    git = checkout / ".git"
    if git.is_dir():
        return git
    match = _GIT_DIR.fullmatch(read_git_text(git) or "")
    # a Path would fold what links lead through
    return Path(os.path.realpath(os.path.join(checkout, match[1]))) if match else None  # noqa: PTH118


def find_git_folder(checkout: Path) -> Path | None:
    """Find it as `find_git_dir` does, but not for a submodule, which the outer checkout's commit determines."""
    git = find_git_dir(checkout)
    module_folders = (os.path.realpath(one / ".git" / "modules") for one in checkout.parents)
    return None if git is None or any(map(git.is_relative_to, module_folders)) else git


def read_git_text(file: Path) -> str | None:
    """Read one of git's own files as stripped text; None if it cannot be read."""
    try:
        with file.open(encoding="utf-8", errors="surrogateescape") as stream:
            return stream.read(_MAX_TEXT).strip()
    except (OSError, ValueError):
        return None
