"""Find where the text and the tool calls of a response may be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.model.limits import CALL_NAME
from eval_gate.struct import FrozenStruct

MAX_PLACES: Final = 50
_MAX_DEPTH: Final = 8
_MAX_MEMBERS: Final = 100
_MAX_PAIRS: Final = 3
_PLAIN_KEY: Final = re.compile(r"[\w @/:-]{1,100}")
"""Keys that a path can have unquoted. Others may be data, and could be placeholders in a file."""
SAMPLE_TEXT: Final = "…"
"""Stands for any text in a response that is built from a description."""
_NAME: Final = re.compile(rf"{SAMPLE_TEXT}|[A-Za-z_][\w./:-]*")
_USUAL: Final = {"toolCallsPath": "toolCalls", "nameField": "name", "argsField": "params"}


class TextPlace(FrozenStruct):
    """A text in a response, and the path to it."""

    path: str
    text: str

    @property
    def label(self) -> str:
        """What a person sees of it."""
        return self.path if self.text == SAMPLE_TEXT else f'{self.path}: "{self.text[:100]}"'


class CallPlace(FrozenStruct):
    """A list in a response that may be its tool calls, and the settings with which it is read."""

    names: tuple[str, ...]
    settings: Mapping[str, JsonValue]

    @property
    def path(self) -> str:
        """The path to the list."""
        return str(self.settings["toolCallsPath"])

    @property
    def label(self) -> str:
        """What a person sees of it."""
        name, arguments = self.settings["nameField"], self.settings["argsField"]
        return f"tool calls in {self.path}, {name} and {arguments}: {', '.join(self.names)[:100]}"


class Reading(FrozenStruct):
    """One way to read a response: the settings, what the person sees, and the words of a command that choose it."""

    label: str
    settings: Mapping[str, JsonValue]
    option: tuple[str, ...]


def list_readings(entry: Mapping[str, JsonValue], document: JsonValue) -> list[Reading]:
    """List the ways to read a response that agree with the settings of `entry`; at least one."""
    lists = find_calls(document)
    fitting = [one for one in lists if all(entry.get(key, value) == value for key, value in one.settings.items())]
    texts = find_texts(document, [str(entry.get("toolCallsPath", "toolCalls")), *(one.path for one in lists)])
    if "responsePath" in entry or any(one.path == "response" for one in texts):
        texts = ()
    readings = []
    for text, calls in product(texts or (None,), fitting or (None,)):
        settings = {} if calls is None else {key: one for key, one in calls.settings.items() if one != _USUAL[key]}
        option = {} if calls is None or len(fitting) == 1 else dict(calls.settings)
        if text is not None:
            settings["responsePath"] = text.path
            option |= {"responsePath": text.path} if len(texts) > 1 else {}
        words = tuple(word for key, value in option.items() for word in ("--set", f"{key}={value}"))
        readings.append(Reading(", ".join(one.label for one in (text, calls) if one is not None), settings, words))
    return readings


def find_texts(document: JsonValue, lists: Sequence[str]) -> tuple[TextPlace, ...]:
    """Find the texts of a response, without those in the lists at these paths."""
    places: list[TextPlace] = []
    for path, value in _walk(document, ""):
        inside = any(path.startswith(one) and path[len(one) : len(one) + 1] in {"", ".", "["} for one in lists)
        if isinstance(value, str) and value.strip() and not inside and len(places) < MAX_PLACES:
            places.append(TextPlace(path or "$", value))
    return tuple(places)


def find_calls(document: JsonValue) -> tuple[CallPlace, ...]:
    """Find the lists whose members have a name and a mapping of arguments each."""
    places: list[CallPlace] = []
    for path, value in _walk(document, ""):
        members = value if isinstance(value, list) else []
        mappings = [one for one in members if isinstance(one, dict)]
        if path and mappings and len(mappings) == len(members) and len(places) < MAX_PLACES:
            places += _read_list(path, mappings)
    return tuple(places)


def _read_list(path: str, members: list[dict[str, JsonValue]]) -> Iterator[CallPlace]:
    """Yield the list once for each pair of fields that can be the name and the arguments."""
    shared = [key for key in members[0] if all(key in one for one in members) and _PLAIN_KEY.fullmatch(key)]
    names = [key for key in shared if all(_is_name(one[key]) for one in members)]
    arguments = [key for key in shared if all(isinstance(one[key], dict) for one in members)]
    for name in [one for one in names if one == _USUAL["nameField"]] or names:
        for argument in ([one for one in arguments if one == _USUAL["argsField"]] or arguments)[:_MAX_PAIRS]:
            tools = tuple(str(one[name]) for one in members)
            yield CallPlace(tools, {"toolCallsPath": path, "nameField": name, "argsField": argument})


def _is_name(value: JsonValue) -> bool:
    return isinstance(value, str) and len(value) <= CALL_NAME and _NAME.fullmatch(value) is not None


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
