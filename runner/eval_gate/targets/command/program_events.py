"""Parse printed JSON events, one object per line or one document, and their tool calls."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import ToolCall
from eval_gate.model.limits import CALL_NAME, RESPONSE_CALLS
from eval_gate.model.usage import Usage
from eval_gate.struct import FrozenStruct, replace
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.response.extraction import to_params
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, check_json_size, parse_untrusted_json

Event = dict[str, JsonValue]

_LINE: Final = re.compile(r"[^\s][^\n]*")
"""Line that is not empty, without leading blanks. Other line breaks do not count: JSON strings can contain U+2028."""
_EVENT_LINE: Final = re.compile(r"^[^\S\n]*[{\[][^\n]*", re.MULTILINE)
"""Line that may be an event."""
_MAX_REASON: Final = 10_000
"""Characters of a program's own error message that are stored; fewer are shown."""


class ProgramEvents(FrozenStruct):
    """Events of an output, in order, and the number of lines that are not events."""

    events: tuple[Event, ...]
    skipped_lines: int = 0


def parse_events(content: str) -> ProgramEvents:
    """All events. Raises TargetError (malformed) for an output beyond all bounds."""
    text = content.removeprefix("\ufeff").strip()
    try:
        whole = _parse_objects(text)  # one document may be written over many lines
        if whole is not None:
            return ProgramEvents(whole)
        # line by line: what is no event may hold a quote that does not end
        check_json_size(match.group().encode("utf-8", "replace") for match in _EVENT_LINE.finditer(text))
        all_events: list[Event] = []
        skipped_lines = 0
        for match in _LINE.finditer(text):
            events = _parse_objects(match.group())
            all_events += events or ()
            skipped_lines += events is None
    except UntrustedJsonError as error:
        raise build_malformed_error(f"the output of the program {error}") from error
    return ProgramEvents(tuple(all_events), skipped_lines)


def _parse_objects(text: str) -> tuple[Event, ...] | None:
    """Parse the objects in a text that is a JSON object or a list of them."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        value = parse_untrusted_json(text)
    except UntrustedJsonError as error:
        if error.too_much:
            raise
        return None
    members = value if isinstance(value, list) else [value]
    return tuple(member for member in members if isinstance(member, dict))


def get_member(event: JsonValue, *keys: str) -> JsonValue:
    """Return the value at nested `keys`, or None if one of them is missing."""
    for key in keys:
        event = event.get(key) if isinstance(event, dict) else None
    return event


def find_result(events: Sequence[Event]) -> Event | None:
    """Find the last event of the type `result`."""
    return next((event for event in reversed(events) if event.get("type") == "result"), None)


def build_usage(input_tokens: int | None, output_tokens: int | None) -> Usage | None:
    """Build the usage of a response; None if neither number is known."""
    if input_tokens is None and output_tokens is None:
        return None
    return Usage(input_tokens=input_tokens, output_tokens=output_tokens)


def format_reason(value: JsonValue) -> str:
    """Format the reason that a program gives on one line. The result is empty if the value is not a text."""
    return " ".join(value[:_MAX_REASON].split()) if isinstance(value, str) else ""


def refuse_many_calls(number: int) -> None:
    """Raise TargetError (malformed) for more calls than any agent makes."""
    if number > RESPONSE_CALLS:
        raise build_malformed_error(f"the program reports {number:,} tool calls, more than {RESPONSE_CALLS:,}")


def build_malformed_error(what: str) -> TargetError:
    """Build the error for an output without a response."""
    hint = "let the program of the target's agentProtocol print its events: `--output-format stream-json`, or `--json`"
    return TargetError(what, fault=TargetFault.MALFORMED, hint=hint)


class StreamCalls:
    """Tool calls of a stream in the order they began, each with the result of the same id."""

    def __init__(self) -> None:
        self._calls: list[ToolCall] = []
        self._places: dict[str, int] = {}
        self._nameless = 0

    @property
    def warnings(self) -> tuple[str, ...]:
        """How many calls were left out, if any."""
        return (f"left out of the response: {self._nameless} calls without a name",) if self._nameless else ()

    def begin_call(self, name: JsonValue, params: JsonValue, identity: JsonValue) -> None:
        """Add a call, if its name can be one. Raises TargetError for too many."""
        if not isinstance(name, str) or not 0 < len(name) <= CALL_NAME:
            self._nameless += 1
            return
        call_id = identity if isinstance(identity, str) and 0 < len(identity) <= CALL_NAME else None
        if call_id is not None:
            self._places[call_id] = len(self._calls)
        self._calls.append(ToolCall(name=name, params=to_params(params), id=call_id))
        refuse_many_calls(len(self._calls))

    def end_call(
        self, identity: JsonValue, result: JsonValue, *, success: bool | None, duration_ms: float | None = None
    ) -> None:
        """Add the result to the tool call with the id `identity`. `duration_ms` is in milliseconds."""
        place = self._places.get(identity) if isinstance(identity, str) else None
        if place is not None:
            self._calls[place] = replace(self._calls[place], result=result, success=success, duration_ms=duration_ms)

    @property
    def all(self) -> tuple[ToolCall, ...]:
        """Every call with its result."""
        return tuple(self._calls)
