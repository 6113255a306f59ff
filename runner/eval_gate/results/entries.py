"""Whether an archive has too many names, before its directory is read, which would keep them all."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_NAME: Final = b"PK\x01\x02"
"""What each name of a directory begins with (APPNOTE.TXT 4.3.12)."""
_PIECE_BYTES: Final = 1_000_000


def has_more_entries(file: Path, most: int) -> bool:
    """Whether an archive may have more than so many names. Raises OSError where it cannot be read.

    They are counted, because no reader goes by the number that the end of a directory announces: one that announces a
    single name is read to its last. Packed data does not hold thousands of these four bytes by chance.
    """
    found, kept = 0, b""
    with file.open("rb") as stream:
        while piece := stream.read(_PIECE_BYTES):
            found += (kept + piece).count(_NAME)
            kept = piece[1 - len(_NAME) :]  # the four bytes may lie across two pieces
    return found > most
