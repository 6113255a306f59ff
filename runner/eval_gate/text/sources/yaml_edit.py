"""Edit a YAML file in place and keep its comments, order and layout.

It works on the text, by the places that a parser found. What is too unusual is refused with a ValueError; whoever
writes the file reads it again first and compares, so that a misunderstanding never reaches the disk.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from eval_gate.struct import FrozenStruct
from eval_gate.text.shell import is_invisible

_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*", re.ASCII)
_NON_TEXT_WORDS: Final = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})
"""Words that some YAML takes for something else than text."""
_NON_YAML_CHARACTERS: Final = frozenset("\ufffe\uffff")
"""Characters that YAML only allows as escapes, although they are not control characters."""
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def format_scalar(text: str, *, quoted: bool = False) -> str:
    """Format a text as YAML on one line: bare if nothing can misread it and it need not be `quoted`."""
    if not quoted and (_DAY.fullmatch(text) or (_WORD.fullmatch(text) and text.lower() not in _NON_TEXT_WORDS)):
        return text
    written = json.dumps(text, ensure_ascii=False)
    return "".join(
        f"\\U{ord(char):08x}" if is_invisible(char) or char in _NON_YAML_CHARACTERS else char for char in written
    )


def append_entry(text: str, name: str, entry: Mapping[str, str]) -> str:
    """Append a mapping to the list `name`, or to a new one. Raises ValueError for an unusual layout."""
    root = _compose_root(text)
    if root is None:
        return _insert_lines(text, len(text), [f"{name}:", *_format_block_entry(entry, 2)])
    found = _KeyNode.find_key(root, name)
    if found is None:
        if root.flow_style:
            raise ValueError("it is written in braces")
        indent = root.start_mark.column
        return _insert_lines(text, len(text), [" " * indent + f"{name}:", *_format_block_entry(entry, indent + 2)])
    if isinstance(found.value, SequenceNode) and found.value.value:
        return _append_to_list(text, found.value, entry)
    if not _is_empty(found.value):
        raise ValueError(f"`{name}` is not a list")
    if root.flow_style:
        raise ValueError("it is written in braces")
    begin, end = found.value.start_mark.index, found.value.end_mark.index
    if begin < end:  # `[]`, `null` and the like give way
        text = text[:begin].rstrip(" ") + text[end:]
    return _insert_lines(
        text, find_line_end(text, found.key.end_mark.index), _format_block_entry(entry, found.key.start_mark.column + 2)
    )


class _KeyNode(FrozenStruct):
    """Key of the document with its value."""

    key: Node
    value: Node

    @classmethod
    def find_key(cls, root: MappingNode, name: str) -> _KeyNode | None:
        return next((cls(key, value) for key, value in root.value if key.value == name), None)


def _compose_root(text: str) -> MappingNode | None:
    """Compose the document, with positions that count characters."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if node is None or (isinstance(node, ScalarNode) and not node.value):
        return None
    if not isinstance(node, MappingNode):
        raise ValueError("it is not a mapping")  # noqa: TRY004 (of the file, not of a Python value)
    return node


def _is_empty(node: Node) -> bool:
    return (isinstance(node, SequenceNode) and not node.value) or node.tag == "tag:yaml.org,2002:null"


def _append_to_list(text: str, items: SequenceNode, entry: Mapping[str, str]) -> str:
    if items.flow_style:
        end = items.end_mark.index - 1
        between = re.sub(r"#.*", "", text[items.value[-1].end_mark.index : end])
        comma = "" if "," in between else ", "
        return f"{text[:end].rstrip(' ')}{comma}{{{_format_flow_entry(entry)}}}{text[end:]}"
    first = items.value[0].start_mark.index
    begin = text.rfind("\n", 0, first) + 1
    dash = re.match(r" *(?=-)", text[begin:])
    column = len(dash[0]) if dash else items.start_mark.column
    return _insert_lines(text, find_list_end(text, items.end_mark.index, column), _format_block_entry(entry, column))


def find_list_end(text: str, end: int, column: int) -> int:
    """Find where the last line of a block ends: empty lines, and comments as far left, belong to what follows."""
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


def _format_flow_entry(entry: Mapping[str, str]) -> str:
    return ", ".join(f"{key}: {format_scalar(value)}" for key, value in entry.items())


def find_line_end(text: str, index: int) -> int:
    """Find the beginning of the next line, or the end of the text."""
    found = text.find("\n", index)
    return found + 1 if found >= 0 else len(text)


def _insert_lines(text: str, at: int, lines: Iterable[str]) -> str:
    """Insert these lines at the beginning of a line, and return the text."""
    before, broken = text[:at], detect_line_break(text)
    if before.strip("\ufeff") and not before.endswith("\n"):
        before += broken
    return before + "".join(line + broken for line in lines) + text[at:]


def detect_line_break(text: str) -> str:
    """Detect the line break that the text uses."""
    return "\r\n" if "\r\n" in text else "\n"
