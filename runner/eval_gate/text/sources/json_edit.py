"""Edit a JSON text in place and keep its layout."""

from __future__ import annotations

import json
from collections.abc import Sequence

from eval_gate.model.base import JsonValue
from eval_gate.text.safe_output import is_invisible
from eval_gate.text.sources.json import JsonSpan, iter_members, scan_value, skip_blanks
from eval_gate.text.sources.value_edit import NewMember, Patch, rewrite_text


def rewrite_json(text: str, old: JsonValue, new: JsonValue) -> str:
    """Return the text of valid JSON, which holds the `old` value, with the `new` value in it."""
    return rewrite_text(text, JsonLayout(text), old, new)


def format_json(value: JsonValue) -> str:
    """Format a value as JSON on one line, with invisible characters as escapes."""
    return "".join(
        json.dumps(char)[1:-1] if is_invisible(char) else char for char in json.dumps(value, ensure_ascii=False)
    )


class JsonLayout:
    """Where the values of a JSON text stand. One level is scanned at a time."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._members: dict[int, list[tuple[str | int, JsonSpan]]] = {}
        begin = skip_blanks(text, text.startswith("\ufeff"))
        self.root = JsonSpan(begin, begin, scan_value(text, begin)[1])

    def list_members(self, node: JsonSpan) -> Sequence[tuple[str | int, JsonSpan]]:
        """List the members of an object, or the elements of a list."""
        if node.begin not in self._members:
            self._members[node.begin] = list(iter_members(self._text, node.begin))
        return self._members[node.begin]

    def find_member_lines(self, path: Sequence[str], place: int) -> tuple[int, int]:
        """Find where the member of the list at `path` begins and ends, with the blanks before it on its line."""
        node = self.root
        for step in path:
            node = dict(self.list_members(node))[step]
        span = self.list_members(node)[place][1]
        line = self._text.rfind("\n", 0, span.start) + 1
        return span.start if self._text[line : span.start].strip(" \t") else line, span.end

    def replace(self, parent: JsonSpan | None, place: int, value: JsonValue) -> Patch:
        """Replace a value and leave its key."""
        node = self.root if parent is None else self.list_members(parent)[place][1]
        return Patch(node.begin, node.end, format_json(value))

    def remove(self, parent: JsonSpan, first: int, last: int) -> Patch:
        """Remove members with the comma and the blanks that led to them."""
        members = self.list_members(parent)
        if first > 0:
            return Patch(members[first - 1][1].end, members[last][1].end, "")
        return Patch(members[first][1].start, members[last + 1][1].start, "")

    def insert(self, parent: JsonSpan, place: int, members: Sequence[NewMember], *, in_front: bool = False) -> Patch:
        """Insert members, each on a line of its own where its neighbours have one."""
        neighbours = self.list_members(parent)
        joint, span = self._find_joint(parent, neighbours[0][1]), neighbours[place][1]
        texts = [_format_member(one) for one in members]
        if in_front:
            return Patch(span.start, span.start, "".join(one + joint for one in texts))
        return Patch(span.end, span.end, "".join(joint + one for one in texts))

    def _find_joint(self, parent: JsonSpan, first: JsonSpan) -> str:
        """Find what stands between two members: a comma, and the blanks before the first one."""
        return "," + (self._text[parent.begin + 1 : first.start] or " ")


def _format_member(member: NewMember) -> str:
    return (f"{format_json(member.key)}: " if member.key is not None else "") + format_json(member.value)
