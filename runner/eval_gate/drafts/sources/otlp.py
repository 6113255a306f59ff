"""Read spans and the events that belong to them from OTLP JSON, as the file exporter of a collector writes it.

A file is one JSON document, or one document a line, with `resourceSpans` and `resourceLogs` (OpenTelemetry protocol,
"JSON Protobuf Encoding", and "OpenTelemetry Protocol File Exporter"). Unknown fields are ignored, as the protocol asks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias

from eval_gate.drafts.sources.source_file import SourceFile, build_source_error
from eval_gate.errors import GateError, Problem
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import DOCUMENT_VALUES, MAX_DURATION_MS, TRACE_SPANS
from eval_gate.struct import Struct, field
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, parse_untrusted_json

SpanKey: TypeAlias = tuple[str, str]
"""Trace id and span id."""
_Entry: TypeAlias = Mapping[str, JsonValue]
"""Span or log record of a document."""
_SIGNALS: Final = (("resourceSpans", "scopeSpans", "spans"), ("resourceLogs", "scopeLogs", "logRecords"))
_SPAN_ID: Final = re.compile(rb'"spanId"\s{0,10}:\s{0,10}"([0-9A-Za-z+/=]{1,64})"')
_ERROR_CODES: Final = (2, "2", "STATUS_CODE_ERROR")
_TOO_MUCH_HINT: Final = "export fewer traces, or write one document a line as the collector's file exporter does"


class SpanEvent(NamedTuple):
    """Event of a span, or log record that was written in it. `body` is None for an event of a span."""

    name: str
    time_ns: int
    attributes: Mapping[str, JsonValue]
    body: JsonValue = None


class TraceSpan(Struct):
    """One span. Times are in nanoseconds; `error` is why it failed, or None if it did not."""

    key: SpanKey
    parent: SpanKey | None
    start_ns: int
    end_ns: int
    error: str | None
    attributes: Mapping[str, JsonValue]
    line: int
    events: list[SpanEvent] = field(default_factory=list)

    def get_text(self, name: str) -> str:
        """Return the attribute `name` if it is a text, otherwise an empty text."""
        value = self.attributes.get(name)
        return value if isinstance(value, str) else ""


def read_spans(source: SourceFile) -> tuple[Mapping[SpanKey, TraceSpan], list[str]]:
    """Read all spans, with the events and log records of each, and sentences for people. Raises GateError."""
    spans: dict[SpanKey, TraceSpan] = {}
    events: list[tuple[SpanKey, SpanEvent]] = []
    notes: list[str] = []
    count, lines = 0, dict[str, int]()
    for document, line in _iter_documents(source, notes):
        if line is None:
            lines = _find_span_lines(source)
        for value, place, is_span in _iter_entries(document, source.shown_as, line or 1):
            count += 1
            if count > TRACE_SPANS:
                what = f"has more than {TRACE_SPANS:,} spans and log records"
                raise build_source_error([Problem(what, source.shown_as, line or 1)], _TOO_MUCH_HINT)
            if not is_span:
                events.append(_parse_log_record(value))
                continue
            trace, own = value.get("traceId"), value.get("spanId")
            if not isinstance(trace, str) or not isinstance(own, str) or not own:
                raise build_source_error([Problem("has no traceId and spanId", source.shown_as, line or 1, place)])
            spans.setdefault((trace, own), _parse_span(value, (trace, own), lines.get(own, line or 1)))
    for key, event in events:
        if key in spans:
            spans[key].events.append(event)
    for span in spans.values():
        span.events.sort(key=lambda event: event.time_ns)
    return spans, notes


def _iter_documents(source: SourceFile, notes: list[str]) -> Iterator[tuple[JsonValue, int | None]]:
    """Yield every document with its line, or None for one with line breaks; a cut-off last line becomes a note."""
    lines = list(source.iter_lines())
    if not lines:
        raise build_source_error([Problem("is empty", source.shown_as)])
    for line in lines:
        try:
            yield parse_untrusted_json(line.data, values=DOCUMENT_VALUES), line.number
        except UntrustedJsonError as error:
            if error.cut_off and line is not lines[-1] and line is lines[0]:
                break  # a document with line breaks
            if not error.cut_off or line is not lines[-1] or line is lines[0]:
                raise _build_json_error(source, error, line.number) from None
            notes.append(f"Left out the last line ({source.shown_as}:{line.number}): it ends in the middle.")
    else:
        return
    try:
        yield parse_untrusted_json(source.data, values=DOCUMENT_VALUES), None
    except UntrustedJsonError as error:
        raise _build_json_error(source, error, None) from None


def _find_span_lines(source: SourceFile) -> dict[str, int]:
    """Find the line of every span in a document with line breaks, by the id of the span."""
    lines: dict[str, int] = {}
    line, begin = 1, 0
    for match in _SPAN_ID.finditer(source.data):
        line += source.data.count(b"\n", begin, match.start())
        begin = match.start()
        lines.setdefault(match[1].decode(), line)
    return lines


def _build_json_error(source: SourceFile, error: UntrustedJsonError, line: int | None) -> GateError:
    detail = f": {error.detail}" if error.detail else ""
    hint = _TOO_MUCH_HINT if error.too_much else None
    return build_source_error([Problem(f"{error}{detail}", source.shown_as, line)], hint)


def _iter_entries(document: JsonValue, shown_as: str, line: int) -> Iterator[tuple[_Entry, str, bool]]:
    for one in document if isinstance(document, list) else [document]:
        # a document may have metrics, or no entries
        if not isinstance(one, dict) or not any(key.startswith("resource") for key in one):
            what = "has neither resourceSpans nor resourceLogs, so it is not OTLP JSON"
            raise build_source_error([Problem(what, shown_as, line)])
        for names in _SIGNALS:
            yield from ((entry, place, names[-1] == "spans") for entry, place in _iter_nested(one, names, ""))


def _iter_nested(value: _Entry, names: Sequence[str], place: str) -> Iterator[tuple[_Entry, str]]:
    members = value.get(names[0])
    for at, member in enumerate(members if isinstance(members, list) else ()):
        where = f"{place}{names[0]}[{at}]"
        if isinstance(member, dict) and len(names) == 1:
            yield member, where
        elif isinstance(member, dict):
            yield from _iter_nested(member, names[1:], f"{where}.")


def _parse_span(value: _Entry, key: SpanKey, line: int) -> TraceSpan:
    parent, events = value.get("parentSpanId"), value.get("events")
    attributes = decode_attributes(value.get("attributes"))
    return TraceSpan(
        key=key,
        parent=(key[0], parent) if isinstance(parent, str) and parent.strip("0") else None,
        start_ns=_parse_time(value.get("startTimeUnixNano")),
        end_ns=_parse_time(value.get("endTimeUnixNano")),
        error=_find_error(value.get("status"), attributes),
        attributes=attributes,
        line=line,
        events=[_parse_event(event) for event in events if isinstance(event, dict)] if isinstance(events, list) else [],
    )


def _find_error(status: JsonValue, attributes: Mapping[str, JsonValue]) -> str | None:
    """Find why a span failed: the words of its status, else its `error.type`."""
    kind = attributes.get("error.type")
    if isinstance(status, dict) and status.get("code") in _ERROR_CODES:
        return str(status.get("message") or kind or "failed")
    return str(kind) if kind else None


def _parse_event(value: _Entry) -> SpanEvent:
    attributes = decode_attributes(value.get("attributes"))
    return SpanEvent(str(value.get("name") or ""), _parse_time(value.get("timeUnixNano")), attributes)


def _parse_log_record(value: _Entry) -> tuple[SpanKey, SpanEvent]:
    attributes = decode_attributes(value.get("attributes"))
    name = value.get("eventName") or attributes.get("event.name") or ""
    time_ns = _parse_time(value.get("timeUnixNano")) or _parse_time(value.get("observedTimeUnixNano"))
    event = SpanEvent(str(name), time_ns, attributes, decode_value(value.get("body")))
    return (str(value.get("traceId") or ""), str(value.get("spanId") or "")), event


def decode_attributes(value: JsonValue) -> dict[str, JsonValue]:
    """Decode a list of attributes. The last of two with the same key counts."""
    attributes: dict[str, JsonValue] = {}
    for one in value if isinstance(value, list) else ():
        key = one.get("key") if isinstance(one, dict) else None
        if isinstance(one, dict) and isinstance(key, str):
            attributes[key] = decode_value(one.get("value"))
    return attributes


def decode_value(value: JsonValue) -> JsonValue:
    """Decode an `AnyValue` of OTLP. An unknown or empty one is None."""
    if not isinstance(value, dict):
        return None
    for kind, content in value.items():
        match kind, content:
            case "stringValue" | "bytesValue", str():
                return content
            case "boolValue", bool():
                return content
            case "intValue" | "doubleValue", _:
                return _parse_number(content)
            case "arrayValue", dict():
                members = content.get("values")
                return [decode_value(member) for member in members] if isinstance(members, list) else []
            case "kvlistValue", dict():
                return decode_attributes(content.get("values"))
            case _:
                continue
    return None


def _parse_number(value: JsonValue) -> int | float | None:
    """Parse a number, which is a text if it has 64 bits."""
    if not isinstance(value, str):
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None
    for parse in (int, float) if len(value) <= 40 else ():
        with suppress(ValueError):
            return number if math.isfinite(number := parse(value)) else None
    return None


def _parse_time(value: JsonValue) -> int:
    number = _parse_number(value)
    return int(number) if number is not None and number > 0 else 0


def measure_ms(start_ns: int, end_ns: int) -> float:
    """Measure a duration within the limits of a result."""
    return min(max(end_ns - start_ns, 0) / 1e6, MAX_DURATION_MS)
