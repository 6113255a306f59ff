"""Rewrite a text so that it holds another value, and keep all that need not change.

The old and the new value are compared from the outside in: where both are mappings, or both lists, only what differs in
them is written. How a member is removed, inserted or replaced in the text is up to the layout of its notation.

A caller parses the new text and compares it before writing, so that a misunderstanding never reaches the disk.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import groupby, pairwise
from typing import Final, NamedTuple, Protocol, TypeVar

from eval_gate.model.base import JsonValue

Node = TypeVar("Node")
_MAX_MATCHED: Final = 200
"""Elements of a list up to which insertions are distinguished from replacements, which takes quadratic time."""


class Patch(NamedTuple):
    """Text that takes the place of what stands from `begin` to before `end`."""

    begin: int
    end: int
    text: str


class NewMember(NamedTuple):
    """Member to insert: a key of a mapping with its value, or an element without a key."""

    key: str | None
    value: JsonValue


class Layout(Protocol[Node]):
    """Places of values in a text, and how members are written into it. Methods raise ValueError."""

    @property
    def root(self) -> Node:
        """The value of the whole document."""
        ...

    def list_members(self, node: Node) -> Sequence[tuple[str | int, Node]]:
        """List the members of a mapping by key, or the elements of a list by index, in the order of the text."""
        ...

    def replace(self, parent: Node | None, place: int, value: JsonValue) -> Patch:
        """Replace the member at this place of its parent; without a parent, the whole document."""
        ...

    def remove(self, parent: Node, first: int, last: int) -> Patch:
        """Remove the members from `first` to `last`; at least one other stays."""
        ...

    def insert(self, parent: Node, place: int, members: Sequence[NewMember], *, in_front: bool = False) -> Patch:
        """Insert members after the one at `place`, or `in_front` of it."""
        ...


def rewrite_text(text: str, layout: Layout[Node], old: JsonValue, new: JsonValue) -> str:
    """Return the text with the patches that make `new` of the `old` value that it holds. Raises ValueError."""
    pieces, at = list[str](), 0
    for begin, end, replacement in sorted(
        _iter_patches(layout, layout.root, old, new, (None, 0)), key=lambda patch: patch[:2]
    ):  # of two at one place, the earlier one stands first
        pieces += (text[at:begin], replacement)
        at = max(at, end)
    return "".join([*pieces, text[at:]])


def is_same_value(one: JsonValue, other: JsonValue) -> bool:
    """Whether two values are the same JSON, whatever the order of their keys: 1, 1.0 and true are not."""
    return one is other or _dump(one) == _dump(other)


def _dump(value: JsonValue) -> str:
    return json.dumps(value, sort_keys=True)


def _iter_patches(
    layout: Layout[Node], node: Node, old: JsonValue, new: JsonValue, place: tuple[Node | None, int]
) -> Iterator[Patch]:
    if is_same_value(old, new):
        return
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() & new.keys():
        yield from _iter_mapping_patches(layout, node, old, new)
    elif isinstance(old, list) and isinstance(new, list) and old and new:
        yield from _iter_list_patches(layout, node, old, new)
    else:
        yield layout.replace(*place, new)


def _iter_mapping_patches(
    layout: Layout[Node], node: Node, old: Mapping[str, JsonValue], new: Mapping[str, JsonValue]
) -> Iterator[Patch]:
    members = layout.list_members(node)
    keys = [str(key) for key, _ in members]
    if sorted(keys) != sorted(old):
        raise ValueError("it takes keys from another place")
    for place, (key, (_, child)) in enumerate(zip(keys, members, strict=True)):
        if key in new:
            yield from _iter_patches(layout, child, old[key], new[key], (node, place))
    yield from (
        layout.remove(node, *run) for run in _iter_runs(place for place, key in enumerate(keys) if key not in new)
    )
    previous: int | None = None
    added = list[NewMember]()
    for key, value in new.items():
        if key not in old:
            added.append(NewMember(key, value))
            continue
        place = keys.index(key)
        if added:
            yield layout.insert(node, place if previous is None else previous, added, in_front=previous is None)
        previous, added = place, []
    if added and previous is not None:
        yield layout.insert(node, previous, added)


def _iter_list_patches(
    layout: Layout[Node], node: Node, old: Sequence[JsonValue], new: Sequence[JsonValue]
) -> Iterator[Patch]:
    members = layout.list_members(node)
    if len(members) != len(old):
        raise ValueError("it takes elements from another place")
    for begin, end, new_begin, new_end in _iter_changes([_dump(one) for one in old], [_dump(one) for one in new]):
        pairs = min(end - begin, new_end - new_begin)
        for number in range(pairs):
            place = begin + number
            yield from _iter_patches(layout, members[place][1], old[place], new[new_begin + number], (node, place))
        if begin + pairs < end:
            yield layout.remove(node, begin + pairs, end - 1)
        if new_begin + pairs < new_end:
            added = [NewMember(None, value) for value in new[new_begin + pairs : new_end]]
            yield layout.insert(node, max(begin + pairs - 1, 0), added, in_front=begin + pairs == 0)


def _iter_changes(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """Yield which old elements new ones replace, in linear time for a long list in which nothing was inserted."""
    if len(old) == len(new) > _MAX_MATCHED:
        yield from ((at, at + 1, at, at + 1) for at, one in enumerate(old) if one != new[at])
        return
    matches, at = list[int](), 0
    for one in new:
        while at < len(old) and old[at] != one:
            at += 1
        matches.append(at)
        at += 1
    if at <= len(old):
        places = [-1, *matches, len(old)]
        yield from ((low + 1, high, number, number) for number, (low, high) in enumerate(pairwise(places)))
        return
    codes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    for kind, begin, end, new_begin, new_end in codes:
        if kind != "equal":
            yield begin, end, new_begin, new_end


def _iter_runs(places: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Join places that follow each other: yield the first and last of each run."""
    for _, run in groupby(enumerate(places), lambda pair: pair[1] - pair[0]):
        joined = [place for _, place in run]
        yield joined[0], joined[-1]
