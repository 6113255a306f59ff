"""A streamed answer cut into events while it arrives: server-sent events, or one JSON value a line.

Server-sent events as the HTML standard has them ("Interpreting an event stream"): lines end with CR, LF or both, `data`
may have several, comments begin with a colon. What is not finished when the stream ends is no event.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class StreamEvent(NamedTuple):
    """One event as it came. `name` is "" where the stream names none."""

    name: str
    data: bytes


class _Lines:
    """Bytes as they come, cut into whole lines."""

    def __init__(self) -> None:
        self._open: list[bytes] = []
        self._after_cr = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that end in this piece, without their ends."""
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
            self._after_cr = False
        if not data:
            return
        self._after_cr = data.endswith(b"\r")
        lines = data.splitlines()
        whole = data.endswith((b"\n", b"\r"))
        for line in lines if whole else lines[:-1]:
            yield self._closed(line)
        if not whole:
            self._open.append(lines[-1])

    def rest(self) -> bytes:
        """What came behind the last line's end."""
        return self._closed(b"")

    def _closed(self, line: bytes) -> bytes:
        if self._open:
            line = b"".join((*self._open, line))
            self._open = []
        return line


class Sse:
    """Server-sent events."""

    def __init__(self) -> None:
        self._lines = _Lines()
        self._data: list[bytes] = []
        self._name = b""
        self._first = True

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """The events that end in this piece."""
        for line in self._lines.feed(data):
            begun, self._first = self._first, False
            if event := self._take(line.removeprefix(b"\xef\xbb\xbf") if begun else line):
                yield event

    def end(self) -> Iterator[StreamEvent]:
        """What is left when the stream ends. The standard drops an event without a blank line behind it; we do not."""
        if line := self._lines.rest():
            self._take(line)
        if event := self._take(b""):
            yield event

    def _take(self, line: bytes) -> StreamEvent | None:
        if not line:
            there = self._data or self._name  # LangServe ends with a name that has no data, which browsers leave out
            event = StreamEvent(self._name.decode("utf-8", "replace"), b"\n".join(self._data)) if there else None
            self._data, self._name = [], b""
            return event
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value
        return None


class NdJson:
    """A JSON value in each line. Blank lines are none."""

    def __init__(self) -> None:
        self._lines = _Lines()

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """The values whose lines end in this piece."""
        for line in self._lines.feed(data):
            if line.strip():
                yield StreamEvent("", line)

    def end(self) -> Iterator[StreamEvent]:
        """The last line, if nothing ended it."""
        if (line := self._lines.rest()).strip():
            yield StreamEvent("", line)
