"""Excerpts of untrusted bytes for error messages: their beginning, or the shape of their events.

Of events it shows the keys and the kinds of their values, not the values. No event has the whole of a secret that comes
in pieces, so redaction does not find it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.text.mask import MASK
from eval_gate.text.quoting import looks_like_key
from eval_gate.text.safe_output import INVISIBLE
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, is_json, parse_untrusted_json

MAX_EXCERPT: Final = 200
_MAX_BYTES: Final = 20_000
_UNPRINTABLE: Final = re.compile(rf"[\x00-\x1f{INVISIBLE}]+")
MAX_EVENTS: Final = 20
"""Events at the beginning whose shapes are described."""
_MAX_SHAPES: Final = 3
_FIELD: Final = re.compile(rb"(?:data|event|id|retry)?:")
_DATA: Final = b"data:"
_DEPTH: Final = 4
_MEMBERS: Final = 6
_KEY: Final = re.compile(r"[A-Za-z_$@][\w$@.-]{0,39}")


def format_excerpt(body: bytes) -> str:
    """Format the bounded beginning of untrusted bytes on one line, or only the event shapes of a stream."""
    shapes = describe_stream_shapes(body[:_MAX_BYTES])
    if shapes is not None:
        return f"«events {shapes}»"
    text = " ".join(_UNPRINTABLE.sub(" ", body[: MAX_EXCERPT * 4].decode("utf-8", "replace")).split())
    return (
        f"«{text[:MAX_EXCERPT]}{'…' if len(text) > MAX_EXCERPT or len(body) > MAX_EXCERPT * 4 else ''}»"
        if text
        else "«»"
    )


def describe_event_shapes(events: Iterable[bytes]) -> str:
    """Describe the different shapes of the first events: `{delta: {content: string}}, string`."""
    shapes = list(dict.fromkeys(_describe_shape(_parse_event(data)) for data in islice(events, MAX_EVENTS)))
    return ", ".join(shapes[:_MAX_SHAPES]) + (", …" if len(shapes) > _MAX_SHAPES else "")


def format_keys(value: Mapping[str, JsonValue]) -> str:
    """Format the first keys of a mapping, without those that may be secret."""
    keys = [_mask_key(key) for key in islice(value, _MEMBERS)]
    return ", ".join(keys) + (", …" if len(value) > _MEMBERS else "")


def describe_stream_shapes(body: bytes) -> str | None:
    """Describe the event shapes of server-sent events or JSON lines; None for any other body."""
    lines = [line for line in body.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip()]
    data = [line.removeprefix(_DATA) for line in lines if line.startswith(_DATA)]
    if data and _FIELD.match(lines[0]):
        return describe_event_shapes(data)
    if len(lines) > 1 and lines[0].lstrip()[:1] in {b"{", b"["} and is_json(lines[0].decode("utf-8", "replace")):
        return describe_event_shapes(lines)
    return None


def replace_events(text: bytes) -> bytes:
    """Replace JSON lines in the output of a program with their shapes, if there are several."""
    lines = text.splitlines()
    events = [line for line in lines if line.lstrip()[:1] in {b"{", b"["} and is_json(line.decode("utf-8", "replace"))]
    if len(events) < 2:
        return text
    event_set = frozenset(events)
    return b"\n".join(
        (f"events {describe_event_shapes(events)}".encode(), *(line for line in lines if line not in event_set))
    )


def _parse_event(data: bytes) -> JsonValue:
    try:
        return parse_untrusted_json(data)
    except UntrustedJsonError:
        return data.decode("utf-8", "replace")


def _describe_shape(value: JsonValue, depth: int = _DEPTH) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return f"[{_describe_shape(value[0], depth - 1)}]" if value and depth else "[…]" if value else "[]"
        case dict():
            if not depth:
                return "{…}"
            members = [
                f"{_mask_key(key)}: {_describe_shape(one, depth - 1)}" for key, one in islice(value.items(), _MEMBERS)
            ]
            return f"{{{', '.join(members)}{', …' if len(value) > _MEMBERS else ''}}}"


def _mask_key(key: str) -> str:
    return key if _KEY.fullmatch(key) and not looks_like_key(key) else MASK
