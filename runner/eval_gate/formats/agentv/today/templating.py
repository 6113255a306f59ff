"""Values of `vars` in the texts of a case.

Source: AgentV 4.42.4, "Per-test template variables". A name that is not known stays as it is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from eval_gate.model import limits
from eval_gate.model.base import JsonValue

_VARIABLE: Final = re.compile(r"\{\{\s*+([A-Za-z_][A-Za-z0-9_.]*+)\s*+\}\}")
MAX_FILLED: Final = limits.CASE_BYTES
"""Characters that variables may put into one case: a long one may stand in many places."""


class CaseTemplate:
    """Fills in the variables of one case. `too_much`: there was more to fill in than a case may say."""

    def __init__(self, variables: Mapping[str, JsonValue]) -> None:
        self._variables = variables
        self._known: dict[str, tuple[JsonValue, str] | None] = {}
        self._left = MAX_FILLED
        self.too_much = False

    def filled(self, value: JsonValue) -> JsonValue:
        """The value with all variables filled in; a text that is nothing but one becomes what it stands for."""
        if not self._variables:
            return value
        match value:
            case str():
                whole = _VARIABLE.fullmatch(value)
                if whole is None:
                    return _VARIABLE.sub(self._replacement, value)
                found = self._found(whole[1])
                return value if found is None else found[0]
            case list():
                return [self.filled(one) for one in value]
            case dict():
                return {key: self.filled(one) for key, one in value.items()}
            case _:
                return value

    def _replacement(self, match: re.Match[str]) -> str:
        found = self._found(match[1])
        return match[0] if found is None else found[1]

    def _found(self, name: str) -> tuple[JsonValue, str] | None:
        """The value of this name and its text; None where there is none, and for what would be too much."""
        if name not in self._known:
            self._known[name] = _look_up(self._variables, name)
        found = self._known[name]
        self._left -= len(found[1]) if found else 0
        if self._left < 0:
            self.too_much = True
            return None
        return found


def _look_up(variables: Mapping[str, JsonValue], name: str) -> tuple[JsonValue, str] | None:
    """The value at this dotted name, and as a text."""
    value: JsonValue = dict(variables)
    for step in name.split("."):
        if not isinstance(value, dict) or step not in value:
            return None
        value = value[step]
    return value, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
