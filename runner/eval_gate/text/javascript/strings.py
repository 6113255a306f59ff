"""Convert values to text as JavaScript's `String(value)` and `JSON.stringify` do.

Source of the rules: ECMA-262, Number::toString; tool-forge behaviour 1.5 and 1.7.
"""

from __future__ import annotations

import json
import math
from typing import Final

from eval_gate.model.base import JsonValue

_quote_string: Final = json.JSONEncoder(ensure_ascii=False).encode
"""Made once: `json.dumps` makes one at every call."""


def format_js_number(value: float) -> str:
    """`String(number)`: `4` for 4.0, `1e-7`, `1e+21`, `0` for -0.0; integers beyond 2^53 lose digits as they do."""
    number = _to_double(value)
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    digits, exponent = _find_shortest_digits(abs(number))
    point = exponent + 1  # digits before the decimal point
    if len(digits) <= point <= 21:
        return f"{sign}{digits}{'0' * (point - len(digits))}"
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{exponent:+d}"


def _to_double(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _find_shortest_digits(number: float) -> tuple[str, int]:
    """Find the fewest digits that identify this double, and the exponent of the first one."""
    mantissa, _, exponent = f"{number!r}e".partition("e")
    whole, _, fraction = mantissa.partition(".")
    shift = int(exponent.rstrip("e") or 0)
    digits = (whole + fraction).lstrip("0")
    leading = len(whole) - 1 if whole.strip("0") else -(len(fraction) - len(fraction.lstrip("0")) + 1)
    return digits.rstrip("0") or "0", leading + shift


def format_js_string(value: JsonValue) -> str:
    """`String(value)`: arrays joined with commas and null members empty, objects `[object Object]`."""
    match value:
        case str():
            return value
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return format_js_number(value)
        case list():
            return ",".join("" if member is None else format_js_string(member) for member in value)
        case _:
            return "[object Object]"


def as_text(value: JsonValue) -> str:
    """Convert a value to text: a text as it is, everything else as JSON."""
    return value if isinstance(value, str) else dump_compact_json(value)


def dump_compact_json(value: JsonValue) -> str:
    """`JSON.stringify(value)`: no blanks, non-ASCII kept, numbers as `format_js_number` writes them."""
    if type(value) is str:  # as most values are
        return _quote_string(value)
    match value:
        case bool() | None:
            return format_js_string(value)
        case int() | float():
            return format_js_number(value) if math.isfinite(_to_double(value)) else "null"
        case str():
            return _quote_string(value)
        case list():
            return f"[{','.join([dump_compact_json(member) for member in value])}]"
        case _:
            members = [f"{_quote_string(key)}:{dump_compact_json(member)}" for key, member in value.items()]
            return f"{{{','.join(members)}}}"
