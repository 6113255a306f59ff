"""How a message shows what strangers sent: the beginning of their bytes, or the shape of their events.

Of events it shows the keys and the kinds of their values, not what they say. A secret that comes in pieces is in no
event as a whole, so nobody finds it to mask it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.text.foreign.json import ForeignJsonError, is_json, read_foreign
from eval_gate.text.quoting import looks_like_key
from eval_gate.text.secret import MASK

MAX_QUOTE: Final = 200
_LOOKED_AT: Final = 20_000
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]+")
EVENTS_LOOKED_AT: Final = 20
"""Events whose shapes are told, the first ones."""
_SHOWN: Final = 3
_FIELD: Final = re.compile(rb"(?:data|event|id|retry)?:")
_DATA: Final = b"data:"
_DEPTH: Final = 4
_MEMBERS: Final = 6
_KEY: Final = re.compile(r"[A-Za-z_$@][\w$@.-]{0,39}")


def quote(body: bytes) -> str:
    """The beginning of foreign bytes, on one line and bounded; of a stream only the shapes of its events."""
    shapes = stream_shapes(body[:_LOOKED_AT])
    if shapes is not None:
        return f"«events {shapes}»"
    text = " ".join(_CONTROL.sub(" ", body[: MAX_QUOTE * 4].decode("utf-8", "replace")).split())
    return f"«{text[:MAX_QUOTE]}{'…' if len(text) > MAX_QUOTE or len(body) > MAX_QUOTE * 4 else ''}»" if text else "«»"


def shapes_of(events: Iterable[bytes]) -> str:
    """The different shapes of the first events: `{delta: {content: string}}, string`."""
    found = list(dict.fromkeys(_shape(_read(data)) for data in islice(events, EVENTS_LOOKED_AT)))
    return ", ".join(found[:_SHOWN]) + (", …" if len(found) > _SHOWN else "")


def stream_shapes(body: bytes) -> str | None:
    """The same of a body that comes in events, be they server-sent or JSON values in lines; None for another one."""
    lines = [line for line in body.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip()]
    data = [line.removeprefix(_DATA) for line in lines if line.startswith(_DATA)]
    if data and _FIELD.match(lines[0]):
        return shapes_of(data)
    if len(lines) > 1 and lines[0].lstrip()[:1] in {b"{", b"["} and is_json(lines[0].decode("utf-8", "replace")):
        return shapes_of(lines)
    return None


def without_events(text: bytes) -> bytes:
    """A program's output, in which several JSON values in lines are told by their shapes."""
    lines = text.splitlines()
    events = [line for line in lines if line.lstrip()[:1] in {b"{", b"["} and is_json(line.decode("utf-8", "replace"))]
    if len(events) < 2:
        return text
    told = frozenset(events)
    return b"\n".join((f"events {shapes_of(events)}".encode(), *(line for line in lines if line not in told)))


def _read(data: bytes) -> JsonValue:
    """The JSON of an event, else its text."""
    try:
        return read_foreign(data)
    except ForeignJsonError:
        return data.decode("utf-8", "replace")


def _shape(value: JsonValue, depth: int = _DEPTH) -> str:
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
            return f"[{_shape(value[0], depth - 1)}]" if value and depth else "[…]" if value else "[]"
        case dict():
            if not depth:
                return "{…}"
            members = [f"{_key(key)}: {_shape(one, depth - 1)}" for key, one in islice(value.items(), _MEMBERS)]
            return f"{{{', '.join(members)}{', …' if len(value) > _MEMBERS else ''}}}"


def _key(key: str) -> str:
    return key if _KEY.fullmatch(key) and not looks_like_key(key) else MASK
