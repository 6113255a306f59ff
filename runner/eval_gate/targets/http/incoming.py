"""One HTTP/1.1 answer as its bytes come: head, framing and body, strictly read and within bounds (RFC 9112).

It knows no connection. Whoever has one feeds it, and is told when the answer is whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.message import Message
from http import HTTPStatus
from typing import Final, NamedTuple

from eval_gate.text.foreign.quote import quote
from eval_gate.text.foreign.unpacking import Unpacker

MAX_HEAD: Final = 262_144
"""Bytes of a head, and of what may follow the last chunk."""
MAX_LINE: Final = 65_536
MAX_FIELDS: Final = 256
_PROTOCOL: Final = b"HTTP/1."
_SWITCHES: Final = 101
_BODILESS: Final = frozenset({_SWITCHES, 204, 304})
_BLANK_LINE: Final = re.compile(rb"\n\r?\n")  # many servers leave the return out, which every reader bears
_STATUS: Final = re.compile(rb"HTTP/1\.([01])[ \t]+([1-9][0-9]{2})(?:[ \t]([^\r\0]*))?")
_NAME: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_DIGITS: Final = re.compile(r"[0-9]{1,18}")
_CHUNK: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\r\n\0]*)?\r?")
_MAX_CHUNK_LINE: Final = 4_096
_STATUSES: Final = frozenset(map(int, HTTPStatus))


class Head(NamedTuple):
    """What an answer begins with."""

    status: int
    said: str
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
        return self.said.encode("ascii", "ignore").decode() if self.said else usual

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


class Incoming:
    """The answer to one request. `feed` it until it is `whole`; `ended` when the connection is at its end."""

    def __init__(self, method: str, *, success_limit: int, error_limit: int) -> None:
        """Of the body as it is unpacked no more is kept than the limit, and a piece: whoever reads it sees that."""
        self.status = 0
        self.said = ""
        self.headers: Mapping[str, str] = {}
        """By their names in small letters; of several of one name the first."""
        self.body = bytearray()
        self.whole = False
        self.begun = False
        """The head is there."""
        self.reusable = False
        """Once it is whole: whether the connection may be asked again."""
        self._bodiless = method == "HEAD"
        self._limits = success_limit, error_limit
        self._limit = 0
        self._buffer = b""
        self._left: int | None = 0
        """Bytes of the body, or of this chunk, that are missing; None where the connection's end is the body's."""
        self._chunked = self._ends_chunk = self._trailing = False
        self._trailer_left = MAX_HEAD
        self._unpacker: Unpacker | None = None

    @property
    def head(self) -> Head:
        """What it begins with, once it has begun."""
        return Head(self.status, self.said, self.headers)

    def feed(self, data: bytes) -> None:
        """The next bytes. Raises NoHttpError, and PackingError for a body that cannot be unpacked."""
        if self._buffer:
            data = self._buffer + data
            self._buffer = b""
        while not self.begun:
            found = self._head(data)
            if found is None:
                return
            data = found
        if self._chunked:
            self._chunks(data)
        else:
            self._plain(data)

    def ended(self) -> bool:
        """The connection is at its end: whether that is also the end of the answer."""
        if self.begun and not self._chunked and self._left is None:
            self.whole = True
        return self.whole

    def _head(self, data: bytes) -> bytes | None:
        """Read the head, and give what is behind it; None where it is not all there yet."""
        end = _BLANK_LINE.search(data)
        if end is None or end.end() > MAX_HEAD:
            if len(data) > MAX_HEAD:
                raise NoHttpError(f"its head is longer than {MAX_HEAD:,} bytes")
            begins = data.lstrip(b"\r\n")[: len(_PROTOCOL)]
            if begins != _PROTOCOL[: len(begins)]:
                raise NoHttpError(f"it begins {quote(data)}")
            self._buffer = data
            return None
        first, *lines = data[: end.start()].strip(b"\r\n").split(b"\n")
        status = _STATUS.fullmatch(first.rstrip(b"\r"))
        if status is None:
            raise NoHttpError(f"it begins {quote(first)}")
        self.status = int(status[2])
        if self.status <= 199 and self.status != _SWITCHES:  # the answer itself comes behind it
            return data[end.end() :]
        self.said = (status[3] or b"").decode("utf-8", "surrogateescape").strip()
        self._framed(_fields(lines), modern=status[1] == b"1")
        return data[end.end() :]

    def _framed(self, fields: dict[str, list[str]], *, modern: bool) -> None:
        """What the head says about where the body ends."""
        self.begun = True
        self.headers = {name: values[0] for name, values in fields.items()}
        self._limit = self._limits[0] if 200 <= self.status <= 299 else self._limits[1]
        wants = {word.strip().lower() for value in fields.get("connection", ()) for word in value.split(",")}
        self.reusable = "close" not in wants if modern else "keep-alive" in wants
        if "content-encoding" in fields:
            self._unpacker = Unpacker(fields["content-encoding"])
        coded = fields.get("transfer-encoding")
        if self._bodiless or self.status in _BODILESS:
            self._left = 0
            self.reusable = self.reusable and self.status != _SWITCHES
        elif coded is not None:
            if ",".join(coded).strip().lower() != "chunked":
                raise NoHttpError(f"its Transfer-Encoding is {quote(','.join(coded).encode('utf-8', 'replace'))}")
            self._chunked = True
            self.reusable = self.reusable and "content-length" not in fields
        elif "content-length" in fields:
            lengths = set(fields["content-length"])
            (length, *others) = lengths
            if others or not _DIGITS.fullmatch(length):
                raise NoHttpError(f"its Content-Length is {quote(','.join(lengths).encode('utf-8', 'replace'))}")
            self._left = int(length)
        else:
            self._left, self.reusable = None, False

    def _plain(self, data: bytes) -> None:
        left = self._left
        if left is None:
            self._take(data)
            return
        if len(data) > left:
            data, self.reusable = data[:left], False  # nobody asked for what comes behind it
        self._left = left = left - len(data)
        self._take(data)
        self.whole = self.whole or left == 0

    def _chunks(self, data: bytes) -> None:
        at = 0
        while not self.whole:
            if self._left:
                piece = data[at : at + self._left]
                if not piece:
                    return
                at += len(piece)
                self._left -= len(piece)
                self._take(piece)
                self._ends_chunk = not self._left
                continue
            end = data.find(b"\n", at)
            if end < 0:
                self._buffer = data[at:]
                if len(self._buffer) > _MAX_CHUNK_LINE:
                    raise NoHttpError("the line before a chunk is too long")
                return
            line, at = data[at:end], end + 1
            if self._trailing:
                self._trailer(line)
            elif self._ends_chunk:
                if line not in {b"", b"\r"}:
                    raise NoHttpError(f"a chunk is longer than it says: {quote(line)}")
                self._ends_chunk = False
            else:
                self._chunk(line)
        if at < len(data):
            self.reusable = False

    def _chunk(self, line: bytes) -> None:
        size = _CHUNK.fullmatch(line)
        if size is None:
            raise NoHttpError(f"a chunk begins {quote(line)}")
        self._left = int(size[1], 16)
        self._trailing = not self._left

    def _trailer(self, line: bytes) -> None:
        """What follows the last chunk says nothing that anybody wants to know."""
        self._trailer_left -= len(line) + 1
        if self._trailer_left < 0:
            raise NoHttpError(f"what follows it is longer than {MAX_HEAD:,} bytes")
        self.whole = line in {b"", b"\r"}

    def _take(self, data: bytes) -> None:
        """Keep these bytes of the body, as far as there is room for them."""
        if self._unpacker is None:
            self.body += data
            self._stop_beyond()
            return
        for piece in self._unpacker.pieces(data) if data else ():
            self.body += piece
            self._stop_beyond()
            if self.whole:
                return

    def _stop_beyond(self) -> None:
        if len(self.body) > self._limit:
            self.whole, self.reusable = True, False


def _fields(lines: list[bytes]) -> dict[str, list[str]]:
    """The header fields by their names in small letters. Raises NoHttpError."""
    if len(lines) > MAX_FIELDS:
        raise NoHttpError(f"its head has more than {MAX_FIELDS} lines")
    found: dict[str, list[str]] = {}
    latest: list[str] = []
    for given in lines:
        line = given.removesuffix(b"\r")
        if len(line) > MAX_LINE or b"\r" in line or b"\0" in line:
            raise NoHttpError(f"a line of its head is none: {quote(line)}")
        if line[:1] in {b" ", b"\t"} and latest:  # a line that goes on, as they were once written
            latest[-1] += " " + line.decode("utf-8", "surrogateescape").strip(" \t")
            continue
        name, colon, value = line.partition(b":")
        if not colon or not _NAME.fullmatch(name):
            raise NoHttpError(f"a line of its head is none: {quote(line)}")
        latest = found.setdefault(name.decode("ascii").lower(), [])
        latest.append(value.decode("utf-8", "surrogateescape").strip(" \t"))
    return found
