"""Parse the output of Codex: the response, the tool calls and the usage.

Source: agentv behaviour 5.4. Each item is one call, in the order in which the items began. The type of the item is the
name of the tool. A tool of an MCP server keeps the name from its server, so that one eval file works for this agent and
for others with the same tools. Inputs and outputs are the item's own fields. Usage of turns becomes tokens.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import OutputCall, ToolCall
from eval_gate.model.usage import Usage
from eval_gate.struct import FrozenStruct
from eval_gate.targets.response.extraction import extract_text, parse_duration_ms, parse_tokens, to_params
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, check_json_size, parse_untrusted_json

_MAX_KEPT: Final = 10_000
"""Characters of a Codex message that an error stores; it shows fewer."""
_MESSAGES: Final = ("agent_message", "response", "output")
"""Types of items that contain a response."""
_TEXTS: Final = ("text", "content", "output")
"""Fields of such an item that may contain the response; the first one counts."""
Item = dict[str, JsonValue]

MAX_TEXT: Final = 20_000
"""Maximum stored characters of one string in a call's input or output."""
_MAX_DEPTH: Final = 50
_STAGES: Final = ("item.started", "item.updated", "item.completed")


class CodexOutputError(Exception):
    """No response in the output of Codex. The message says why; `said` is what Codex printed instead."""

    def __init__(self, message: str, said: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.said = said[:_MAX_KEPT]


class CodexResponse(FrozenStruct):
    """Response of Codex with its tool calls and usage. `calls` is None where they are unknown."""

    text: str
    calls: tuple[CodexCall, ...] | None = None
    usage: Usage | None = None


def parse_output(text: str) -> CodexResponse:
    """Parse the last response and all tool calls in the output of Codex.

    Raises CodexOutputError. If the last turn failed or was not completed, the output has no response, whatever
    messages came before.
    """
    documents, whole = _parse_documents(text)
    failure = _find_turn_failure(documents)
    if failure is not None:
        raise CodexOutputError("Codex CLI reports that its turn failed", failure)
    turns = [one for document in documents if (one := document.get("type")) in ("turn.started", "turn.completed")]
    if turns and turns[-1] == "turn.started":
        raise CodexOutputError("Codex CLI ended before its turn was completed")
    answer = _find_response_text(documents)
    if answer is None:
        raise CodexOutputError("Codex CLI printed no message of the assistant")
    if not whole or not _has_event_stream(documents):
        return CodexResponse(answer, usage=sum_usage(documents))
    return CodexResponse(answer, collect_calls(documents), sum_usage(documents))


def find_failure(text: str) -> str | None:
    """In Codex's own words why it failed, where its output says so."""
    try:
        documents, _ = _parse_documents(text)
    except CodexOutputError:
        return None
    said = [_get_message(document) for document in documents if document.get("type") == "error"]
    return _find_turn_failure(documents) or next(reversed([words for words in said if words]), None)


def _find_turn_failure(documents: Sequence[Item]) -> str | None:
    """Why the last turn failed; None where it did not. A lone `error` may be a connection that was tried again."""
    turns = [document for document in documents if document.get("type") in ("turn.completed", "turn.failed")]
    if not turns or turns[-1].get("type") == "turn.completed":
        return None
    error = turns[-1].get("error")
    return (_get_message(error) if isinstance(error, dict) else None) or "without a reason"


def _parse_documents(text: str) -> tuple[list[Item], bool]:
    """Parse the JSON objects of the output, or from its last `{` on, and return whether they are all of it."""
    text = text.strip()
    if not text:
        raise CodexOutputError("Codex CLI printed nothing")
    try:
        check_json_size(text.encode("utf-8", "replace"), depth=sys.maxsize)
    except UntrustedJsonError as error:
        raise CodexOutputError(f"the output of Codex CLI {error}", text) from error
    lines = [line for line in text.split("\n") if line.strip()]  # no others: JSON's texts may hold U+2028
    found = _parse_mappings([text])
    if found is None and len(lines) > 1:
        found = _parse_mappings(lines)
    if found is not None:
        return found, True
    start = text.rfind("{")
    found = _parse_mappings([text[start:]]) if start >= 0 else None
    if found is not None:
        return found, False
    raise CodexOutputError("Codex CLI emitted invalid JSON", text)


def _parse_mappings(texts: Sequence[str]) -> list[Item] | None:
    """Parse JSON documents and return the mappings in them, including those in lists."""
    try:
        values = [parse_untrusted_json(text, depth=sys.maxsize) for text in texts]
    except ValueError:
        return None
    members = [member for value in values for member in (value if isinstance(value, list) else [value])]
    return [member for member in members if isinstance(member, dict)]


def _find_response_text(documents: Sequence[Item]) -> str | None:
    """Find the response text: the last one that the first matching rule finds."""
    for rule in (_from_item, _from_messages, _from_response, _from_output):
        for document in reversed(documents):
            answer = rule(document)
            if answer is not None:
                return answer
    return None


def _from_item(document: Item) -> str | None:
    item = document.get("item")
    if document.get("type") != "item.completed" or not isinstance(item, dict) or item.get("type") not in _MESSAGES:
        return None
    return next((text for key in _TEXTS if (text := extract_text(item.get(key), "\n")) is not None), None)


def _from_messages(document: Item) -> str | None:
    messages = document.get("messages")
    if not isinstance(messages, list):
        return None
    for message in reversed(messages):
        if isinstance(message, dict) and message.get("role") == "assistant":
            return extract_text(message.get("content"), "\n")
    return None


def _from_response(document: Item) -> str | None:
    response = document.get("response")
    return extract_text(response.get("content"), "\n") if isinstance(response, dict) else None


def _from_output(document: Item) -> str | None:
    return extract_text(document.get("output"), "\n")


def _get_message(document: Item) -> str | None:
    message = document.get("message")
    return " ".join(message.split()) or None if isinstance(message, str) else None


def _has_event_stream(documents: Sequence[Item]) -> bool:
    """Whether this is Codex's stream of events, in which every call has an item."""
    return any(str(document.get("type")).startswith(("thread.", "turn.", "item.")) for document in documents)


class CodexCall(FrozenStruct):
    """One tool call of Codex: as Codex reported it, and as assertions see it."""

    output_call: OutputCall
    tool_call: ToolCall


def collect_calls(events: Sequence[Item]) -> tuple[CodexCall, ...]:
    """All calls. Of an item that is reported several times the last report counts, at the place of the first."""
    found: dict[str, Item] = {}
    for number, event in enumerate(events):
        item = event.get("item")
        if event.get("type") in _STAGES and isinstance(item, dict) and str(item.get("type")) in _CALL_READERS:
            identity = item.get("id")
            found[identity if isinstance(identity, str) else f"\0{number}"] = item
    return tuple(_build_call(item) for item in found.values())


def sum_usage(events: Sequence[Item]) -> Usage | None:
    """Tokens summed over all turns that tell theirs; None where none does."""
    counted = (
        Usage(
            input_tokens=parse_tokens(usage.get("input_tokens")), output_tokens=parse_tokens(usage.get("output_tokens"))
        )
        for event in events
        if event.get("type") == "turn.completed" and isinstance(usage := event.get("usage"), dict)
    )
    return Usage.add_up(usage for usage in counted if usage != Usage())


def _build_call(item: Item) -> CodexCall:
    kind = str(item["type"])
    tool, given, output = _CALL_READERS[kind](item)
    identity = _parse_short_text(item.get("id"))
    given, output = _truncate_value(given), _truncate_value(output)
    return CodexCall(
        OutputCall(tool=tool, input=given, output=output, id=identity),
        ToolCall(
            name=tool,
            params=to_params(given, "arguments"),
            success=_find_success(item),
            duration_ms=parse_duration_ms(item.get("duration_ms")),
            result=output,
            id=identity,
        ),
    )


def _read_mcp_call(item: Item) -> tuple[str, JsonValue, JsonValue]:
    error = item.get("error")
    name = _parse_short_text(item.get("tool")) or "mcp_tool_call"
    return name, item.get("arguments"), item.get("result") if error is None else {"error": error}


_CALL_READERS: Final[dict[str, Callable[[Item], tuple[str, JsonValue, JsonValue]]]] = {
    "command_execution": lambda item: (
        "command_execution",
        _pick_fields(item, "command", "cwd"),
        _pick_fields(item, "aggregated_output", "exit_code"),
    ),
    "mcp_tool_call": _read_mcp_call,
    "file_change": lambda item: ("file_change", _pick_fields(item, "changes"), _pick_fields(item, "status")),
    "web_search": lambda item: ("web_search", _pick_fields(item, "query", "action"), None),
}
"""Tool, input and output of an item, by its type."""


def _find_success(item: Item) -> bool | None:
    """Whether it went well, where the item says so: by its error, its exit code, its status, in this order."""
    code = item.get("exit_code")
    if item.get("error") is not None:
        return False
    if isinstance(code, int) and not isinstance(code, bool):
        return code == 0
    return {"completed": True, "failed": False, "declined": False}.get(str(item.get("status")))


def _pick_fields(item: Item, *keys: str) -> JsonValue:
    return {key: item[key] for key in keys if item.get(key) is not None}


def _truncate_value(value: JsonValue, depth: int = 0) -> JsonValue:
    """Truncate long texts in a JSON value and drop values that are nested too deeply."""
    match value:
        case str():
            return value if len(value) <= MAX_TEXT else f"{value[:MAX_TEXT]}… ({len(value):,} characters in all)"
        case list() | dict() if depth == _MAX_DEPTH:
            return "…"
        case list():
            return [_truncate_value(member, depth + 1) for member in value]
        case dict():
            return {key: _truncate_value(member, depth + 1) for key, member in value.items()}
        case _:
            return value


def _parse_short_text(value: JsonValue) -> str | None:
    return value[:200] if isinstance(value, str) and value else None
