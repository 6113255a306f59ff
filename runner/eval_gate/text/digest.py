"""Names for values: equal values have equal names, whatever the order of their keys."""

from __future__ import annotations

import hashlib
import json
from typing import Final

from eval_gate.model.base import JsonValue

DIGITS: Final = 16
"""Of a fingerprint that are enough to tell values apart."""
_encoded: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False).encode


def fingerprint(value: JsonValue) -> str:
    """The SHA-256 of the value as JSON, in hexadecimal."""
    return hashlib.sha256(_encoded(value).encode()).hexdigest()


def digest(value: JsonValue) -> str:
    """The first 16 digits of the fingerprint."""
    return fingerprint(value)[:DIGITS]
