"""promptfoo templates that only name variables: `{{name}}`, `{{order.id}}`, `{{lines[0]}}`.

Everything else of Nunjucks (filters, conditions, loops, remarks) is a program, and is not carried over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from eval_gate.importers.import_result import NotImportableError
from eval_gate.model.base import JsonValue
from eval_gate.model.limits import EXTERNAL_TEXT
from eval_gate.text.javascript.strings import format_js_string

DATE_KEY: Final = "$date"
"""The key that marks what promptfoo reads as a point in time: YAML's `2026-11-21` without quotes."""
_NAME: Final = re.compile(r"\{\{\s*([A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*|\[\d{1,6}\])*)\s*\}\}", re.ASCII)
_STEP: Final = re.compile(r"[\w$]+", re.ASCII)
_MARKS: Final = ("{{", "{%", "{#")
_RESERVED_WORDS: Final = frozenset(
    {"true", "false", "none", "null", "undefined", "range", "cycler", "joiner", "loop", "super"}
)


def is_template(text: str) -> bool:
    """Whether Nunjucks would do anything with this text."""
    return any(mark in text for mark in _MARKS)


def find_only_variable(text: str) -> str | None:
    """Return the name in a template that consists of a single variable, or None.

    For `{{ question }}` the name is `question`.
    """
    found = _NAME.fullmatch(text.strip())
    return found[1] if found else None


def render_template(text: str, variables: Mapping[str, JsonValue]) -> str:
    """Replace the variables in a text with their values.

    Raises NotImportableError.
    """
    if not is_template(text):
        return text
    parts: list[str] = []
    at = length = 0
    for found in _NAME.finditer(text):
        parts += [_require_plain(text[at : found.start()]), _look_up_value(found[1], variables)]
        at = found.end()
        length += len(parts[-1])
        if length > EXTERNAL_TEXT:
            raise NotImportableError(f"it becomes longer than {EXTERNAL_TEXT:,} characters")
    whole = "".join([*parts, _require_plain(text[at:])])
    if is_template(whole):
        # `{{seed:…}}` stands for something else in our own files, and would be skipped where that is not there
        raise NotImportableError("its values and the text around them form a template")
    return whole


def render_values(value: JsonValue, variables: Mapping[str, JsonValue]) -> JsonValue:
    """Replace the variables in every text of a value, but not in keys.

    Raises NotImportableError.
    """
    match value:
        case str():
            return render_template(value, variables)
        case list():
            return [render_values(member, variables) for member in value]
        case dict():
            return {key: render_values(member, variables) for key, member in value.items()}
        case _:
            return value


def _require_plain(text: str) -> str:
    if is_template(text):
        at = min(found for found in map(text.find, _MARKS) if found >= 0)
        raise NotImportableError(f"the template {_format_template(text[at:])} does more than name a variable")
    return text


def _look_up_value(path: str, variables: Mapping[str, JsonValue]) -> str:
    steps = _STEP.findall(path)
    if steps[0] == "env" and "env" not in variables:
        raise NotImportableError(
            f"{{{{{path}}}}} is an environment variable, and their values are not written into files"
        )
    if steps[0] in _RESERVED_WORDS and steps[0] not in variables:
        raise NotImportableError(f"the template {{{{{path}}}}} does more than name a variable")
    value: JsonValue = dict(variables)
    for step in steps:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            raise NotImportableError(f"nothing defines {{{{{path}}}}}")
    return value_to_text(value, f"{{{{{path}}}}}")


def value_to_text(value: JsonValue, name: str) -> str:
    """Convert a single value to the text that promptfoo writes for it.

    `name` is the name of the value in an error. Raises NotImportableError for a list, a mapping, null, or a
    template.
    """
    if value is None or isinstance(value, list | dict):
        raise NotImportableError(f"{name} is {_describe_kind(value)}")
    text = format_js_string(value)
    if is_template(text):
        raise NotImportableError(f"the value of {name} is a template itself")
    return text


def _describe_kind(value: JsonValue) -> str:
    if isinstance(value, dict) and DATE_KEY in value:
        return "a date without quotes, which promptfoo reads as a point in time"
    return "empty" if value is None else "a list" if isinstance(value, list) else "a mapping"


def _format_template(text: str) -> str:
    line = " ".join(text[:60].split())
    end = max(line.find(mark) for mark in ("}}", "%}", "#}"))
    return line[: end + 2] if end >= 0 else f"{line[:40]}…"
