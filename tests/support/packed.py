"""A few thousand bytes that stand for gigabytes."""

from __future__ import annotations

import gzip
import zlib
from functools import cache


@cache
def twice_packed() -> bytes:
    """Four hundred megabytes of one letter, packed, and that packed again: about two kilobytes."""
    return gzip.compress(_packed(400, wbits=31), 9)


@cache
def once_packed() -> bytes:
    """Four hundred megabytes of one letter."""
    return _packed(400, wbits=31)


@cache
def deflated() -> bytes:
    """Four hundred megabytes of one letter, as zlib packs them."""
    return _packed(400, wbits=15)


def _packed(megabytes: int, wbits: int) -> bytes:
    packer = zlib.compressobj(9, wbits=wbits)
    return b"".join([*(packer.compress(b"a" * 1_000_000) for _ in range(megabytes)), packer.flush()])
