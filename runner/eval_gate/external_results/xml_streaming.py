"""Streaming reader for untrusted XML: it refuses a document type, which allows entity bombs, and deep nesting."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.parsers import expat

from eval_gate.external_results.json_streaming import CUT_OFF
from eval_gate.external_results.result_rows import RowPlace
from eval_gate.model.limits import EXTERNAL_DEPTH, EXTERNAL_TEXT

_TRUNCATION_ERRORS: Final = frozenset(
    {
        expat.errors.XML_ERROR_NO_ELEMENTS,
        expat.errors.XML_ERROR_UNCLOSED_TOKEN,
        expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
        expat.errors.XML_ERROR_PARTIAL_CHAR,
    }
)
"""What is wrong with XML at its end alone."""
_CHUNK: Final = 1 << 16
_FIRST_SIGN: Final = 0x20
"""The first byte that is no control character."""


class XmlReader:
    """Reader of one XML document in pieces. A format overrides what happens at its elements."""

    format_name: str = "XML"
    """The format, as an error calls it."""
    text_names: frozenset[str] = frozenset()
    """Elements whose text is kept."""

    def __init__(self, file: Path, shown_as: str) -> None:
        """Create a reader of a file in UTF-8, which errors show as `shown_as`."""
        self._file, self._shown_as = file, shown_as
        self._open: list[str] = []
        self._text: list[str] = []
        self._length = 0
        self._fed = 0
        """Bytes that were read before."""
        # it is UTF-8 by now, whatever it declares
        self._expat = expat.ParserCreate("utf-8")
        self._expat.buffer_text = True
        self._expat.StartElementHandler = self._start
        self._expat.EndElementHandler = self._end
        self._expat.CharacterDataHandler = self._add_text
        self._expat.StartDoctypeDeclHandler = self._refuse_doctype

    def iter_pieces(self) -> Iterator[None]:
        """Read the file, and yield after each piece of it. Raises GateError for what is not such a document."""
        with RowPlace(self._shown_as).name_errors(), self._file.open("rb") as stream:
            while data := stream.read(_CHUNK):
                self._feed_data(data, last=False)
                yield
            self._feed_data(b"", last=True)
            yield

    def start_element(self, name: str, attributes: dict[str, str]) -> None:
        """Handle the start tag of an element, which is open already."""
        raise NotImplementedError

    def end_element(self, name: str) -> None:
        """Handle the end tag of an element, which is closed already."""
        raise NotImplementedError

    @property
    def line(self) -> int:
        """The line at which it is."""
        return self._expat.CurrentLineNumber

    @property
    def is_at_root(self) -> bool:
        """Whether the element that just began is the first."""
        return len(self._open) == 1

    def clear_text(self) -> None:
        """Forget the text so far: an element begins whose text counts."""
        self._text, self._length = [], 0

    def _feed_data(self, data: bytes, *, last: bool) -> None:
        try:
            self._expat.Parse(data, last)
            self._fed += len(data)
        except expat.ExpatError as error:
            place, at = RowPlace(self._shown_as, error.lineno), self._expat.ErrorByteIndex - self._fed
            sign = data[at] if 0 <= at < len(data) else None
            unprintable = sign is not None and sign < _FIRST_SIGN and sign not in b"\t\n\r"
            message = expat.errors.messages[error.code]
            if last and message in _TRUNCATION_ERRORS:
                raise place.build_incomplete_error(CUT_OFF) from None
            what = f"column {error.offset + 1} contains the control character U+{sign:04X}" if unprintable else message
            raise place.build_error(f"is not XML: {what}") from None

    def _refuse_doctype(self, *_: object) -> None:
        what = f"has a document type, which {self.format_name} does not need"
        raise RowPlace(self._shown_as, self.line).build_error(what)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        if len(self._open) > EXTERNAL_DEPTH:
            raise RowPlace(self._shown_as).build_error(f"is nested deeper than {EXTERNAL_DEPTH} levels")
        self._open.append(name)
        self.start_element(name, attributes)

    def _end(self, name: str) -> None:
        self.end_element(self._open.pop())

    def _add_text(self, text: str) -> None:
        if self._open and self._open[-1] in self.text_names and self._length < EXTERNAL_TEXT:
            self._text.append(text[: EXTERNAL_TEXT - self._length])
            self._length += len(text)
