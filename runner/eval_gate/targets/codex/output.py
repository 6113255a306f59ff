"""What Codex printed: its events, the answer among them, and what it did on the way as tool calls.

Source: agentv behaviour 5.4. One call per item, in the order in which the items began. The tool is the item's type, but
for a tool of an MCP server, which keeps the name its server gave it: then one eval file holds for this agent and for
others with the same tools. Inputs and outputs are the item's own fields. Usage of turns becomes tokens.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import OutputCall, ToolCall
from eval_gate.model.usage import Usage
from eval_gate.struct import FrozenStruct
from eval_gate.text.foreign.json import ForeignJsonError, read_foreign, refuse_too_much

_KEPT: Final = 10_000
"""Characters of Codex's own words that an error keeps, of which fewer are shown."""
_MESSAGES: Final = ("agent_message", "response", "output")
"""Types of items that hold an answer."""
_TEXTS: Final = ("text", "content", "output")
"""The fields of such an item that hold it, the first one counts."""
Item = dict[str, JsonValue]

MAX_TEXT: Final = 20_000
"""Characters of one text of a call's input or output that are kept."""
_MAX_DEPTH: Final = 50
_STAGES: Final = ("item.started", "item.updated", "item.completed")


class OutputError(Exception):
    """There is no answer in the output; the message says why, and `said` is what Codex said instead, not yet masked."""

    def __init__(self, message: str, said: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.said = said[:_KEPT]


class CodexAnswer(FrozenStruct):
    """The answer, and what was done for it. `calls` None: this form of output does not tell of calls."""

    answer: str
    calls: tuple[CodexCall, ...] | None = None
    usage: Usage | None = None


def read_output(text: str) -> CodexAnswer:
    """The last answer in the output and all calls. Raises OutputError.

    An output whose last turn failed, or was not completed, has no answer, whatever was said before.
    """
    documents, whole = _documents(text)
    failure = _failure_in(documents)
    if failure is not None:
        raise OutputError("Codex CLI says that its turn failed", failure)
    turns = [one for document in documents if (one := document.get("type")) in ("turn.started", "turn.completed")]
    if turns and turns[-1] == "turn.started":
        raise OutputError("Codex CLI ended before its turn was completed")
    answer = _answer_of(documents)
    if answer is None:
        raise OutputError("Codex CLI printed no message of the assistant")
    if not whole or not _tells_calls(documents):
        return CodexAnswer(answer, usage=usage_of(documents))
    return CodexAnswer(answer, calls_of(documents), usage_of(documents))


def failure_of(text: str) -> str | None:
    """In Codex's own words why it failed, where its output says so."""
    try:
        documents, _ = _documents(text)
    except OutputError:
        return None
    said = [_words(document) for document in documents if document.get("type") == "error"]
    return _failure_in(documents) or next(reversed([words for words in said if words]), None)


def _failure_in(documents: Sequence[Item]) -> str | None:
    """Why the last turn failed; None where it did not. A lone `error` may be a connection that was tried again."""
    turns = [document for document in documents if document.get("type") in ("turn.completed", "turn.failed")]
    if not turns or turns[-1].get("type") == "turn.completed":
        return None
    error = turns[-1].get("error")
    return (_words(error) if isinstance(error, dict) else None) or "it does not say why"


def _documents(text: str) -> tuple[list[Item], bool]:
    """The mappings of the output, and whether they are all of it. Raises OutputError.

    It is one JSON document, else several JSON lines, else at least the text from the last brace.
    """
    text = text.strip()
    if not text:
        raise OutputError("Codex CLI printed nothing")
    try:
        refuse_too_much(text.encode("utf-8", "replace"), depth=sys.maxsize)
    except ForeignJsonError as error:
        raise OutputError(f"what Codex CLI printed {error}", text) from error
    lines = [line for line in text.split("\n") if line.strip()]  # no others: JSON's texts may hold U+2028
    found = _parsed([text])
    if found is None and len(lines) > 1:
        found = _parsed(lines)
    if found is not None:
        return found, True
    start = text.rfind("{")
    found = _parsed([text[start:]]) if start >= 0 else None
    if found is not None:
        return found, False
    raise OutputError("Codex CLI emitted invalid JSON", text)


def _parsed(texts: Sequence[str]) -> list[Item] | None:
    """The mappings in these JSON documents, also those in lists; None when one of them is no JSON."""
    try:
        values = [read_foreign(text, depth=sys.maxsize) for text in texts]
    except ValueError:
        return None
    members = [member for value in values for member in (value if isinstance(value, list) else [value])]
    return [member for member in members if isinstance(member, dict)]


def _answer_of(documents: Sequence[Item]) -> str | None:
    """The answer by the first rule that finds one, the last one that it finds; None where there is none."""
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
    return next((text for key in _TEXTS if (text := _text(item.get(key))) is not None), None)


def _from_messages(document: Item) -> str | None:
    messages = document.get("messages")
    if not isinstance(messages, list):
        return None
    for message in reversed(messages):
        if isinstance(message, dict) and message.get("role") == "assistant":
            return _text(message.get("content"))
    return None


def _from_response(document: Item) -> str | None:
    response = document.get("response")
    return _text(response.get("content")) if isinstance(response, dict) else None


def _from_output(document: Item) -> str | None:
    return _text(document.get("output"))


def _text(value: JsonValue) -> str | None:
    """A text, or the texts of a list of parts; None for what is neither."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return None
    parts = [part if isinstance(part, str) else part.get("text") for part in value if isinstance(part, str | dict)]
    texts = [part for part in parts if isinstance(part, str)]
    return "\n".join(texts) if texts else None


def _words(document: Item) -> str | None:
    message = document.get("message")
    return " ".join(message.split()) or None if isinstance(message, str) else None


def _tells_calls(documents: Sequence[Item]) -> bool:
    """Whether this is Codex's stream of events, in which every call has an item."""
    return any(str(document.get("type")).startswith(("thread.", "turn.", "item.")) for document in documents)


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
    identity = _text_or_none(item.get("id"))
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
    name = _text_or_none(item.get("tool")) or "mcp_tool_call"
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


def _text_or_none(value: JsonValue) -> str | None:
    return value[:200] if isinstance(value, str) and value else None
