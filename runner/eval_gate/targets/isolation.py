"""Isolation: a trial or re-run shares no connection and no cached response with the executions before it.

Executions that share a connection, a replica behind it or a cache tend to have the same result, so a second one would
say little. The engine enters the isolation around a whole execution, scoring included; everything below that sends
requests asks here. A program is started anew for every execution anyway, and a re-run has its own `{{session}}`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Final

_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
_HEADERS: ContextVar[Mapping[str, str]] = ContextVar("isolation_headers", default=_NO_HEADERS)


@contextmanager
def isolate_execution() -> Iterator[None]:
    """Isolate everything that is requested inside this context from earlier executions."""
    token = _HEADERS.set({"cache-control": "no-cache", "x-eval-gate-nonce": uuid.uuid4().hex})
    try:
        yield
    finally:
        _HEADERS.reset(token)


def is_isolated() -> bool:
    """Whether the current execution needs connections of its own."""
    return bool(_HEADERS.get())


def get_isolation_headers() -> Mapping[str, str]:
    """Return the headers with which caches let a request through, in lower case; none for a first execution."""
    return _HEADERS.get()
