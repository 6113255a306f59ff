"""Dotted paths into JSON values, such as `$.response.items.0.status` or `lines[0].amount`.

The former are those of Agent Evals ("Assertion Types", jsonPath; agent-evals behaviour 3.3): an optional `$` or `$.` at
the beginning, then keys between dots; digits index lists, and so does `[0]`. Nothing else of JSONPath is understood.
Tokens take the same walk.

The latter are those of AgentV (4.42.4, fields of `field-accuracy` and `args_match`) and of `fields` of tool-forge: a
missing field is no mistake, so the step that fails is not reported. A list or a text has a `length`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from eval_gate.model.base import JsonValue

_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,8}")
_QUERY: Final = re.compile(r"\.\.|(?:^|\.)\*(?:$|\.)")
_OTHER: Final = re.compile(r"[^0-9]")
_MAX_SHOWN: Final = 80
NOT_FOUND: Final[Any] = object()
"""Stands for the value of a path that does not exist."""
WHOLE_BODY: Final = "$"
"""Stands for the whole JSON of an agent where fields are stored by path."""
_SEPARATORS: Final = re.compile(r"[.\[\]]")
FIELD_PATTERN: Final = r"(?!\$(?:[.\[]|$))(?:[^.\[\]*]+|\[[0-9]{1,9}\])(?:\.[^.\[\]*]+|\[[0-9]{1,9}\])*"
"""Pattern of a path that `find_by_path` takes as it is meant: without JSONPath's `$` and wildcards."""


class PathError(Exception):
    """A path that does not exist in the value; the message names the step that fails."""


def looks_like_jsonpath(path: str) -> bool:
    """Whether a path probably means JSONPath's wildcards, filters or descent, which are plain keys here."""
    # no pattern for what stands in brackets: it would read to the end of the path for every one that is open
    brackets = (part.partition("[")[2] for part in path.split("]")[:-1])
    return _QUERY.search(path) is not None or any(_OTHER.search(inside) for inside in brackets)


def get_by_path(value: JsonValue, path: str) -> JsonValue:
    """Return the value at `path`. Raises PathError if a step of it does not exist."""
    return follow_segments(value, _split_path(path), _INDEX)


def follow_segments(value: JsonValue, segments: Iterable[str], index: re.Pattern[str]) -> JsonValue:
    """Return the value to which these segments lead.

    Each segment is a key or an index, with optional indexes in brackets behind it. `index` is the pattern of a
    list index. Raises PathError.
    """
    walked = "$"
    for segment in segments:
        for step in _split_segment(segment, value, index):
            value = _get_child(value, step, walked, index)
            walked = f"{walked}.{step}"
    return value


def _split_path(path: str) -> list[str]:
    if path == "$":
        return []
    if path.startswith("$["):
        path = path[1:]
    return path.removeprefix("$.").split(".")


def _split_segment(segment: str, value: JsonValue, index: re.Pattern[str]) -> list[str]:
    """`key[0][1]` is a key and two indexes, which fit `index`; but a key of `value` that is spelled so comes first."""
    key, bracket, rest = segment.partition("[")
    indexes = rest.removesuffix("]").split("][")
    written_so = isinstance(value, dict) and segment in value
    if written_so or not bracket or not rest.endswith("]") or "]" in key or not all(map(index.fullmatch, indexes)):
        return [segment]
    return [key, *indexes] if key else indexes


def _get_child(value: JsonValue, step: str, walked: str, index: re.Pattern[str]) -> JsonValue:
    label, place = f'"{_truncate_step(step)}"', _truncate_step(walked)
    if isinstance(value, dict):
        if step not in value:
            raise PathError(f"{place} has no {label}")
        return value[step]
    if isinstance(value, list):
        if index.fullmatch(step) is None:
            raise PathError(f"{label} is not an index of the list at {place}")
        if int(step) >= len(value):
            raise PathError(f"the list at {place} has {len(value)} elements, but no {label}")
        return value[int(step)]
    raise PathError(f"{_describe_kind(value)} at {place} has no {label}")


def _describe_kind(value: JsonValue) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "the boolean"
        case str():
            return "the text"
        case _:
            return "the number"


def _truncate_step(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"


def find_by_path(value: JsonValue, path: str) -> JsonValue:
    """Find the value at the path, or return `NOT_FOUND`."""
    for step in _SEPARATORS.split(path):
        if not step:
            continue
        if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        elif isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list | str) and step == "length":
            value = len(value)
        else:
            value = NOT_FOUND
            break
    return value
