"""Streaming reader for large JSON: one member at a time, so memory does not grow with the file."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from msgspec import MsgspecError
from msgspec.json import Decoder, decode

from eval_gate.errors import GateError
from eval_gate.external_results.result_rows import (
    RowPlace,
    build_incomplete_error,
    build_unreadable_error,
    require_mapping,
)
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
_MAX_CUTS: Final = 4
"""Places where a text may be cut: mappings within a member may begin as it does itself."""
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_BETWEEN_MEMBERS: Final = re.compile(r',\s{0,40}\{\s{0,40}"[^"\\]{1,40}"')
"""From the end of one mapping of a list to its next one's first key."""
_VERDICT_KEYS: Final = ('"success"', '"failureReason"', '"gradingResult"')
"""Keys of promptfoo's results that say what became of one."""
CUT_OFF: Final = "ends in the middle: the tool was stopped while writing"
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")


def read_document(file: Path, shown: str) -> JsonValue:
    """Read a whole JSON document at once.

    Raises GateError `invalid-results` if the file cannot be read or is too large, and GateError if it is not
    valid JSON.
    """
    place = RowPlace(shown)
    try:
        data = read_limited_result(file, EXTERNAL_BYTES)
    except OSError as error:
        raise build_unreadable_error(place, f"cannot be read: {error.strerror}") from error
    if len(data) > EXTERNAL_BYTES:
        raise build_unreadable_error(place, f"is larger than {EXTERNAL_BYTES:,} bytes")
    return parse_value(data, place, DOCUMENT_VALUES)


def parse_value(data: bytes | str, place: RowPlace, values: int = DOCUMENT_VALUES) -> JsonValue:
    """Parse a text as a JSON value.

    NaN and infinite numbers become null, because Python's tools write them. A key that occurs twice in one object
    is an error. Raises GateError.
    """
    try:
        return parse_untrusted_json(data, values=values, constant=lambda _: None, pairs=require_unique_keys)
    except UntrustedJsonError as error:
        if error.cut_off and place.line is None:  # a line that is cut off may have others behind it
            raise build_incomplete_error(place, CUT_OFF) from None
        detail = f": {error.detail}" if error.detail else ""
        raise build_unreadable_error(place, f"{error}{detail}") from None


def is_cut_off(text: str | bytes) -> bool:
    """Whether a text would be JSON, and ends too early."""
    try:
        parse_untrusted_json(text, values=DOCUMENT_VALUES, constant=lambda _: None)
    except UntrustedJsonError as error:
        return error.cut_off
    return False


def parse_raw(data: bytes) -> JsonValue:
    """Parse bytes that a `shape` left undecoded and that are therefore known to be JSON."""
    try:
        value: JsonValue = decode(data)
    except MsgspecError:  # such as a number that is out of range
        text = data.decode()
        value = json.loads(text, parse_constant=lambda _: None, parse_float=_parse_finite)
        return replace_surrogates(value) if _SURROGATE.search(text) else value
    return value


def _parse_finite(text: str) -> float | None:
    """Parse a number, and return None if it is out of range, as for NaN."""
    value = float(text)
    return value if math.isfinite(value) else None


def iter_json_lines(file: Path, shown: str) -> Iterator[tuple[RowPlace, JsonValue]]:
    """Yield the JSON value of every line that is not empty, with its place. Raises GateError."""
    for place, text in iter_raw_lines(file, shown):
        yield place, parse_value(text, place)


def iter_raw_lines(file: Path, shown: str) -> Iterator[tuple[RowPlace, bytes]]:
    """Yield every line that is not empty as bytes, not yet parsed as JSON, with its place.

    Raises GateError if the file cannot be read, a line is too long, or the last line is cut off.
    """
    place = RowPlace(shown)
    try:
        with file.open("rb") as stream:
            number = 0
            while line := stream.readline(EXTERNAL_LINE_BYTES + 1):
                number += 1
                place = RowPlace(shown, number)
                if len(line) > EXTERNAL_LINE_BYTES:
                    raise build_unreadable_error(place, f"is longer than {EXTERNAL_LINE_BYTES:,} bytes")
                text = line.strip().removeprefix(codecs.BOM_UTF8)
                if text and not line.endswith(b"\n") and is_cut_off(text):  # the last one
                    raise build_incomplete_error(place, CUT_OFF)
                if text:
                    yield place, text
    except OSError as error:
        raise build_unreadable_error(place, f"cannot be read: {error.strerror}") from error


class JsonReader:
    """Single-pass reader of a JSON document that parses values on demand."""

    def __init__(self, stream: IO[str], shown: str) -> None:
        """`stream` is decoded already."""
        self._stream = stream
        self._place = RowPlace(shown)
        self._text = stream.read(1).removeprefix(_BYTE_ORDER_MARK)
        self._at = 0
        self._reads = 0
        # Python's tools write NaN
        self._decode = json.JSONDecoder(
            parse_constant=lambda _: None, parse_float=_parse_finite, object_pairs_hook=require_unique_keys
        ).raw_decode

    def begins_with(self, sign: str) -> bool:
        """Whether this character comes next."""
        return self._peek_sign() == sign

    def iter_keys(self) -> Iterator[str]:
        """Yield the keys of the object that begins here; the value of each is read before the next key."""
        self._expect_sign("{")
        if self._skip_sign("}"):
            return
        while True:
            key = self.read_value()
            if not isinstance(key, str):
                raise build_unreadable_error(self._place, "is not JSON: a key is not a text")
            self._expect_sign(":")
            yield key
            if self._skip_sign("}"):
                return
            self._expect_sign(",")

    def iter_members(self, shape: type[Mapping[str, Any]] | None = None) -> Iterator[JsonValue]:
        """Yield the values of the list that begins at the current position.

        With a `shape` (a TypedDict), keys that the shape lacks may be missing from members that are mappings: skipping
        them takes a third of the time. Raises GateError if no list begins there.
        """
        self._expect_sign("[")
        if self._skip_sign("]"):
            return
        many = _BatchReader(shape) if shape is not None else None
        while True:
            if many is not None:
                yield from self._iter_batch(many)
            yield self.read_value()
            if self._skip_sign("]"):
                return
            if many is not None:
                many.learn_separator(self._text, self._at)
            self._expect_sign(",")

    def _iter_batch(self, many: _BatchReader) -> Iterator[JsonValue]:
        """All members that the text at hand has but its last, where they are as they usually are."""
        while many.reads < self._reads:  # a text that could not be read so is not tried again
            many.reads = self._reads
            self._peek_sign()
            found, end = many.read_batch(self._text, self._at)
            if found:
                self._at = end
                self._expect_sign(",")
                yield from found
                self._peek_sign()

    def read_value(self) -> JsonValue:
        """Read the whole value that begins at the current position.

        Raises GateError if it is not valid JSON, is cut off, is too long, or is nested too deeply.
        """
        self._peek_sign()
        while True:
            try:
                value, end = self._decode(self._text, self._at)
            except RecursionError:
                raise build_unreadable_error(self._place, "is nested too deeply") from None
            except UntrustedJsonError as error:
                raise build_unreadable_error(self._place, str(error)) from None
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
                raise build_unreadable_error(
                    self._place, f"contains a value of more than {EXTERNAL_LINE_BYTES:,} characters"
                )
            if not self._read_more():
                raise self._build_error(problem, where)

    def _build_error(self, problem: str, where: int) -> GateError:
        """Build the error for a value that is invalid, or that is incomplete because the text is cut off."""
        if is_truncated_json(self._text, where, problem):
            return build_incomplete_error(self._place, CUT_OFF)
        return build_unreadable_error(self._place, f"is not JSON: {problem}")

    def require_end(self) -> None:
        """Raise GateError if anything follows the document."""
        if self._peek_sign():
            raise build_unreadable_error(self._place, "is not JSON: it has text after its end")

    def _expect_sign(self, sign: str) -> None:
        if not self._skip_sign(sign):
            found = self._peek_sign()
            if is_truncated_json(self._text, self._at, ""):
                raise build_incomplete_error(self._place, CUT_OFF)
            raise build_unreadable_error(self._place, f"is not JSON: {sign} expected, found {found}")

    def _skip_sign(self, sign: str) -> bool:
        if self._peek_sign() != sign:
            return False
        self._at += 1
        return True

    def _peek_sign(self) -> str:
        """Return the next character that is not white space, or an empty text at the end."""
        while True:
            found = _SPACE.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read_more():
                return ""

    def _read_more(self) -> bool:
        """Read on: as much again as is left over, so that a long value is not begun too often."""
        rest = self._text[self._at :]
        read = self._stream.read(max(_CHUNK, len(rest)))
        self._text, self._at = rest + read, 0
        self._reads += 1
        return bool(read)


class _BatchReader:
    """Reader of many mappings of a list at once. It leaves anything unusual to the reader of single ones."""

    def __init__(self, shape: type[Mapping[str, Any]]) -> None:
        # which shape it is, is known only here
        self._decoder: Decoder[list[JsonValue]] = Decoder(list[shape])  # type: ignore[valid-type]
        self._between = ""
        self.reads = -1
        """How often the text had been read on when it was tried last."""

    def learn_separator(self, text: str, at: int) -> None:
        """Remember the text between two members, which begins at position `at`.

        One sample is enough, because every tool writes the same text between all members.
        """
        if not self._between and (found := _BETWEEN_MEMBERS.match(text, at)):
            self._between = found.group()
            self.reads = -1

    def read_batch(self, text: str, at: int) -> tuple[list[JsonValue], int]:
        """Read as many members as possible from `at` on, and return them with their end position.

        Returns an empty list and `at` if the text cannot be read this way. The text is tried up to several possible
        ends of a member: if such an end lies within a member, the text before it is not valid JSON.
        """
        end = len(text)
        for _ in range(_MAX_CUTS if self._between else 0):
            end = text.rfind(f"}}{self._between}", at, end) + 1
            if not end:
                break
            try:
                found = self._decoder.decode(f"[{text[at:end]}]")
            except (MsgspecError, RecursionError, ValueError):
                continue
            # which of two verdicts of one member counts, only who reads one by one finds out
            once = all(text.count(key, at, end) <= len(found) for key in _VERDICT_KEYS)
            return (found, end) if once else ([], at)
        return [], at


@contextmanager
def open_document(file: Path, shown: str) -> Iterator[JsonReader]:
    """Open a JSON document to read it step by step. Raises GateError if the file cannot be read."""
    try:
        with file.open(encoding="utf-8") as stream:
            yield JsonReader(stream, shown)
    except OSError as error:
        raise build_unreadable_error(RowPlace(shown), f"cannot be read: {error.strerror}") from error


def iter_listed_mappings(
    document: JsonReader, shown_as: str, lists: Sequence[str], other_values: dict[str, JsonValue] | None = None
) -> Iterator[tuple[RowPlace, dict[str, JsonValue]]]:
    """Yield the members of a document that is a list, else of its `lists` of these names, with their places.

    The values of keys that are in `other_values` are put there as they are read. Raises GateError if there is no such
    list, or a member is not a mapping.
    """
    found = document.begins_with("[")
    if found:
        yield from _iter_mappings(document, shown_as, "")
    for key in () if found else document.iter_keys():
        if key in lists:
            found = True
            yield from _iter_mappings(document, shown_as, key)
        elif other_values is not None and key in other_values:
            other_values[key] = document.read_value()
        else:
            document.read_value()
    document.require_end()
    if not found:
        raise build_unreadable_error(RowPlace(shown_as, field=lists[0]), "is missing")


def _iter_mappings(document: JsonReader, shown_as: str, name: str) -> Iterator[tuple[RowPlace, dict[str, JsonValue]]]:
    for at, member in enumerate(document.iter_members()):
        place = RowPlace(shown_as, field=f"{name}[{at}]")
        yield place, require_mapping(member, place)
