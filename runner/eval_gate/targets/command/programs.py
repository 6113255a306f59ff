"""Coding agents whose output `agentProtocol` names, and how the output of each is read.

Claude Code (`--output-format stream-json --verbose` or `json`): `assistant` events contain texts and calls, `user`
events the results of tools, and the last `result` the response. The calls of agents that a task started are in the same
stream and count too. Tokens from a cache count as read.

Gemini CLI (`--output-format stream-json` or `json`): the response is the text after the last call. Text before it, such
as "I look it up", is not part of it. Each event has a time, so each call has a duration.

Codex (`codex exec --json`; agentv behaviour 5.4): each item is one call, in the order in which the items began. The
type of the item is the name of the tool. A tool of an MCP server keeps the name from its server, so that one eval file
works for this agent and for others with the same tools.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final, NamedTuple

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Response, ToolCall
from eval_gate.model.limits import CALL_NAME, MAX_DURATION_MS, in_range
from eval_gate.struct import replace
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.command.program_events import (
    Event,
    ProgramEvents,
    StreamCalls,
    build_malformed_error,
    build_usage,
    find_result,
    format_reason,
    get_member,
    parse_events,
    refuse_many_calls,
)
from eval_gate.targets.response.extraction import extract_text, parse_cost, parse_duration_ms, sum_tokens, to_params
from eval_gate.text.escape import format_count, to_one_line

_CLAUDE_CODE_MESSAGES = ("assistant", "user")
"""Types of the events of Claude Code that hold texts, calls and results of tools."""
_CODEX_MESSAGES: Final = ("agent_message", "response", "output")
"""Types of items that contain a response."""
_CODEX_TEXTS: Final = ("text", "content", "output")
"""Fields of such an item that may contain the response; the first one counts."""
_CODEX_STAGES: Final = ("item.started", "item.updated", "item.completed")
_CODEX_STREAM: Final = ("thread.started", "turn.started", "turn.completed")
"""Events of a stream in which every call has an item."""
_CODEX_FIELDS: Final = {
    "command_execution": (("command", "cwd"), ("aggregated_output", "exit_code")),
    "mcp_tool_call": ((), ()),
    "file_change": (("changes",), ("status",)),
    "web_search": (("query", "action"), ()),
}
"""Fields of the parameters and of the result of a call, by the type of its item."""
_MAX_QUOTED: Final = 200


class ProgramName(StrEnum):
    """Values of `agentProtocol` of a command."""

    CLAUDE_CODE = "claude-code"
    GEMINI_CLI = "gemini-cli"
    CODEX = "codex"


def _read_claude_code(events: Sequence[Event]) -> Response:
    """Read the last result's text, and all tool calls. Raises TargetError (malformed) without a result."""
    result = find_result(events)
    text = result.get("result") if result is not None else None
    if result is None or not isinstance(text, str):
        raise build_malformed_error("Claude Code printed no result: its output ends early")
    calls = _collect_claude_code_calls(events)
    read = (get_member(result, "usage", f"{kind}input_tokens") for kind in ("", "cache_creation_", "cache_read_"))
    return Response(
        text=text,
        tool_calls=calls.all,
        usage=build_usage(sum_tokens(*read), sum_tokens(get_member(result, "usage", "output_tokens"))),
        cost_usd=parse_cost(result.get("total_cost_usd")),
        tool_calls_known=any(event.get("type") in _CLAUDE_CODE_MESSAGES for event in events),
        model=_find_model(events, result),
        warnings=(*_describe_denials(result), *calls.warnings),
    )


def _find_claude_code_failure(events: Sequence[Event]) -> str | None:
    """Find the failure that the program reports, in its own words."""
    result = find_result(events)
    subtype = result.get("subtype") if result is not None else None
    if result is None or not (result.get("is_error") is True or str(subtype).startswith("error")):
        return None
    errors = extract_text(result.get("errors"), "\n")
    kind = subtype if subtype != "success" else None
    return format_reason(result.get("result")) or format_reason(errors) or format_reason(kind) or "without a reason"


def _collect_claude_code_calls(events: Iterable[Event]) -> StreamCalls:
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
    names = (get_member(event, "message", "model") for event in reversed(own))
    used = result.get("modelUsage")
    only = next(iter(used)) if isinstance(used, dict) and len(used) == 1 else None
    return next((name for name in names if isinstance(name, str) and not name.startswith("<")), only)


def _iter_parts(events: Iterable[Event]) -> Iterator[JsonValue]:
    for event in events:
        content = get_member(event, "message", "content") if event.get("type") in _CLAUDE_CODE_MESSAGES else None
        yield from content if isinstance(content, list) else ()


def _describe_denials(result: Event) -> tuple[str, ...]:
    """Which tools it was not allowed to use: the usual reason for an agent that does nothing in a workflow."""
    denials = result.get("permission_denials")
    names = [format_reason(get_member(one, "tool_name"))[:100] for one in denials] if isinstance(denials, list) else []
    tools = ", ".join(sorted({name for name in names if name})[:5])
    return (f"Claude Code was not allowed to use {tools}; --allowedTools permits tools",) if tools else ()


def _read_gemini_cli(events: Sequence[Event]) -> Response:
    """Read text and tool calls. Raises TargetError (malformed) if the agent was not done at the end."""
    result = find_result(events)
    if result is None:
        return _read_object(events)
    calls, fragments, begun = StreamCalls(), list[str](), dict[str, JsonValue]()
    text = ""
    for event in events:
        match event.get("type"):
            case "tool_use":
                identity = event.get("tool_id")
                calls.begin_call(event.get("tool_name"), event.get("parameters"), identity)
                begun[str(identity)] = event.get("timestamp")
                text, fragments = "".join(fragments) or text, []
            case "tool_result":
                identity, error = event.get("tool_id"), event.get("error")
                calls.end_call(
                    identity,
                    event.get("output") if error is None else {"error": error},
                    success={"success": True, "error": False}.get(str(event.get("status"))),
                    duration_ms=_compute_duration_ms(begun.get(str(identity)), event.get("timestamp")),
                )
            case "message" if event.get("role") == "assistant":
                fragments.append(extract_text(event.get("content"), "\n") or "")
    stats = result.get("stats")
    models = (event.get("model") for event in events if event.get("type") == "init")
    return Response(
        text="".join(fragments) or text,
        tool_calls=calls.all,
        usage=build_usage(*(sum_tokens(get_member(stats, f"{kind}_tokens")) for kind in ("input", "output"))),
        model=next((model for model in models if isinstance(model, str)), None),
        warnings=calls.warnings,
    )


def _find_gemini_cli_failure(events: Sequence[Event]) -> str | None:
    """Find the failure that the program reports, in its own words."""
    result = find_result(events)
    if result is not None and result.get("status") == "success":
        return None
    error = next((event["error"] for event in reversed(events) if event.get("error") and _is_final(event)), None)
    if result is None and error is None:
        return None
    return format_reason(get_member(error, "message")) or format_reason(error) or "without a reason"


def _is_final(event: Event) -> bool:
    """Whether an error in this event is that of the whole response, and not of one call."""
    return event.get("type") in ("result", None)


def _read_object(events: Sequence[Event]) -> Response:
    """Read the single object of `--output-format json`, which counts tool calls but does not list them."""
    streamed = any("type" in event for event in events)  # a stream that was cut has no response
    whole = next((one for one in reversed(events) if isinstance(one.get("response"), str) and not streamed), None)
    text = whole.get("response") if whole is not None else None
    if whole is None or not isinstance(text, str):
        raise build_malformed_error("Gemini CLI printed no result: its output ends early")
    models = get_member(whole, "stats", "models")
    used = list(models.values()) if isinstance(models, dict) else []
    outputs = (get_member(model, "tokens", kind) for model in used for kind in ("candidates", "thoughts"))
    inputs = sum_tokens(*(get_member(model, "tokens", "prompt") for model in used))
    only = next(iter(models)) if isinstance(models, dict) and len(models) == 1 else None
    return Response(text=text, usage=build_usage(inputs, sum_tokens(*outputs)), model=only, tool_calls_known=False)


def _compute_duration_ms(start: JsonValue, end: JsonValue) -> float | None:
    """Compute the milliseconds between two times in ISO 8601; None for an invalid time or a wrong order."""
    first, last = _parse_time(start), _parse_time(end)
    if first is None or last is None:
        return None
    passed = in_range((last - first).total_seconds() * 1000, MAX_DURATION_MS)
    return None if passed is None else float(passed)


def _parse_time(moment: JsonValue) -> datetime | None:
    try:
        time = datetime.fromisoformat(moment) if isinstance(moment, str) else None
    except ValueError:
        return None
    return time.replace(tzinfo=UTC) if time is not None and time.tzinfo is None else time


def _parse_codex_output(content: str) -> ProgramEvents:
    """Parse an output that is JSON as a whole, or from its last brace on. Raises TargetError (malformed)."""
    if not content.strip():
        raise build_malformed_error("Codex CLI printed nothing")
    output = parse_events(content)
    if output.skipped_lines:
        rest = parse_events(content[max(content.rfind("{"), 0) :])
        if rest.skipped_lines:
            excerpt = to_one_line(content, _MAX_QUOTED)
            raise build_malformed_error(f"Codex CLI emitted invalid JSON: {excerpt}")
        return ProgramEvents(rest.events)
    return output


def _read_codex(events: Sequence[Event]) -> Response:
    """Read the last message and all tool calls. Raises TargetError (malformed) if the last turn was not completed."""
    turns = [kind for event in events if (kind := event.get("type")) in ("turn.started", "turn.completed")]
    if turns and turns[-1] == "turn.started":
        raise build_malformed_error("Codex CLI ended before its turn was completed")
    text = next(
        (words for rule in _CODEX_RULES for event in reversed(events) if (words := rule(event)) is not None), None
    )
    if text is None:
        raise build_malformed_error("Codex CLI printed no message of the assistant")
    is_stream = any(event.get("type") in _CODEX_STREAM for event in events)
    usages = [event.get("usage") for event in events if event.get("type") == "turn.completed"]
    counts = (sum_tokens(*(get_member(one, f"{kind}_tokens") for one in usages)) for kind in ("input", "output"))
    return Response(
        text=text,
        tool_calls=_collect_codex_calls(events) if is_stream else (),
        usage=build_usage(*counts),
        tool_calls_known=is_stream,
    )


def _find_codex_failure(events: Sequence[Event]) -> str | None:
    """Why the last turn failed; None where it did not. A lone `error` may be a connection that was tried again."""
    ends = [event for event in events if event.get("type") in ("turn.completed", "turn.failed")]
    if not ends or ends[-1].get("type") == "turn.completed":
        return None
    return format_reason(get_member(ends[-1], "error", "message")) or "without a reason"


def find_codex_error(content: str) -> str | None:
    """Find why Codex ended with an error in its output: by its last turn, or else by its last error."""
    try:
        events = _parse_codex_output(content).events
    except TargetError:
        return None
    reasons = [format_reason(event.get("message")) for event in events if event.get("type") == "error"]
    return _find_codex_failure(events) or next((words for words in reversed(reasons) if words), None)


def _read_codex_item(event: Event) -> str | None:
    item = event.get("item")
    if event.get("type") != "item.completed" or get_member(item, "type") not in _CODEX_MESSAGES:
        return None
    return next((text for key in _CODEX_TEXTS if (text := extract_text(get_member(item, key), "\n")) is not None), None)


def _read_codex_messages(event: Event) -> str | None:
    messages = event.get("messages")
    replies = [one for one in messages if get_member(one, "role") == "assistant"] if isinstance(messages, list) else []
    return extract_text(get_member(replies[-1], "content"), "\n") if replies else None


_CODEX_RULES: Final = (
    _read_codex_item,
    _read_codex_messages,
    lambda event: extract_text(get_member(event.get("response"), "content"), "\n"),
    lambda event: extract_text(event.get("output"), "\n"),
)
"""Where the text is: the first rule that finds one counts, and of several events the last."""


def _collect_codex_calls(events: Sequence[Event]) -> tuple[ToolCall, ...]:
    """All calls. Of an item that is reported several times the last report counts, at the place of the first."""
    items: dict[str, Event] = {}
    for number, event in enumerate(events):
        item = event.get("item")
        if event.get("type") in _CODEX_STAGES and isinstance(item, dict) and str(item.get("type")) in _CODEX_FIELDS:
            identity = item.get("id")
            items[identity if isinstance(identity, str) else f"\0{number}"] = item
    refuse_many_calls(len(items))
    return tuple(map(_build_codex_call, items.values()))


def _build_codex_call(item: Event) -> ToolCall:
    kind, error = str(item["type"]), item.get("error")
    arguments, result = (_pick_fields(item, keys) for keys in _CODEX_FIELDS[kind])
    name: JsonValue = kind
    if kind == "mcp_tool_call":
        name, arguments = item.get("tool"), item.get("arguments")
        result = item.get("result") if error is None else {"error": error}
    return ToolCall(
        name=name[:CALL_NAME] if isinstance(name, str) and name else kind,
        params=to_params(arguments, "arguments"),
        success=_find_codex_success(item),
        duration_ms=parse_duration_ms(item.get("duration_ms")),
        result=result,
        id=identity[:CALL_NAME] if isinstance(identity := item.get("id"), str) and identity else None,
    )


def _find_codex_success(item: Event) -> bool | None:
    """Whether the call went well: by its error, its exit code, its status, in this order."""
    code = item.get("exit_code")
    if item.get("error") is not None:
        return False
    if isinstance(code, int) and not isinstance(code, bool):
        return code == 0
    return {"completed": True, "failed": False, "declined": False}.get(str(item.get("status")))


def _pick_fields(item: Event, keys: Sequence[str]) -> JsonValue:
    return {key: item[key] for key in keys if item.get(key) is not None} if keys else None


class _StreamReader(NamedTuple):
    display_name: str
    read: Callable[[Sequence[Event]], Response]
    find_failure: Callable[[Sequence[Event]], str | None]
    parse: Callable[[str], ProgramEvents] = parse_events
    id_key: str = "session_id"
    """Key of the session's id in the events that have it, all the same one."""


_READERS: Final = {
    ProgramName.CLAUDE_CODE: _StreamReader("Claude Code", _read_claude_code, _find_claude_code_failure),
    ProgramName.GEMINI_CLI: _StreamReader("Gemini CLI", _read_gemini_cli, _find_gemini_cli_failure),
    ProgramName.CODEX: _StreamReader("Codex CLI", _read_codex, _find_codex_failure, _parse_codex_output, "thread_id"),
}
_MAX_SHOWN: Final = 300
"""Maximum characters of a program's own error message in a message."""


def read_stream(preset: ProgramName, content: str) -> Response:
    """Read the output of a program that exited with 0. Raises TargetError: refused for a failure that it reports."""
    reader = _READERS[preset]
    lines = reader.parse(content)
    failure = _describe_failure(preset, lines.events)
    if failure is not None:
        raise TargetError(failure, fault=TargetFault.REFUSED)
    session_ids = (event.get(reader.id_key) for event in reversed(lines.events))
    session_id = next((one for one in session_ids if isinstance(one, str) and one), None)
    response = replace(reader.read(lines.events), session_id=session_id)
    if not lines.skipped_lines:
        return response
    what = f"left out of the output: {format_count(lines.skipped_lines, 'line')} that are not JSON objects"
    return replace(response, warnings=(*response.warnings, what))


def find_failure(preset: ProgramName, content: str) -> str | None:
    """Find in the output why a program did not exit with 0."""
    try:
        return _describe_failure(preset, _READERS[preset].parse(content).events)
    except TargetError:
        return None


def _describe_failure(preset: ProgramName, events: Sequence[Event]) -> str | None:
    reader = _READERS[preset]
    why = reader.find_failure(events)
    return None if why is None else f"{reader.display_name} reports a failure: {to_one_line(why, _MAX_SHOWN)}"
