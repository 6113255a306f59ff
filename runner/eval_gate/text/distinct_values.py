"""Formatting of two values so that different values never look the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from eval_gate.text.escape import truncate_text

Value = TypeVar("Value")
_ALL_DIGITS: Final = 17
"""Digits that distinguish any two floating-point numbers."""
_LIMIT_DIGITS: Final = 6
"""Decimals of a limit that are shown."""
_MAX_WHOLE_NUMBER: Final = 1e15
"""Below it whole numbers are shown in all of their digits."""
_CONTEXT_CHARACTERS: Final = 20
"""Characters that are shown before the first one in which two texts differ."""


def format_distinct_decimals(one: float, other: float, digits: int, scale: float = 1) -> tuple[str, str]:
    """Format two numbers times `scale` with `digits` decimals, or more if different numbers would look equal."""
    return _format_distinctly(one, other, _iter_formatters("f", digits, scale))


def format_distinct_numbers(one: float, other: float) -> tuple[str, str]:
    """Format two numbers with six digits, whole ones with all, or more digits if different numbers would look equal."""
    return _format_distinctly(one, other, _iter_formatters("g", 6))


def format_value_and_limit(value: float, limit: float, digits: int, scale: float = 1) -> tuple[str, str]:
    """Format a value and its limit, both times `scale`, so that rounding does not hide which is larger.

    The limit is exact. The value has `digits` decimals, or more if it takes more to be on its side of the limit.
    """
    exact, side = round(limit * scale, _LIMIT_DIGITS), (value > limit) - (value < limit)
    own = next((n for n in range(digits, _LIMIT_DIGITS) if round(exact, n) == exact), _LIMIT_DIGITS)
    for n in range(digits, _ALL_DIGITS):
        near = round(value * scale, n)
        if (near > exact) - (near < exact) == side:
            return f"{near:.{n}f}", f"{exact:.{own}f}"
    return f"{value * scale:.{digits}f}", f"{exact:.{own}f}"


def format_distinct_values(one: Value, other: Value, form: Callable[[Value], str], most: int) -> tuple[str, str]:
    """Format both, else as ASCII JSON from shortly before where they differ; at most `most` characters of each."""
    pair = form(one), form(other)
    if pair[0] != pair[1] or one == other:
        return pair
    texts = json.dumps(one), json.dumps(other)
    first_difference = next((at for at, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), 0)
    begin = max(first_difference - _CONTEXT_CHARACTERS, 0)
    first, second = (f"…{text[begin:]}" if begin else text for text in texts)
    return truncate_text(first, most), truncate_text(second, most)


def _format_distinctly(one: float, other: float, forms: Iterable[Callable[[float], str]]) -> tuple[str, str]:
    """Format both in the first of these forms in which they differ, else in the very first."""
    pairs = [(form(one), form(other)) for form in forms]
    return next((pair for pair in pairs if pair[0] != pair[1]), pairs[0])


def _iter_formatters(kind: str, digits: int, scale: float = 1) -> Iterator[Callable[[float], str]]:
    """Yield formatters of numbers times `scale`, each with one more digit than the one before."""
    for n in range(digits, _ALL_DIGITS + 1):

        def form(number: float, spec: str = f".{n}{kind}") -> str:
            whole = kind == "g" and scale == 1 and abs(number) < _MAX_WHOLE_NUMBER and float(number).is_integer()
            return f"{number:.0f}" if whole else format(number * scale, spec)

        yield form
