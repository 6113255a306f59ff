"""What git, and a checkout without Git LFS, has in place of a file that Git LFS keeps (its specification)."""

from __future__ import annotations

import re
from typing import Final

MAX_POINTER: Final = 1_024
"""Bytes of a pointer: less than that."""
_POINTER: Final = re.compile(
    rb"version https?://[^\s]{1,200}/spec/v1\r?\n(?:[^\n]{1,400}\n){0,8}?oid sha256:([0-9a-f]{64})\r?\n"
)


def pointer_in(data: bytes) -> str | None:
    """The SHA-256 of the content that this stands for, in hexadecimal; None for what is no pointer."""
    match = _POINTER.match(data) if len(data) <= MAX_POINTER else None
    return match[1].decode() if match else None
