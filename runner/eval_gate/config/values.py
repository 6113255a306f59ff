"""Validation of single values: texts, paths and numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, get_args, get_origin

from eval_gate.files.file_paths import NUL, find_path_problem


def check_text(text: str) -> str:
    """The text. Raises ValueError for one with a NUL: no program, file or address can be given it."""
    if "\0" in text:
        raise ValueError(NUL)
    return text


def check_place(text: str) -> str:
    """The path or address. Raises ValueError for one that no system takes."""
    why = find_path_problem(text)
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


def find_boolean_mistake(shape: object) -> Literal["int_type", "float_type"] | None:
    """What pydantic calls true or false where a number belongs, which Python takes for 1 or 0.

    None where a value of this type may be true or false, or is no number and no list of numbers.
    """
    kinds = set(_iter_types(shape))
    if bool in kinds or kinds.isdisjoint({int, float}):
        return None
    return "float_type" if float in kinds else "int_type"


def _iter_types(shape: object) -> Iterator[type]:
    """The types that it may be, those of a list's members among them."""
    if isinstance(shape, type) and not get_args(shape):
        yield shape
    elif get_origin(shape) is not dict:
        for one in get_args(shape):
            yield from _iter_types(one)
