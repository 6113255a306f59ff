"""A short name for a value: equal values have equal names, whatever the order of their keys."""

from __future__ import annotations

import hashlib
import json
from typing import Final

from eval_gate.model.base import JsonValue

_DIGITS: Final = 16


def digest(value: JsonValue) -> str:
    """The first 16 hex digits of the SHA-256 of the value as JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:_DIGITS]
