"""How much a slow proof does: all of it where EVAL_GATE_TEST_FULL is set, as on main; else two fifths of it."""

from __future__ import annotations

import os
from typing import Final

FULL: Final = bool(os.environ.get("EVAL_GATE_TEST_FULL"))


def size(full: int) -> int:
    """How many of so many examples, or drawn pull requests, are tried here."""
    return full if FULL else max(1, full * 2 // 5)
