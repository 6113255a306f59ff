"""When a run was made, which is not always what it says: the clock of its machine may have been wrong."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from eval_gate.results.names import LATEST_NAME

TOLERANCE: Final = timedelta(minutes=10)
"""By so much clocks of two machines may differ."""
_MAX_POINTER: Final = 10_000
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


def made_at(timestamp: str, written_ns: int) -> datetime:
    """When a run was made: as it says, but not after its file was written; then the file is believed."""
    said = _read(timestamp)
    try:
        written = datetime.fromtimestamp(written_ns / 1e9, UTC)
    except (OverflowError, ValueError, OSError):  # a file system may hold any number
        return said or _LONG_AGO
    return written if said is None else min(said, written)


def is_ahead(timestamp: str) -> bool:
    """Whether a run says that it is of a time that has not come yet."""
    said = _read(timestamp)
    return said is not None and said > datetime.now(UTC) + TOLERANCE


def made_last(folder: Path) -> Path | None:
    """The record of the run that was made last in a folder of runs, by its pointer; None where there is none."""
    try:
        with (folder / LATEST_NAME).open("rb") as stream:
            pointer = json.loads(stream.read(_MAX_POINTER))
        return folder / str(pointer["path"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def _read(timestamp: str) -> datetime | None:
    try:
        said = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    return said if said.tzinfo else said.replace(tzinfo=UTC)
