"""Paths into an agent's JSON: `data.reply`, `messages[-1].content`, `messages[?type=ai].tool_calls[]`.

| step | means |
|:--|:--|
| `key`, `.key`, `['a.key']` | a member of a mapping |
| `[0]`, `[-1]` | a member of a list, also counted from its end |
| `[]` | every member of a list; what follows is read of each, and all of it is gathered |
| `[?role=assistant]` | the members that fit; an index right behind it picks one of these |

A condition is `key`, `key=value` or `key!=value`, where `value` may be several with `|` between them and `key` may have
dots; `key` alone holds for what is there and not null.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, TypeAlias

from eval_gate.model.base import JsonValue
from eval_gate.model.limits import PATH_CHARACTERS
from eval_gate.struct import FrozenStruct
from eval_gate.text.javascript.strings import compact_json
from eval_gate.text.quoting import quoted_name


class Missing(Enum):
    """What stands at a path that leads nowhere. Null is something else: it is there."""

    MISSING = None


MISSING: Final = Missing.MISSING
_STEP: Final = re.compile(
    r"\.?(?P<key>[^.\[\]]+)"
    r"|\[(?P<index>-?\d{1,12})\]"
    r"|\[(?P<each>\*?)\]"
    r"|\[\?(?P<where>[^\[\]]+)\]"
    r"|\[(?P<mark>['\"])(?P<quoted>[^'\"\[\]]+)(?P=mark)\]"
)
_WRITTEN: Final = "a path is written as data.reply, messages[-1].content or messages[?role=assistant].calls[]"


class Condition(FrozenStruct):
    """What a member of a list, or an event, has to say to be taken. `values` None: be there, and not be null."""

    path: Path
    values: frozenset[str] | None
    negated: bool = False

    @classmethod
    def parse(cls, text: str) -> Condition:
        """`role=assistant|ai`. Raises ValueError with what is wrong, for a person."""
        key, equals, value = text.partition("=")
        if not key.strip("! "):
            raise ValueError(f"{quoted_name(text)} is no condition: it is written as role=assistant or type!=tool")
        values = frozenset(_unquoted(one.strip()) for one in value.removeprefix("=").split("|"))
        path = Path.parse(key.rstrip().removesuffix("!" if equals else "").strip())
        return cls(path, values if equals else None, key.rstrip().endswith("!"))

    def __call__(self, value: JsonValue) -> bool:
        """Whether this value fits."""
        found = self.path.first_value(value)
        if self.values is None:
            return found is not MISSING and found is not None
        said = found if isinstance(found, str) else None if isinstance(found, Missing) else _scalar(found)
        return (said in self.values) is not self.negated


class Each(FrozenStruct):
    """Every member of a list, or those that fit the condition."""

    fits: Condition | None = None


Step: TypeAlias = str | int | Each


class PathFinding(FrozenStruct):
    """What stands at a gathering path. `listed`: the list that is gathered from is there, be it empty."""

    values: list[JsonValue]
    listed: bool
    lacking: int | None = None
    """The first of the gathered members that has nothing at the rest of the path."""


class Path(FrozenStruct):
    """One path, read once. `text` is as its author wrote it."""

    text: str
    steps: tuple[Step, ...]
    single: str | None = None
    """The only key, where that is all: the usual case, and the quickest."""
    gathers: bool = False
    """Whether it stands for several values: it selects and does not pick one of what is selected."""

    @classmethod
    def parse(cls, text: str) -> Path:
        """Raises ValueError with what is wrong, for a person."""
        if len(text) > PATH_CHARACTERS:
            raise ValueError(f"is a path of more than {PATH_CHARACTERS:,} characters")
        rest = text.strip().removeprefix("$")
        steps: list[Step] = []
        at = 0
        while at < len(rest):
            found = _STEP.match(rest, at)
            if found is None or (at > 0 and found["key"] and rest[at] != "."):
                raise ValueError(f"{quoted_name(text)} is no path from {quoted_name(rest[at:])} on: {_WRITTEN}")
            steps.append(_step(found))
            at = found.end()
        key = steps[0] if len(steps) == 1 else None
        return cls(text, tuple(steps), key if isinstance(key, str) else None, _gathers(steps))

    def gathering(self) -> Path:
        """The same path to every member of the list there, if it does not gather by itself."""
        return self if self.gathers else Path(self.text, (*self.steps, Each()), gathers=True)

    def first_value(self, document: JsonValue) -> JsonValue | Missing:
        """The value there; MISSING where the path leads nowhere. For a gathering path the first value."""
        if self.single is not None:
            return document.get(self.single, MISSING) if isinstance(document, dict) else MISSING
        values = self.all(document).values
        return values[0] if values else MISSING

    def all(self, document: JsonValue) -> PathFinding:
        """Every value there, in order, and whether the list they are gathered from is there."""
        values, listed = [document], False
        last = max((at for at, step in enumerate(self.steps) if isinstance(step, Each)), default=-1)
        picks = False
        for step in self.steps[: last + 1]:
            if isinstance(step, Each):
                lists = [value for value in values if isinstance(value, list)]
                listed = bool(lists)
                values = [member for one in lists for member in one if step.fits is None or step.fits(member)]
            elif picks and isinstance(step, int):
                values = _pick(values, step)
            else:
                values = [at for value in values if not isinstance(at := _child(value, step), Missing)]
            picks = isinstance(step, Each)
        rest = self.steps[last + 1 :]
        if picks and rest and isinstance(rest[0], int):
            values, rest = _pick(values, rest[0]), rest[1:]
        reached = [_walk(value, rest) for value in values]
        lacking = next((at for at, value in enumerate(reached) if value is MISSING), None)
        return PathFinding([value for value in reached if not isinstance(value, Missing)], listed, lacking)

    def is_there(self, document: JsonValue) -> bool:
        """Whether there is something, be it null; of a gathering path whether its list is there."""
        if self.gathers:
            return self.all(document).listed
        return self.first_value(document) is not MISSING

    def __str__(self) -> str:
        return self.text


def _gathers(steps: list[Step]) -> bool:
    followed = zip(steps, [*steps[1:], None], strict=False)
    return any(isinstance(step, Each) and not isinstance(following, int) for step, following in followed)


def _pick(values: list[JsonValue], at: int) -> list[JsonValue]:
    return [values[at]] if -len(values) <= at < len(values) else []


def _walk(value: JsonValue, steps: tuple[Step, ...]) -> JsonValue | Missing:
    found: JsonValue | Missing = value
    for step in steps:
        found = found if isinstance(found, Missing) else _child(found, step)
    return found


def _child(value: JsonValue, step: Step) -> JsonValue | Missing:
    if isinstance(step, str):
        return value.get(step, MISSING) if isinstance(value, dict) else MISSING
    if isinstance(step, int) and isinstance(value, list) and -len(value) <= step < len(value):
        return value[step]
    return MISSING


def _step(found: re.Match[str]) -> Step:
    if found["index"] is not None:
        return int(found["index"])
    if found["where"] is not None:
        return Each(Condition.parse(found["where"]))
    if found["each"] is not None:
        return Each()
    return str(found["key"] or found["quoted"])


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _scalar(value: JsonValue) -> str | None:
    """`true`, `1`, `null` as JSON writes them; None for what is made of several."""
    return None if isinstance(value, list | dict) else compact_json(value)
