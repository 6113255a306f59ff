"""Digests of JSON values and files: equal values have equal digests, however they are written."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.text.json_values import map_leaves

DIGEST_DIGITS: Final = 16
"""Digits of a fingerprint: enough to distinguish values."""
_encode_json: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False).encode
_FRACTION: Final = re.compile(r"(?:^|[:,\[])-?[0-9]+[.e]")
"""What every number has that Python takes for a fraction; a text may look so too."""


def compute_fingerprint(value: JsonValue) -> str:
    """Compute the SHA-256 of a value as sorted JSON, in hexadecimal."""
    return fingerprint_json(dump_sorted_json(value))


def fingerprint_json(text: str) -> str:
    """Compute the SHA-256, in hexadecimal, of what `dump_sorted_json` returned, or of several joined in a list."""
    return hashlib.sha256(text.encode()).hexdigest()


def dump_sorted_json(value: JsonValue) -> str:
    """Dump a value as ASCII JSON with sorted keys; 5000, 5000.0 and 5e3, which are the same, as the same text."""
    text = _encode_json(value)
    return _encode_json(map_leaves(value, _normalize_number)) if _FRACTION.search(text) else text


def _normalize_number(leaf: JsonValue) -> JsonValue:
    return int(leaf) if isinstance(leaf, float) and leaf.is_integer() else leaf


def digest_file_content(data: bytes) -> str:
    """Compute the SHA-256 of a file's content, in hexadecimal, regardless of its line endings."""
    return hashlib.sha256(data.replace(b"\r\n", b"\n")).hexdigest()


def compute_digest(value: JsonValue) -> str:
    """Compute the first 16 digits of the fingerprint."""
    return compute_fingerprint(value)[:DIGEST_DIGITS]
