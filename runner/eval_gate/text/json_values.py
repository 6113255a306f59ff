"""Walks over JSON values: to a place, their leaves and texts, the same values with other leaves, and their equality."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from eval_gate.model.base import JsonValue

ValuePath: TypeAlias = tuple[str | int, ...]
"""Keys and indexes that lead to a value."""


def find_at(value: JsonValue, path: ValuePath) -> JsonValue:
    """Find the value at these keys and indexes; None if it is not there."""
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def iter_leaves(value: JsonValue) -> Iterator[tuple[ValuePath, JsonValue]]:
    """Yield what is neither a list nor a mapping, in order, with its path; without recursion, for any depth."""
    waiting: list[tuple[ValuePath, JsonValue]] = [((), value)]
    while waiting:
        path, one = waiting.pop()
        match one:
            case dict():
                waiting += [((*path, key), member) for key, member in reversed(one.items())]
            case list() | tuple():
                waiting += [((*path, at), one[at]) for at in reversed(range(len(one)))]
            case _:
                yield path, one


def iter_texts(value: JsonValue) -> Iterator[str]:
    """Yield the texts in a value, without its keys."""
    return (leaf for _, leaf in iter_leaves(value) if isinstance(leaf, str))


def map_leaves(
    value: JsonValue, change: Callable[[JsonValue], JsonValue], change_key: Callable[[str], str] = str
) -> JsonValue:
    """Apply `change` to what is neither a list nor a mapping, and `change_key` to the keys of mappings."""
    match value:
        case dict():
            return {change_key(key): map_leaves(member, change, change_key) for key, member in value.items()}
        case list() | tuple():
            return [map_leaves(member, change, change_key) for member in value]
        case _:
            return change(value)


def map_texts(value: JsonValue, change: Callable[[str], JsonValue]) -> JsonValue:
    """Apply `change` to every text in a value. The keys stay unchanged."""
    return map_leaves(value, lambda leaf: change(leaf) if isinstance(leaf, str) else leaf)


def are_json_equal(one: JsonValue, other: JsonValue) -> bool:
    """Whether values are deeply equal: the order of keys is free, that of lists counts, 1 is 1.0 and never true."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(are_json_equal(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(are_json_equal, one, other))
    return one == other
