"""Strict JSON parser with line numbers: no duplicate keys, NaN or comments; bounded size and depth.

Numbers are those that computers calculate with: `1e400` is refused as NaN is.
"""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from json import decoder
from typing import Any, Final, NamedTuple, NoReturn

from eval_gate.errors import GateError, Problem
from eval_gate.model import limits
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import DEPTH, DOCUMENT_VALUES
from eval_gate.text.untrusted.bounded_json import (
    UntrustedJsonError,
    check_json_size,
    may_hold_huge_number,
    parse_finite_number,
    refuse_constant,
)
from eval_gate.text.untrusted.surrogates import may_hold_surrogates, replace_surrogates

MAX_BYTES: Final = limits.EVAL_FILE_BYTES
MAX_DEPTH = DEPTH
_MAX_DIGITS: Final = limits.FILE_DIGITS
"""Digits of a number: more is not a value anybody compares with."""
_BLANKS: Final = re.compile(r"[ \t\n\r]*")
_scanstring: Final[Any] = vars(decoder)["scanstring"]  # the types of the standard library name neither of the two
scan_value: Final[Any] = vars(json.JSONDecoder(parse_int=len, parse_float=len))["scan_once"]
"""Scans a value and its end; its numbers are not parsed."""
_COMMENTS: Final = ("//", "/*", "#")
_YAML_START: Final = re.compile(r"(?:%YAML|---)(?:\s|$)|- \S|[A-Za-z_][\w. -]{0,100}:(?:\s|$)", re.ASCII)
"""How the first line of YAML begins that says something."""
_MAX_LOOKAHEAD: Final = 10_000
"""Characters in which the first such line is looked for."""


class JsonSpan(NamedTuple):
    """Place of a value. `start` is where its key begins; of an element, where the value does."""

    start: int
    begin: int
    end: int


def iter_members(text: str, begin: int) -> Iterator[tuple[str | int, JsonSpan]]:
    """Yield the members of the object, or the elements of the list, that begins there in valid JSON, in their order."""
    is_object, number = text.startswith("{", begin), 0
    at = skip_blanks(text, begin + 1) if is_object or text.startswith("[", begin) else len(text)
    while at < len(text) and text[at] not in "]}":
        key: str | int = number
        start = at
        if is_object:
            key, at = _scanstring(text, at + 1)
            at = skip_blanks(text, skip_blanks(text, at) + 1)
        end = scan_value(text, at)[1]
        yield key, JsonSpan(start, at, end)
        number, at = number + 1, skip_blanks(text, end)
        if text.startswith(",", at):
            at = skip_blanks(text, at + 1)


def skip_blanks(text: str, at: int) -> int:
    """Find the next sign that is no blank."""
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at


class JsonPositions:
    """Lines of the values in valid JSON, scanned on demand: a tree of all takes ten times the memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._members: dict[int, dict[str | int, tuple[int, int, int]]] = {}

    def find_line(self, path: Sequence[str | int]) -> int:
        """Find the line (from 1) of the key or element at `path`, or of its nearest existing ancestor."""
        at = skip_blanks(self._text, 0)
        line = value_line = self._text.count("\n", 0, at) + 1
        for step in path:
            member = self._list_members(at, value_line).get(step)
            if member is None:
                break
            line, value_line, at = member
        return line

    def find_unquoted(self, path: Sequence[str | int]) -> str | None:
        """Return None: JSON has no words without quotes that another reader takes for true or false."""

    @cached_property
    def _text(self) -> str:
        return self._data.decode()

    def _list_members(self, begin: int, line: int) -> dict[str | int, tuple[int, int, int]]:
        """List the line of each member or element of the value at `begin`, and line and position of its value."""
        if begin in self._members:
            return self._members[begin]
        text, counted = self._text, begin
        members: dict[str | int, tuple[int, int, int]] = {}
        for key, span in iter_members(text, begin):
            line, counted = line + text.count("\n", counted, span.start), span.start
            members[key] = line, line + text.count("\n", counted, span.begin), span.begin
        self._members[begin] = members
        return members


def parse_json(
    data: bytes, file: str, *, halves: bool = False, values: int = DOCUMENT_VALUES
) -> tuple[JsonValue, JsonPositions]:
    """Parse a JSON document of at most `values` values, and return it with the lines of its values.

    Half a surrogate pair, which no file can hold, becomes U+FFFD. With `halves` it stays, for callers that
    report where it is. Raises GateError `invalid-json`, naming file and line.
    """
    text = _decode_text(data, file)
    try:  # before anything is built of it
        check_json_size(data, values, MAX_DEPTH)
    except UntrustedJsonError as error:
        _raise_invalid(file, None, str(error).removeprefix("is "))
    duplicates: list[str] = []

    def build_object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        members = dict(pairs)
        if len(members) < len(pairs):
            duplicates.extend(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
        return members

    try:
        value: JsonValue = json.loads(
            text,
            object_pairs_hook=build_object,
            parse_constant=refuse_constant,
            parse_int=_parse_bounded_int,
            parse_float=parse_finite_number if may_hold_huge_number(data) else None,
        )
    except json.JSONDecodeError as error:
        _raise_invalid(file, *explain_json_error(text, error))
    except RecursionError:
        _raise_invalid(file, None, f"nested deeper than {MAX_DEPTH} levels")
    except ValueError as error:
        _raise_invalid(file, None, (isinstance(error, UntrustedJsonError) and error.detail) or str(error))
    if duplicates:
        _raise_invalid(
            file, _find_second_line(text, duplicates[0]), f'the key "{duplicates[0][:100]}" occurs twice in one object'
        )
    if not halves and may_hold_surrogates(data):
        value = replace_surrogates(value)
    return value, JsonPositions(data.removeprefix(codecs.BOM_UTF8))


def _decode_text(data: bytes, file: str) -> str:
    if len(data) > MAX_BYTES:
        _raise_invalid(file, None, f"larger than {MAX_BYTES:,} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        where = f"byte {error.start} is 0x{data[error.start]:02x}"
        _raise_invalid(file, line, f"not UTF-8 ({where}): save the file as UTF-8")


def _parse_bounded_int(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"a number of {len(digits):,} digits")
    return int(digits)


def _find_second_line(text: str, key: str) -> int | None:
    """Find the line where a key is written for the second time, as a good guess for people."""
    places = [match.start() for match in re.finditer(re.escape(json.dumps(key, ensure_ascii=False)) + r"\s*:", text)]
    return text.count("\n", 0, places[1]) + 1 if len(places) > 1 else None


def _raise_invalid(file: str, line: int | None, message: str) -> NoReturn:
    raise GateError(
        "invalid-json",
        f"{file} is not valid JSON",
        "correct the file; JSON has no comments, trailing commas or NaN",
        problems=[Problem(message, file=file, line=line)],
    )


def explain_json_error(text: str, error: json.JSONDecodeError) -> tuple[int, str]:
    """Explain an error that Python's parser raised for this text: its line, and a sentence with the column."""
    if not text.strip():
        return 1, "the file is empty"
    yaml = _find_yaml(text, error.pos)
    if yaml is not None:
        line, column = _to_line_and_column(text, yaml)
        return line, f"this is YAML, but the file must be JSON: write it as JSON from line {line} (column {column}) on"
    comma = _find_trailing_comma(text, error.pos)
    if comma is not None:
        line, column = _to_line_and_column(text, comma)
        return line, f"trailing comma: remove it in line {line} (column {column})"
    at = _skip_whitespace(text, error.pos)
    line, column = _to_line_and_column(text, at)
    rest = text[at : at + 2]
    if rest.startswith(_COMMENTS):
        return line, f"JSON has no comments: remove the comment in line {line} (column {column})"
    if rest.startswith("'"):
        return line, f"single quotes: write double quotes in line {line} (column {column})"
    if error.msg == "Extra data":
        return line, f"unexpected text after the end of the value (column {column})"
    return error.lineno, f"{error.msg[:1].lower()}{error.msg[1:]} (column {error.colno})"


def _find_yaml(text: str, at: int) -> int | None:
    """Find where YAML begins; None if this is no YAML, or JSON began before it."""
    begin = 0
    for line in text[:_MAX_LOOKAHEAD].splitlines(keepends=True):
        if line.strip() and not line.startswith("#"):
            # what stands before the place of the error was read as JSON: a word such as `null` at most
            return begin if _YAML_START.match(line) and at <= begin + len(line) else None
        begin += len(line)
    return None


def _find_trailing_comma(text: str, at: int) -> int | None:
    """Find a comma before a closing bracket; Python's versions differ in which of the two they report."""
    end = _skip_whitespace(text, at + 1 if text[at : at + 1] == "," else at)
    if text[end : end + 1] not in ("}", "]"):
        return None
    head = text[:end].rstrip()
    return len(head) - 1 if head.endswith(",") else None


def _skip_whitespace(text: str, at: int) -> int:
    """Find the next position that is not white space."""
    return len(text) - len(text[at:].lstrip())


def _to_line_and_column(text: str, at: int) -> tuple[int, int]:
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
