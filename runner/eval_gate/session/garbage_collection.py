"""Keeps Python from looking for rings of objects while the program is loaded, and records are made and judged.

None of that is in a ring, and each look goes through all of it, again and again the more there is: a sixth of the time
of ten thousand cases. While targets are asked, which may go on for hours, there are looks, but not often.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final


@contextmanager
def without_collection() -> Iterator[None]:
    """No such look until the end of the block, and none at what is there by then: it lives until the process ends."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if before:
            gc.enable()


_SELDOM: Final = 10_000, 10, 10
"""New objects before the youngest are looked at, and how much rarer the looks at older ones are. Python's own first
number is 700, three cases; a look at 10,000 takes half a millisecond, which no answer's time shows."""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Looks for rings, but seldom; what is there at the beginning lives until the process ends and is not looked at."""
    before, usual = gc.isenabled(), gc.get_threshold()
    gc.freeze()
    gc.set_threshold(*_SELDOM)
    gc.enable()
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        if not before:
            gc.disable()
