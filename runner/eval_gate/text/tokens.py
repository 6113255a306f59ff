"""Tokens such as `{{seed:totals.value}}` in expected values (tool-forge runner contract, Template Token Resolution)."""

from __future__ import annotations

import re
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.struct import FrozenStruct
from eval_gate.text.dotted_path import PathError, walk
from eval_gate.text.javascript.strings import compact_json, js_string

_TOKEN: Final = re.compile(r"\{\{(seed|snapshot):([^{}]*)\}\}")
_ANY_SOURCE: Final = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*:[^{}]*\}\}")
_INDEX: Final = re.compile("[0-9]{1,18}")
"""No list is so long that more digits could lead anywhere."""
SOURCES: Final = ("seed", "snapshot")


class TokenData(FrozenStruct):
    """What tokens refer to. A source that was not configured is None: all its tokens are unresolved."""

    seed: JsonValue = None
    snapshot: JsonValue = None

    def of(self, source: str) -> JsonValue:
        """What tokens of this source refer to: `seed`, or else the snapshot."""
        return self.seed if source == "seed" else self.snapshot


class Resolved(FrozenStruct):
    """A value with its tokens replaced. `text` is None when at least one of them is unresolved."""

    text: str | None
    unresolved: tuple[str, ...] = ()


def find_tokens(text: str) -> tuple[str, ...]:
    """Every seed and snapshot token in the text, as written."""
    return tuple(match[0] for match in _TOKEN.finditer(text))


def snapshot_tokens(text: str) -> tuple[str, ...]:
    """Every snapshot token in the text, as written."""
    return tuple(match[0] for match in _TOKEN.finditer(text) if match[1] == "snapshot")


def unknown_sources(text: str) -> tuple[str, ...]:
    """What looks like a token but has another source, such as `{{env:HOME}}`: it stays literal text."""
    return tuple(match[0] for match in _ANY_SOURCE.finditer(text) if match[1] not in SOURCES)


def resolve(text: str, data: TokenData) -> Resolved:
    """Replace every token by its value's text; one unresolved token leaves the whole value unresolved (A-07)."""
    if "{{" not in text:
        return Resolved(text)
    unresolved: list[str] = []

    def replacement(match: re.Match[str]) -> str:
        found = _walk(data.of(match[1]), match[2])
        if found is None:
            unresolved.append(match[0])
            return ""
        return value_text(found)

    replaced = _TOKEN.sub(replacement, text)
    return Resolved(None, tuple(unresolved)) if unresolved else Resolved(replaced)


def resolve_members(text: str, data: TokenData) -> tuple[str, ...] | None:
    """The members' texts when the whole text is one token that leads to a list, else None (for `oneOf`)."""
    match = _TOKEN.fullmatch(text)
    found = _walk(data.of(match[1]), match[2]) if match else None
    return tuple(value_text(member) for member in found) if isinstance(found, list) else None


def value_text(value: JsonValue) -> str:
    """The text a resolved value stands for: strings as they are, objects and arrays as compact JSON."""
    return compact_json(value) if isinstance(value, dict | list) else js_string(value)


def _walk(data: JsonValue, path: str) -> JsonValue:
    """The value at `path`, or None when any step leads nowhere. Own data only: no `.length`, no negative index."""
    try:
        return walk(data, path.split("."), _INDEX)
    except PathError:
        return None
