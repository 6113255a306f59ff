"""Placeholders such as `{{message}}` and `{{caseId}}` in settings: their names, and how values replace them."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Final, TypeAlias
from urllib.parse import quote

from eval_gate.errors import format_suggestion
from eval_gate.model.base import JsonValue
from eval_gate.targets.response.field_paths import MissingValue
from eval_gate.text.javascript.strings import as_text
from eval_gate.text.json_values import iter_leaves, iter_texts
from eval_gate.text.quoting import quote_value
from eval_gate.text.untrusted.surrogates import to_well_formed

PROMPT_PLACEHOLDERS: Final = frozenset({"message", "conversation", "prompt", "caseId"})
"""Placeholders that identify the prompt. The case id is one: an agent may know its cases by id."""
TURN_PLACEHOLDERS: Final = frozenset({"message", "conversation", "prompt"})
"""Placeholders that have another value in every turn of a conversation."""
REQUEST_PLACEHOLDERS: Final = (*sorted(PROMPT_PLACEHOLDERS), "trial", "runId", "uuid", "session")
MESSAGE_PLACEHOLDERS: Final = ("role", "content", "index")
"""Additional placeholders within `messageTemplate`."""
SESSION: Final = "session"
TASK: Final = "task"
"""Placeholders whose values the agent may have returned in an earlier turn."""
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


Placeholder: TypeAlias = JsonValue | MissingValue
"""Value of a placeholder; `MISSING` where it has none, such as `{{session}}` before the agent has returned an id.

A member, query parameter or header that is only such a placeholder is left out.
"""


def fill_template(template: JsonValue, value_of: Callable[[str], Placeholder]) -> JsonValue:
    """Replace the placeholders in a template; a text that is one placeholder becomes its value.

    Members of mappings and lists whose placeholder has no value are left out.
    """
    filled = _fill_value(template, value_of)
    return None if isinstance(filled, MissingValue) else filled


def _fill_value(template: JsonValue, value_of: Callable[[str], Placeholder]) -> Placeholder:
    match template:
        case dict():
            members = ((key, _fill_value(value, value_of)) for key, value in template.items())
            return {key: value for key, value in members if not isinstance(value, MissingValue)}
        case list():
            values = (_fill_value(value, value_of) for value in template)
            return [value for value in values if not isinstance(value, MissingValue)]
        case str():
            if alone := _PLACEHOLDER.fullmatch(template):
                return value_of(alone[1])
            return _PLACEHOLDER.sub(lambda match: format_value(value_of(match[1])), template)
        case _:
            return template


def format_value(value: Placeholder) -> str:
    """Format a value as a part of a text; whole numbers exactly, which ids may be."""
    if isinstance(value, MissingValue):
        return ""
    return str(value) if type(value) is int else as_text(value)


def fill_address(text: str, value_of: Callable[[str], Placeholder]) -> str:
    """Replace the placeholders in a part of a URL or header by values that are encoded, so that they cannot end it."""
    return _PLACEHOLDER.sub(lambda match: quote(to_well_formed(format_value(value_of(match[1]))), safe=""), text)


def fill_header(text: str, value_of: Callable[[str], Placeholder]) -> str | MissingValue:
    """Replace the placeholders in the value of a header; `{{session}}` alone has no value before the agent's id.

    The id goes back as the agent wrote it, which may have signs such as `/` and `=`: no visible sign of ASCII can end a
    header.
    """
    alone = _PLACEHOLDER.fullmatch(text)
    if alone is None or alone[1] != SESSION:
        return fill_address(text, value_of)
    value = value_of(SESSION)
    return value if isinstance(value, MissingValue) else quote(format_value(value), safe=string.punctuation)


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


def is_only_part(template: JsonValue, name: str) -> bool:
    """Whether the placeholder `name` is only a part of a text, which cannot be left out."""
    return any(name in iter_placeholders(text) and not _PLACEHOLDER.fullmatch(text) for text in iter_texts(template))


def iter_session_fields(template: JsonValue) -> Iterator[str]:
    """Fields, and parts of an address, that look like the id of a conversation and hold `{{caseId}}`."""
    for path, text in iter_leaves(template):
        if isinstance(text, str) and "caseId" in iter_placeholders(text):
            name = next((step for step in reversed(path) if isinstance(step, str)), "")
            yield from filter(_SESSION_FIELD.search, (name, *_CASE_ID_IN_ADDRESS.findall(text)))
