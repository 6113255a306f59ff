"""Parse the response of a program: text, or a JSON object with messages, trace and cost.

Source: agentv evaluation spec, "Output Message Format" and "Trace Data Model"; agentv behaviour 5.3 and 7. Keys can be
in snake_case or camelCase. Malformed messages, calls and events are omitted individually, and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar, get_args

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import EventType, OutputCall, OutputMessage, Response, ToolCall, TraceEvent
from eval_gate.model.limits import (
    CALL_NAME,
    RESPONSE_CALLS,
    RESPONSE_EVENTS,
    RESPONSE_MESSAGES,
    RESPONSE_VALUES,
)
from eval_gate.model.usage import Usage
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.command.program_events import build_usage
from eval_gate.targets.response.extraction import parse_cost, parse_duration_ms, parse_tokens, to_params
from eval_gate.text.javascript.strings import as_text
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, parse_untrusted_json

Part = TypeVar("Part")
_EVENT_TYPES: Final[Mapping[object, EventType]] = {one: one for one in get_args(EventType)}
_BOM: Final = "\ufeff"


def parse_response(content: str) -> Response:
    """Parse the response in everything that a program wrote or printed.

    In a plain text, one line break at the end is dropped and all others become LF, as in AgentV and its eval files.

    Raises TargetError (malformed) if the messages or the trace exceed the limits.
    """
    document, lost = parse_object(content), Counter[str]()
    response = None if document is None else _parse_document(document, lost)
    if response is not None:
        return response
    text = content.removeprefix(_BOM).replace("\r\n", "\n").removesuffix("\n")
    return Response(text=text, tool_calls_known=False, warnings=_format_warnings(lost))


def parse_record(document: Mapping[str, JsonValue]) -> Response:
    """Parse an object of a batch; one without messages and text is an empty response. Raises TargetError."""
    lost = Counter[str]()
    response = _parse_document(document, lost)
    return response or Response(text="", tool_calls_known=False, warnings=_format_warnings(lost))


def parse_line(content: str) -> Response | None:
    """Parse the response in a line; None if it is no object with a text or messages. Raises TargetError."""
    document, lost = parse_object(content), Counter[str]()
    return None if document is None else _parse_document(document, lost)


def parse_object(content: str) -> dict[str, JsonValue] | None:
    """Parse `content` if it is a JSON object, or return None. Raises TargetError beyond the limits."""
    text = content.removeprefix(_BOM).strip()
    if not (text.startswith("{") and text.endswith("}")):
        return None
    try:
        # Python's own writer makes NaN and the infinities, which JSON does not have: the rest is read all the same
        document = parse_untrusted_json(text, values=RESPONSE_VALUES, constant=lambda _: None)
    except UntrustedJsonError as error:
        if error.too_much:
            raise _build_too_much_error(str(error)) from None
        return None
    return document if isinstance(document, dict) else None


def _keep_readable(candidates: Iterable[Part | None], kind: str, lost: Counter[str]) -> tuple[Part, ...]:
    """Return the parts that could be read, and count in `lost` those that are None."""
    parts = list(candidates)
    readable = tuple(part for part in parts if part is not None)
    lost[kind] += len(parts) - len(readable)
    return readable


def _format_warnings(lost: Counter[str]) -> tuple[str, ...]:
    return tuple(
        f"left out of the response: {count} malformed {kind}{'s' if count > 1 else ''}"
        for kind, count in lost.items()
        if count
    )


def _parse_document(document: Mapping[str, JsonValue], lost: Counter[str]) -> Response | None:
    """Parse the response; an object without messages and text is JSON with a format of the program's own."""
    messages = _parse_messages(document, lost)
    if not messages and "text" not in document:
        return None
    trace = _parse_trace(document, lost)
    if messages:
        text, calls = _find_last_text(messages), [call for message in messages for call in message.tool_calls]
        tool_calls = tuple(
            ToolCall(name=call.tool, params=to_params(call.input), id=call.id, result=call.output) for call in calls
        )
    else:
        text, tool_calls = "" if document["text"] is None else as_text(document["text"]), _collect_calls(trace or ())
    if len(tool_calls) > RESPONSE_CALLS:
        raise _build_too_much_error(f"reports {len(tool_calls):,} tool calls, more than {RESPONSE_CALLS:,}")
    return Response(
        text=text,
        tool_calls=tool_calls,
        usage=_parse_usage(document),
        cost_usd=parse_cost(_get_either(document, "cost_usd", "costUsd")),
        model=model if isinstance(model := document.get("model"), str) else None,
        body=dict(document),
        messages=messages or None,
        trace=trace,
        tool_calls_known=bool(messages) or trace is not None,
        warnings=_format_warnings(lost),
    )


def _parse_messages(document: Mapping[str, JsonValue], lost: Counter[str]) -> tuple[OutputMessage, ...]:
    raw = _get_either(document, "output_messages", "outputMessages")
    if raw is None:  # the name that AgentV 4 has for it
        raw = document.get("output")
    if not isinstance(raw, list):
        return ()
    _require_at_most(raw, RESPONSE_MESSAGES, "messages")
    return _keep_readable((_parse_message(one, lost) for one in raw), "message", lost)


def _parse_message(raw: JsonValue, lost: Counter[str]) -> OutputMessage | None:
    role = _get_short_text(raw, "role")
    if role is None or not isinstance(raw, dict):
        return None
    calls = _get_either(raw, "tool_calls", "toolCalls")
    if calls is None:
        calls = []
    elif not isinstance(calls, list):
        calls = [None]  # counts as one that cannot be read
    _require_at_most(calls, RESPONSE_CALLS, "tool calls")
    return OutputMessage(
        role=role,
        content=raw.get("content"),
        tool_calls=_keep_readable(map(_parse_call, calls), "tool call", lost),
        metadata=_get_mapping(raw, "metadata"),
        **_get_short_texts(raw, "name", "timestamp"),
    )


def _parse_call(raw: JsonValue) -> OutputCall | None:
    tool = _get_short_text(raw, "tool")
    if tool is None or not isinstance(raw, dict):
        return None
    return OutputCall(
        tool=tool,
        input=raw.get("input"),
        output=raw.get("output"),
        duration_ms=parse_duration_ms(_get_either(raw, "duration_ms", "durationMs")),
        **_get_short_texts(raw, "id", "timestamp"),
    )


def _parse_trace(document: Mapping[str, JsonValue], lost: Counter[str]) -> tuple[TraceEvent, ...] | None:
    raw = document.get("trace")
    if not isinstance(raw, list):
        return None
    _require_at_most(raw, RESPONSE_EVENTS, "events")
    return _keep_readable(map(_parse_event, raw), "event", lost)


def _parse_event(raw: JsonValue) -> TraceEvent | None:
    if not isinstance(raw, dict) or not isinstance(kind := raw.get("type"), str) or kind not in _EVENT_TYPES:
        return None
    text = raw.get("text")
    return TraceEvent(
        type=_EVENT_TYPES[kind],
        input=raw.get("input"),
        output=raw.get("output"),
        text=text if isinstance(text, str) else None,
        metadata=_get_mapping(raw, "metadata"),
        **_get_short_texts(raw, "id", "name", "timestamp"),
    )


def _collect_calls(trace: Sequence[TraceEvent]) -> tuple[ToolCall, ...]:
    """Collect tool calls; a result is part of the call event or of the `tool_result` event with the same id."""
    results = {event.id: event.output for event in trace if event.type == "tool_result" and event.id is not None}
    return tuple(
        ToolCall(
            name=event.name,
            params=to_params(event.input),
            id=event.id,
            result=event.output if event.output is not None else results.get(event.id or ""),
        )
        for event in trace
        if event.type == "tool_call" and event.name is not None
    )


def _find_last_text(messages: tuple[OutputMessage, ...]) -> str:
    """Find the content of the last assistant message that is not empty."""
    for message in reversed(messages):
        if message.role == "assistant" and message.content not in (None, ""):
            return as_text(message.content)
    return ""


def _parse_usage(document: Mapping[str, JsonValue]) -> Usage | None:
    """Parse tokens by our names or those of AgentV 4, where those from a cache were read too, and count."""
    usage = document.get("usage")
    if isinstance(usage, dict):
        read = parse_tokens(_get_either(usage, "input_tokens", "inputTokens"))
        return build_usage(read, parse_tokens(_get_either(usage, "output_tokens", "outputTokens")))
    usage = _get_either(document, "token_usage", "tokenUsage")
    if not isinstance(usage, dict):
        return None
    read, cached = parse_tokens(usage.get("input")), parse_tokens(usage.get("cached"))
    return build_usage(read if read is None or cached is None else read + cached, parse_tokens(usage.get("output")))


def _get_either(raw: Mapping[str, JsonValue], snake: str, camel: str) -> JsonValue:
    return raw[snake] if snake in raw else raw.get(camel)


def _get_short_text(raw: JsonValue, key: str) -> str | None:
    """Return the text at `key` if it is neither empty nor longer than a name may be, or else None."""
    value = raw.get(key) if isinstance(raw, dict) else None
    return value if isinstance(value, str) and 0 < len(value) <= CALL_NAME else None


def _get_short_texts(raw: JsonValue, *keys: str) -> dict[str, str | None]:
    return {key: _get_short_text(raw, key) for key in keys}


def _get_mapping(raw: Mapping[str, JsonValue], key: str) -> dict[str, JsonValue] | None:
    value = raw.get(key)
    return value if isinstance(value, dict) else None


def _require_at_most(raw: list[JsonValue], limit: int, what: str) -> None:
    if len(raw) > limit:
        raise _build_too_much_error(f"reports {len(raw):,} {what}, more than {limit:,}")


def _build_too_much_error(what: str) -> TargetError:
    return TargetError(f"the response {what}", fault=TargetFault.MALFORMED)
