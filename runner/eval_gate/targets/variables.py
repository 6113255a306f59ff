"""Resolve `${{ NAME }}` in settings of targets.

The values are secrets from then on, except those of settings without secrets, such as the model's name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.struct import FrozenStruct
from eval_gate.targets.build_context import STAND_IN
from eval_gate.text.json_values import iter_texts
from eval_gate.text.redaction import Redactor

_NON_SECRET_SETTINGS: Final = frozenset({"model", "apiVersion"})
"""Settings whose values are words that a response may contain, and never secrets."""
LITERAL_KEY_PROBLEM: Final = "do not write a key into a file: write ${{ NAME }} and set the variable NAME"
_VARIABLE: Final = re.compile(r"\$\{\{\s*([A-Za-z0-9_]+)\s*\}\}")


class UnsetVariable(FrozenStruct):
    """Variable that is not set, and the setting that refers to it."""

    variable: str
    path: tuple[str | int, ...]
    is_whole_value: bool


def is_literal(value: JsonValue) -> bool:
    """Whether this holds a credential itself instead of `${{ NAME }}`: see `LITERAL_KEY_PROBLEM`."""
    return value not in (None, "") and not is_reference(value)


def has_reference(value: JsonValue) -> bool:
    """Whether it holds the name of a variable, at any depth."""
    return any(map(_VARIABLE.search, iter_texts(value)))


def find_variables(value: JsonValue) -> set[str]:
    """Find the names of the variables that a value refers to, at any depth."""
    return {name for text in iter_texts(value) for name in _VARIABLE.findall(text)}


def is_reference(value: JsonValue) -> bool:
    """Whether it is nothing but the name of a variable."""
    return isinstance(value, str) and _VARIABLE.fullmatch(value.strip()) is not None


class VariableResolver:
    """Resolver of references at any depth. Collects the secrets and the unset variables.

    In AgentV's own settings a reference is the whole value, and `http://${{ HOST }}/x` is plain text (agentv behaviour
    4). `partial` also replaces references within strings, which headers such as `Bearer ${{ TOKEN }}` need.
    """

    def __init__(self, environment: Mapping[str, str], *, partial: bool, stand_in: str = "") -> None:
        """`stand_in` is put where a variable is not set."""
        self._environment = environment
        self._stand_in = stand_in
        self._partial = partial
        self._secrets: set[str] = set()
        self.unset: list[UnsetVariable] = []
        self.used: dict[str, None] = {}
        """Names of variables that were put in."""

    @property
    def redactor(self) -> Redactor:
        """Masks every value that came from the environment."""
        return Redactor(self._secrets)

    def build_blind_resolver(self) -> VariableResolver:
        """Build a resolver that replaces every known variable by the stand-in."""
        return VariableResolver(dict.fromkeys(self.used, STAND_IN), partial=self._partial, stand_in=self._stand_in)

    def __call__(self, value: JsonValue, path: tuple[str | int, ...] = ()) -> JsonValue:
        """Replace the references in a value by the values of their variables, or by the stand-in."""
        match value:
            case str():
                return self._resolve_text(value, path)
            case list():
                return [self(member, (*path, index)) for index, member in enumerate(value)]
            case dict():
                return {key: self(member, (*path, key)) for key, member in value.items()}
            case _:
                return value

    def _resolve_text(self, value: str, path: tuple[str | int, ...]) -> str:
        whole = _VARIABLE.fullmatch(value.strip())
        if whole is None and not self._partial:
            return value

        def one(match: re.Match[str]) -> str:
            content = self._environment.get(match[1], "")
            if not content.strip():
                self.unset.append(UnsetVariable(match[1], path, whole is not None))
                return self._stand_in or content
            self.used[match[1]] = None
            if not path or path[0] not in _NON_SECRET_SETTINGS:
                self._secrets.add(content)
            return content

        return _VARIABLE.sub(one, value if whole is None else value.strip())
