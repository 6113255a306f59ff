"""The trace of a response for evaluators: messages, tool calls and a summary.

Source: agentv evaluation spec, "Trace Data Model", "Evaluator OutputMessages Context", "Output Message Format";
agentv behaviour 7. A target may report messages, a trace (deprecated), plain tool calls, or only a text. With only a
text, the tool calls are unknown, which is not the same as no calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import Final

from msgspec import structs

from eval_gate.evaluators.wording import truncate
from eval_gate.model.base import JsonValue, as_json
from eval_gate.model.conversation import OutputCall, OutputMessage, Response, TraceEvent
from eval_gate.model.result import TraceSummary
from eval_gate.struct import FrozenStruct
from eval_gate.text.javascript.strings import dump_compact_json
from eval_gate.text.untrusted.surrogates import to_well_formed

MAX_NAME: Final = 200
"""Characters of a tool's name in a summary: names come from the target and may be anything."""
MAX_NAMES: Final = 1_000
"""Different tools in a summary; the most called are kept."""


class ReportedCall(FrozenStruct):
    """A tool call of the target with arguments, output and duration, as far as reported."""

    name: str
    args: JsonValue = None
    output: JsonValue = None
    duration_ms: float | None = None


def find_messages(response: Response) -> tuple[OutputMessage, ...] | None:
    """Return the target's messages, or its plain calls as one; None for a target with a trace instead, or nothing."""
    if response.messages:
        return response.messages
    return (_to_message(response),) if response.trace is None and has_reported_calls(response) else None


def has_reported_calls(response: Response) -> bool:
    """Whether the target reported its calls, or Eval Gate itself ran the exchange with a model."""
    return response.tool_calls_known is True or bool(response.tool_calls or response.conversation)


def list_called_tools(response: Response) -> list[str] | None:
    """List the called tools in order, whatever the role of the message; None if the calls are unknown."""
    if response.messages:
        return [call.tool for message in response.messages for call in message.tool_calls]
    if response.trace is not None:
        return [event.name for event in response.trace if event.type == "tool_call" and event.name]
    return [call.name for call in response.tool_calls] if has_reported_calls(response) else None


def list_calls(response: Response) -> list[ReportedCall] | None:
    """List the tool calls in order with all their reported data, or return None if they are unknown."""
    if response.messages:
        calls = (call for message in response.messages for call in message.tool_calls)
        return [ReportedCall(call.tool, call.input, call.output, call.duration_ms) for call in calls]
    if response.trace is not None:
        events = (event for event in response.trace if event.type == "tool_call")
        return [ReportedCall(event.name, event.input, event.output) for event in events if event.name]
    if not has_reported_calls(response):
        return None
    return [ReportedCall(call.name, dict(call.params), call.result, call.duration_ms) for call in response.tool_calls]


def format_calls(response: Response) -> list[str]:
    """Format every call in one line, with its arguments as JSON, for prompts."""
    lines = ((call.name, dump_compact_json(call.args) if call.args else "") for call in list_calls(response) or ())
    return [truncate(f"{name}: {args}" if args else name, MAX_NAME) for name, args in islice(lines, MAX_NAMES)]


def summarize_trace(response: Response) -> TraceSummary | None:
    """Summarize the trace in four numbers.

    Returns None if nothing is known of the target's actions. Messages count one event per call and no errors; a
    trace has events and errors of its own. For plain calls, a call that the target reports as failed is an error.
    Output messages of AgentV never report a failed call.
    """
    calls = list_called_tools(response)
    if calls is None:
        return None
    if response.messages:
        return _build_summary(calls, len(calls), 0)
    if response.trace is not None:
        return _build_summary(calls, len(response.trace), sum(event.type == "error" for event in response.trace))
    return _build_summary(calls, len(calls), sum(call.success is False for call in response.tool_calls))


def _to_message(response: Response) -> OutputMessage:
    calls = tuple(OutputCall(tool=call.name, input=call.params, id=call.id) for call in response.tool_calls)
    return OutputMessage(role="assistant", content=response.text, tool_calls=calls)


def _build_summary(calls: Iterable[str], events: int, errors: int) -> TraceSummary:
    counts = Counter(truncate(to_well_formed(name), MAX_NAME) for name in calls)
    # ties are sorted by name, so that the order of the calls does not change the summary
    most_called = sorted(counts, key=lambda name: (-counts[name], name))[:MAX_NAMES]
    by_name = {name: counts[name] for name in sorted(most_called)}
    return TraceSummary(event_count=events, tool_names=tuple(by_name), tool_calls_by_name=by_name, error_count=errors)


def summary_to_json(summary: TraceSummary | None) -> JsonValue:
    """Convert the summary to JSON under the names of the specification; None stays None."""
    return as_json(summary) if summary else None


def messages_to_json(messages: Iterable[OutputMessage] | None) -> JsonValue:
    """Messages as graders read them: camelCase, without what a message does not have."""
    return None if messages is None else [message_to_json(message) for message in messages]


def build_prompt_messages(response: Response) -> JsonValue:
    """Return the messages for a prompt; a bare text becomes one message, so that the judge sees it."""
    return messages_to_json(find_messages(response) or (_to_message(response),))


def trace_to_json(events: Iterable[TraceEvent] | None) -> JsonValue:
    """Events as graders read them, without what an event does not have."""
    return None if events is None else [_drop_missing(event) for event in events]


def message_to_json(message: OutputMessage, *, snake_case: bool = False) -> JsonValue:
    """Convert a message to JSON, without what it does not have; AgentV 4 has snake_case, and no times."""
    calls: list[JsonValue] = [_drop_missing(call, snake_case=snake_case) for call in message.tool_calls]
    fields = {
        "role": message.role,
        "name": message.name,
        "content": message.content,
        "tool_calls" if snake_case else "toolCalls": calls or None,
        "timestamp": None if snake_case else message.timestamp,
        "metadata": message.metadata,
    }
    return {key: value for key, value in fields.items() if value is not None}


def _drop_missing(item: OutputCall | TraceEvent, *, snake_case: bool = False) -> JsonValue:
    """Convert a call or event to JSON without missing fields; `duration_ms` is the only name of more than a word."""
    return {
        "durationMs" if key == "duration_ms" and not snake_case else key: value
        for key, value in structs.asdict(item).items()
        if value is not None
    }
