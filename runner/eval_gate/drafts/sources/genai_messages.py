"""Messages of a model or an agent in a span, by the GenAI conventions of OpenTelemetry.

They changed several times. These forms are read, the newest first:

| form | where |
|:--|:--|
| `gen_ai.input.messages`, `gen_ai.output.messages` | attributes of the span, or of its event `….operation.details` |
| `gen_ai.user.message`, …, `gen_ai.choice` | events of the span, log records, or the attribute `events` (Pydantic AI) |
| `gen_ai.content.prompt`, `gen_ai.content.completion` | events with `gen_ai.prompt` and `gen_ai.completion` |
| `gen_ai.prompt.0.content`, `gen_ai.completion.0.content` | attributes of the span (OpenLLMetry) |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from eval_gate.drafts.sources.otlp import SpanEvent, TraceSpan
from eval_gate.drafts.sources.user_prompt import Role, find_role
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import ANSWER_CALLS, ANSWER_MESSAGES, CALL_NAME
from eval_gate.struct import FrozenStruct
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, parse_untrusted_json
from eval_gate.text.untrusted.surrogates import to_well_formed

_DETAILS_EVENT: Final = "gen_ai.client.inference.operation.details"
_EVENT_ROLE: Final = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message")
_CHOICE_EVENT: Final = "gen_ai.choice"
_NUMBERED: Final = re.compile(r"gen_ai\.(prompt|completion)\.(\d{1,5})\.(.{1,200})")
_NUMBERED_CALL: Final = re.compile(r"tool_calls\.(\d{1,5})\.(.{1,100})")
_CALL_TYPES: Final = frozenset({"tool_call", "server_tool_call", "function_call", "tool_use"})
_RESULT_TYPES: Final = frozenset({"tool_call_response", "server_tool_call_response", "tool_result"})
_MESSAGE_KEYS: Final = frozenset({"role", "content", "parts", "tool_calls"})
_EMBEDDED_EVENTS: Final = ("events", "all_messages_events")
_CONVERSATIONS: Final = ("pydantic_ai.all_messages",)


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

    @property
    def is_empty(self) -> bool:
        """Whether the span has no messages."""
        return not self.input and not self.output


def read_messages(span: TraceSpan) -> SpanMessages:
    """Read the messages of a span in the newest form that it has."""
    for read in (_read_attributes, _read_details_event, _read_message_events, _read_content_events, _read_numbered):
        found = read(span)
        if not found.is_empty:
            return found
    return SpanMessages()


def decode_json(value: JsonValue) -> JsonValue:
    """Decode a value that may be the JSON text of a structure. Any other text stays as it is."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    try:
        return parse_untrusted_json(value)
    except UntrustedJsonError:
        return value


def _read_attributes(span: TraceSpan) -> SpanMessages:
    found = _read_pair(span.attributes)
    if not found.is_empty:
        return found
    for name in _CONVERSATIONS:
        messages = _parse_list(span.attributes.get(name))
        if messages:
            return split_conversation(messages)
    return found


def _read_details_event(span: TraceSpan) -> SpanMessages:
    for event in span.events:
        if event.name == _DETAILS_EVENT:
            body = event.body if isinstance(event.body, dict) else {}
            return _read_pair({**event.attributes, **body})
    return SpanMessages()


def _read_pair(attributes: Mapping[str, JsonValue]) -> SpanMessages:
    return SpanMessages(
        _parse_list(attributes.get("gen_ai.input.messages")), _parse_list(attributes.get("gen_ai.output.messages"))
    )


def split_conversation(messages: tuple[TracedMessage, ...]) -> SpanMessages:
    """Split a whole conversation behind its last message of a user."""
    last = max((at for at, one in enumerate(messages) if one.is_prompt), default=-1)
    return SpanMessages(messages[: last + 1], messages[last + 1 :], is_whole=True)


def _read_message_events(span: TraceSpan) -> SpanMessages:
    found = _read_named_events((event.name, _merge_payload(event)) for event in span.events)
    if not found.is_empty:
        return found
    for name in _EMBEDDED_EVENTS:
        listed = decode_json(span.attributes.get(name))
        entries = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        found = _read_named_events((str(one.get("event.name") or ""), one) for one in entries)
        if not found.is_empty:
            return split_conversation((*found.input, *found.output))
    return SpanMessages()


def _read_named_events(events: Iterable[tuple[str, Mapping[str, JsonValue]]]) -> SpanMessages:
    """Read events that are one message each."""
    into: list[TracedMessage] = []
    out: list[TracedMessage] = []
    for name, payload in events:
        role = _EVENT_ROLE.fullmatch(name)
        if role is not None:
            into += _parse_messages([{"role": role[1], **payload}])
        elif name == _CHOICE_EVENT:
            message = decode_json(payload.get("message"))
            content = message if isinstance(message, dict) else {"content": message} if message else payload
            out += _parse_messages([{**content, "role": "assistant"}])
    return SpanMessages(tuple(into[:ANSWER_MESSAGES]), tuple(out[:ANSWER_MESSAGES]))


def _merge_payload(event: SpanEvent) -> dict[str, JsonValue]:
    """Merge everything that an event says: attributes, the JSON in one of them, and the body."""
    content = decode_json(event.attributes.get("gen_ai.event.content"))
    body = event.body if isinstance(event.body, dict) else {} if event.body is None else {"content": event.body}
    return {**event.attributes, **(content if isinstance(content, dict) else {}), **body}


def _read_content_events(span: TraceSpan) -> SpanMessages:
    attributes = dict(span.attributes)
    for event in span.events:
        if event.name in ("gen_ai.content.prompt", "gen_ai.content.completion"):
            attributes |= event.attributes
    prompt, completion = attributes.get("gen_ai.prompt"), attributes.get("gen_ai.completion")
    return SpanMessages(_parse_list(prompt, "user"), _parse_list(completion, "assistant"))


def _read_numbered(span: TraceSpan) -> SpanMessages:
    """Read messages whose fields are attributes of their own, such as `gen_ai.prompt.0.content`."""
    found: dict[str, dict[int, dict[str, JsonValue]]] = {"prompt": {}, "completion": {}}
    for name, value in span.attributes.items():
        match = _NUMBERED.fullmatch(name)
        if match is not None:
            found[match[1]].setdefault(int(match[2]), {})[match[3]] = value
    for entries in found.values():
        for fields in entries.values():
            fields["tool_calls"] = _collect_numbered_calls(fields)
    into, out = ([entries[at] for at in sorted(entries)] for entries in (found["prompt"], found["completion"]))
    return SpanMessages(
        tuple(_parse_messages(into)), tuple(_parse_messages([{"role": "assistant", **fields} for fields in out]))
    )


def _collect_numbered_calls(fields: Mapping[str, JsonValue]) -> list[JsonValue]:
    calls: dict[int, dict[str, JsonValue]] = {}
    for name, value in fields.items():
        match = _NUMBERED_CALL.fullmatch(name)
        if match is not None:
            calls.setdefault(int(match[1]), {})[match[2]] = value
    return [calls[at] for at in sorted(calls)]


def _parse_list(value: JsonValue, role: Role | None = None) -> tuple[TracedMessage, ...]:
    """Parse a list of messages, or its JSON text. `role` is that of a plain text; None if there is none."""
    found = decode_json(value)
    listed = found if isinstance(found, list) else [found]
    entries = [one for one in listed if isinstance(one, dict) and _MESSAGE_KEYS & one.keys()]
    if not entries and role and isinstance(value, str) and value.strip():
        return (TracedMessage(role, to_well_formed(value)),)
    return tuple(_parse_messages({"role": role, **one} for one in entries))


def _parse_messages(entries: Iterable[Mapping[str, JsonValue]]) -> Iterator[TracedMessage]:
    for at, entry in enumerate(entries):
        if at >= ANSWER_MESSAGES:
            return
        role = find_role(entry.get("role"))
        if role is not None:
            yield _parse_message(entry, role)


def _parse_message(entry: Mapping[str, JsonValue], role: Role) -> TracedMessage:
    """Parse a message with `parts` (the newest form), or with `content` and `tool_calls`."""
    texts: list[str] = []
    calls: list[TracedCall] = []
    results: list[tuple[str, JsonValue]] = []
    content = entry.get("parts")
    content = _decode_parts(entry.get("content")) if content is None else content
    for part in content if isinstance(content, list) else [content]:
        _read_part(part, texts, calls, results)
    listed = decode_json(entry.get("tool_calls"))
    calls += (one for entry_ in listed if (one := _parse_call(entry_))) if isinstance(listed, list) else ()
    if role == "tool" and not results:
        results = [(_get_id(entry), decode_json(entry.get("content")))]
    text = "" if role == "tool" else "".join(texts)
    return TracedMessage(role, to_well_formed(text), tuple(calls[:ANSWER_CALLS]), tuple(results[:ANSWER_CALLS]))


def _decode_parts(content: JsonValue) -> JsonValue:
    """Decode the JSON text of a list of parts. Any other text is what somebody said, even if it is JSON."""
    found = decode_json(content)
    listed = isinstance(found, list) and all(isinstance(one, dict) and "type" in one for one in found)
    return found if listed else content


def _read_part(
    part: JsonValue, texts: list[str], calls: list[TracedCall], results: list[tuple[str, JsonValue]]
) -> None:
    """Add one part of a message to its texts, calls or results. Thoughts of a model and files are left out."""
    if isinstance(part, str):
        texts.append(part)
    if not isinstance(part, dict):
        return
    kind = part.get("type", part.get("kind"))
    if isinstance(kind, str) and kind in _CALL_TYPES:
        calls += [one] if (one := _parse_call(part)) else []
    elif isinstance(kind, str) and kind in _RESULT_TYPES:
        value = next((part[key] for key in ("response", "result", "content") if key in part), None)
        results.append((_get_id(part), decode_json(value)))
    elif kind in ("text", "output_text", "input_text", None):
        text = next((found for key in ("content", "text") if isinstance(found := part.get(key), str)), "")
        texts.append(text)


def _parse_call(value: JsonValue) -> TracedCall | None:
    """Parse a tool call. Return None if it has no name."""
    if not isinstance(value, dict):
        return None
    function = value.get("function")
    inner = function if isinstance(function, dict) else value
    name = inner.get("name")
    if not isinstance(name, str) or not name or len(name) > CALL_NAME:
        return None
    keys = ("arguments", "args", "input", "server_tool_call")
    arguments = next((inner[key] for key in keys if key in inner), None)
    return TracedCall(to_well_formed(name), _get_id(value), decode_json(arguments))


def _get_id(value: Mapping[str, JsonValue]) -> str:
    found = next((value[key] for key in ("id", "tool_call_id", "call_id") if value.get(key)), "")
    return found if isinstance(found, str) else str(found) if isinstance(found, int) else ""
