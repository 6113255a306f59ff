"""Edit the values of a YAML text in place and keep its comments, order and layout.

Blocks are edited by whole lines: a member is its lines, without blank lines and remarks that follow it. What stands in
brackets or braces is edited like JSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

import yaml
from yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from eval_gate.model.base import JsonValue
from eval_gate.text.sources.value_edit import NewMember, Patch, rewrite_text
from eval_gate.text.sources.yaml_edit import detect_line_break, find_line_end, find_list_end, format_scalar

_BLOCK_STYLES: Final = frozenset({"|", ">"})
_QUOTES: Final = frozenset({'"', "'"})


def rewrite_yaml(text: str, old: JsonValue, new: JsonValue) -> str:
    """Return the text of YAML that holds `old` with `new` in it. Raises ValueError for an unusual layout."""
    return rewrite_text(text, YamlLayout(text), old, new)


def format_flow(value: JsonValue) -> str:
    """Format a value as YAML on one line, as it can stand anywhere."""
    match value:
        case str():
            return format_scalar(value)
        case dict():
            return "{" + ", ".join(f"{format_scalar(key)}: {format_flow(one)}" for key, one in value.items()) + "}"
        case list():
            return f"[{', '.join(map(format_flow, value))}]"
        case float():
            digits, exponent, power = json.dumps(value).partition("e")  # 1e+16 is text in YAML
            return f"{digits}{'' if '.' in digits or not exponent else '.0'}{exponent}{power}"
        case _:
            return json.dumps(value)


class YamlLayout:
    """Where the values of a YAML text stand."""

    def __init__(self, text: str) -> None:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is None:
            raise ValueError("it is empty")
        self._text = text
        self._elements: dict[int, list[tuple[str | int, Node]]] = {}
        self._break = detect_line_break(text)
        self.root: Node = root

    def list_members(self, node: Node) -> Sequence[tuple[str | int, Node]]:
        """List the members of a mapping, or the elements of a list."""
        if isinstance(node, MappingNode):
            return [(str(key.value), value) for key, value in node.value]
        if not isinstance(node, SequenceNode):
            return []
        if id(node) not in self._elements:
            self._elements[id(node)] = list(enumerate(node.value))
        return self._elements[id(node)]

    def find_member_lines(self, path: Sequence[str], place: int) -> tuple[int, int]:
        """Find where the lines of the element of the list at `path` begin and end; in brackets, the element."""
        node = self.root
        for step in path:
            node = dict(self.list_members(node))[step]
        if _is_flow(node):
            element = self.list_members(node)[place][1]
            return element.start_mark.index, element.end_mark.index
        return self._text.rfind("\n", 0, self._find_start(node, place)) + 1, self._find_end(node, place)

    def replace(self, parent: Node | None, place: int, value: JsonValue) -> Patch:
        """Replace a value and leave its key, and the remark behind it."""
        if parent is None:
            raise ValueError("nothing of it would stay")
        node = self.list_members(parent)[place][1]
        quoted = isinstance(node, ScalarNode) and node.style in _QUOTES
        written = format_scalar(value, quoted=quoted) if isinstance(value, str) else format_flow(value)
        begin = node.start_mark.index
        if not _is_lines(node):
            space = " " if self._text[begin - 1 : begin] in {":", "-"} else ""
            return Patch(begin, node.end_mark.index, space + written)
        if isinstance(node, CollectionNode) and isinstance(parent, MappingNode):
            colon = self._text.index(":", parent.value[place][0].end_mark.index) + 1
            if not self._text[colon:begin].strip():
                begin, written = colon, f" {written}"
        return Patch(begin, self._find_end(parent, place), written + self._break)

    def remove(self, parent: Node, first: int, last: int) -> Patch:
        """Remove members with their lines, or in brackets with their commas."""
        members = self.list_members(parent)
        if _is_flow(parent):
            if first > 0:
                return Patch(members[first - 1][1].end_mark.index, members[last][1].end_mark.index, "")
            return Patch(self._find_start(parent, first), self._find_start(parent, last + 1), "")
        start, end = self._find_start(parent, first), self._find_end(parent, last)
        line = self._text.rfind("\n", 0, start) + 1
        if not self._text[line:start].strip("\ufeff "):
            return Patch(line if not self._text.startswith("\ufeff", line) else line + 1, end, "")
        if last + 1 >= len(members):
            raise ValueError("the first member of an element stands on the line of its dash")
        # the dash stays, and what comes next moves up to it
        while self._text.startswith(" ", end):
            end += 1
        return Patch(start, end, "")

    def insert_after(self, parent: Node, place: int, members: Sequence[NewMember]) -> Patch:
        """Insert members on lines of their own, or in brackets on the line of their neighbour."""
        if _is_flow(parent):
            at = self.list_members(parent)[place][1].end_mark.index
            return Patch(at, at, "".join(f", {_format_member(one)}" for one in members))
        at = self._find_end(parent, place)
        missing = "" if self._text[:at].endswith("\n") else self._break
        return Patch(
            at,
            at,
            missing + "".join(" " * parent.start_mark.column + line for line in self._list_lines(parent, members)),
        )

    def insert_before(self, parent: Node, place: int, members: Sequence[NewMember]) -> Patch:
        """Insert members before one that may stand on the line of a dash."""
        at = self._find_start(parent, place)
        if _is_flow(parent):
            return Patch(at, at, "".join(f"{_format_member(one)}, " for one in members))
        return Patch(
            at, at, "".join(line + " " * parent.start_mark.column for line in self._list_lines(parent, members))
        )

    def _list_lines(self, parent: Node, members: Sequence[NewMember]) -> list[str]:
        dash = "- " if isinstance(parent, SequenceNode) else ""
        return [f"{dash}{_format_member(one)}{self._break}" for one in members]

    def _find_start(self, parent: Node, place: int) -> int:
        """Find where a member begins: its key, its dash, or the element itself in brackets."""
        if isinstance(parent, MappingNode):
            return int(parent.value[place][0].start_mark.index)
        begin = int(parent.value[place].start_mark.index)
        if _is_flow(parent):
            return begin
        first, column = parent.start_mark.index, parent.start_mark.column
        while begin > first:
            line = self._text.rfind("\n", 0, begin) + 1
            if self._text[line : line + column + 1].lstrip(" ") == "-":
                return line + column
            begin = line - 1
        return int(first)

    def _find_end(self, parent: Node, place: int) -> int:
        """Find the beginning of the line after a member of a block."""
        node = self.list_members(parent)[place][1]
        if _is_lines(node):
            return find_list_end(self._text, node.end_mark.index, parent.start_mark.column)
        return find_line_end(self._text, node.end_mark.index)


def _format_member(member: NewMember) -> str:
    return (f"{format_scalar(member.key)}: " if member.key is not None else "") + format_flow(member.value)


def _is_flow(node: Node) -> bool:
    return isinstance(node, CollectionNode) and bool(node.flow_style)


def _is_lines(node: Node) -> bool:
    """Whether a value ends with its last line, not with a character."""
    if isinstance(node, ScalarNode):
        return node.style in _BLOCK_STYLES
    return not _is_flow(node)
