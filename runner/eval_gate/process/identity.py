"""User that a program runs as: root drops to the workspace's owner, or else to the user `nobody`."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from eval_gate.struct import FrozenStruct


class Identity(FrozenStruct):
    """User and group ids; they need no name on this machine."""

    uid: int
    gid: int

    def take_ownership(self, place: int | Path) -> None:
        """Make this user the owner of an open file or a path. Raises OSError."""
        os.chown(place, self.uid, self.gid)


UNPRIVILEGED: Final = Identity(65_534, 65_534)
"""The user `nobody`, who owns no files."""


def is_root() -> bool:
    """Whether this process is root; Windows has no such user."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def find_identity(folder: Path) -> Identity | None:
    """Find the user that a program in this folder runs as; None for the current one. Raises OSError without a folder.

    Only root gives way: to the owner of the working directory, else to the owner of the folder, else to the user
    `nobody`. A folder of root's group does not give membership of it. `is_root_required` is the one case in which a
    program runs as root.
    """
    if not is_root():
        return None
    for place in (Path.cwd(), folder):
        owner = place.stat()
        if owner.st_uid:
            return Identity(owner.st_uid, owner.st_gid or owner.st_uid)
    return None if is_root_required() else UNPRIVILEGED


def is_writable_by_others(place: os.stat_result) -> bool:
    """Whether other users than the owner may write there; a sticky folder protects only its existing entries."""
    return bool(place.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def is_root_required() -> bool:
    """Whether this process is root, and the working directory is root's and closed to all other users."""
    folder = Path.cwd()
    return is_root() and folder.stat().st_uid == 0 and not _is_open_to_all(folder)


def _is_open_to_all(folder: Path) -> bool:
    way = all(place.stat().st_mode & stat.S_IXOTH for place in (folder, *folder.parents))
    return way and bool(folder.stat().st_mode & stat.S_IROTH)
