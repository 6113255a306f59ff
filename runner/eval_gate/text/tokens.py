"""Resolve tokens such as `{{seed:totals.value}}` in expected values (tool-forge runner contract)."""

from __future__ import annotations

import re
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.struct import FrozenStruct
from eval_gate.text.dotted_path import PathError, follow_segments
from eval_gate.text.javascript.strings import dump_compact_json, format_js_string

_TOKEN: Final = re.compile(r"\{\{(seed|snapshot):([^{}]*)\}\}")
_ANY_SOURCE: Final = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*:[^{}]*\}\}")
_INDEX: Final = re.compile("[0-9]{1,18}")
"""No list is so long that more digits could lead anywhere."""
SOURCES: Final = ("seed", "snapshot")


class TokenData(FrozenStruct):
    """Data that tokens refer to; a source that is None leaves its tokens unresolved."""

    seed: JsonValue = None
    snapshot: JsonValue = None

    def get_source(self, source: str) -> JsonValue:
        """Return the data that tokens of this source refer to: `seed`, or else the snapshot."""
        return self.seed if source == "seed" else self.snapshot


class ResolvedText(FrozenStruct):
    """A text with its tokens replaced; `text` is None when at least one token is unresolved."""

    text: str | None
    unresolved: tuple[str, ...] = ()


def find_tokens(text: str) -> tuple[str, ...]:
    """Find every seed and snapshot token in the text, as written."""
    return tuple(match[0] for match in _TOKEN.finditer(text))


def find_snapshot_tokens(text: str) -> tuple[str, ...]:
    """Find every snapshot token in the text, as written."""
    return tuple(match[0] for match in _TOKEN.finditer(text) if match[1] == "snapshot")


def find_unknown_tokens(text: str) -> tuple[str, ...]:
    """Find what looks like a token but has an unknown source, such as `{{env:HOME}}`. It stays literal text."""
    return tuple(match[0] for match in _ANY_SOURCE.finditer(text) if match[1] not in SOURCES)


def resolve_tokens(text: str, data: TokenData) -> ResolvedText:
    """Replace every token by its value's text; one unresolved token leaves the whole value unresolved (A-07)."""
    if "{{" not in text:
        return ResolvedText(text)
    unresolved: list[str] = []

    def replace_token(match: re.Match[str]) -> str:
        value = _find_value(data.get_source(match[1]), match[2])
        if value is None:
            unresolved.append(match[0])
            return ""
        return format_token_value(value)

    replaced = _TOKEN.sub(replace_token, text)
    return ResolvedText(None, tuple(unresolved)) if unresolved else ResolvedText(replaced)


def resolve_members(text: str, data: TokenData) -> tuple[str, ...] | None:
    """Resolve a text that is one token for a list to the texts of its members, for `oneOf`; otherwise None."""
    match = _TOKEN.fullmatch(text)
    value = _find_value(data.get_source(match[1]), match[2]) if match else None
    return tuple(format_token_value(member) for member in value) if isinstance(value, list) else None


def format_token_value(value: JsonValue) -> str:
    """Format a resolved value as text: strings as they are, objects and arrays as compact JSON."""
    return dump_compact_json(value) if isinstance(value, dict | list) else format_js_string(value)


def _find_value(data: JsonValue, path: str) -> JsonValue:
    """Find the value at `path`, of own data only: no `.length`, no negative index."""
    try:
        return follow_segments(data, path.split("."), _INDEX)
    except PathError:
        return None
