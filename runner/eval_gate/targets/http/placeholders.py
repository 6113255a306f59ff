"""`{{message}}`, `{{caseId}}` and the like in a description: which there are, and what they stand for."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Final
from urllib.parse import quote

from eval_gate.errors import did_you_mean
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Message
from eval_gate.targets.base import Request
from eval_gate.text.foreign.well_formed import well_formed
from eval_gate.text.javascript.strings import as_text
from eval_gate.text.quoting import quoted
from eval_gate.text.turns import flat

QUESTION: Final = frozenset({"message", "conversation", "prompt", "caseId"})
"""What says what is asked; the id, too: an agent may know its cases by it."""
OF_A_REQUEST: Final = (*sorted(QUESTION), "trial", "runId", "uuid", "session")
OF_A_MESSAGE: Final = ("role", "content", "index")
"""Beside the others, within `messageTemplate`."""
_PLACEHOLDER: Final = re.compile(r"\{\{\s*([A-Za-z]\w*)\s*\}\}")


_REMEMBERS: Final = re.compile(r"(?i)(session|thread|conversation|context|chat)[-_.]?(id|key|uuid)?s?$")
"""How fields are called by whose value agents remember what was said."""
_IN_ADDRESS: Final = re.compile(r"(?<![\w.-])([\w.-]+)[/=]\{\{\s*caseId\s*\}\}")


class SessionScope(StrEnum):
    """What `{{session}}` is one of."""

    EXECUTION = "execution"
    """Of every execution of a case: each trial, each re-run, each try after one that broke."""
    CASE = "case"
    """Of a case in one run: its trials and re-runs share it."""


class Values:
    """What the placeholders stand for in one request. A `uuid` is the same wherever it stands in it."""

    def __init__(self, request: Request, session: SessionScope, message_template: JsonValue = None) -> None:
        self._request = request
        self._session = session
        self._template = message_template
        self._made: dict[str, JsonValue] = {}

    def __getitem__(self, name: str) -> JsonValue:
        """Raises KeyError for what is no placeholder here."""
        if name not in self._made:
            self._made[name] = self._value(name)
        return self._made[name]

    def _value(self, name: str) -> JsonValue:
        request = self._request
        match name:
            case "message":
                return request.messages[-1].content
            case "conversation":
                return [self._message(message, at) for at, message in enumerate(request.messages)]
            case "prompt":
                return flat(request.messages)
            case "caseId":
                return request.case_id
            case "trial":
                return request.trial
            case "runId":
                return request.run_id
            case "session" if self._session is SessionScope.CASE:
                place = f"{request.run_id}\n{request.eval_file}\n{request.case_id}"
                return str(uuid.uuid5(uuid.NAMESPACE_URL, well_formed(place)))
            case "session" | "uuid":
                return str(uuid.uuid4())
            case _:
                raise KeyError(name)

    def _message(self, message: Message, at: int) -> JsonValue:
        own: dict[str, JsonValue] = {"role": message.role, "content": message.content}
        if self._template is None:
            return own
        own["index"] = at
        return fill_template(self._template, lambda name: own[name] if name in own else self[name])


def fill_template(template: JsonValue, value_of: Callable[[str], JsonValue]) -> JsonValue:
    """The template with its placeholders replaced: one that is a whole text by its value, others within the text."""
    match template:
        case str():
            alone = _PLACEHOLDER.fullmatch(template)
            if alone:
                return value_of(alone[1])
            return _PLACEHOLDER.sub(lambda match: as_text(value_of(match[1])), template)
        case list():
            return [fill_template(member, value_of) for member in template]
        case dict():
            return {key: fill_template(member, value_of) for key, member in template.items()}
        case _:
            return template


def in_address(text: str, value_of: Callable[[str], JsonValue]) -> str:
    """A part of a URL or a header with its placeholders replaced, percent-encoded: no value says where it ends."""
    return _PLACEHOLDER.sub(lambda match: quote(well_formed(as_text(value_of(match[1]))), safe=""), text)


def names_in(template: JsonValue) -> Iterator[str]:
    """Every placeholder in the texts of a template."""
    match template:
        case str():
            yield from _PLACEHOLDER.findall(template)
        case list():
            for member in template:
                yield from names_in(member)
        case dict():
            for member in template.values():
                yield from names_in(member)


def check_names(template: JsonValue, *, more: tuple[str, ...] = ()) -> None:
    """Raises ValueError for a placeholder there is not. `more` are those that are known here beside the others."""
    known = (*OF_A_REQUEST, *more)
    for name in names_in(template):
        if name not in known:
            raise ValueError(f"there is no placeholder {quoted(name)}{did_you_mean(name, known)}: {', '.join(known)}")


def remembered_by(template: JsonValue, name: str = "") -> Iterator[str]:
    """Fields, and parts of an address, that look like the id of a conversation and hold `{{caseId}}`."""
    match template:
        case str():
            if "caseId" in names_in(template):
                yield from (part for part in (name, *_IN_ADDRESS.findall(template)) if _REMEMBERS.search(part))
        case list():
            for member in template:
                yield from remembered_by(member, name)
        case dict():
            for key, member in template.items():
                yield from remembered_by(member, key)
