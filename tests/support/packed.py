"""A few thousand bytes that stand for gigabytes."""

from __future__ import annotations

import gzip
import zlib
from functools import cache


@cache
def twice_packed() -> bytes:
    """Two gigabytes of one letter, packed, and that packed again: about three kilobytes."""
    inner = zlib.compressobj(9, wbits=31)
    data = b"".join([inner.compress(b"a" * 1_000_000) for _ in range(2_000)] + [inner.flush()])
    return gzip.compress(data, 9)


@cache
def once_packed() -> bytes:
    """A hundred megabytes of one letter."""
    return gzip.compress(b"a" * 100_000_000, 9)
