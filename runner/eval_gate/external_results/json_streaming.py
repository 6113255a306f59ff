"""Streaming reader for large JSON: one member at a time, so memory does not grow with the file."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import IO, Final

from eval_gate.errors import GateError
from eval_gate.external_results.records import Fields, require_record
from eval_gate.external_results.result_rows import RowPlace
from eval_gate.files.reading import read_limited_result
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import DOCUMENT_VALUES, EXTERNAL_BYTES, EXTERNAL_LINE_BYTES
from eval_gate.text.untrusted.bounded_json import (
    UntrustedJsonError,
    is_truncated_json,
    parse_untrusted_json,
    require_unique_keys,
)
from eval_gate.text.untrusted.surrogates import replace_surrogates

_BYTE_ORDER_MARK: Final = "\ufeff"
"""May stand at a file's beginning. Python's codec that knows of it takes twice as long for all of the file."""
_CHUNK: Final = 1 << 20
_SPACE: Final = re.compile(r"[ \t\r\n]*")
CUT_OFF: Final = "ends in the middle: the tool was stopped while writing"
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")


def read_document(file: Path, shown_as: str) -> JsonValue:
    """Read a whole JSON document at once. Raises GateError if it cannot be read, is too large or is not JSON."""
    place = RowPlace(shown_as)
    with place.name_errors():
        data = read_limited_result(file, EXTERNAL_BYTES)
    if len(data) > EXTERNAL_BYTES:
        raise place.build_error(f"is larger than {EXTERNAL_BYTES:,} bytes")
    return parse_value(data, place, DOCUMENT_VALUES)


def read_record(file: Path, shown_as: str) -> Fields:
    """Read the same as a record. Raises GateError, also if it is not a mapping."""
    return require_record(read_document(file, shown_as), RowPlace(shown_as))


def parse_value(data: bytes | str, place: RowPlace, values: int = DOCUMENT_VALUES) -> JsonValue:
    """Parse JSON, whose NaN and infinite numbers, as Python's tools write them, become null. Raises GateError."""
    try:
        return parse_untrusted_json(data, values=values, constant=lambda _: None, pairs=require_unique_keys)
    except UntrustedJsonError as error:
        if error.cut_off and place.line is None:  # a line that is cut off may have others behind it
            raise place.build_incomplete_error(CUT_OFF) from None
        detail = f": {error.detail}" if error.detail else ""
        raise place.build_error(f"{error}{detail}") from None


def is_cut_off(text: str | bytes) -> bool:
    """Whether a text would be JSON, and ends too early."""
    try:
        parse_untrusted_json(text, values=DOCUMENT_VALUES, constant=lambda _: None)
    except UntrustedJsonError as error:
        return error.cut_off
    return False


def _parse_finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def iter_lines(file: Path, shown_as: str) -> Iterator[tuple[RowPlace, Fields]]:
    """Yield the mapping in every line that is not empty, with its place. Raises GateError."""
    for place, text in iter_raw_lines(file, shown_as):
        yield place, require_record(parse_value(text, place), place)


def iter_raw_lines(file: Path, shown_as: str) -> Iterator[tuple[RowPlace, bytes]]:
    """Yield the bytes of every line that is not empty, with its place. Raises GateError."""
    with RowPlace(shown_as).name_errors(), file.open("rb") as stream:
        for number in count(1):
            line, place = stream.readline(EXTERNAL_LINE_BYTES + 1), RowPlace(shown_as, number)
            if not line:
                return
            if len(line) > EXTERNAL_LINE_BYTES:
                raise place.build_error(f"is longer than {EXTERNAL_LINE_BYTES:,} bytes")
            text = line.strip().removeprefix(codecs.BOM_UTF8)
            if text and not line.endswith(b"\n") and is_cut_off(text):  # the last one
                raise place.build_incomplete_error(CUT_OFF)
            if text:
                yield place, text


class JsonReader:
    """Single-pass reader of a JSON document that parses values on demand."""

    def __init__(self, stream: IO[str], shown_as: str) -> None:
        """Read a decoded stream, which errors show as `shown_as`."""
        self._stream = stream
        self._place = RowPlace(shown_as)
        self._text = stream.read(1).removeprefix(_BYTE_ORDER_MARK)
        self._at = 0
        # Python's tools write NaN
        self._decode = json.JSONDecoder(
            parse_constant=lambda _: None, parse_float=_parse_finite, object_pairs_hook=require_unique_keys
        ).raw_decode

    def begins_with(self, sign: str) -> bool:
        """Whether this character comes next."""
        return self._peek_sign() == sign

    def iter_keys(self) -> Iterator[str]:
        """Yield the keys of the object that begins here; the value of each is read before the next key."""
        for _ in self._iter_places("{", "}"):
            key = self.read_value()
            if not isinstance(key, str):
                raise self._place.build_error("is not JSON: a key is not a text")
            self._expect_sign(":")
            yield key

    def iter_members(self) -> Iterator[JsonValue]:
        """Yield the values of the list that begins at the current position. Raises GateError if none begins there."""
        return (self.read_value() for _ in self._iter_places("[", "]"))

    def _iter_places(self, begin: str, end: str) -> Iterator[None]:
        """Yield before each part of what begins here; it is read before the next one."""
        self._expect_sign(begin)
        is_over = self._skip_sign(end)
        while not is_over:
            yield
            is_over = self._skip_sign(end)
            if not is_over:
                self._expect_sign(",")

    def iter_records(self, name: str) -> Iterator[tuple[RowPlace, Fields]]:
        """Yield the mappings of the list that begins here, with their places. Raises GateError."""
        for at, member in enumerate(self.iter_members()):
            place = self._place._replace(field=f"{name}[{at}]")
            yield place, require_record(member, place)

    def read_value(self) -> JsonValue:
        """Read the whole value that begins at the current position. Raises GateError if it cannot be read."""
        self._peek_sign()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except RecursionError:
                raise self._place.build_error("is nested too deeply") from None
            except UntrustedJsonError as error:
                raise self._place.build_error(str(error)) from None
            except ValueError as error:
                # the error itself leads to this frame, and would hold all that is read until Python looks for rings
                problem, where = str(error), getattr(error, "pos", 0)
            else:
                if end < len(self._text) or not self._read_more():
                    halves = _SURROGATE.search(self._text, self._at, end) is not None
                    self._at = end
                    return replace_surrogates(value) if halves else value
                continue  # a number may go on
            if len(self._text) - self._at > EXTERNAL_LINE_BYTES:
                raise self._place.build_error(f"contains a value of more than {EXTERNAL_LINE_BYTES:,} characters")
            if not self._read_more():
                raise self._build_error(problem, where)

    def _build_error(self, problem: str, where: int) -> GateError:
        if is_truncated_json(self._text, where, problem):
            return self._place.build_incomplete_error(CUT_OFF)
        return self._place.build_error(f"is not JSON: {problem}")

    def require_end(self) -> None:
        """Raise GateError if anything follows the document."""
        if self._peek_sign():
            raise self._place.build_error("is not JSON: it has text after its end")

    def _expect_sign(self, sign: str) -> None:
        if not self._skip_sign(sign):
            next_sign = self._peek_sign()
            if is_truncated_json(self._text, self._at, ""):
                raise self._place.build_incomplete_error(CUT_OFF)
            raise self._place.build_error(f"is not JSON: {sign} expected, found {next_sign}")

    def _skip_sign(self, sign: str) -> bool:
        if self._peek_sign() != sign:
            return False
        self._at += 1
        return True

    def _peek_sign(self) -> str:
        while True:
            space = _SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read_more():
                return ""

    def _read_more(self) -> bool:
        """Read on: as much again as is left over, so that a long value is not begun too often."""
        rest = self._text[self._at :]
        read = self._stream.read(max(_CHUNK, len(rest)))
        self._text, self._at = rest + read, 0
        return bool(read)


@contextmanager
def open_document(file: Path, shown_as: str) -> Iterator[JsonReader]:
    """Open a JSON document to read it step by step. Raises GateError if the file cannot be read."""
    with RowPlace(shown_as).name_errors(), file.open(encoding="utf-8") as stream:
        yield JsonReader(stream, shown_as)


def iter_records(
    document: JsonReader, shown_as: str, lists: Sequence[str], other_values: dict[str, JsonValue] | None = None
) -> Iterator[tuple[RowPlace, Fields]]:
    """Yield the members of a document that is a list, else of its `lists` of these names, with their places.

    The values of keys that are in `other_values` are put there as they are read. Raises GateError if there is no such
    list, or a member is not a mapping.
    """
    has_list = document.begins_with("[")
    if has_list:
        yield from document.iter_records("")
    for key in () if has_list else document.iter_keys():
        if key in lists:
            has_list = True
            yield from document.iter_records(key)
        elif other_values is not None and key in other_values:
            other_values[key] = document.read_value()
        else:
            document.read_value()
    document.require_end()
    if not has_list:
        raise RowPlace(shown_as, field=lists[0]).build_error("is missing")
