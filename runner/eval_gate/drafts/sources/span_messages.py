"""Read one span of an agent's run: its kind, its messages, and the tool that it calls.

Instrumentations write these in different places, which the tables here name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Final, NamedTuple

from eval_gate.drafts.sources.otlp import TraceSpan, measure_ms
from eval_gate.drafts.sources.source_messages import (
    SourceMessage,
    decode_json,
    dump_structure,
    find_last_prompt,
    iter_messages,
    unwrap_result,
)
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import ToolCall


class SpanKind(Enum):
    """Part of an agent's run that a span stands for."""

    AGENT = auto()
    MODEL = auto()
    TOOL = auto()
    STEP = auto()
    """Step of a framework; the topmost one that was given the message of a user is the run of an agent."""


_KINDS: Final[Mapping[str, Mapping[str, SpanKind]]] = {
    "langsmith.span.kind": {"llm": SpanKind.MODEL, "tool": SpanKind.TOOL, "chain": SpanKind.STEP},
    "openinference.span.kind": {
        "AGENT": SpanKind.AGENT,
        "CHAIN": SpanKind.STEP,
        "LLM": SpanKind.MODEL,
        "TOOL": SpanKind.TOOL,
    },
    "ai.operationId": {  # Vercel AI SDK
        **{f"ai.{name}": SpanKind.AGENT for name in ("generateText", "streamText", "generateObject", "streamObject")},
        **{f"ai.generate{what}.doGenerate": SpanKind.MODEL for what in ("Text", "Object")},
        **{f"ai.stream{what}.doStream": SpanKind.MODEL for what in ("Text", "Object")},
        "ai.toolCall": SpanKind.TOOL,
    },
    "gen_ai.operation.name": {
        **dict.fromkeys(("invoke_agent", "invoke_workflow"), SpanKind.AGENT),
        **dict.fromkeys(("chat", "generate_content", "text_completion"), SpanKind.MODEL),
        "execute_tool": SpanKind.TOOL,
    },
}
"""Kinds of spans by the attribute that says it. The first attribute that a span has counts."""
_MODEL_ATTRIBUTES: Final = ("gen_ai.prompt", "gen_ai.completion", "gen_ai.request.")
"""Beginnings of attributes that only model calls have, of older instrumentations that do not name the operation."""


class _Place(NamedTuple):
    """Attributes with messages, or the beginning of their names; without `output`, of a whole conversation."""

    input: str
    output: str = ""
    kinds: Sequence[SpanKind] = tuple(SpanKind)


_EVENTS_INPUT: Final = "events: input"
_EVENTS_OUTPUT: Final = "events: output"
_PLACES: Final = (
    _Place("gen_ai.input.messages", "gen_ai.output.messages"),  # the conventions; in a span, an event or a log record
    _Place("pydantic_ai.all_messages"),
    _Place(_EVENTS_INPUT, _EVENTS_OUTPUT),  # the conventions before 1.37, Strands Agents, Google ADK
    _Place("events"),  # Pydantic AI 1
    _Place("all_messages_events"),
    _Place("gen_ai.prompt", "gen_ai.completion"),  # older conventions, OpenLLMetry, LangSmith
    _Place("ai.prompt.messages", "ai.response"),  # Vercel AI SDK: a model call
    _Place("ai.prompt", "ai.response"),  # Vercel AI SDK: a run
    _Place("llm.input_messages", "llm.output_messages", (SpanKind.MODEL,)),  # OpenInference: a model call
    _Place("input.value", "output.value"),  # OpenInference: a run
    _Place("gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response"),  # Google ADK 1
)
"""Places of messages by instrumentation; the first that has some counts."""
_MERGED_EVENTS: Final = frozenset(
    {"gen_ai.client.inference.operation.details", "gen_ai.content.prompt", "gen_ai.content.completion"}
)
"""Events, or log records, whose attributes are as good as those of the span."""
_MESSAGE_EVENT: Final = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message")
_CHOICE_EVENT: Final = "gen_ai.choice"

_TOOL_NAME: Final = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name")
_CALL_ID: Final = ("gen_ai.tool.call.id", "ai.toolCall.id")
_ARGUMENTS: Final = (
    *("gen_ai.tool.call.arguments", "tool_arguments", "gcp.vertex.agent.tool_call_args", "ai.toolCall.args"),
    *("input.value", "gen_ai.prompt"),
)
_RESULT: Final = (
    *("gen_ai.tool.call.result", "tool_response", "gcp.vertex.agent.tool_response", "ai.toolCall.result"),
    *("output.value", "gen_ai.completion"),
)
_TOOL_DEFINITIONS: Final = ("gen_ai.tool.definitions", "ai.prompt.tools", "llm.tools")

_MAX_LEVELS: Final = 8
"""Levels of attributes below an attribute: `llm.input_messages.0.message.tool_calls.0.tool_call.function.name`."""


class SpanMessages(NamedTuple):
    """Messages that went into a model or an agent, and those that came out."""

    input: tuple[SourceMessage, ...] = ()
    output: tuple[SourceMessage, ...] = ()
    is_whole: bool = False
    """They are a whole conversation, divided behind its last message of a user."""
    unread: str = ""
    """The structure in the place of the messages, if it is none of messages."""


def find_kind(span: TraceSpan) -> SpanKind | None:
    """Find the kind of a span; None for one that is no part of an agent's run."""
    for attribute, kinds in _KINDS.items():
        kind = span.get_text(attribute)
        if kind:
            return kinds.get(kind)
    if span.get_text(_TOOL_NAME[0]):
        return SpanKind.TOOL
    return SpanKind.MODEL if any(name.startswith(_MODEL_ATTRIBUTES) for name in span.attributes) else None


def read_tool(span: TraceSpan) -> ToolCall:
    """Read the tool call that a span is; its name is empty if the span does not have it."""
    arguments, result = _get_first(span, _ARGUMENTS), _get_first(span, _RESULT)
    messages = [one for one in iter_messages(result) if one.role == "tool"]
    return ToolCall(
        name=next(filter(None, map(span.get_text, _TOOL_NAME)), ""),
        params=arguments if isinstance(arguments, dict) else {},
        success=span.error is None,
        duration_ms=measure_ms(span.start_ns, span.end_ns),
        result=messages[0].results[0][1] if messages else unwrap_result(result),
        id=next(filter(None, map(span.get_text, _CALL_ID)), None),
    )


def _get_first(span: TraceSpan, names: Sequence[str]) -> JsonValue:
    return next((decode_json(span.attributes[name]) for name in names if name in span.attributes), None)


def iter_tool_definitions(span: TraceSpan) -> Iterator[JsonValue]:
    """Yield the definitions of tools that a model or an agent was given."""
    fields = _merge_fields(span)
    for key in _TOOL_DEFINITIONS:
        listed = _find_field(fields, key)
        yield from map(decode_json, listed) if isinstance(listed, list) else ()


def read_messages(span: TraceSpan, kind: SpanKind) -> SpanMessages:
    """Read the messages of a span at the first place that has an input, otherwise an output."""
    fields, rest = _merge_fields(span), SpanMessages()
    for place in _PLACES:
        if kind not in place.kinds:
            continue
        input_value = _find_field(fields, place.input)
        into = tuple(iter_messages(input_value, "user"))
        if into and not place.output:
            begin = find_last_prompt(into) + 1
            return SpanMessages(into[:begin], into[begin:], is_whole=True)
        output = tuple(iter_messages(_find_field(fields, place.output), "assistant"))
        output = output[find_last_prompt(output) + 1 :]
        if into:
            return SpanMessages(into, output)
        rest = SpanMessages(output=rest.output or output, unread=rest.unread or dump_structure(input_value))
    return rest


def _merge_fields(span: TraceSpan) -> Mapping[str, JsonValue]:
    fields, inputs, outputs = dict(span.attributes), list[JsonValue](), list[JsonValue]()
    for event in span.events:
        if event.name in _MERGED_EVENTS:
            fields |= event.attributes
            fields |= event.body if isinstance(event.body, dict) else {}
            continue
        content = decode_json(event.attributes.get("gen_ai.event.content"))
        body = event.body if isinstance(event.body, dict) else {} if event.body is None else {"content": event.body}
        message = _convert_event(
            event.name, {**event.attributes, **(content if isinstance(content, dict) else {}), **body}
        )
        if message:
            (outputs if event.name == _CHOICE_EVENT else inputs).append(message)
    fields |= {_EVENTS_INPUT: inputs, _EVENTS_OUTPUT: outputs}
    for name in ("events", "all_messages_events"):
        listed = decode_json(fields.get(name))
        entries = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        fields[name] = [converted for one in entries if (converted := _convert_event(str(one.get("event.name")), one))]
    return fields


def _convert_event(name: str, payload: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Convert an event that is one message; the result is empty for another event."""
    role = _MESSAGE_EVENT.fullmatch(name)
    if role is not None:
        return {"role": role[1], **payload}
    if name != _CHOICE_EVENT:
        return {}
    message = decode_json(payload.get("message"))
    content = message if isinstance(message, dict) else {"content": message} if message else payload
    return {**content, "role": "assistant"}


def _find_field(fields: Mapping[str, JsonValue], name: str) -> JsonValue:
    """Find an attribute, or build the value of the attributes below it, whose names have keys and indexes."""
    if name in fields or not name:
        return decode_json(fields.get(name))
    root: dict[str, JsonValue] = {}
    for key, value in fields.items():
        if not key.startswith(f"{name}."):
            continue
        *parents, last = key[len(name) + 1 :].split(".", _MAX_LEVELS)
        node = root
        for parent in parents:
            child = node.setdefault(parent, {})
            node = child if isinstance(child, dict) else {}
        node[last] = value
    return _convert_indexes(root) if root else None


def _convert_indexes(value: JsonValue) -> JsonValue:
    if not isinstance(value, dict):
        return value
    if all(key.isascii() and key.isdigit() and len(key) <= _MAX_LEVELS for key in value):
        return [_convert_indexes(value[key]) for key in sorted(value, key=int)]
    return {key: _convert_indexes(member) for key, member in value.items()}
