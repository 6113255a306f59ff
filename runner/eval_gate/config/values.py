"""Validation of single values: texts, paths and numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from eval_gate.files.file_paths import NUL, find_path_problem
from eval_gate.text.json_values import iter_leaves


def check_text(text: str) -> str:
    """Return the text. Raises ValueError for a NUL, which no program, file or address accepts."""
    if "\0" in text:
        raise ValueError(NUL)
    return text


def check_place(text: str) -> str:
    """Return the path or address. Raises ValueError for one that no system accepts."""
    why = find_path_problem(text)
    if why is not None:
        raise ValueError(why)
    return text


def has_infinite(value: Any) -> bool:
    """Whether a number in it, at any depth, is infinite or none (NaN): JSON has no such numbers."""
    return any(isinstance(leaf, float) and not math.isfinite(leaf) for _, leaf in iter_leaves(value))


def find_boolean_mistake(shape: object) -> Literal["int_type", "float_type"] | None:
    """Return pydantic's error type for true or false in a place where a number belongs.

    Python takes true and false for 1 and 0. Return None if a value of this type may be true or false, or if it is
    neither a number nor a list of numbers.
    """
    kinds = set(_iter_types(shape))
    if bool in kinds or kinds.isdisjoint({int, float}):
        return None
    return "float_type" if float in kinds else "int_type"


def _iter_types(shape: object) -> Iterator[type]:
    """Yield the types that a value of this shape or a member of its lists may have, without mappings."""
    if isinstance(shape, type) and not get_args(shape):
        yield shape
    elif get_origin(shape) is not dict:
        for one in get_args(shape):
            yield from _iter_types(one)
