"""What an agent left in its folder, as data: small enough to be kept in memory with the answer."""

from __future__ import annotations

from typing import Literal

from eval_gate.model.base import Frozen


class FileEntry(Frozen):
    """One entry below the folder. `path` is relative to it, POSIX style, spelled as it is on disk.

    `text` is what a file holds, None where it cannot be had; then `problem` says why. `other` is what is neither file
    nor folder (a link, a pipe, a device) or a file that has a second name elsewhere: it is never looked into.
    """

    path: str
    kind: Literal["file", "folder", "other"]
    text: str | None = None
    problem: str | None = None
