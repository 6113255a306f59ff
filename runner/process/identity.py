"""Who a program runs as: root, in a container, gives way to whom the folder belongs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Identity:
    """A user and a group by their numbers; they need no name on this machine."""

    uid: int
    gid: int

    def own(self, place: int | Path) -> None:
        """Make an open file or a path theirs. Raises OSError."""
        os.chown(place, self.uid, self.gid)


def identity_for(folder: Path) -> Identity | None:
    """Whom a program in this folder should run as; None is who we are. Raises OSError when the folder is not there.

    What belongs to root's group by accident does not give membership of it.
    """
    if os.geteuid() != 0:
        return None
    owner = folder.stat()
    return Identity(owner.st_uid, owner.st_gid or owner.st_uid) if owner.st_uid else None
