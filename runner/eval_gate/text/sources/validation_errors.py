"""Readable messages for pydantic and msgspec validation errors: expected this, got that."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import MsgspecError
from pydantic_core import ErrorDetails, ValidationError

from eval_gate.errors import format_suggestion
from eval_gate.model.limits import MISTAKES
from eval_gate.text.mask import MASK
from eval_gate.text.quoting import looks_like_key, quote_number, quote_value

MAX_MESSAGE: Final = 200
"""Maximum characters of a msgspec message, which may contain an untrusted value."""
_STEP: Final = re.compile(r"\.([^.\[`]+)|\[(\d+)\]")
_TYPE: Final = re.compile(r"`(\w+)`")
_MISSING_OR_UNKNOWN: Final = re.compile(
    r"Object (?:(?P<missing>missing required)|contains unknown) field `(?P<name>.{1,200}?)`"
)
_LENGTH: Final = re.compile(r"Expected `(\w+)` of length ([<>]=) (\d+)")
_RANGE: Final = re.compile(r"Expected `\w+` ([<>]=? .{1,40})")
_SHOWN_TYPES: Final = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "object": "a mapping",
    "str": "text",
}
_EXPECTED_KINDS: Final = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a number that is finite",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "iterable_type": "a list",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "dataclass_type": "a mapping",
    "none_required": "null",
}


def describe_value(value: object) -> str:
    """Describe a JSON value for people: `text "abc"`, `a list`, `null`."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return quote_number(value)
        case str():
            return quote_value(value, prefix="text ")
        case list() | tuple():
            return "a list" if value else "an empty list"
        case dict():
            return "a mapping"
        case _:
            return type(value).__name__


def describe_error(  # noqa: C901, PLR0911, PLR0912 (a table of kinds, each one line)
    detail: ErrorDetails, got: str | None = None
) -> str:
    """Format one problem as `expected …, got …`. `got` stands for a value that must not be shown."""
    kind, context, value = detail["type"], detail.get("ctx", {}), detail["input"]
    near = str(value) if got is None else ""
    got = got or describe_value(value)
    if kind in _EXPECTED_KINDS:
        return f"expected {_EXPECTED_KINDS[kind]}, got {got}"
    match kind:
        case "missing":
            return "is missing"
        case "extra_forbidden":
            return "unknown key"
        case "literal_error" | "enum":
            expected = str(context["expected"])
            allowed = [word.strip("'") for word in expected.replace(" or ", ", ").split(", ")]
            return f"expected {expected}, got {got}{format_suggestion(near, allowed)}"
        case "string_too_short":
            return "must not be empty"
        case "too_short":
            return f"needs at least {context['min_length']}, got {got}"
        case "too_long":
            return f"has more than {context['max_length']:,}"
        case "int_parsing_size":
            return "has too many digits"
        case "string_unicode":
            return "contains bytes that are not UTF-8, or half of a surrogate pair"
        case "greater_than" | "greater_than_equal" | "less_than" | "less_than_equal":
            limit = next(iter(context.values()))
            relation = {"greater_than": ">", "greater_than_equal": ">=", "less_than": "<", "less_than_equal": "<="}
            return f"must be {relation[kind]} {limit}, got {got}"
        case "string_too_long":
            return f"is longer than {context['max_length']} characters"
        case "string_pattern_mismatch":
            pattern = str(context["pattern"])
            return "contains control characters" if pattern.startswith("^[^\\x00-\\x1f") else f"must match {pattern}"
        case "value_error":
            return str(context["error"])
        case _:  # pydantic's own words speak of its types, and of inputs: they are for who wrote the shape
            return f"unexpected value, got {got}"


def describe_union_errors(details: Sequence[ErrorDetails]) -> str:
    """Describe what is wrong with a value that may be of several kinds, from one error per kind."""
    kinds = dict.fromkeys(_EXPECTED_KINDS.get(detail["type"], "") for detail in details)
    if not all(kinds):
        return next(describe_error(detail) for detail in details if detail["type"] not in _EXPECTED_KINDS)
    return f"expected {' or '.join(kinds)}, got {describe_value(details[0]['input'])}"


def list_errors(error: ValidationError) -> list[ErrorDetails]:
    """List the errors, or only their number if they are very many. Naming an error costs a thousand bytes."""
    if error.error_count() <= MISTAKES:
        return error.errors(include_url=False)
    message = f"{error.error_count():,} mistakes, too many to list: is this the right kind of file?"
    return [ErrorDetails(type="value_error", loc=(), msg=message, input=None, ctx={"error": message})]


def describe_mismatch(error: MsgspecError) -> tuple[tuple[str | int, ...], str]:
    """Describe where and how a document first departs from its shape, in the words of `describe_error`.

    The place ends before a key of a mapping that may have any keys: msgspec does not name it.
    """
    message, _, where = str(error).partition(" - at `$")
    place: list[str | int] = []
    for key, index in _STEP.findall(where.partition("[...]")[0].removesuffix("`")):
        place.append(int(index) if index else key)
    if match := _MISSING_OR_UNKNOWN.fullmatch(message):
        return (*place, match["name"]), "is missing" if match["missing"] else "unknown key"
    if match := _LENGTH.fullmatch(message):
        kind, relation, number = match.groups()
        if relation == ">=":
            return tuple(place), "must not be empty" if number == "1" else f"needs at least {number}"
        return tuple(
            place
        ), f"is longer than {number} characters" if kind == "str" else f"has more than {int(number):,}"
    if match := _RANGE.fullmatch(message):
        return tuple(place), f"must be {match[1]}"
    words = _TYPE.sub(lambda match: _SHOWN_TYPES.get(match[1], match[1]), message)
    return tuple(place), f"{words[:1].lower()}{words[1:MAX_MESSAGE]}"


def format_field_path(steps: Sequence[str | int]) -> str:
    """Format a path as `cases[2].expect.toolsCalled`, with `***` for a step that looks like a key."""
    masked = (MASK if isinstance(step, str) and looks_like_key(step) else step for step in steps)
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in masked)
    return path.removeprefix(".")
