"""Walk through the texts, numbers and other leaves of a JSON value."""

from __future__ import annotations

from collections.abc import Iterator

from eval_gate.model.base import JsonValue


def iter_leaves(value: JsonValue, *, with_keys: bool = False) -> Iterator[str | float | bool | None]:
    """Yield what is neither a list nor a mapping, in its order; `with_keys`, the keys of mappings too."""
    if isinstance(value, dict):
        for key, member in value.items():
            if with_keys:
                yield key
            yield from iter_leaves(member, with_keys=with_keys)
    elif isinstance(value, list):
        for member in value:
            yield from iter_leaves(member, with_keys=with_keys)
    else:
        yield value


def iter_texts(value: JsonValue, *, with_keys: bool = False) -> Iterator[str]:
    """Yield the texts of a JSON value; `with_keys`, the keys of mappings too."""
    return (one for one in iter_leaves(value, with_keys=with_keys) if isinstance(one, str))
