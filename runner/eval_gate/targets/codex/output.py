"""What Codex printed: its events, and the answer among them (agentv behaviour 5.4)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.model.usage import Usage
from eval_gate.struct import FrozenStruct
from eval_gate.targets.codex.items import CodexCall, Item, calls_of, usage_of
from eval_gate.text.foreign.json import ForeignJsonError, read_foreign, refuse_too_much

_KEPT: Final = 10_000
"""Characters of Codex's own words that an error keeps, of which fewer are shown."""
_MESSAGES: Final = ("agent_message", "response", "output")
"""Types of items that hold an answer."""
_TEXTS: Final = ("text", "content", "output")
"""The fields of such an item that hold it, the first one counts."""


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
