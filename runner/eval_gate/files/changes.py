"""What changed among a handful of files: their stamps are read and held against those that were read before.

They are polled, and no library is told by the system: a look at a few files every third of a second costs nothing, and
works alike in containers, on network drives and on every system.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

Stamps = Mapping[Path, tuple[int, ...] | None]
"""For each file what changes whenever it is written; None where it is not there."""

EVERY_S: Final = 0.3
"""Seconds between two looks."""
_MOST_LOOKS: Final = 10
"""A burst, such as a branch that is checked out, is over after a look without news; it is not waited for for ever."""


def stamps_of(files: Iterable[Path]) -> Stamps:
    """The stamps of these files."""
    return {file: _stamp(file) for file in files}


def changed(before: Stamps, now: Stamps) -> tuple[Path, ...]:
    """The files that are new, gone or other than before, in order."""
    return tuple(sorted(file for file in before.keys() | now.keys() if before.get(file) != now.get(file)))


def wait_for_change(look: Callable[[], Stamps], since: Stamps) -> tuple[Path, ...]:
    """Wait until something is not as it was in `since`, and until that is all; what it is."""
    while not changed(since, now := look()):
        time.sleep(EVERY_S)
    for _ in range(_MOST_LOOKS):
        time.sleep(EVERY_S)
        before, now = now, look()
        if not changed(before, now):
            break
    return changed(since, now)


def _stamp(file: Path) -> tuple[int, ...] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino)
