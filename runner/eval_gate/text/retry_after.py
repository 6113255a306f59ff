"""Reads the HTTP header `Retry-After`."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

_MAX_DATE_SECONDS: Final = 86_400


def parse_retry_after(value: str) -> float | None:
    """Parse seconds or a date (RFC 9110, 10.2.3) to seconds from now; None if neither, or over a day ahead."""
    try:
        seconds = float(value)
    except ValueError:
        try:
            due = parsedate_to_datetime(value)
        except (ValueError, OverflowError):  # a year of twenty digits
            return None
        seconds = max((due.replace(tzinfo=due.tzinfo or UTC) - datetime.now(UTC)).total_seconds(), 0.0)
        if seconds > _MAX_DATE_SECONDS:
            return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None
