"""What a span says of one part of an agent's run: its kind, its messages, and the tool that it calls.

Instrumentations write this in different places and encodings. The tables here name the places; the encodings of
messages differ only by the names of their keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Final, Literal, NamedTuple

from eval_gate.drafts.sources.otlp import SpanEvent, TraceSpan
from eval_gate.drafts.sources.user_prompt import Role, find_role
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import ANSWER_CALLS, ANSWER_MESSAGES, CALL_NAME
from eval_gate.struct import FrozenStruct
from eval_gate.text.javascript.strings import dump_compact_json
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, parse_untrusted_json
from eval_gate.text.untrusted.surrogates import to_well_formed


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
    """Where messages are: attributes, or attributes below these, such as `gen_ai.prompt.0.content`.

    Without `output`, the input is a whole conversation.
    """

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

_CONTAINERS: Final = ("messages", "contents", "generations", "choices", "prompt", "input", "output")
"""Keys of a request, a response or a state below which messages are."""
_ENVELOPES: Final = ("message", "kwargs", "data")
"""Keys of a mapping without a role that has a whole message below it: OpenInference, LangChain, OpenAI."""
_CONTENT: Final = ("parts", "contents", "content", "text")
_CALLS: Final = ("tool_calls", "toolCalls")
_PART_KINDS: Final[Mapping[str, Literal["text", "call", "result"]]] = {
    **dict.fromkeys(("text", "output_text", "input_text", "message_content", "content"), "text"),
    **dict.fromkeys(("tool_call", "server_tool_call", "function_call", "functionCall"), "call"),
    **dict.fromkeys(("tool_use", "toolUse", "tool-call"), "call"),
    **dict.fromkeys(("tool_call_response", "server_tool_call_response"), "result"),
    **dict.fromkeys(("function_response", "functionResponse"), "result"),
    **dict.fromkeys(("tool_result", "toolResult", "tool-result"), "result"),
}
"""Parts of a message by their `type`, or by the only key of a mapping without one."""
_NAMES: Final = ("name", "toolName")
_IDS: Final = ("tool_call_id", "toolCallId", "toolUseId", "tool_use_id", "call_id", "id")
_CALL_ARGUMENTS: Final = ("arguments", "args", "input", "server_tool_call")
_CALL_RESULTS: Final = ("response", "result", "output", "content")
_MAX_LEVELS: Final = 8
"""Levels of attributes below an attribute: `llm.input_messages.0.message.tool_calls.0.tool_call.function.name`."""


class TracedCall(FrozenStruct):
    """Tool call in a message. `arguments` is None if the trace does not have them."""

    name: str
    id: str = ""
    arguments: JsonValue = None


class TracedMessage(FrozenStruct):
    """One message: its text, the tools that it calls and the results of tools that it brings, by the id of the call."""

    role: Role
    text: str = ""
    calls: tuple[TracedCall, ...] = ()
    results: tuple[tuple[str, JsonValue], ...] = ()

    @property
    def is_prompt(self) -> bool:
        """Whether a user says something in it: results of tools come in messages of a user, too."""
        return self.role == "user" and bool(self.text.strip())


class SpanMessages(NamedTuple):
    """Messages that went into a model or an agent, and those that came out."""

    input: tuple[TracedMessage, ...] = ()
    output: tuple[TracedMessage, ...] = ()
    is_whole: bool = False
    """They are a whole conversation, divided behind its last message of a user."""
    unread: str = ""
    """What is where the messages should be, if it is something else."""

    @property
    def is_empty(self) -> bool:
        """Whether the span has no messages."""
        return not self.input and not self.output


def find_kind(span: TraceSpan) -> SpanKind | None:
    """Find the kind of a span; None for one that is no part of an agent's run."""
    for attribute, kinds in _KINDS.items():
        named = span.get_text(attribute)
        if named:
            return kinds.get(named)
    if get_tool_name(span):
        return SpanKind.TOOL
    return SpanKind.MODEL if any(name.startswith(_MODEL_ATTRIBUTES) for name in span.attributes) else None


def get_tool_name(span: TraceSpan) -> str:
    """Return the name of the tool that a span calls, or an empty text."""
    return next(filter(None, map(span.get_text, _TOOL_NAME)), "")


def get_call_id(span: TraceSpan) -> str:
    """Return the id of the tool call that a span is, or an empty text."""
    return next(filter(None, map(span.get_text, _CALL_ID)), "")


def read_arguments(span: TraceSpan) -> JsonValue:
    """Read the arguments of the tool call that a span is; None if it does not have them."""
    return next((decode_json(span.attributes[key]) for key in _ARGUMENTS if key in span.attributes), None)


def read_result(span: TraceSpan) -> JsonValue:
    """Read the result of the tool call that a span is; None if it does not have it."""
    found = next((decode_json(span.attributes[key]) for key in _RESULT if key in span.attributes), None)
    message = next(iter(_iter_messages(found, None)), None)
    return message.results[0][1] if message and message.role == "tool" and message.results else _unwrap_result(found)


def iter_tool_definitions(span: TraceSpan) -> Iterator[JsonValue]:
    """Yield the definitions of tools that a model or an agent was given."""
    fields = _merge_fields(span)
    for key in _TOOL_DEFINITIONS:
        listed = _find_field(fields, key)
        yield from map(decode_json, listed) if isinstance(listed, list) else ()


def read_messages(span: TraceSpan, kind: SpanKind) -> SpanMessages:
    """Read the messages of a span at the first place that has some."""
    fields, unread = _merge_fields(span), ""
    for place in _PLACES:
        if kind not in place.kinds:
            continue
        given = _find_field(fields, place.input)
        into = tuple(_iter_messages(given, "user"))
        last = max((at for at, one in enumerate(into) if one.is_prompt), default=-1)
        if not place.output and into:
            return SpanMessages(into[: last + 1], into[last + 1 :], is_whole=True)
        out = tuple(_iter_messages(_find_field(fields, place.output), "assistant"))
        begin = max((at for at, one in enumerate(out) if one.is_prompt), default=-1) + 1
        if into or out:
            return SpanMessages(into, out[begin:], unread="" if into else _describe_unread(given))
        unread = unread or _describe_unread(given)
    return SpanMessages(unread=unread)


def decode_json(value: JsonValue) -> JsonValue:
    """Decode a value that may be the JSON text of a structure. Any other text stays as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    try:
        return parse_untrusted_json(value)
    except UntrustedJsonError:
        return value


def _describe_unread(value: JsonValue) -> str:
    return to_well_formed(dump_compact_json(value)) if value and isinstance(value, list | dict) else ""


def _merge_fields(span: TraceSpan) -> Mapping[str, JsonValue]:
    """Merge what a span, its events and its log records say."""
    fields, into, out = dict(span.attributes), list[JsonValue](), list[JsonValue]()
    for event in span.events:
        if event.name in _MERGED_EVENTS:
            fields |= event.attributes
            fields |= event.body if isinstance(event.body, dict) else {}
            continue
        message = _convert_event(event.name, _merge_payload(event))
        if message:
            (out if event.name == _CHOICE_EVENT else into).append(message)
    fields |= {_EVENTS_INPUT: into, _EVENTS_OUTPUT: out}
    for name in ("events", "all_messages_events"):
        listed = decode_json(fields.get(name))
        entries = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        fields[name] = [made for one in entries if (made := _convert_event(str(one.get("event.name")), one))]
    return fields


def _merge_payload(event: SpanEvent) -> dict[str, JsonValue]:
    """Merge everything that an event says: attributes, the JSON in one of them, and the body."""
    content = decode_json(event.attributes.get("gen_ai.event.content"))
    body = event.body if isinstance(event.body, dict) else {} if event.body is None else {"content": event.body}
    return {**event.attributes, **(content if isinstance(content, dict) else {}), **body}


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
    """Convert mappings whose keys are numbers to lists."""
    if not isinstance(value, dict):
        return value
    if all(key.isascii() and key.isdigit() and len(key) <= _MAX_LEVELS for key in value):
        return [_convert_indexes(value[key]) for key in sorted(value, key=int)]
    return {key: _convert_indexes(member) for key, member in value.items()}


def _iter_messages(value: JsonValue, role: Role | None) -> Iterator[TracedMessage]:
    """Yield the messages in a value, at most `ANSWER_MESSAGES`.

    `role` is that of a plain text, and of a message that does not say it; without it, these are left out.
    """
    for at, (entry, own) in enumerate(_iter_entries(decode_json(value), role)):
        if at >= ANSWER_MESSAGES:
            return
        yield _parse_message(entry, own)


def _iter_entries(
    value: JsonValue, role: Role | None, *, listed: bool = False
) -> Iterator[tuple[Mapping[str, JsonValue], Role]]:
    """Yield every mapping that is a message, wherever it is in a request, a response or a state, with its role.

    A plain text is one, too, unless it is `listed`.
    """
    match value:
        case str() if role and value.strip() and not listed:
            yield {"content": value}, role
        case list():
            for member in value:
                yield from _iter_entries(member, role, listed=True)
        case dict():
            container = None if _find_own_role(value) else next((key for key in _CONTAINERS if key in value), None)
            if container is not None:
                yield from _iter_entries(decode_json(value[container]), role, listed=listed)
                return
            entry = _open_envelope(value)
            own = _find_own_role(entry) or role
            if own and any(key in entry for key in (*_CONTENT, *_CALLS)):
                yield entry, own


def _find_own_role(entry: Mapping[str, JsonValue]) -> Role | None:
    return find_role(entry.get("role")) or find_role(entry.get("type"))


def _open_envelope(entry: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Return the message in a mapping that has it below a key; otherwise the mapping."""
    while "role" not in entry:
        inner = next((found for key in (*_ENVELOPES, "content") if isinstance(found := entry.get(key), dict)), None)
        if inner is None:
            break
        kinds = entry.get("id")
        constructor = kinds[-1] if isinstance(kinds, list) and kinds else None
        entry = {"type": constructor, **inner}
    content = entry.get("content")  # Google writes {"role": …, "parts": …} there
    return {**entry, **content} if isinstance(content, dict) and "parts" in content else entry


def _parse_message(entry: Mapping[str, JsonValue], role: Role) -> TracedMessage:
    texts: list[str] = []
    calls: list[TracedCall] = []
    results: list[tuple[str, JsonValue]] = []
    content = next((found for key in _CONTENT if (found := entry.get(key)) is not None), None)
    parts = _decode_parts(content)
    for part in parts if isinstance(parts, list) else [parts]:
        _read_part(part, texts, calls, results)
    listed = next((decode_json(entry[key]) for key in _CALLS if key in entry), None)
    calls += _iter_calls(listed if isinstance(listed, list) else ())
    if role == "tool" and not results:
        results = [(_get_id(entry), _unwrap_result(decode_json(content)))]
    text = "" if role == "tool" else "".join(texts)
    if role == "user" and not text and not results:  # whoever asks for a question says what this is
        text = _describe_unread(parts)
    return TracedMessage(role, to_well_formed(text), tuple(calls[:ANSWER_CALLS]), tuple(results[:ANSWER_CALLS]))


def _decode_parts(content: JsonValue) -> JsonValue:
    """Decode the JSON text of a list of parts. Any other text is what somebody said, even if it is JSON."""
    found = decode_json(content)
    return found if isinstance(found, list) and all(_find_part_kind(one) for one in found) else content


def _find_part_kind(part: JsonValue) -> str | None:
    """Find the word for the kind of a part: its type, or its only key."""
    if not isinstance(part, dict):
        return None
    kind = part.get("type", part.get("kind"))
    if kind is None:
        keys = [key for key, value in part.items() if value is not None]
        kind = next((key for key in keys if key in _PART_KINDS), keys[0] if len(keys) == 1 else None)
    return kind if isinstance(kind, str) else None


def _read_part(
    part: JsonValue, texts: list[str], calls: list[TracedCall], results: list[tuple[str, JsonValue]]
) -> None:
    """Add one part of a message to its texts, calls or results. Thoughts of a model and files are left out."""
    if isinstance(part, str):
        texts.append(part)
    if not isinstance(part, dict) or part.get("thought") is True:
        return
    word = _find_part_kind(part)
    inner = part.get(word) if word else None
    part = inner if isinstance(inner, dict) else part
    match _PART_KINDS.get(word or "text"):
        case "call":
            calls += _iter_calls([part])
        case "result":
            value = next((part[key] for key in _CALL_RESULTS if key in part), None)
            results.append((_get_id(part), _unwrap_result(decode_json(value))))
        case "text":
            texts.append(next((found for key in ("content", "text") if isinstance(found := part.get(key), str)), ""))


def _unwrap_result(value: JsonValue) -> JsonValue:
    """Return what a tool returned: the text of its parts, or the value that has a type beside it."""
    if isinstance(value, dict) and value.keys() == {"type", "value"}:
        return value["value"]
    texts = [one.get("text") if isinstance(one, dict) else None for one in value] if isinstance(value, list) else []
    said = [text for text in texts if isinstance(text, str)]
    return decode_json("".join(said)) if texts and len(said) == len(texts) else value


def _iter_calls(entries: Iterable[JsonValue]) -> Iterator[TracedCall]:
    """Yield the tool calls that have a name."""
    for entry in entries:
        inner = outer = entry
        for key in ("tool_call", "function"):
            below = inner.get(key) if isinstance(inner, dict) else None
            outer, inner = (inner, below) if isinstance(below, dict) else (outer, inner)
        if not isinstance(inner, dict) or not isinstance(outer, dict):
            continue
        name = next((found for key in _NAMES if isinstance(found := inner.get(key), str)), "")
        if name and len(name) <= CALL_NAME:
            arguments = next((inner[key] for key in _CALL_ARGUMENTS if key in inner), None)
            yield TracedCall(to_well_formed(name), _get_id(outer), decode_json(arguments))


def _get_id(value: Mapping[str, JsonValue]) -> str:
    found = next((value[key] for key in _IDS if value.get(key)), "")
    return found if isinstance(found, str) else str(found) if isinstance(found, int) else ""
