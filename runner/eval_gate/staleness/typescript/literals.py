"""Values of JavaScript literals in a syntax tree, read without running code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from eval_gate.model import limits
from eval_gate.struct import FrozenStruct, field
from eval_gate.text.untrusted.surrogates import to_well_formed

if TYPE_CHECKING:
    from tree_sitter import Node

    from eval_gate.model.base import JsonValue


class UnknownValue(Enum):
    """A value that is known only at run time: a reference, a call or an interpolation."""

    VALUE = "unknown"


Literal: TypeAlias = "JsonValue | UnknownValue"

_MAX_DEPTH: Final = limits.LITERAL_DEPTH
_CONSTANTS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}
_WRAPPERS: Final = frozenset(
    {
        "parenthesized_expression",
        "as_expression",
        "satisfies_expression",
        "non_null_expression",
        "type_assertion",
    }
)
_ESCAPE: Final = re.compile(
    r"\\(?:u\{(?P<point>[0-9A-Fa-f]{1,6})\}|u(?P<unit>[0-9A-Fa-f]{4})|x(?P<byte>[0-9A-Fa-f]{2})"
    r"|(?P<zero>0(?![0-9]))|(?P<newline>\r\n|[\n\r\u2028\u2029])|(?P<wrong>[ux0-9])|(?P<other>.))",
    re.DOTALL,
)
_SINGLE_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v"}
_DECIMAL: Final = re.compile(r"(0|[1-9][0-9]{0,17})(\.[0-9]{1,18})?")


class ObjectLiteral(FrozenStruct):
    """The members of an object literal, one level deep.

    A key that a later spread or computed key may override has no node. `is_open` means that further keys may exist.
    """

    members: dict[str, Node | None] = field(default_factory=dict)
    is_open: bool = False

    def get_value(self, key: str) -> Literal | None:
        """Return the value of a key; None if it is missing, UNKNOWN if only running the code would tell."""
        if key not in self.members:
            return UnknownValue.VALUE if self.is_open else None
        node = self.members[key]
        return UnknownValue.VALUE if node is None else parse_literal(node)


def get_text(node: Node) -> str:
    """Return the source text of a syntax tree node."""
    return (node.text or b"").decode("utf-8", "replace")


def unwrap_expression(node: Node) -> Node:
    """Return the expression without parentheses and without syntax that only the type checker reads."""
    while node.type in _WRAPPERS:
        inner = [child for child in node.named_children if child.type != "comment"]
        if not inner:
            break
        node = inner[-1] if node.type == "type_assertion" else inner[0]
    return node


def parse_object(node: Node) -> ObjectLiteral | None:
    """Parse the members of an object literal, or return None if the node is something else."""
    node = unwrap_expression(node)
    if node.type != "object":
        return None
    members: dict[str, Node | None] = {}
    is_open = False
    for member in node.named_children:
        if member.type == "comment":
            continue
        key = _find_key(member)
        if key is None:  # a spread or a computed key: may set any key, those before it included
            members = dict.fromkeys(members)
            is_open = True
        else:
            members[key] = member.child_by_field_name("value") if member.type == "pair" else None
    return ObjectLiteral(members, is_open)


def parse_literal(node: Node, depth: int = 0) -> Literal:
    """Evaluate an expression that consists only of literals, or return UNKNOWN."""
    node = unwrap_expression(node)
    if depth > _MAX_DEPTH or node.has_error:
        return UnknownValue.VALUE
    match node.type:
        case "string" | "template_string" | "binary_expression":
            return _parse_text(node)
        case "object":
            return _parse_mapping(node, depth)
        case "array":
            elements = [parse_literal(child, depth + 1) for child in node.named_children if child.type != "comment"]
            return UnknownValue.VALUE if UnknownValue.VALUE in elements else cast("list[JsonValue]", elements)
        case "number" | "unary_expression":
            return _parse_number(get_text(node))
        case kind:
            return _CONSTANTS.get(kind, UnknownValue.VALUE)


def _parse_mapping(node: Node, depth: int) -> Literal:
    members = parse_object(node)
    if members is None or members.is_open:
        return UnknownValue.VALUE
    values = {
        key: parse_literal(value, depth + 1) if value else UnknownValue.VALUE for key, value in members.members.items()
    }
    return UnknownValue.VALUE if UnknownValue.VALUE in values.values() else cast("dict[str, JsonValue]", values)


def _find_key(member: Node) -> str | None:
    """Return the name that an object member sets, or None if the source does not spell it out."""
    if member.type == "shorthand_property_identifier":
        return get_text(member)
    key = member.child_by_field_name("key" if member.type == "pair" else "name")
    if key is None:
        return None
    if key.type == "property_identifier":
        name = get_text(key)
        return None if "\\" in name else name
    if key.type == "string":
        return _unescape(get_text(key)[1:-1])
    return get_text(key) if key.type == "number" else None


def _parse_text(node: Node) -> str | UnknownValue:
    """Evaluate a string, a template without interpolation, or a sum of these. Returns UNKNOWN for anything else."""
    parts = []
    for operand in _iter_operands(node):
        if operand.type == "string":
            part = _unescape(get_text(operand)[1:-1])
        elif operand.type == "template_string" and all(
            child.type != "template_substitution" for child in operand.named_children
        ):
            # ECMA-262: the line ends of a template are line feeds, whatever the file has
            part = _unescape(get_text(operand)[1:-1].replace("\r\n", "\n").replace("\r", "\n"))
        else:
            part = None
        if part is None:
            return UnknownValue.VALUE
        parts.append(part)
    return to_well_formed("".join(parts))


def _iter_operands(node: Node) -> Iterator[Node]:
    """Yield the operands of a sum from left to right. A node that is not a sum is its own only operand."""
    pending = [node]
    while pending:
        current = unwrap_expression(pending.pop())
        operator = current.child_by_field_name("operator") if current.type == "binary_expression" else None
        first, second = current.child_by_field_name("left"), current.child_by_field_name("right")
        if operator is not None and operator.type == "+" and first is not None and second is not None:
            pending += [second, first]
        else:
            yield current


def _unescape(source: str) -> str | None:
    """Resolve the escapes between two quotes; None for one that a module may not contain (ECMA-262, 12.9.4)."""
    wrong = False

    def replacement(match: re.Match[str]) -> str:
        nonlocal wrong
        hexadecimal = match["point"] or match["unit"] or match["byte"]
        if hexadecimal and int(hexadecimal, 16) <= 0x10FFFF:
            return chr(int(hexadecimal, 16))
        wrong = wrong or hexadecimal is not None or match["wrong"] is not None
        if match["zero"]:
            return "\0"
        other = match["other"] or ""
        return _SINGLE_ESCAPES.get(other, other)

    text = _ESCAPE.sub(replacement, source)
    return None if wrong else text


def _parse_number(source: str) -> int | float | UnknownValue:
    """Parse a plain decimal number, or return UNKNOWN. Other notations are too rare in a schema to be supported."""
    digits = source.removeprefix("-").strip()
    if not _DECIMAL.fullmatch(digits):
        return UnknownValue.VALUE
    value = int(digits) if digits.isdigit() else float(digits)
    return -value if source.startswith("-") else value
