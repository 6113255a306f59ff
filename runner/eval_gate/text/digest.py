"""Names for values: equal values have equal names, however they are written down."""

from __future__ import annotations

import hashlib
import json
import re
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

_FRACTION: Final = re.compile(r"(?:^|[:,\[])-?[0-9]+[.e]")
"""What every number has that Python takes for a fraction; a text may look so too."""


def fingerprint(value: JsonValue) -> str:
    """The SHA-256 of the value as JSON, in hexadecimal."""
    return fingerprint_of(sorted_json(value))


def fingerprint_of(text: str) -> str:
    """The same of what `sorted_json` has made of a value, or of a list of such texts."""
    return hashlib.sha256(text.encode()).hexdigest()


def sorted_json(value: JsonValue) -> str:
    """The value as JSON in ASCII, without blanks, with its keys sorted, and with whole numbers as digits.

    So `5000`, `5000.0` and `5e3`, which JSON does not tell apart, have one name.
    """
    text = _encoded(value)
    return _encoded(_with_digits(value)) if _FRACTION.search(text) else text


def _encoded(value: JsonValue) -> str:
    return "".join(_pieces(value, 0)) if _pieces else _plain.encode(value)


def _with_digits(value: JsonValue) -> JsonValue:
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {key: _with_digits(one) for key, one in value.items()}
        case list() | tuple():
            return [_with_digits(one) for one in value]
        case _:
            return value


def file_digest(data: bytes) -> str:
    """The SHA-256 of what a file holds, in hexadecimal, whichever line endings a checkout has given it."""
    return hashlib.sha256(data.replace(b"\r\n", b"\n")).hexdigest()


def digest(value: JsonValue) -> str:
    """The first 16 digits of the fingerprint."""
    return fingerprint(value)[:DIGITS]
