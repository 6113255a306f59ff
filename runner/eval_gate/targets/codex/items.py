"""What Codex did on the way, as tool calls: its items become calls, its turns' usage becomes tokens.

One call per item, in the order in which the items began. The tool is the item's type, but for a tool of an MCP server,
which keeps the name its server gave it: then one eval file holds for this agent and for others with the same tools.
Inputs and outputs are the item's own fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import OutputCall, ToolCall
from eval_gate.model.usage import Usage
from eval_gate.struct import FrozenStruct

Item = dict[str, JsonValue]

MAX_TEXT: Final = 20_000
"""Characters of one text of a call's input or output that are kept."""
_MAX_DEPTH: Final = 50
_STAGES: Final = ("item.started", "item.updated", "item.completed")


class CodexCall(FrozenStruct):
    """One thing that Codex did: as its own report has it, and as assertions see it."""

    reported: OutputCall
    seen: ToolCall


def calls_of(events: Sequence[Item]) -> tuple[CodexCall, ...]:
    """All calls. Of an item that is reported several times the last report counts, at the place of the first."""
    found: dict[str, Item] = {}
    for number, event in enumerate(events):
        item = event.get("item")
        if event.get("type") in _STAGES and isinstance(item, dict) and str(item.get("type")) in _SHAPES:
            identity = item.get("id")
            found[identity if isinstance(identity, str) else f"\0{number}"] = item
    return tuple(_call(item) for item in found.values())


def usage_of(events: Sequence[Item]) -> Usage | None:
    """Tokens summed over all turns that tell theirs; None where none does."""
    counted = (
        Usage(input_tokens=_count(usage.get("input_tokens")), output_tokens=_count(usage.get("output_tokens")))
        for event in events
        if event.get("type") == "turn.completed" and isinstance(usage := event.get("usage"), dict)
    )
    return Usage.total(usage for usage in counted if usage != Usage())


def _call(item: Item) -> CodexCall:
    kind = str(item["type"])
    tool, given, output = _SHAPES[kind](item)
    identity = _text(item.get("id"))
    given, output = _bounded(given), _bounded(output)
    return CodexCall(
        OutputCall(tool=tool, input=given, output=output, id=identity),
        ToolCall(
            name=tool,
            params=given if isinstance(given, dict) else {} if given is None else {"arguments": given},
            success=_success(item),
            duration_ms=_milliseconds(item.get("duration_ms")),
            result=output,
            id=identity,
        ),
    )


def _mcp(item: Item) -> tuple[str, JsonValue, JsonValue]:
    error = item.get("error")
    name = _text(item.get("tool")) or "mcp_tool_call"
    return name, item.get("arguments"), item.get("result") if error is None else {"error": error}


_SHAPES: Final[dict[str, Callable[[Item], tuple[str, JsonValue, JsonValue]]]] = {
    "command_execution": lambda item: (
        "command_execution",
        _picked(item, "command", "cwd"),
        _picked(item, "aggregated_output", "exit_code"),
    ),
    "mcp_tool_call": _mcp,
    "file_change": lambda item: ("file_change", _picked(item, "changes"), _picked(item, "status")),
    "web_search": lambda item: ("web_search", _picked(item, "query", "action"), None),
}
"""Tool, input and output of an item, by its type."""


def _success(item: Item) -> bool | None:
    """Whether it went well, where the item says so: by its error, its exit code, its status, in this order."""
    code = item.get("exit_code")
    if item.get("error") is not None:
        return False
    if isinstance(code, int) and not isinstance(code, bool):
        return code == 0
    return {"completed": True, "failed": False, "declined": False}.get(str(item.get("status")))


def _picked(item: Item, *keys: str) -> JsonValue:
    return {key: item[key] for key in keys if item.get(key) is not None}


def _bounded(value: JsonValue, depth: int = 0) -> JsonValue:
    """The value with long texts cut, and without what is nested deeper than anybody reads."""
    match value:
        case str():
            return value if len(value) <= MAX_TEXT else f"{value[:MAX_TEXT]}… ({len(value):,} characters in all)"
        case list() | dict() if depth == _MAX_DEPTH:
            return "…"
        case list():
            return [_bounded(member, depth + 1) for member in value]
        case dict():
            return {key: _bounded(member, depth + 1) for key, member in value.items()}
        case _:
            return value


def _count(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else None


def _milliseconds(value: JsonValue) -> float | None:
    return (
        float(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12 else None
    )


def _text(value: JsonValue) -> str | None:
    return value[:200] if isinstance(value, str) and value else None
