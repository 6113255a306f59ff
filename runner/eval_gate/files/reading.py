"""Reads a file without being drowned by it."""

from __future__ import annotations

from pathlib import Path


def read_up_to(path: Path, limit: int) -> bytes:
    """What the file holds, but one byte more than `limit` at most: that one says that it is too large.

    Raises OSError.
    """
    with path.open("rb") as stream:
        return stream.read(limit + 1)
