"""JSON read strictly, with the line of every value: no duplicate keys, no NaN, no remarks, bounded size and depth."""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NoReturn

from eval_gate.errors import GateError, Problem
from eval_gate.model import limits
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import DEPTH, DOCUMENT_VALUES
from eval_gate.text.foreign.json import ForeignJsonError, refuse_constant, refuse_too_much
from eval_gate.text.foreign.well_formed import may_hold_halves, mend_halves
from eval_gate.text.sources.json_words import what_is_wrong

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_BYTES: Final = limits.EVAL_FILE_BYTES
MAX_DEPTH = DEPTH
_MAX_DIGITS: Final = limits.FILE_DIGITS
"""Digits of a number: more is not a value anybody compares with."""


class JsonPositions:
    """Where values stand in a document that is known to be valid JSON. Parsed again only when somebody asks."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._root: Node | None = None
        self._children: dict[int, dict[str | int, tuple[int, Node]]] = {}

    def line(self, path: Sequence[str | int]) -> int:
        """The line (from 1) of the key or element at `path`, or of its nearest ancestor that exists."""
        node = self._document()
        line = node.start_point.row + 1 if node else 1
        for step in path:
            found = self._below(node).get(step) if node else None
            if found is None:
                break
            line, node = found
        return line

    def _document(self) -> Node | None:
        if self._root is None:
            import tree_sitter_json
            from tree_sitter import Language, Parser

            tree = Parser(Language(tree_sitter_json.language())).parse(self._data)
            self._root = tree.root_node
        return next(iter(self._root.named_children), None)

    def _below(self, node: Node) -> dict[str | int, tuple[int, Node]]:
        """Lines and nodes of the members or elements of `node`, by key or index."""
        known = self._children.get(node.id)
        if known is not None:
            return known
        found: dict[str | int, tuple[int, Node]] = {}
        if node.type == "array":
            for index, child in enumerate(node.named_children):
                found[index] = child.start_point.row + 1, child
        elif node.type == "object":
            for pair in node.named_children:
                key, value = pair.child_by_field_name("key"), pair.child_by_field_name("value")
                if key is not None and value is not None and key.text is not None:
                    found[json.loads(key.text)] = key.start_point.row + 1, value
        self._children[node.id] = found
        return found


def parse_json(
    data: bytes, file: str, *, halves: bool = False, values: int = DOCUMENT_VALUES
) -> tuple[JsonValue, JsonPositions]:
    """The document in `data`, of at most so many `values`, and the lines of its values.

    Half a surrogate pair, which no file can hold, becomes U+FFFD; with `halves` it stays, for who says where it is.
    Raises GateError `invalid-json` naming file and line.
    """
    text = _text(data, file)
    try:  # before anything is built of it
        refuse_too_much(data, values, MAX_DEPTH)
    except ForeignJsonError as error:
        _refuse(file, None, str(error).removeprefix("is "))
    duplicates: list[str] = []

    def members(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        found = dict(pairs)
        if len(found) < len(pairs):
            duplicates.extend(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        return found

    try:
        value: JsonValue = json.loads(
            text, object_pairs_hook=members, parse_constant=refuse_constant, parse_int=_bounded_int
        )
    except json.JSONDecodeError as error:
        _refuse(file, *what_is_wrong(text, error))
    except RecursionError:
        _refuse(file, None, f"nested deeper than {MAX_DEPTH} levels")
    except ValueError as error:
        _refuse(file, None, error.detail if isinstance(error, ForeignJsonError) else str(error))
    if duplicates:
        _refuse(file, _second_line(text, duplicates[0]), f'the key "{duplicates[0][:100]}" stands twice in one object')
    if deeper_than(value, MAX_DEPTH):
        _refuse(file, None, f"nested deeper than {MAX_DEPTH} levels")
    if not halves and may_hold_halves(data):
        value = mend_halves(value)
    return value, JsonPositions(data.removeprefix(codecs.BOM_UTF8))


def _text(data: bytes, file: str) -> str:
    if len(data) > MAX_BYTES:
        _refuse(file, None, f"larger than {MAX_BYTES:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        _refuse(file, line, f"not UTF-8: byte {error.start} is 0x{data[error.start]:02x}")


def _bounded_int(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"a number of {len(digits):,} digits")
    return int(digits)


def _second_line(text: str, key: str) -> int | None:
    """The line of the second place where this key is written, as a good guess for people."""
    places = [match.start() for match in re.finditer(re.escape(json.dumps(key, ensure_ascii=False)) + r"\s*:", text)]
    return text.count("\n", 0, places[1]) + 1 if len(places) > 1 else None


def deeper_than(value: JsonValue, limit: int) -> bool:
    """Whether lists and mappings are nested deeper than `limit` levels, found without recursion."""
    level: list[JsonValue] = [value]
    for _ in range(limit):
        level = [
            child
            for parent in level
            if isinstance(parent, dict | list)
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
        if not level:
            return False
    return True


def _refuse(file: str, line: int | None, message: str) -> NoReturn:
    raise GateError(
        "invalid-json",
        f"{file} is not valid JSON",
        "correct the file; JSON knows no comments, no trailing commas and no NaN",
        problems=[Problem(message, file=file, line=line)],
    )
