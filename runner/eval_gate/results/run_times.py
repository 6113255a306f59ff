"""Time of a run, corrected where the clock of its machine was wrong."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from eval_gate.results.result_names import LATEST_NAME

CLOCK_TOLERANCE: Final = timedelta(minutes=10)
"""Maximum difference between the clocks of two machines."""
_MAX_POINTER_BYTES: Final = 10_000
_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


def compute_run_time(timestamp: str, written_ns: int) -> datetime:
    """Compute the time of a run: its timestamp, but no later than the time at which its file was written."""
    stated = parse_timestamp(timestamp)
    try:
        written_at = datetime.fromtimestamp(written_ns / 1e9, UTC)
    except (OverflowError, ValueError, OSError):  # a file system may hold any number
        return stated or _LONG_AGO
    return written_at if stated is None else min(stated, written_at)


def is_in_future(timestamp: str) -> bool:
    """Whether the timestamp of a run is in the future."""
    stated = parse_timestamp(timestamp)
    return stated is not None and stated > datetime.now(UTC) + CLOCK_TOLERANCE


def find_latest_run(folder: Path) -> Path | None:
    """Find the run result that was written last, by the pointer file; None without a readable one."""
    try:
        with (folder / LATEST_NAME).open("rb") as stream:
            pointer = json.loads(stream.read(_MAX_POINTER_BYTES))
        return folder / str(pointer["path"])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def parse_timestamp(timestamp: str) -> datetime | None:
    """Parse the time of a run, in UTC if it has no time zone; None if it is invalid."""
    try:
        stated = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    return stated if stated.tzinfo else stated.replace(tzinfo=UTC)
