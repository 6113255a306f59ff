"""Parse the output of Claude Code (`--output-format stream-json --verbose` or `json`).

`assistant` events contain texts and calls, `user` events the results of tools, and the last `result` the response. The
calls of agents that a task started are in the same stream and count too. Tokens from a cache count as read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Response
from eval_gate.targets.command.streams.events import (
    Event,
    StreamCalls,
    build_malformed_error,
    build_usage,
    find_result,
    format_reason,
    get_member,
)
from eval_gate.targets.response.extraction import extract_text, parse_cost, sum_tokens

_MESSAGE_TYPES = ("assistant", "user")


def read(events: Sequence[Event]) -> Response:
    """Read the last result's text, and all tool calls. Raises TargetError (malformed) without a result."""
    result = find_result(events)
    answer = result.get("result") if result is not None else None
    if result is None or not isinstance(answer, str):
        raise build_malformed_error("Claude Code printed no result: its output ends early")
    calls = _collect_calls(events)
    read = (get_member(result, "usage", f"{kind}input_tokens") for kind in ("", "cache_creation_", "cache_read_"))
    return Response(
        text=answer,
        tool_calls=calls.all,
        usage=build_usage(sum_tokens(*read), sum_tokens(get_member(result, "usage", "output_tokens"))),
        cost_usd=parse_cost(result.get("total_cost_usd")),
        tool_calls_known=any(event.get("type") in _MESSAGE_TYPES for event in events),
        model=_find_model(events, result),
        warnings=(*_describe_denials(result), *calls.warnings),
    )


def find_failure(events: Sequence[Event]) -> str | None:
    """Why it failed, in its own words; None where it did not, or does not say that it did."""
    result = find_result(events)
    subtype = result.get("subtype") if result is not None else None
    if result is None or not (result.get("is_error") is True or str(subtype).startswith("error")):
        return None
    errors = extract_text(result.get("errors"), "\n")
    kind = subtype if subtype != "success" else None
    return format_reason(result.get("result")) or format_reason(errors) or format_reason(kind) or "without a reason"


def _collect_calls(events: Iterable[Event]) -> StreamCalls:
    calls = StreamCalls()
    for part in _iter_parts(events):
        match get_member(part, "type"):
            case "tool_use":
                calls.begin_call(get_member(part, "name"), get_member(part, "input"), get_member(part, "id"))
            case "tool_result":
                broke = get_member(part, "is_error") is True
                calls.end_call(get_member(part, "tool_use_id"), get_member(part, "content"), success=not broke)
    return calls


def _find_model(events: Sequence[Event], result: Event) -> str | None:
    """Find the model of the agent's own last message, not of an agent that a task started or `<synthetic>`."""
    own = [event for event in events if event.get("type") == "assistant" and not event.get("parent_tool_use_id")]
    named = (get_member(event, "message", "model") for event in reversed(own))
    used = result.get("modelUsage")
    only = next(iter(used)) if isinstance(used, dict) and len(used) == 1 else None
    return next((name for name in named if isinstance(name, str) and not name.startswith("<")), only)


def _iter_parts(events: Iterable[Event]) -> Iterator[JsonValue]:
    for event in events:
        content = get_member(event, "message", "content") if event.get("type") in _MESSAGE_TYPES else None
        yield from content if isinstance(content, list) else ()


def _describe_denials(result: Event) -> tuple[str, ...]:
    """Which tools it was not allowed to use: the usual reason for an agent that does nothing in a workflow."""
    denials = result.get("permission_denials")
    names = [format_reason(get_member(one, "tool_name"))[:100] for one in denials] if isinstance(denials, list) else []
    shown = ", ".join(sorted({name for name in names if name})[:5])
    return (f"Claude Code was not allowed to use {shown}; --allowedTools permits tools",) if shown else ()
