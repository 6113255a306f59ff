"""Names for values: equal values have equal names, whatever the order of their keys."""

from __future__ import annotations

import hashlib
import json
from typing import Final

from eval_gate.model.base import JsonValue

_DIGITS: Final = 16


def fingerprint(value: JsonValue) -> str:
    """The SHA-256 of the value as JSON, in hexadecimal."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def digest(value: JsonValue) -> str:
    """The first 16 digits of the fingerprint."""
    return fingerprint(value)[:_DIGITS]
