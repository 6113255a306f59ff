"""Which commit is checked out, read from git's own files: the image holds no git, and needs none for this."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_SHA: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REF: Final = re.compile(r"ref: (refs/[^\x00-\x20\x7f~^:?*\[\\]{1,1000})")
"""What git allows in a reference, which is nearly everything (git-check-ref-format)."""
_MAX_PACKED: Final = 16_000_000


def checked_out(workspace: Path) -> str | None:
    """The commit that HEAD of this folder names; None where it is no plain checkout, or cannot be told."""
    git = workspace / ".git"
    head = _text(git / "HEAD")
    if head is None:
        return None
    if _SHA.fullmatch(head):
        return head
    match = _REF.fullmatch(head)
    if match is None or ".." in match[1]:
        return None
    loose = _text(git / match[1])
    if loose is not None:
        return loose if _SHA.fullmatch(loose) else None
    return _packed(git / "packed-refs", match[1])


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
