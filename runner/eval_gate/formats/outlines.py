"""Lenient outlines of files that a strict parser refuses, to find the format that they are meant for."""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.struct import FrozenStruct

_MAX_EVENTS: Final = 400_000
"""Maximum values, and ends of lists and mappings."""
_MAX_LINES: Final = 20_000
_MAX_DEPTH: Final = 6
"""No format needs more levels to be recognized."""
_TOKEN: Final = re.compile(
    r"""//[^\n]*|/\*.*?(?:\*/|\Z)|"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|[{}\[\],:]|[^\s{}\[\],:"']+""", re.DOTALL
)


_UNREADABLE: Final = "\N{REPLACEMENT CHARACTER}"
"""Replacement of bytes that are not UTF-8."""


class Outline(FrozenStruct):
    """Documents of a refused file, with every scalar as text, and whether they are complete."""

    documents: tuple[JsonValue, ...]
    is_complete: bool = True


def outline_yaml(data: bytes) -> Outline:
    """Outline YAML, also with tags, duplicate keys, several documents or too many values."""
    import yaml
    from yaml import events

    built, anchors = _OutlineBuilder(), dict[str, JsonValue]()
    try:
        for number, event in enumerate(yaml.parse(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))):
            if number == _MAX_EVENTS:
                return Outline(tuple(built.documents), is_complete=False)
            if isinstance(event, events.CollectionEndEvent):
                built.close_container()
            elif isinstance(event, events.AliasEvent):
                built.place_value(anchors.get(event.anchor or ""))
            elif isinstance(event, events.ScalarEvent):
                built.place_value(event.value)
            elif isinstance(event, events.CollectionStartEvent):
                opened = built.open_container({} if isinstance(event, events.MappingStartEvent) else [])
                anchors |= {event.anchor: opened} if event.anchor else {}
    except (yaml.YAMLError, UnicodeDecodeError):
        return Outline(tuple(built.documents), is_complete=False)
    return Outline(tuple(built.documents))


def outline_json(data: bytes) -> Outline:
    """Outline JSON, also with comments, trailing commas and words without quotes, as in JSON5."""
    built, has_containers = _OutlineBuilder(), False
    whole = data.decode("utf-8-sig", "replace")
    for token in islice(_TOKEN.finditer(whole), 2 * _MAX_EVENTS):
        match token[0]:
            case "{" | "[" as sign:
                has_containers = True
                built.open_container({} if sign == "{" else [])
            case "}" | "]":
                if not built.depth:
                    return Outline(tuple(built.documents), is_complete=False)
                built.close_container()
            case ",":
                built.end_member()
            case text if not text.startswith((":", "//", "/*")):
                built.place_value(text.strip("\"'"))
    is_complete = has_containers and not built.depth and _UNREADABLE not in whole
    return Outline(tuple(built.documents), is_complete=is_complete)


def outline_lines(data: bytes) -> Outline:
    """Outline JSON lines, as one document with a list `cases`, without broken lines."""
    lines = islice((line for line in data.split(b"\n") if line.strip()), _MAX_LINES)
    is_text = _UNREADABLE not in data.decode("utf-8-sig", "replace") and b"\0" not in data
    return Outline(({"cases": [one for line in lines for one in outline_json(line).documents]},), is_complete=is_text)


class _OutlineBuilder:
    """Builder of documents from a scanner's events, without recursion."""

    def __init__(self) -> None:
        self.documents: list[JsonValue] = []
        self._open: list[JsonValue] = []
        self._keys: list[str | None] = []

    @property
    def depth(self) -> int:
        """The number of lists and mappings that are open."""
        return len(self._open)

    def open_container(self, container: JsonValue) -> JsonValue:
        """Open a list or mapping, and return it; a repeated key continues the first one."""
        opened = self.place_value(container)
        self._open.append(opened)
        self._keys.append(None)
        return opened

    def close_container(self) -> None:
        self._open.pop()
        self._keys.pop()

    def end_member(self) -> None:
        if self._keys:
            self._keys[-1] = None

    def place_value(self, value: JsonValue) -> JsonValue:
        """Add a key or value to the open list or mapping, and return the container of its members."""
        if not self._open:
            self.documents.append(value)
            return value
        parent = self._open[-1]
        if isinstance(parent, list):
            parent += [value] if len(self._open) < _MAX_DEPTH else []
        elif isinstance(parent, dict):
            key, self._keys[-1] = self._keys[-1], None
            if key is None:
                self._keys[-1] = value if isinstance(value, str) else ""
            elif key == "<<" and isinstance(value, dict):
                parent |= {name: one for name, one in value.items() if name not in parent}
            elif isinstance(value, dict | list) and type(parent.get(key)) is type(value):
                return parent[key]
            elif len(self._open) < _MAX_DEPTH and not parent.get(key):
                parent[key] = value
        return value
