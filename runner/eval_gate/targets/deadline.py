"""Time limit of a case. Waiting for a turn does not count toward the limit or the latency.

Waiting for a retry counts. If the limit is reached in that time, the target was not too slow.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from eval_gate.struct import Struct
from eval_gate.targets.base import TargetError


class RetryState(Struct):
    """Failure after which the case waits for a retry; None while the target is working."""

    failure: TargetError | None = None


_LIMIT: ContextVar[asyncio.Timeout | None] = ContextVar("limit", default=None)
_RETRYING: ContextVar[RetryState | None] = ContextVar("retrying", default=None)
_WAITED: ContextVar[list[float] | None] = ContextVar("waited", default=None)


@contextmanager
def track_case_limit(limit: asyncio.Timeout, retrying: RetryState | None = None) -> Iterator[None]:
    """Set the time limit of the case that runs inside this context. `retrying` notes what its next try waits for."""
    tokens = _LIMIT.set(limit), _RETRYING.set(retrying)
    try:
        yield
    finally:
        _LIMIT.reset(tokens[0])
        _RETRYING.reset(tokens[1])


def note_retry_wait(error: BaseException | None) -> None:
    """Note that the case waits for its next try after this failure; None: that try begins."""
    retrying = _RETRYING.get()
    if retrying is not None:
        retrying.failure = error if isinstance(error, TargetError) else None


@contextmanager
def collect_waits() -> Iterator[list[float]]:
    """Collect the waiting times inside this context, in seconds."""
    waits: list[float] = []
    token = _WAITED.set(waits)
    try:
        yield waits
    finally:
        _WAITED.reset(token)


@contextmanager
def pause_case_clock() -> Iterator[None]:
    """Pause the clock of the case inside this context, unless its time is over already."""
    clock = asyncio.get_running_loop().time
    began, limit, waits = clock(), _LIMIT.get(), _WAITED.get()
    due = limit.when() if limit is not None and not limit.expired() else None
    if limit is not None and due is not None:
        limit.reschedule(None)
    try:
        yield
    finally:
        waited = clock() - began
        if limit is not None and due is not None:
            limit.reschedule(due + waited)
        if waits is not None:
            waits.append(waited)
