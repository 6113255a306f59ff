"""Read a streamed response: cut it into events as it arrives, and put text, tool calls and failures together.

Server-sent events as the HTML standard has them ("Interpreting an event stream"): lines end with CR, LF or both, `data`
may have several, comments begin with a colon. What is not finished when the stream ends is no event.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Response
from eval_gate.model.limits import ANSWER_CALLS, ANSWER_EVENTS
from eval_gate.model.usage import Usage
from eval_gate.struct import replace
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.http.paths import MISSING, Missing, Path
from eval_gate.targets.http.response import (
    AnswerReader,
    CallFragment,
    EventMatch,
    ShapeError,
    failure_in,
    malformed,
    said_by,
    usage_in,
)
from eval_gate.targets.http.settings import HttpSettings, ResponseFormat
from eval_gate.text.foreign.json import ForeignJsonError, read_foreign
from eval_gate.text.foreign.quote import EVENTS_LOOKED_AT, shapes_of
from eval_gate.text.foreign.well_formed import well_formed

OVER: Final = b"[DONE]"
"""Says in many protocols that nothing more comes, and is no JSON."""
_CALL: Final = "a call in the events"
_HEAD: Final = 1_000
"""Bytes of the beginning that are kept for a message."""


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


class IncomingEvent:
    """One event, of which the JSON is read only when somebody looks at it."""

    def __init__(self, event: StreamEvent) -> None:
        self.name = event.name
        self.data = event.data
        self._value: JsonValue | Missing = MISSING
        self._read = False

    @property
    def value(self) -> JsonValue | Missing:
        """The JSON of the event; MISSING for another text. Raises ShapeError for more than is read."""
        if not self._read:
            self._read = True
            try:
                self._value = read_foreign(self.data)
            except ForeignJsonError as error:
                if error.too_much:
                    raise ShapeError(f"an event {error}") from None
        return self._value

    def fits(self, rule: EventMatch) -> bool:
        """Whether the rule means this event."""
        if rule.event is not None and rule.event != self.name:
            return False
        if rule.where is None:
            return True
        value = self.value
        return not isinstance(value, Missing) and rule.where(value)


class Collector:
    """Takes one streamed answer, piece by piece. `feed` says when it is over; `response` is what came of it."""

    def __init__(self, settings: HttpSettings, reader: AnswerReader, mask: Callable[[bytes], bytes]) -> None:
        self._reader = reader
        self._mask = mask
        self._json = settings.response_format is ResponseFormat.NDJSON
        self._cutter = NdJson() if self._json else Sse()
        events = settings.events
        paths = [Path.parse(path) for path in settings.response_path]
        self._texts = [EventMatch.of(one) for one in events.text] or [
            *(EventMatch(path=path) for path in paths),
            EventMatch(),
        ]
        calls = [EventMatch.of(one) for one in events.tool_call]
        self._calls = calls or [EventMatch(path=reader.calls.path.gathering())]
        self._whole = [EventMatch.of(one) for one in events.whole]
        self._done = [EventMatch.of(one) for one in events.done]
        self._head = bytearray()
        self._first: list[bytes] = []
        """The first events, of which a message tells the shapes."""
        self._events = 0
        self._over = False
        self._text: list[str] = []
        self._message: object = MISSING
        self._called: dict[object, list[CallFragment]] = {}
        self._calls_known = False
        self._usage: Usage | None = None
        self._model: str | None = None
        self._document: JsonValue | Missing = MISSING
        self._began = time.perf_counter()
        self._first_ms: float | None = None

    def feed(self, data: bytes) -> bool:
        """The next bytes. True when the answer is over, whatever may follow. Raises TargetError."""
        if len(self._head) < _HEAD:
            self._head += data[: _HEAD - len(self._head)]
        return any(self._taken(event) for event in self._cutter.feed(data))

    def response(self, duration_ms: float) -> Response:
        """The whole answer, which took so long. Raises TargetError for one that is not whole or not as described."""
        if not self._over:
            for event in self._cutter.end():
                self._taken(event)
        if self._done and not self._over:
            raise TargetError(
                "agent error: the stream ended before the event that says that it is done",
                fault=TargetFault.REFUSED,
            )
        try:
            response = self._made(duration_ms)
        except ShapeError as error:
            raise self._malformed(str(error)) from None
        return replace(response, first_token_ms=self._first_ms)

    def _made(self, duration_ms: float) -> Response:
        if not isinstance(self._document, Missing):
            return self._reader.response(self._document, duration_ms, escaped=True)
        calls = tuple(self._reader.calls.joined(said, _CALL) for said in self._called.values())
        if not self._text and not calls:
            raise ShapeError(f"none of {self._events:,} events has text where it is looked for")
        response = self._reader.put_together(well_formed("".join(self._text)), calls, known=self._calls_known)
        return replace(
            response,
            duration_ms=duration_ms,
            usage=self._usage,
            model=self._model,
        )

    def _malformed(self, what: str) -> TargetError:
        seen = f"its events are {shapes_of(self._first)}" if self._first else None
        described = "events, responsePath, responseFormat or preset"
        return malformed(what, self._mask(bytes(self._head)), described, seen=seen)

    def _taken(self, event: StreamEvent) -> bool:
        """Whether this event, or one before it, ends the answer."""
        if self._over:
            return True
        self._events += 1
        if self._events > ANSWER_EVENTS:
            raise self._malformed(f"the stream has more than {ANSWER_EVENTS:,} events")
        if event.data.strip() == OVER:
            self._over = True
            return True
        incoming = IncomingEvent(StreamEvent(event.name, self._mask(event.data)))
        if len(self._first) < EVENTS_LOOKED_AT:
            self._first.append(incoming.data)
        try:
            self._heard(incoming)
            self._over = any(incoming.fits(rule) for rule in self._done)
        except ShapeError as error:
            raise self._malformed(str(error)) from None
        return self._over

    def _heard(self, event: IncomingEvent) -> None:
        failures = self._reader.failures
        if failures and not isinstance(event.value, Missing):
            failure = failure_in(event.value, failures, event.name)
            if failure is not None:
                raise failure
        self._hear_text(event)
        self._hear_calls(event)
        for rule in self._whole:
            if event.fits(rule) and not isinstance(event.value, Missing):
                self._document = rule.at(event.value)
        if self._model is None and b"model" in event.data and not isinstance(event.value, Missing):
            self._model = self._reader.model_in(event.value)
        if b"usage" in event.data and not isinstance(event.value, Missing):
            self._usage = usage_in(event.value) or self._usage

    def _hear_text(self, event: IncomingEvent) -> None:
        for rule in self._texts:
            if not event.fits(rule):
                continue
            if rule.path is None:
                text = _bare(event, json=self._json)
            else:
                text = None if isinstance(event.value, Missing) else said_by(rule.at(event.value))
            if text is None:
                continue
            if rule.id is not None and not isinstance(event.value, Missing):
                message = rule.id.first_value(event.value)
                if self._text and text and message != self._message:
                    self._text.append("\n\n")
                self._message = message
            if text:
                self._text.append(text)
                if self._first_ms is None:
                    self._first_ms = (time.perf_counter() - self._began) * 1000
            return

    def _hear_calls(self, event: IncomingEvent) -> None:
        for rule in self._calls:
            if not event.fits(rule) or isinstance(event.value, Missing):
                continue
            if rule.path is None:
                entries, listed = [event.value], True
            elif rule.path.gathers:
                found = rule.path.all(event.value)
                entries, listed = found.values, found.listed
            else:
                one = rule.path.first_value(event.value)
                entries, listed = ([] if isinstance(one, Missing) or one is None else [one]), False
                listed = bool(entries)
            self._calls_known = self._calls_known or listed
            for entry in entries:
                self._hear_call(entry)
            if listed:
                break
        if not self._calls_known and not isinstance(event.value, Missing):
            self._calls_known = self._reader.says_none(event.value)

    def _hear_call(self, entry: JsonValue) -> None:
        said = self._reader.calls.fragment_of(entry, _CALL)
        key = said.id or len(self._called)
        if key not in self._called and len(self._called) >= ANSWER_CALLS:
            raise ShapeError(f"the stream tells of more than {ANSWER_CALLS:,} calls")
        self._called.setdefault(key, []).append(said)


def _bare(event: IncomingEvent, *, json: bool) -> str | None:
    """The text that the event is: bare, or as JSON. Raises ShapeError where it has to be `json` and is not."""
    value = event.value
    if json and isinstance(value, Missing):
        raise ShapeError("a line of the answer is no JSON")
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        return None
    return event.data.decode("utf-8", "replace")
