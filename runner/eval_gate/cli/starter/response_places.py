"""Finds where the text and the tool calls of a response may be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.model.limits import CALL_NAME
from eval_gate.struct import FrozenStruct

MAX_PLACES: Final = 50
_MAX_DEPTH: Final = 8
_MAX_MEMBERS: Final = 100
_PLAIN_KEY: Final = re.compile(r"[\w @/:-]{1,100}")
"""Keys that a path can have as they are. Others may be data, and could be placeholders in a file."""


class TextPlace(FrozenStruct):
    """A text in a response, and the path to it."""

    path: str
    text: str


class CallPlace(FrozenStruct):
    """A list in a response that may be its tool calls, and the settings with which it is read."""

    path: str
    names: tuple[str, ...]
    settings: Mapping[str, JsonValue]
    is_certain: bool
    """Whether each member has the fields that calls have by default: a name, and a mapping of arguments."""


def find_texts(document: JsonValue, calls: str | None) -> tuple[TextPlace, ...]:
    """Find the texts of a response, without those in the list of tool calls at the path `calls`."""
    found: list[TextPlace] = []
    for path, value in _walk(document, ""):
        inside = calls is not None and path.startswith(calls) and path[len(calls) : len(calls) + 1] in {"", ".", "["}
        if isinstance(value, str) and value.strip() and not inside and len(found) < MAX_PLACES:
            found.append(TextPlace(path or "$", value))
    return tuple(found)


def find_calls(document: JsonValue) -> tuple[CallPlace, ...]:
    """Find the lists whose members have a name and a mapping of arguments each."""
    found: list[CallPlace] = []
    for path, value in _walk(document, ""):
        members = value if isinstance(value, list) else []
        mappings = [one for one in members if isinstance(one, dict)]
        if path and mappings and len(mappings) == len(members) and len(found) < MAX_PLACES:
            found += _read_list(path, mappings)
    return tuple(found)


def _read_list(path: str, members: list[dict[str, JsonValue]]) -> Iterator[CallPlace]:
    """Yield the list once for each pair of fields that can be the name and the arguments."""
    shared = [key for key in members[0] if all(key in one for one in members) and _PLAIN_KEY.fullmatch(key)]
    names = [key for key in shared if all(_is_name(one[key]) for one in members)]
    arguments = [key for key in shared if all(isinstance(one[key], dict) for one in members)]
    if "name" in names:
        names = ["name"]
    if "params" in arguments:
        arguments = ["params"]
    for name in names:
        for argument in arguments[:1]:
            settings = {"toolCallsPath": path, "nameField": name, "argsField": argument}
            usual = {"toolCallsPath": "toolCalls", "nameField": "name", "argsField": "params"}
            more = {key: value for key, value in settings.items() if value != usual[key]}
            called = tuple(str(one[name]) for one in members)
            yield CallPlace(path, called, more, is_certain=name == "name" and len(arguments) == 1)


def _is_name(value: JsonValue) -> bool:
    return isinstance(value, str) and 0 < len(value) <= CALL_NAME


def _walk(value: JsonValue, path: str, depth: int = 0) -> Iterator[tuple[str, JsonValue]]:
    """Yield each value with its path, of a list that of the last member."""
    yield path, value
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, dict):
        for key, member in list(value.items())[:_MAX_MEMBERS]:
            if _PLAIN_KEY.fullmatch(key):
                yield from _walk(member, f"{path}.{key}" if path else key, depth + 1)
    elif isinstance(value, list) and value:
        yield from _walk(value[-1], f"{path}[-1]", depth + 1)
