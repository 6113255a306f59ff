"""Values of `vars` in the texts of a case.

Source: AgentV 4.42.4, "Per-test template variables". A name that is not known stays as it is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from eval_gate.model.base import JsonValue

_NAME: Final = r"\{\{\s*([A-Za-z_][A-Za-z0-9_.]*)\s*\}\}"
_VARIABLE: Final = re.compile(_NAME)


def filled(value: JsonValue, variables: Mapping[str, JsonValue]) -> JsonValue:
    """The value with all variables filled in; a text that is nothing but one becomes what it stands for."""
    if not variables:
        return value
    match value:
        case str():
            whole = _VARIABLE.fullmatch(value)
            if whole is not None:
                found, known = _look_up(variables, whole[1])
                return known if found else value
            return _VARIABLE.sub(lambda match: _text(match, variables), value)
        case list():
            return [filled(one, variables) for one in value]
        case dict():
            return {key: filled(one, variables) for key, one in value.items()}
        case _:
            return value


def _text(match: re.Match[str], variables: Mapping[str, JsonValue]) -> str:
    found, value = _look_up(variables, match[1])
    if not found:
        return match[0]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _look_up(variables: Mapping[str, JsonValue], name: str) -> tuple[bool, JsonValue]:
    """Whether there is a value of this dotted name, and which."""
    value: JsonValue = dict(variables)
    for step in name.split("."):
        if not isinstance(value, dict) or step not in value:
            return False, None
        value = value[step]
    return True, value
