"""Parse a streamed response: split it into events and assemble text, tool calls and failures.

Server-sent events as the HTML standard has them ("Interpreting an event stream"): lines end with CR, LF or both, `data`
may have several, comments begin with a colon. What is not finished when the stream ends is no event.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Response
from eval_gate.model.limits import RESPONSE_CALLS, RESPONSE_EVENTS
from eval_gate.model.usage import Usage
from eval_gate.struct import replace
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.response.extraction import extract_text
from eval_gate.targets.response.field_paths import MISSING, MissingValue
from eval_gate.targets.response.reader import (
    CallFragment,
    ResponseReader,
    ResponseShapeError,
    build_malformed_error,
    find_failure,
    find_usage,
)
from eval_gate.targets.response.settings import EventRule, ResponseFormat, StreamSettings
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, parse_untrusted_json
from eval_gate.text.untrusted.excerpt import MAX_EVENTS, describe_event_shapes
from eval_gate.text.untrusted.surrogates import to_well_formed

DONE_MARKER: Final = b"[DONE]"
"""Marker for the end of a stream in many protocols. It is not JSON."""
_CALL_PLACE: Final = "a call in the events"
_MAX_HEAD: Final = 1_000
"""Bytes of the beginning of a stream that are kept for messages."""


class StreamEvent(NamedTuple):
    """One event of a stream as received. `name` is "" for a stream without names."""

    name: str
    data: bytes


class _EventParser:
    """Parser of a stream in pieces. A format says what a line means, without its ending."""

    def __init__(self) -> None:
        self._open: list[bytes] = []
        self._after_cr = False

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """Yield the events that end in this piece."""
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
            self._after_cr = False
        if not data:
            return
        self._after_cr = data.endswith(b"\r")
        lines = data.splitlines()
        rest = [] if data.endswith((b"\n", b"\r")) else [lines.pop()]
        for line in lines:
            if event := self._end_line(line):
                yield event
        self._open += rest

    def end(self) -> Iterator[StreamEvent]:
        """Yield the unfinished event at the end of the stream; the standard would drop it."""
        return filter(None, [self._end_line(b""), self._take_line(b"")])

    def _end_line(self, line: bytes) -> StreamEvent | None:
        if self._open:
            line = b"".join((*self._open, line))
            self._open = []
        return self._take_line(line)

    def _take_line(self, line: bytes) -> StreamEvent | None:
        raise NotImplementedError


class SseParser(_EventParser):
    """Parser of server-sent events."""

    def __init__(self) -> None:
        super().__init__()
        self._data: list[bytes] = []
        self._name = b""
        self._mark = b"\xef\xbb\xbf"
        """May stand before the first line."""

    def _take_line(self, line: bytes) -> StreamEvent | None:
        line, self._mark = line.removeprefix(self._mark), b""
        if not line:
            is_event = self._data or self._name  # LangServe ends with a name that has no data, which browsers leave out
            event = StreamEvent(self._name.decode("utf-8", "replace"), b"\n".join(self._data)) if is_event else None
            self._data, self._name = [], b""
            return event
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value
        return None


class NdjsonParser(_EventParser):
    """Parser of newline-delimited JSON. Skips blank lines."""

    def _take_line(self, line: bytes) -> StreamEvent | None:
        return StreamEvent("", line) if line.strip() else None


class BodyReader:
    """Reader of whole bodies, in the format that settings describe."""

    def __init__(self, settings: StreamSettings, mask: Callable[[bytes], bytes]) -> None:
        self._settings = settings
        self._reader = ResponseReader(settings)
        self._mask = mask

    def read(self, body: bytes, duration_ms: float, charset: str | None = None) -> Response:
        """Read a whole body, whose secrets are masked, after `duration_ms` milliseconds. Raises TargetError."""
        match self._settings.response_format:
            case ResponseFormat.TEXT:
                return self._reader.read_text(body, charset, duration_ms)
            case ResponseFormat.JSON:
                return self._reader.read(body, duration_ms)
            case ResponseFormat.SSE | ResponseFormat.NDJSON:
                collector = StreamCollector(self._settings, self._reader, self._mask)
                collector.feed(body)
                return replace(collector.build_response(duration_ms), first_token_ms=None)


class _ParsedEvent(NamedTuple):
    """One event. `value` is its JSON, MISSING for another text."""

    name: str
    data: bytes
    value: JsonValue | MissingValue

    def is_matched_by(self, rule: EventRule) -> bool:
        return rule.matches(self.value, self.name)


def _parse_event(name: str, data: bytes) -> _ParsedEvent:
    """Parse the JSON of an event. Raises ResponseShapeError for more than is read."""
    try:
        return _ParsedEvent(name, data, parse_untrusted_json(data))
    except UntrustedJsonError as error:
        if error.too_much:
            raise ResponseShapeError(f"an event {error}") from None
    return _ParsedEvent(name, data, MISSING)


class StreamCollector:
    """Collector of one streamed response. `feed` returns True when the response is complete."""

    def __init__(
        self,
        settings: StreamSettings,
        reader: ResponseReader,
        mask: Callable[[bytes], bytes],
        observe: Callable[[JsonValue, str], None] | None = None,
    ) -> None:
        """`observe` gets the JSON of every event with its name, and then the whole response if an event has it."""
        self._settings = settings
        self._reader = reader
        self._mask = mask
        self._observe = observe or (lambda value, name: None)
        self._json = settings.response_format is ResponseFormat.NDJSON
        self._cutter = NdjsonParser() if self._json else SseParser()
        events = settings.events
        # nothing to validate: the paths are parsed
        self._texts = events.text or [
            *(EventRule.model_construct(path=path) for path in settings.response_path),
            EventRule(),
        ]
        self._calls = events.tool_call or [EventRule.model_construct(path=settings.tool_calls_path.to_gathering())]
        self._full_rules, self._end_rules = events.full_response, events.done
        self._head = bytearray()
        self._first_events: list[bytes] = []
        """The first events, whose shapes an error message shows."""
        self._events = 0
        self._is_complete = False
        self._text: list[str] = []
        self._message: object = MISSING
        self._calls_by_key: dict[object, list[CallFragment]] = {}
        self._calls_known = False
        self._usage: Usage | None = None
        self._model: str | None = None
        self._trace: str | None = None
        self._document: JsonValue | MissingValue = MISSING
        self._began = time.perf_counter()
        self._first_ms: float | None = None

    def feed(self, data: bytes) -> bool:
        """Process the next bytes, and return whether the response is complete. Raises TargetError."""
        if len(self._head) < _MAX_HEAD:
            self._head += data[: _MAX_HEAD - len(self._head)]
        return any(self._take_event(event) for event in self._cutter.feed(data))

    def build_response(self, duration_ms: float) -> Response:
        """Build the response after the end of the stream. Raises TargetError for an incomplete one."""
        if not self._is_complete:
            for event in self._cutter.end():
                self._take_event(event)
        if self._end_rules and not self._is_complete:
            raise TargetError(
                "agent error: the stream ended before its last event",
                fault=TargetFault.REFUSED,
            )
        try:
            response = self._assemble_response(duration_ms)
        except ResponseShapeError as error:
            raise self._build_malformed_error(str(error), is_mapping=error.is_mapping) from None
        return replace(response, first_token_ms=self._first_ms, trace_id=response.trace_id or self._trace)

    def _assemble_response(self, duration_ms: float) -> Response:
        if not isinstance(self._document, MissingValue):
            self._observe(self._document, "")
            return self._reader.read_document(self._document, duration_ms, escaped=True)
        calls = tuple(self._reader.join_fragments(fragments, _CALL_PLACE) for fragments in self._calls_by_key.values())
        if not self._text and not calls:
            raise ResponseShapeError(
                f"none of the {self._events:,} events has text at the configured path", is_mapping=True
            )
        response = self._reader.assemble_response(
            to_well_formed("".join(self._text)), calls, calls_known=self._calls_known
        )
        return replace(response, duration_ms=duration_ms, usage=self._usage, model=self._model)

    def _build_malformed_error(self, what: str, *, is_mapping: bool = False) -> TargetError:
        shapes = f"its events are {describe_event_shapes(self._first_events)}" if self._first_events else None
        names = "events, responsePath, responseFormat or agentProtocol"
        return build_malformed_error(what, self._mask(bytes(self._head)), names, shapes=shapes, is_mapping=is_mapping)

    def _take_event(self, event: StreamEvent) -> bool:
        """Whether this event, or one before it, ends the response."""
        if self._is_complete:
            return True
        self._events += 1
        if self._events > RESPONSE_EVENTS:
            raise self._build_malformed_error(f"the stream has more than {RESPONSE_EVENTS:,} events")
        if event.data.strip() == DONE_MARKER:
            self._is_complete = True
            return True
        data = self._mask(event.data)
        if len(self._first_events) < MAX_EVENTS:
            self._first_events.append(data)
        try:
            incoming = _parse_event(event.name, data)
            self._read_event(incoming)
            self._is_complete = any(incoming.is_matched_by(rule) for rule in self._end_rules)
        except ResponseShapeError as error:
            raise self._build_malformed_error(str(error), is_mapping=error.is_mapping) from None
        return self._is_complete

    def _read_event(self, event: _ParsedEvent) -> None:
        value = event.value
        if isinstance(value, MissingValue):
            self._read_text(event)
            return
        failure = find_failure(value, self._settings.failure, event.name)
        if failure is not None:
            raise failure
        self._observe(value, event.name)
        self._read_text(event)
        self._read_calls(event, value)
        for rule in self._full_rules:
            if event.is_matched_by(rule):
                self._document = rule.select_value(value)
        if self._model is None and b"model" in event.data:
            self._model = self._reader.find_model(value)
        self._trace = self._reader.find_trace(value, event.name) or self._trace
        if b"usage" in event.data:
            self._usage = find_usage(value) or self._usage

    def _read_text(self, event: _ParsedEvent) -> None:
        for rule in self._texts:
            if not event.is_matched_by(rule):
                continue
            if rule.path is None:
                text = _extract_event_text(event, json=self._json)
            else:
                text = None if isinstance(event.value, MissingValue) else extract_text(rule.select_value(event.value))
            if text is None:
                continue
            if rule.id is not None and not isinstance(event.value, MissingValue):
                message = rule.id.find_first(event.value)
                if self._text and text and message != self._message:
                    self._text.append("\n\n")
                self._message = message
            if text:
                self._text.append(text)
                if self._first_ms is None:
                    self._first_ms = (time.perf_counter() - self._began) * 1000
            return

    def _read_calls(self, event: _ParsedEvent, value: JsonValue) -> None:
        for rule in self._calls:
            if not event.is_matched_by(rule):
                continue
            if rule.path is None:
                entries, listed = [value], True
            elif rule.path.is_gathering:
                match = rule.path.find_all(value)
                entries, listed = match.values, match.has_list
            else:
                one = rule.path.find_first(value)
                entries = [] if isinstance(one, MissingValue) or one is None else [one]
                listed = bool(entries)
            self._calls_known = self._calls_known or listed
            for entry in entries:
                self._read_call(entry)
            if listed:
                break
        self._calls_known = self._calls_known or self._reader.is_without_calls(value)

    def _read_call(self, entry: JsonValue) -> None:
        fragment = self._reader.read_fragment(entry, _CALL_PLACE)
        key = fragment.id or len(self._calls_by_key)
        if key not in self._calls_by_key and len(self._calls_by_key) >= RESPONSE_CALLS:
            raise ResponseShapeError(f"the stream has more than {RESPONSE_CALLS:,} calls")
        self._calls_by_key.setdefault(key, []).append(fragment)


def _extract_event_text(event: _ParsedEvent, *, json: bool) -> str | None:
    """Extract the text of an event that is plain text (unless `json` requires JSON) or a JSON value."""
    value = event.value
    if json and isinstance(value, MissingValue):
        raise ResponseShapeError("a line of the response is not JSON")
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        return None
    return event.data.decode("utf-8", "replace")
