"""Names of encodings that a file may state, or a person may set."""

from __future__ import annotations

import codecs
from contextlib import suppress
from typing import Final

_NO_ENCODINGS: Final = frozenset(
    {"idna", "mbcs", "oem", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"}
)
"""Codecs of Python that are escapes, and may take quadratic time, or depend on the system."""


def parse_encoding(text: str) -> str:
    """Return Python's name of an encoding. Raises ValueError with a message for one that is not known."""
    with suppress(LookupError, ValueError):
        name = codecs.lookup(text).name
        "a".encode(name)  # refuses what Python calls a codec and is no encoding of text, such as zip
        if name not in _NO_ENCODINGS:
            return name
    raise ValueError("expected the name of an encoding, such as cp1252, shift_jis or utf-16")
