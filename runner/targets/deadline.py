"""Time that a case waits for its turn is not the target's: it counts neither as latency nor against the limit."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_LIMIT: ContextVar[asyncio.Timeout | None] = ContextVar("limit", default=None)
_WAITED: ContextVar[list[float] | None] = ContextVar("waited", default=None)


@contextmanager
def counted_against(limit: asyncio.Timeout) -> Iterator[None]:
    """The limit of the case that runs inside."""
    token = _LIMIT.set(limit)
    try:
        yield
    finally:
        _LIMIT.reset(token)


@contextmanager
def measured() -> Iterator[list[float]]:
    """Collects the seconds that were waited inside."""
    waits: list[float] = []
    token = _WAITED.set(waits)
    try:
        yield waits
    finally:
        _WAITED.reset(token)


@contextmanager
def not_counted() -> Iterator[None]:
    """Inside, the clock of the case stands still."""
    clock = asyncio.get_running_loop().time
    began, limit, waits = clock(), _LIMIT.get(), _WAITED.get()
    due = limit.when() if limit else None
    if limit is not None:
        limit.reschedule(None)
    try:
        yield
    finally:
        waited = clock() - began
        if limit is not None and due is not None:
            limit.reschedule(due + waited)
        if waits is not None:
            waits.append(waited)
