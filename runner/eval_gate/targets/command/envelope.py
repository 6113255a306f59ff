"""What a program's answer holds: a text, or a JSON object with messages or a text, a trace and what it cost.

Source: agentv evaluation spec, "Output Message Format" and "Trace Data Model"; agentv behaviour 5.3 and 7. Keys may be
in snake_case or camelCase. Messages, calls and events that are malformed are left out one by one, and counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar, get_args

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import EventType, OutputCall, OutputMessage, Response, ToolCall, TraceEvent
from eval_gate.model.limits import (
    ANSWER_CALLS,
    ANSWER_EVENTS,
    ANSWER_MESSAGES,
    ANSWER_VALUES,
    CALL_NAME,
    MAX_COST_USD,
    MAX_TOKENS,
    in_range,
)
from eval_gate.model.usage import Usage
from eval_gate.struct import replace
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.text.foreign.json import ForeignJsonError, read_foreign
from eval_gate.text.javascript.strings import as_text

Part = TypeVar("Part")
_EVENT_TYPES: Final[Mapping[object, EventType]] = {one: one for one in get_args(EventType)}
_BOM: Final = "\ufeff"
LONGEST_CALL_MS: Final = 1e9
"""The longest that one tool call may be said to have taken: more than eleven days."""


def read_answer(content: str) -> Response:
    """The answer in all that a program wrote or printed.

    Of a bare text one line break at its end is no part, and every other is LF, as in AgentV and its eval files.

    Raises TargetError (malformed) for messages or a trace beyond all bounds.
    """
    document = parse_object(content)
    if document is not None:
        lost = _Lost()
        found = _read(document, lost)
        if found is not None:
            return found
        bare = _bare(content)
        return replace(bare, warnings=lost.warnings())
    return _bare(content)


def read_record(document: Mapping[str, JsonValue]) -> Response:
    """The answer in one record of a batch; one without messages and text is an empty answer. Raises TargetError."""
    lost = _Lost()
    found = _read(document, lost)
    return found or Response(text="", calls_known=False, warnings=lost.warnings())


def parse_object(content: str) -> dict[str, JsonValue] | None:
    """The JSON object that the content is; None for everything else. Raises TargetError for one beyond all bounds."""
    text = content.removeprefix(_BOM).strip()
    if not (text.startswith("{") and text.endswith("}")):
        return None
    try:
        # NaN and the infinities are no JSON, but what Python's own writer makes of them: they are no reason to lose all
        document = read_foreign(text, values=ANSWER_VALUES, constant=lambda _: None)
    except ForeignJsonError as error:
        if error.too_much:
            raise _too_much(str(error)) from None
        return None
    return document if isinstance(document, dict) else None


class _Lost:
    """What was left out, by kind."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def keep(self, found: Iterable[Part | None], kind: str) -> tuple[Part, ...]:
        """What could be read; the others are counted."""
        kept, lost = [], 0
        for one in found:
            if one is None:
                lost += 1
            else:
                kept.append(one)
        if lost:
            self._counts[kind] = self._counts.get(kind, 0) + lost
        return tuple(kept)

    def warnings(self) -> tuple[str, ...]:
        """A sentence for each kind."""
        return tuple(
            f"left out of the answer: {count} malformed {kind}{'s' if count > 1 else ''}"
            for kind, count in self._counts.items()
        )


def _read(document: Mapping[str, JsonValue], lost: _Lost) -> Response | None:
    """The answer in an object; None for one without messages and text, which is somebody's own JSON."""
    messages = _messages(document, lost)
    if not messages and "text" not in document:
        return None
    trace = _trace(document, lost)
    if messages:
        text, calls = _last_words(messages), [call for message in messages for call in message.tool_calls]
        tool_calls = tuple(
            ToolCall(name=call.tool, params=_params(call.input), id=call.id, result=call.output) for call in calls
        )
    else:
        text, tool_calls = "" if document["text"] is None else as_text(document["text"]), _calls_of(trace or ())
    if len(tool_calls) > ANSWER_CALLS:
        raise _too_much(f"reports {len(tool_calls):,} tool calls, more than {ANSWER_CALLS:,}")
    return Response(
        text=text,
        tool_calls=tool_calls,
        usage=_usage(document),
        cost_usd=_cost(document),
        model=model if isinstance(model := document.get("model"), str) else None,
        messages=messages or None,
        trace=trace,
        calls_known=bool(messages) or trace is not None,
        warnings=lost.warnings(),
    )


def _bare(content: str) -> Response:
    text = content.removeprefix(_BOM).replace("\r\n", "\n").removesuffix("\n")
    return Response(text=text, calls_known=False)


def _messages(document: Mapping[str, JsonValue], lost: _Lost) -> tuple[OutputMessage, ...]:
    raw = _either(document, "output_messages", "outputMessages")
    if raw is None:  # the name that AgentV 4 has for it
        raw = document.get("output")
    if not isinstance(raw, list):
        return ()
    _bounded(raw, ANSWER_MESSAGES, "messages")
    return lost.keep((_message(one, lost) for one in raw), "message")


def _message(raw: JsonValue, lost: _Lost) -> OutputMessage | None:
    role = _name(raw, "role")
    if role is None or not isinstance(raw, dict):
        return None
    calls = _either(raw, "tool_calls", "toolCalls")
    if calls is None:
        calls = []
    elif not isinstance(calls, list):
        calls = [None]  # counts as one that cannot be read
    _bounded(calls, ANSWER_CALLS, "tool calls")
    return OutputMessage(
        role=role,
        name=_name(raw, "name"),
        content=raw.get("content"),
        tool_calls=lost.keep((_call(one) for one in calls), "tool call"),
        timestamp=_name(raw, "timestamp"),
        metadata=_mapping(raw, "metadata"),
    )


def _call(raw: JsonValue) -> OutputCall | None:
    tool = _name(raw, "tool")
    if tool is None or not isinstance(raw, dict):
        return None
    return OutputCall(
        tool=tool,
        input=raw.get("input"),
        output=raw.get("output"),
        id=_name(raw, "id"),
        timestamp=_name(raw, "timestamp"),
        duration_ms=_duration(raw),
    )


def _duration(raw: Mapping[str, JsonValue]) -> float | None:
    duration = in_range(_either(raw, "duration_ms", "durationMs"), LONGEST_CALL_MS)
    return None if duration is None else float(duration)


def _trace(document: Mapping[str, JsonValue], lost: _Lost) -> tuple[TraceEvent, ...] | None:
    raw = document.get("trace")
    if not isinstance(raw, list):
        return None
    _bounded(raw, ANSWER_EVENTS, "events")
    return lost.keep((_event(one) for one in raw), "event")


def _event(raw: JsonValue) -> TraceEvent | None:
    if not isinstance(raw, dict) or not isinstance(kind := raw.get("type"), str) or kind not in _EVENT_TYPES:
        return None
    text = raw.get("text")
    return TraceEvent(
        type=_EVENT_TYPES[kind],
        timestamp=_name(raw, "timestamp"),
        id=_name(raw, "id"),
        name=_name(raw, "name"),
        input=raw.get("input"),
        output=raw.get("output"),
        text=text if isinstance(text, str) else None,
        metadata=_mapping(raw, "metadata"),
    )


def _calls_of(trace: Sequence[TraceEvent]) -> tuple[ToolCall, ...]:
    """The calls of a trace; what each gave back stands with it, or in the result of the same id."""
    results = {event.id: event.output for event in trace if event.type == "tool_result" and event.id is not None}
    return tuple(
        ToolCall(
            name=event.name,
            params=_params(event.input),
            id=event.id,
            result=event.output if event.output is not None else results.get(event.id or ""),
        )
        for event in trace
        if event.type == "tool_call" and event.name is not None
    )


def _params(given: JsonValue) -> dict[str, JsonValue]:
    if given is None:
        return {}
    return given if isinstance(given, dict) else {"input": given}


def _last_words(messages: tuple[OutputMessage, ...]) -> str:
    """The content of the last assistant message that has some."""
    for message in reversed(messages):
        if message.role == "assistant" and message.content not in (None, ""):
            return as_text(message.content)
    return ""


def _usage(document: Mapping[str, JsonValue]) -> Usage | None:
    usage = document.get("usage")
    if not isinstance(usage, dict):
        return _usage_of_agentv(_either(document, "token_usage", "tokenUsage"))
    given, made = (
        _either(usage, "input_tokens", "inputTokens"),
        _either(usage, "output_tokens", "outputTokens"),
    )
    return _counted(given, made)


def _usage_of_agentv(usage: JsonValue) -> Usage | None:
    """Tokens by the names of AgentV 4; those from a cache were read too, and count."""
    if not isinstance(usage, dict):
        return None
    given, cached = _count(usage.get("input")), _count(usage.get("cached"))
    return _counted(given if given is None or cached is None else given + cached, usage.get("output"))


def _counted(given: JsonValue, made: JsonValue) -> Usage | None:
    counts = [_count(given), _count(made)]
    return None if counts == [None, None] else Usage(input_tokens=counts[0], output_tokens=counts[1])


def _count(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and in_range(value, MAX_TOKENS) is not None else None


def _cost(document: Mapping[str, JsonValue]) -> float | None:
    cost = in_range(_either(document, "cost_usd", "costUsd"), MAX_COST_USD)
    return None if cost is None else float(cost)


def _either(raw: Mapping[str, JsonValue], snake: str, camel: str) -> JsonValue:
    return raw[snake] if snake in raw else raw.get(camel)


def _name(raw: JsonValue, key: str) -> str | None:
    """A text that is neither empty nor boundless."""
    value = raw.get(key) if isinstance(raw, dict) else None
    return value if isinstance(value, str) and 0 < len(value) <= CALL_NAME else None


def _mapping(raw: Mapping[str, JsonValue], key: str) -> dict[str, JsonValue] | None:
    value = raw.get(key)
    return value if isinstance(value, dict) else None


def _bounded(raw: list[JsonValue], limit: int, what: str) -> None:
    if len(raw) > limit:
        raise _too_much(f"reports {len(raw):,} {what}, more than {limit:,}")


def _too_much(what: str) -> TargetError:
    return TargetError(f"the answer {what}", fault=TargetFault.MALFORMED)
