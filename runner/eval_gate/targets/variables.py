"""`${{ NAME }}` in descriptions of targets: replaced by the environment's values, which are secrets from then on.

But for those of settings that hold none, such as the model's name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from eval_gate.model.base import JsonValue
from eval_gate.struct import FrozenStruct
from eval_gate.targets.missing_parts import STAND_IN
from eval_gate.text.redact import Redactor

_WORDS: Final = frozenset({"model", "apiVersion"})
"""Settings whose values are words that answers may hold, and never secrets."""
LITERAL_KEY: Final = "a key must not be written into a file: write ${{ NAME }} and set the variable NAME"
_VARIABLE: Final = re.compile(r"\$\{\{\s*([A-Za-z0-9_]+)\s*\}\}")


class Unset(FrozenStruct):
    """A variable that is not set, and the setting that asks for it. `whole`: the setting is nothing but the name."""

    variable: str
    path: tuple[str | int, ...]
    whole: bool


def is_literal(value: JsonValue) -> bool:
    """Whether this holds a credential itself instead of `${{ NAME }}`: see `LITERAL_KEY`."""
    return value not in (None, "") and not is_reference(value)


def refers(value: JsonValue) -> bool:
    """Whether it holds the name of a variable, at any depth."""
    match value:
        case str():
            return _VARIABLE.search(value) is not None
        case list():
            return any(map(refers, value))
        case dict():
            return any(map(refers, value.values()))
        case _:
            return False


def is_reference(value: JsonValue) -> bool:
    """Whether it is nothing but the name of a variable."""
    return isinstance(value, str) and _VARIABLE.fullmatch(value.strip()) is not None


class Resolver:
    """Replaces references at any depth, remembers what they stood for, and notes what is not set.

    In AgentV's own settings a reference is the whole value, and `http://${{ HOST }}/x` is a text (agentv behaviour 4);
    `partial` replaces within texts too, as headers such as `Bearer ${{ TOKEN }}` need it.
    """

    def __init__(self, environment: Mapping[str, str], *, partial: bool, stand_in: str = "") -> None:
        """`stand_in` is put where a variable is not set."""
        self._environment = environment
        self._stand_in = stand_in
        self._partial = partial
        self._secrets: set[str] = set()
        self.unset: list[Unset] = []
        self.used: dict[str, None] = {}
        """Names of variables that were put in."""

    @property
    def redactor(self) -> Redactor:
        """Masks every value that came from the environment."""
        return Redactor(self._secrets)

    def blind(self) -> Resolver:
        """One that knows the same variables and none of their values: each is the stand-in."""
        return Resolver(dict.fromkeys(self.used, STAND_IN), partial=self._partial, stand_in=self._stand_in)

    def __call__(self, value: JsonValue, path: tuple[str | int, ...] = ()) -> JsonValue:
        """The value with its references replaced; one that is not set becomes the stand-in."""
        match value:
            case str():
                return self._text(value, path)
            case list():
                return [self(member, (*path, index)) for index, member in enumerate(value)]
            case dict():
                return {key: self(member, (*path, key)) for key, member in value.items()}
            case _:
                return value

    def _text(self, value: str, path: tuple[str | int, ...]) -> str:
        whole = _VARIABLE.fullmatch(value.strip())
        if whole is None and not self._partial:
            return value

        def one(match: re.Match[str]) -> str:
            found = self._environment.get(match[1], "")
            if not found.strip():
                self.unset.append(Unset(match[1], path, whole is not None))
                return self._stand_in or found
            self.used[match[1]] = None
            if not path or path[0] not in _WORDS:
                self._secrets.add(found)
            return found

        return _VARIABLE.sub(one, value if whole is None else value.strip())
