"""Names for values: equal values have equal names, whatever the order of their keys."""

from __future__ import annotations

import hashlib
import json
from json import encoder
from typing import Any, Final

from eval_gate.model.base import JsonValue

DIGITS: Final = 16
"""Of a fingerprint that are enough to tell values apart."""
_c_encoder: Any = vars(encoder)["c_make_encoder"]  # the types of the standard library do not name it
_plain: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False)
_pieces: Final = _c_encoder and _c_encoder(
    markers=None,
    default=_plain.default,
    encoder=encoder.encode_basestring_ascii,
    indent=None,
    key_separator=":",
    item_separator=",",
    sort_keys=True,
    skipkeys=False,
    allow_nan=True,
)
"""What `_plain.encode` makes anew for every value, which takes longer than most values; None where Python has none."""


def fingerprint(value: JsonValue) -> str:
    """The SHA-256 of the value as JSON, in hexadecimal."""
    return fingerprint_of(sorted_json(value))


def fingerprint_of(text: str) -> str:
    """The same of what `sorted_json` has made of a value, or of a list of such texts."""
    return hashlib.sha256(text.encode()).hexdigest()


def sorted_json(value: JsonValue) -> str:
    """The value as JSON in ASCII, without blanks and with its keys sorted."""
    return "".join(_pieces(value, 0)) if _pieces else _plain.encode(value)


def digest(value: JsonValue) -> str:
    """The first 16 digits of the fingerprint."""
    return fingerprint(value)[:DIGITS]
