"""Placeholders such as `{{message}}` and `{{caseId}}` in settings: their names and values."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Final
from urllib.parse import quote

from eval_gate.errors import format_suggestion
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Message
from eval_gate.targets.base import Request
from eval_gate.text.javascript.strings import as_text
from eval_gate.text.json_values import iter_leaves, iter_texts, map_texts
from eval_gate.text.quoting import quote_value
from eval_gate.text.turns import flatten_messages
from eval_gate.text.untrusted.surrogates import to_well_formed

PROMPT_PLACEHOLDERS: Final = frozenset({"message", "conversation", "prompt", "caseId"})
"""Placeholders that identify the prompt. The case id is one: an agent may know its cases by id."""
REQUEST_PLACEHOLDERS: Final = (*sorted(PROMPT_PLACEHOLDERS), "trial", "runId", "uuid", "session")
MESSAGE_PLACEHOLDERS: Final = ("role", "content", "index")
"""Additional placeholders within `messageTemplate`."""
_PLACEHOLDER: Final = re.compile(r"\{\{\s*([A-Za-z]\w*)\s*\}\}")


_SESSION_FIELD: Final = re.compile(r"(?i)(session|thread|conversation|context|chat)[-_.]?(id|key|uuid)?s?$")
"""Names of fields whose value agents use to remember a conversation."""
_CASE_ID_IN_ADDRESS: Final = re.compile(r"(?<![\w.-])([\w.-]+)[/=]\{\{\s*caseId\s*\}\}")


class SessionScope(StrEnum):
    """Scope of `{{session}}`."""

    EXECUTION = "execution"
    """A new session for every execution of a case: each trial, re-run, and retry after an error."""
    CASE = "case"
    """One session for a case in a run, shared by its trials; a re-run has its own."""


class PlaceholderValues:
    """Values of the placeholders in one request. A `uuid` is the same everywhere in the request."""

    def __init__(self, request: Request, session: SessionScope, message_template: JsonValue = None) -> None:
        self._request = request
        self._session = session
        self._template = message_template
        self._values: dict[str, JsonValue] = {}

    def __getitem__(self, name: str) -> JsonValue:
        """Return the value of the placeholder `name`, computed once. Raises KeyError for an unknown one."""
        if name not in self._values:
            self._values[name] = self._compute_value(name)
        return self._values[name]

    def _compute_value(self, name: str) -> JsonValue:
        request = self._request
        match name:
            case "message":
                return request.messages[-1].content
            case "conversation":
                return [self._render_message(message, at) for at, message in enumerate(request.messages)]
            case "prompt":
                return flatten_messages(request.messages)
            case "caseId":
                return request.case_id
            case "trial":
                return request.trial
            case "runId":
                return request.run_id
            case "session" if self._session is SessionScope.CASE:
                place = f"{request.run_id}\n{request.eval_file}\n{request.case_id}"
                place += f"\n{request.rerun}" if request.rerun else ""
                return str(uuid.uuid5(uuid.NAMESPACE_URL, to_well_formed(place)))
            case "session" | "uuid":
                return str(uuid.uuid4())
            case _:
                raise KeyError(name)

    def _render_message(self, message: Message, at: int) -> JsonValue:
        own: dict[str, JsonValue] = {"role": message.role, "content": message.content}
        if self._template is None:
            return own
        own["index"] = at
        return fill_template(self._template, lambda name: own[name] if name in own else self[name])


def fill_template(template: JsonValue, value_of: Callable[[str], JsonValue]) -> JsonValue:
    """Replace the placeholders in a template; a text that is one placeholder becomes its value."""

    def fill(text: str) -> JsonValue:
        alone = _PLACEHOLDER.fullmatch(text)
        return value_of(alone[1]) if alone else _PLACEHOLDER.sub(lambda match: as_text(value_of(match[1])), text)

    return map_texts(template, fill)


def fill_address(text: str, value_of: Callable[[str], JsonValue]) -> str:
    """Replace the placeholders in a part of a URL or header by values that are encoded, so that they cannot end it."""
    return _PLACEHOLDER.sub(lambda match: quote(to_well_formed(as_text(value_of(match[1]))), safe=""), text)


def iter_placeholders(template: JsonValue) -> Iterator[str]:
    """Every placeholder in the texts of a template."""
    return (name for text in iter_texts(template) for name in _PLACEHOLDER.findall(text))


def check_placeholders(template: JsonValue, *, more: tuple[str, ...] = ()) -> None:
    """Check that all placeholders are those of a request or of `more`. Raises ValueError."""
    names = (*REQUEST_PLACEHOLDERS, *more)
    for name in iter_placeholders(template):
        if name not in names:
            raise ValueError(
                f"unknown placeholder {quote_value(name)}{format_suggestion(name, names)}; known: {', '.join(names)}"
            )


def iter_session_fields(template: JsonValue) -> Iterator[str]:
    """Fields, and parts of an address, that look like the id of a conversation and hold `{{caseId}}`."""
    for path, text in iter_leaves(template):
        if isinstance(text, str) and "caseId" in iter_placeholders(text):
            name = next((step for step in reversed(path) if isinstance(step, str)), "")
            yield from filter(_SESSION_FIELD.search, (name, *_CASE_ID_IN_ADDRESS.findall(text)))
