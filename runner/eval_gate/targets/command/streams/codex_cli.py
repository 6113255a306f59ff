"""Parse the output of Codex (`codex exec --json`).

Source: agentv behaviour 5.4. Each item is one call, in the order in which the items began. The type of the item is the
name of the tool. A tool of an MCP server keeps the name from its server, so that one eval file works for this agent and
for others with the same tools.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Response, ToolCall
from eval_gate.model.limits import CALL_NAME
from eval_gate.targets.base import TargetError
from eval_gate.targets.command.streams.events import (
    Event,
    ProgramEvents,
    build_malformed_error,
    build_usage,
    format_reason,
    get_member,
    parse_events,
    refuse_many_calls,
)
from eval_gate.targets.response.extraction import extract_text, parse_duration_ms, sum_tokens, to_params
from eval_gate.text.escape import to_one_line

_MESSAGES: Final = ("agent_message", "response", "output")
"""Types of items that contain a response."""
_TEXTS: Final = ("text", "content", "output")
"""Fields of such an item that may contain the response; the first one counts."""
_STAGES: Final = ("item.started", "item.updated", "item.completed")
_STREAM: Final = ("thread.started", "turn.started", "turn.completed")
"""Events of a stream in which every call has an item."""
_FIELDS: Final = {
    "command_execution": (("command", "cwd"), ("aggregated_output", "exit_code")),
    "mcp_tool_call": ((), ()),
    "file_change": (("changes",), ("status",)),
    "web_search": (("query", "action"), ()),
}
"""Fields of the parameters and of the result of a call, by the type of its item."""
_MAX_QUOTED: Final = 200


def parse_output(content: str) -> ProgramEvents:
    """Parse an output that is JSON as a whole, or from its last brace on. Raises TargetError (malformed)."""
    if not content.strip():
        raise build_malformed_error("Codex CLI printed nothing")
    found = parse_events(content)
    if found.skipped_lines:
        rest = parse_events(content[max(content.rfind("{"), 0) :])
        if rest.skipped_lines:
            shown = to_one_line(content, _MAX_QUOTED)
            raise build_malformed_error(f"Codex CLI emitted invalid JSON: {shown}")
        return ProgramEvents(rest.events)
    return found


def read(events: Sequence[Event]) -> Response:
    """Read the last message and all tool calls. Raises TargetError (malformed) if the last turn was not completed."""
    turns = [kind for event in events if (kind := event.get("type")) in ("turn.started", "turn.completed")]
    if turns and turns[-1] == "turn.started":
        raise build_malformed_error("Codex CLI ended before its turn was completed")
    text = next((found for rule in _RULES for event in reversed(events) if (found := rule(event)) is not None), None)
    if text is None:
        raise build_malformed_error("Codex CLI printed no message of the assistant")
    is_stream = any(event.get("type") in _STREAM for event in events)
    usages = [event.get("usage") for event in events if event.get("type") == "turn.completed"]
    counts = (sum_tokens(*(get_member(one, f"{kind}_tokens") for one in usages)) for kind in ("input", "output"))
    return Response(
        text=text,
        tool_calls=_collect_calls(events) if is_stream else (),
        usage=build_usage(*counts),
        tool_calls_known=is_stream,
    )


def find_failure(events: Sequence[Event]) -> str | None:
    """Why the last turn failed; None where it did not. A lone `error` may be a connection that was tried again."""
    ends = [event for event in events if event.get("type") in ("turn.completed", "turn.failed")]
    if not ends or ends[-1].get("type") == "turn.completed":
        return None
    return format_reason(get_member(ends[-1], "error", "message")) or "without a reason"


def find_last_error(content: str) -> str | None:
    """Why Codex ended with an error, where its output says so: by its last turn, or else by its last error."""
    try:
        events = parse_output(content).events
    except TargetError:
        return None
    said = [format_reason(event.get("message")) for event in events if event.get("type") == "error"]
    return find_failure(events) or next((words for words in reversed(said) if words), None)


def _read_item(event: Event) -> str | None:
    item = event.get("item")
    if event.get("type") != "item.completed" or get_member(item, "type") not in _MESSAGES:
        return None
    return next((text for key in _TEXTS if (text := extract_text(get_member(item, key), "\n")) is not None), None)


def _read_messages(event: Event) -> str | None:
    messages = event.get("messages")
    said = [one for one in messages if get_member(one, "role") == "assistant"] if isinstance(messages, list) else []
    return extract_text(get_member(said[-1], "content"), "\n") if said else None


_RULES: Final = (
    _read_item,
    _read_messages,
    lambda event: extract_text(get_member(event.get("response"), "content"), "\n"),
    lambda event: extract_text(event.get("output"), "\n"),
)
"""Where the text is: the first rule that finds one counts, and of several events the last."""


def _collect_calls(events: Sequence[Event]) -> tuple[ToolCall, ...]:
    """All calls. Of an item that is reported several times the last report counts, at the place of the first."""
    found: dict[str, Event] = {}
    for number, event in enumerate(events):
        item = event.get("item")
        if event.get("type") in _STAGES and isinstance(item, dict) and item.get("type") in _FIELDS:
            identity = item.get("id")
            found[identity if isinstance(identity, str) else f"\0{number}"] = item
    refuse_many_calls(len(found))
    return tuple(map(_build_call, found.values()))


def _build_call(item: Event) -> ToolCall:
    kind, error = str(item["type"]), item.get("error")
    given, result = (_pick_fields(item, keys) for keys in _FIELDS[kind])
    name: JsonValue = kind
    if kind == "mcp_tool_call":
        name, given = item.get("tool"), item.get("arguments")
        result = item.get("result") if error is None else {"error": error}
    return ToolCall(
        name=name[:CALL_NAME] if isinstance(name, str) and name else kind,
        params=to_params(given, "arguments"),
        success=_find_success(item),
        duration_ms=parse_duration_ms(item.get("duration_ms")),
        result=result,
        id=identity[:CALL_NAME] if isinstance(identity := item.get("id"), str) and identity else None,
    )


def _find_success(item: Event) -> bool | None:
    """Whether the call went well: by its error, its exit code, its status, in this order."""
    code = item.get("exit_code")
    if item.get("error") is not None:
        return False
    if isinstance(code, int) and not isinstance(code, bool):
        return code == 0
    return {"completed": True, "failed": False, "declined": False}.get(str(item.get("status")))


def _pick_fields(item: Event, keys: Sequence[str]) -> JsonValue:
    return {key: item[key] for key in keys if item.get(key) is not None} if keys else None
