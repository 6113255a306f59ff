"""Edit a YAML text in place and keep its comments, order and layout.

It works on the text, by the places that a parser found. Blocks are edited by whole lines: a member is its lines,
without blank lines and remarks that follow it. What stands in brackets or braces is edited like JSON. What is too
unusual is refused with a ValueError. A caller parses the new text and compares it before writing, so that a
misunderstanding never reaches the disk.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import yaml
from yaml.nodes import CollectionNode, MappingNode, Node, ScalarNode, SequenceNode

from eval_gate.model.base import JsonValue
from eval_gate.text.safe_output import is_invisible
from eval_gate.text.sources.value_edit import NewMember, Patch, rewrite_text

_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*", re.ASCII)
_NON_TEXT_WORDS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})
"""Words that some YAML takes for something else than text."""
_NON_YAML_CHARACTERS: Final = frozenset("\ufffe\uffff")
"""Characters that YAML only allows as escapes, although they are not control characters."""
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_BLOCK_STYLES: Final = frozenset({"|", ">"})
_QUOTES: Final = frozenset({'"', "'"})


def format_scalar(text: str, *, quoted: bool = False) -> str:
    """Format a text as YAML on one line: bare if nothing can misread it and it need not be `quoted`."""
    if not quoted and (_DAY.fullmatch(text) or (_WORD.fullmatch(text) and text.lower() not in _NON_TEXT_WORDS)):
        return text
    json_text = json.dumps(text, ensure_ascii=False)
    return "".join(
        f"\\U{ord(char):08x}" if is_invisible(char) or char in _NON_YAML_CHARACTERS else char for char in json_text
    )


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
        self._break = _detect_line_break(text)
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
        new_text = format_scalar(value, quoted=quoted) if isinstance(value, str) else format_flow(value)
        begin = node.start_mark.index
        if not _is_lines(node):
            space = " " if self._text[begin - 1 : begin] in {":", "-"} else ""
            return Patch(begin, node.end_mark.index, space + new_text)
        if isinstance(node, CollectionNode) and isinstance(parent, MappingNode):
            colon = self._text.index(":", parent.value[place][0].end_mark.index) + 1
            if not self._text[colon:begin].strip():
                begin, new_text = colon, f" {new_text}"
        return Patch(begin, self._find_end(parent, place), new_text + self._break)

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

    def insert(self, parent: Node, place: int, members: Sequence[NewMember], *, in_front: bool = False) -> Patch:
        """Insert members on lines of their own, or in brackets; `in_front` one may be on the line of a dash."""
        if _is_flow(parent):
            at = self._find_start(parent, place) if in_front else self.list_members(parent)[place][1].end_mark.index
            texts = [_format_member(one) for one in members]
            return Patch(at, at, "".join(f"{one}, " if in_front else f", {one}" for one in texts))
        at = self._find_start(parent, place) if in_front else self._find_end(parent, place)
        indent, lines = " " * parent.start_mark.column, self._list_lines(parent, members)
        if in_front:
            return Patch(at, at, "".join(line + indent for line in lines))
        line_break = "" if self._text[:at].endswith("\n") else self._break
        return Patch(at, at, line_break + "".join(indent + line for line in lines))

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
            return _find_list_end(self._text, node.end_mark.index, parent.start_mark.column)
        return _find_line_end(self._text, node.end_mark.index)


def _format_member(member: NewMember) -> str:
    return (f"{format_scalar(member.key)}: " if member.key is not None else "") + format_flow(member.value)


def _is_flow(node: Node) -> bool:
    return isinstance(node, CollectionNode) and bool(node.flow_style)


def _is_lines(node: Node) -> bool:
    """Whether a value ends with its last line, not with a character."""
    if isinstance(node, ScalarNode):
        return node.style in _BLOCK_STYLES
    return not _is_flow(node)


def append_entry(text: str, name: str, entry: Mapping[str, str]) -> str:
    """Append a mapping to the list `name`, or to a new one. Raises ValueError for an unusual layout."""
    root = _compose_root(text)
    if root is None:
        return _insert_lines(text, len(text), [f"{name}:", *_format_block_entry(entry, 2)])
    key, items = next(((key, value) for key, value in root.value if key.value == name), (None, None))
    if key is None or items is None:
        if root.flow_style:
            raise ValueError("it is written in braces")
        indent = root.start_mark.column
        return _insert_lines(text, len(text), [" " * indent + f"{name}:", *_format_block_entry(entry, indent + 2)])
    if isinstance(items, SequenceNode) and items.value:
        return _append_to_list(text, items, entry)
    if items.tag != "tag:yaml.org,2002:null" and not isinstance(items, SequenceNode):
        raise ValueError(f"`{name}` is not a list")
    if root.flow_style:
        raise ValueError("it is written in braces")
    begin, end = items.start_mark.index, items.end_mark.index
    if begin < end:  # `[]`, `null` and the like give way
        text = text[:begin].rstrip(" ") + text[end:]
    return _insert_lines(
        text, _find_line_end(text, key.end_mark.index), _format_block_entry(entry, key.start_mark.column + 2)
    )


def _compose_root(text: str) -> MappingNode | None:
    """Compose the document, with positions that count characters."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if node is None or (isinstance(node, ScalarNode) and not node.value):
        return None
    if not isinstance(node, MappingNode):
        raise ValueError("it is not a mapping")  # noqa: TRY004 (of the file, not of a Python value)
    return node


def _append_to_list(text: str, items: SequenceNode, entry: Mapping[str, str]) -> str:
    if items.flow_style:
        end = items.end_mark.index - 1
        between = re.sub(r"#.*", "", text[items.value[-1].end_mark.index : end])
        comma = "" if "," in between else ", "
        return f"{text[:end].rstrip(' ')}{comma}{format_flow(dict(entry))}{text[end:]}"
    first = items.value[0].start_mark.index
    begin = text.rfind("\n", 0, first) + 1
    dash = re.match(r" *(?=-)", text[begin:])
    column = len(dash[0]) if dash else items.start_mark.column
    return _insert_lines(text, _find_list_end(text, items.end_mark.index, column), _format_block_entry(entry, column))


def _find_list_end(text: str, end: int, column: int) -> int:
    at = text.rfind("\n", 0, end) + 1 if end < len(text) or text.endswith("\n") else len(text)
    while at > 0:
        line = text[text.rfind("\n", 0, at - 1) + 1 : at].rstrip("\r\n")
        bare = line.lstrip(" ")
        if bare and not (bare.startswith("#") and len(line) - len(bare) <= column):
            break
        at = text.rfind("\n", 0, at - 1) + 1
    return at


def _format_block_entry(entry: Mapping[str, str], column: int) -> list[str]:
    lines = [f"{key}: {format_scalar(value)}" for key, value in entry.items()]
    return [" " * column + ("- " if not place else "  ") + line for place, line in enumerate(lines)]


def _find_line_end(text: str, index: int) -> int:
    """Find the beginning of the next line, or the end of the text."""
    at = text.find("\n", index)
    return at + 1 if at >= 0 else len(text)


def _insert_lines(text: str, at: int, lines: Iterable[str]) -> str:
    head, broken = text[:at], _detect_line_break(text)
    if head.strip("\ufeff") and not head.endswith("\n"):
        head += broken
    return head + "".join(line + broken for line in lines) + text[at:]


def _detect_line_break(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
