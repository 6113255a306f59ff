"""What every value is held to where it enters, before anything is run: texts, places and numbers."""

from __future__ import annotations

import math

from eval_gate.files.place import NUL, why_no_path


def check_text(text: str) -> str:
    """The text. Raises ValueError for one with a NUL: no program, file or address can be given it."""
    if "\0" in text:
        raise ValueError(NUL)
    return text


def check_place(text: str) -> str:
    """The path or address. Raises ValueError for one that no system takes."""
    why = why_no_path(text)
    if why is not None:
        raise ValueError(why)
    return text


def has_infinite(value: object) -> bool:
    """Whether a number in it, at any depth, is infinite or none (NaN): JSON has no such numbers."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, float):
            if not math.isfinite(one):
                return True
        elif isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list | tuple):
            waiting += one
    return False
