"""Equality of JSON values."""

from __future__ import annotations

from eval_gate.model.base import JsonValue


def are_json_equal(one: JsonValue, other: JsonValue) -> bool:
    """Deep equality: the order of keys is free, that of lists counts, 1 is 1.0 and never true."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(are_json_equal(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(are_json_equal, one, other))
    return one == other
