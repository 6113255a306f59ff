"""Processes that tests start: their numbers, and whether they have ended. Both are waited for some seconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_S = 10


def eventually(holds: Callable[[], bool]) -> bool:
    """Whether this becomes true within `PATIENCE_S`."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def pid_in(file: Path) -> int:
    """The number of the process that writes it there, with the end of a line behind it."""
    assert eventually(lambda: file.exists() and file.read_text().endswith("\n"))
    return int(file.read_text())


def gone(process: int | Path) -> bool:
    """Whether the process ends, given by its number or the file with it.

    A zombie has ended: nobody has asked how, and in a container there may be nobody who would.
    """
    number = process if isinstance(process, int) else pid_in(process)

    def ended() -> bool:
        try:
            return "\nState:\tZ" in Path(f"/proc/{number}/status").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return True

    return eventually(ended)
