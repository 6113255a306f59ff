"""One HTTP/1.1 answer as its bytes come: read by Node's parser (llhttp), within our bounds.

It knows no connection. Whoever has one feeds it, and is told when the answer is whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.message import Message
from http import HTTPStatus
from typing import Final, NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from eval_gate.text.foreign.quote import quote
from eval_gate.text.foreign.unpacking import PackingError, Unpacker

MAX_HEAD: Final = 262_144
"""Bytes of a head, and of what may come between two pieces of the body and behind the last."""
MAX_LINE: Final = 65_536
MAX_FIELDS: Final = 256
_SHOWN: Final = 80
_SWITCHES: Final = 101
_BODILESS: Final = frozenset({204, 304})
_NEW_LINE: Final = b"\n"
_ENDS_A_LINE: Final = re.compile(rb"[\r\n\0]")
_STATUSES: Final = frozenset(map(int, HTTPStatus))


class AnswerHead(NamedTuple):
    """What an answer begins with."""

    status: int
    reason_phrase: str
    """The words behind the status, as they came."""
    headers: Mapping[str, str]
    """By their names in small letters; of several of one name the first."""

    @property
    def is_success(self) -> bool:
        """Whether it is 2xx."""
        return 200 <= self.status <= 299

    @property
    def is_redirect(self) -> bool:
        """Whether it is 3xx."""
        return 300 <= self.status <= 399

    @property
    def reason(self) -> str:
        """The words behind the status, else the usual ones."""
        usual = HTTPStatus(self.status).phrase if self.status in _STATUSES else ""
        return self.reason_phrase.encode("ascii", "ignore").decode() if self.reason_phrase else usual

    def header(self, name: str) -> str:
        """The first header of this name as text, whatever its bytes are; "" for none."""
        text = self.headers.get(name, "")
        if text.isascii():
            return text
        data = text.encode("utf-8", "surrogateescape")
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data.decode("latin-1")

    @property
    def charset(self) -> str | None:
        """What the content type says the text is encoded as; None where it does not."""
        kind = Message()
        kind["content-type"] = self.header("content-type")
        return kind.get_content_charset(failobj=None)


class NoHttpError(ValueError):
    """What came is no HTTP; the message says what is wrong with it, bounded."""


class IncomingAnswer:
    """The answer to one request. `feed` it until it is `whole`; `ended` when the connection is at its end."""

    def __init__(self, method: str, *, success_limit: int, error_limit: int) -> None:
        """Of the body as it is unpacked no more is kept than the limit, and a piece: whoever reads it sees that."""
        self.head: AnswerHead | None = None
        """What it begins with; None as long as that is not there."""
        self.body = bytearray()
        self.whole = False
        self.reusable = False
        """Once it is whole: whether the connection may be asked again."""
        self._bodiless = method == "HEAD"
        self._limits = success_limit, error_limit
        self._limit = 0
        self._first = b""
        self._said = b""
        self._fields: dict[str, list[str]] = {}
        self._count = 0
        self._quiet = 0
        """Bytes since the last of the body."""
        self._until_end = False
        """The connection's end is the body's."""
        self._unpacker: Unpacker | None = None
        self._parser = HttpResponseParser(self)
        # as other clients read answers: lines without a return, fields that go on in the next line
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    def feed(self, data: bytes) -> None:
        """The next bytes. Raises NoHttpError, and PackingError for a body that cannot be unpacked."""
        if self.head is None:
            self._first = (self._first + data[:_SHOWN])[:_SHOWN]
        self._quiet += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            if not self.whole:
                raise self._wrong(error) from error
            self.reusable = False  # nobody asked for what comes behind it
        if self._quiet > MAX_HEAD and not self.whole:
            what = "its head" if self.head is None else "what is around its body"
            raise NoHttpError(f"{what} is longer than {MAX_HEAD:,} bytes")

    def ended(self) -> bool:
        """The connection is at its end: whether that is also the end of the answer."""
        self.whole = self.whole or self._until_end
        return self.whole

    def let_go(self) -> None:
        """Nothing more will come. The parser holds on to whom it tells, and so to the body."""
        del self._parser

    def _wrong(self, error: Exception) -> Exception:
        """What it is that came."""
        ours = error.__context__
        if isinstance(ours, NoHttpError | PackingError):
            return ours
        if not self._parser.get_status_code():
            line, ended, _ = self._first.strip().partition(_NEW_LINE)
            # that it was cut has to be seen: whoever masks secrets looks for a part of one there
            more = b"" if ended or len(self._first) < _SHOWN else "…".encode()
            return NoHttpError(f"it begins {quote(line.rstrip() + more)}")
        return NoHttpError(str(error))

    # what the parser tells, in this order; it brings what is raised here to `feed`

    def on_message_begin(self) -> None:
        """An answer begins: ours, or one that says to go on and wait, or one that nobody asked for."""
        if self.whole:
            self.reusable = False
        self._said, self._count = b"", 0
        self._fields.clear()

    def on_status(self, data: bytes) -> None:
        """A part of the words behind the status."""
        self._said += data

    def on_header(self, name: bytes, value: bytes) -> None:
        """A line of the head, or of what follows the last chunk, in which nothing is that anybody wants to know."""
        if self.head is not None:
            return
        self._count += 1
        if self._count > MAX_FIELDS:
            raise NoHttpError(f"its head has more than {MAX_FIELDS} lines")
        if len(value) > MAX_LINE or _ENDS_A_LINE.search(value):
            raise NoHttpError(f"a line of its head is none: {quote(name + b': ' + value)}")
        # the parser bears a space before the colon, and goes by such a length: what it goes by is what we see
        field = name.decode("ascii").rstrip(" ").lower()
        around = " " if field == "transfer-encoding" else " \t"  # a tab behind it, and the parser sees no chunks
        self._fields.setdefault(field, []).append(value.decode("utf-8", "surrogateescape").strip(around))

    def on_headers_complete(self) -> None:
        """The head is there, of the answer or of one that comes before it."""
        if self.whole:
            return
        status = self._parser.get_status_code()
        if status < 100:  # three digits that are no status (RFC 9110, 15), behind which a body may come
            raise NoHttpError(f"its status is {status}")
        if status <= 199 and status != _SWITCHES:
            return
        fields, said = self._fields, self._said.decode("utf-8", "surrogateescape").strip()
        self.head = AnswerHead(status, said, {name: values[0] for name, values in fields.items()})
        self._limit = self._limits[0] if 200 <= status <= 299 else self._limits[1]
        if "content-encoding" in fields:
            self._unpacker = Unpacker(fields["content-encoding"])
        coded = ",".join(fields.get("transfer-encoding", ()))
        if self._bodiless or status == _SWITCHES:
            self.whole = True
        elif coded and coded.lower() != "chunked" and status not in _BODILESS:
            raise NoHttpError(f"its Transfer-Encoding is {quote(coded.encode('unicode_escape'))}")
        self._until_end = not coded and "content-length" not in fields

    def on_body(self, data: bytes) -> None:
        """The next bytes of the body. They are kept as far as there is room for them."""
        self._quiet = 0
        if self.whole:
            return
        if self._unpacker is None:
            self.body += data
            self.whole = len(self.body) > self._limit
            return
        for piece in self._unpacker.pieces(data):
            self.body += piece
            self.whole = len(self.body) > self._limit
            if self.whole:
                return

    def on_message_complete(self) -> None:
        """The answer is whole, or the one that comes before it."""
        if self.head is not None and not self.whole:
            self.whole = True
            self.reusable = self._parser.should_keep_alive()
