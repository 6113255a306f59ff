"""Sources of settings: the flag, variable or configuration key that gave each value."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from eval_gate.errors import GateError, Problem
from eval_gate.struct import FrozenStruct, field
from eval_gate.text.secret import Secret

if TYPE_CHECKING:
    from pydantic import JsonValue

    from eval_gate.text.sources.json import JsonPositions
    from eval_gate.text.sources.yaml import YamlPositions


class SettingSource(FrozenStruct):
    """A setting's value with its source. `name` is the flag, variable or key the user wrote."""

    value: Secret[JsonValue]
    name: str
    file: str | None = None
    positions: JsonPositions | YamlPositions | None = None
    """Where what is in `file` stands."""
    is_from_user: bool = False
    """Given by the person who starts us, as a flag or a variable."""

    def find_line(self, path: Sequence[str | int] = ()) -> int | None:
        """Return the line of the part of the value at `path`, or None if the value is not from a file."""
        return self.positions.find_line([self.name, *path]) if self.positions else None

    def build_problem(self, message: str, path: Sequence[str | int] = ()) -> Problem:
        """Build a problem with this value or with the member of its lists and mappings at `path`."""
        from eval_gate.text.sources.validation_errors import format_field_path  # which loads pydantic

        place = format_field_path([self.name, *path])
        return Problem(message, file=self.file, line=self.find_line(path), field=place)

    def format_yaml_hint(self, value: object, path: Sequence[str | int]) -> str:
        """Continue a message with the hint to quote a word that YAML reads as true or false, such as `no`."""
        word = self.positions.find_unquoted([self.name, *path]) if self.positions and isinstance(value, bool) else None
        if word is None or word.lower() in {"true", "false"}:
            return ""
        return f"; YAML reads an unquoted `{word}` this way: put it in quotes"


class SettingSources(FrozenStruct):
    """Sources of all settings that were given, by setting key."""

    values: Mapping[str, SettingSource] = field(default_factory=dict)
    suggest_name: Callable[[SettingSource, str], str] = lambda _, key: key
    """What the setting of this key would be called where the other one was given."""

    def __hash__(self) -> int:
        return id(self)

    def get_source(self, key: str) -> SettingSource:
        """Return the origin of this setting, or its key alone if the origin is unknown."""
        return self.values.get(key) or SettingSource(Secret(None), key)

    def with_aliases(self, **aliases: str) -> SettingSources:
        """Return a copy in which each key of `aliases` has the source of the setting named by its value.

        For example, `agentEndpoint="baseAgentEndpoint"` lets code that reads `agentEndpoint` report
        `baseAgentEndpoint`.
        """
        values = {**self.values, **{key: self.get_source(other) for key, other in aliases.items()}}
        return SettingSources(values, self.suggest_name)

    def build_problem(self, message: str, key: str, fallback: str) -> Problem:
        """Build a problem with the setting `key`; if it was not given, at the place of the setting `fallback`."""
        if key in self.values:
            return self.get_source(key).build_problem(message)
        other = self.get_source(fallback)
        return Problem(message, file=other.file, line=other.find_line(), field=self.suggest_name(other, key))

    @contextmanager
    def attribute_errors(self, key: str) -> Iterator[None]:
        """Errors in here that name no place are about this setting, where it stands in a file."""
        try:
            yield
        except GateError as error:
            if not error.problems and self.get_source(key).file is not None:
                error.problems = (self.get_source(key).build_problem(error.message),)
            raise


UNKNOWN_SOURCES: Final = SettingSources()
"""Settings whose origin is unknown."""
