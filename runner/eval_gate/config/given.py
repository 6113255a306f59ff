"""Where people write settings: as flags, as variables or as keys of a file, each in its author's spelling."""

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


class GivenValue(FrozenStruct):
    """One value and where a person wrote it. `name` is the flag, the variable or the key, as they know it."""

    value: Secret[JsonValue]
    name: str
    file: str | None = None
    positions: JsonPositions | YamlPositions | None = None
    """Where what is in `file` stands."""
    by_hand: bool = False
    """Given by the person who starts us, as a flag or a variable."""

    def line(self, below: Sequence[str | int] = ()) -> int | None:
        """The line of the part of it at `below`; None where it stands in no file."""
        return self.positions.line([self.name, *below]) if self.positions else None

    def problem(self, message: str, below: Sequence[int] = ()) -> Problem:
        """A problem with this value, or with the part of it at `below`: the numbers of members of lists."""
        place = self.name + "".join(f"[{step}]" for step in below)
        return Problem(message, file=self.file, line=self.line(below), field=place)

    def taken_for(self, value: object, below: Sequence[int]) -> str:
        """What is to be added where a word of the file stands for true or false and says neither; else nothing."""
        unquoted = getattr(self.positions, "unquoted", None)  # JSON has no such words
        written = unquoted([self.name, *below]) if unquoted and isinstance(value, bool) else None
        if written is None or written.lower() in {"true", "false"}:
            return ""
        return f", which YAML takes `{written}` for unless it stands in quotes"


class GivenSettings(FrozenStruct):
    """All values that were given, by the keys of their settings."""

    values: Mapping[str, GivenValue] = field(default_factory=dict)
    named_like: Callable[[GivenValue, str], str] = lambda _, key: key
    """What the setting of this key would be called where the other one was given."""

    def __hash__(self) -> int:
        return id(self)

    def of(self, key: str) -> GivenValue:
        """Where this setting was given; by its key alone where nobody knows."""
        return self.values.get(key) or GivenValue(Secret(None), key)

    def as_if(self, **others: str) -> GivenSettings:
        """The same for whoever reads other settings under the names of these: `agentEndpoint="controlEndpoint"`."""
        values = {**self.values, **{key: self.of(other) for key, other in others.items()}}
        return GivenSettings(values, self.named_like)

    def problem(self, message: str, key: str, beside: str) -> Problem:
        """A problem with this setting. One that was not given would have to be where the other one is."""
        if key in self.values:
            return self.of(key).problem(message)
        other = self.of(beside)
        return Problem(message, file=other.file, line=other.line(), field=self.named_like(other, key))

    @contextmanager
    def blamed(self, key: str) -> Iterator[None]:
        """Errors in here that name no place are about this setting, where it stands in a file."""
        try:
            yield
        except GateError as error:
            if not error.problems and self.of(key).file is not None:
                error.problems = (self.of(key).problem(error.message),)
            raise


NOWHERE: Final = GivenSettings()
"""Settings of which nobody knows where they were given."""
