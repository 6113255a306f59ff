"""How foreign bytes begin, for a message that has to say what was not understood."""

from __future__ import annotations

import re
from typing import Final

from eval_gate.text.foreign.events import stream_shapes

MAX_QUOTE: Final = 200
_LOOKED_AT: Final = 20_000
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]+")


def quote(body: bytes) -> str:
    """The beginning of foreign bytes, on one line and bounded; of a stream only the shapes of its events."""
    shapes = stream_shapes(body[:_LOOKED_AT])
    if shapes is not None:
        return f"«events {shapes}»"
    text = " ".join(_CONTROL.sub(" ", body[: MAX_QUOTE * 4].decode("utf-8", "replace")).split())
    return f"«{text[:MAX_QUOTE]}{'…' if len(text) > MAX_QUOTE or len(body) > MAX_QUOTE * 4 else ''}»" if text else "«»"
