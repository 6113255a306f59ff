"""Keeps Python from looking for rings of objects while the records of many cases are made and judged.

None of them is in a ring, and each look goes through all of them, again and again the more there are.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """No such look until the end of the block, and none at what is there by then: it lives until the process ends."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if before:
            gc.enable()
