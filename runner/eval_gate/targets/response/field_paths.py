"""Field paths into JSON: `data.reply`, `messages[-1].content`, `messages[?type=ai].tool_calls[]`.

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
from typing import Annotated, Final, Self, TypeAlias

from pydantic import AfterValidator, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from eval_gate.model.base import JsonValue
from eval_gate.model.limits import PATH_CHARACTERS
from eval_gate.struct import FrozenStruct
from eval_gate.targets.settings import Text
from eval_gate.text.javascript.strings import dump_compact_json
from eval_gate.text.quoting import quote_name
from eval_gate.text.untrusted.excerpt import format_keys


class MissingValue(Enum):
    """Marker for a field path that finds nothing, in contrast to null."""

    MISSING = None


MISSING: Final = MissingValue.MISSING
_STEP_PATTERN: Final = re.compile(
    r"\.?(?P<key>[^.\[\]]+)"
    r"|\[(?P<index>-?\d{1,12})\]"
    r"|\[(?P<each>\*?)\]"
    r"|\[\?(?P<where>[^\[\]]+)\]"
    r"|\[(?P<mark>['\"])(?P<quoted>[^'\"\[\]]+)(?P=mark)\]"
)
_PATH_EXAMPLES: Final = "write a path such as data.reply, messages[-1].content or messages[?role=assistant].calls[]"


class _ParsedText(str):
    """Text with its parts, which settings of pydantic parse from the text as written."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(Annotated[Text, AfterValidator(cls)])


class PathCondition(_ParsedText):
    """Condition on a list member or an event, such as `role=assistant|ai`: the text as written, and its parts."""

    path: FieldPath
    values: frozenset[str] | None
    """Without values, the field must exist and not be null."""
    negated: bool

    def __new__(cls, text: str) -> Self:
        """Parse a condition. Raises ValueError with what is wrong, for a person."""
        key, equals, value = text.partition("=")
        if not key.strip("! "):
            raise ValueError(f"{quote_name(text)} is not a condition: write one such as role=assistant or type!=tool")
        values = frozenset(_strip_quotes(one.strip()) for one in value.removeprefix("=").split("|"))
        condition = super().__new__(cls, text)
        condition.path = FieldPath(key.rstrip().removesuffix("!" if equals else "").strip())
        condition.values = values if equals else None
        condition.negated = key.rstrip().endswith("!")
        return condition

    def __call__(self, value: JsonValue) -> bool:
        """Whether this value fits."""
        field = self.path.find_first(value)
        if self.values is None:
            return field is not MISSING and field is not None
        text = field if isinstance(field, str) else None if isinstance(field, MissingValue) else _format_scalar(field)
        return (text in self.values) is not self.negated


class EachMember(FrozenStruct):
    """Path step that selects every member of a list, or those that meet the condition."""

    condition: PathCondition | None = None


Step: TypeAlias = str | int | EachMember


class PathMatch(FrozenStruct):
    """Values at a gathering path. `has_list`: the list exists, even if empty."""

    values: list[JsonValue]
    has_list: bool
    first_missing: int | None = None
    """First member of the list for which the rest of the path finds nothing."""


class FieldPath(_ParsedText):
    """A field path: the text as written, and its steps."""

    steps: tuple[Step, ...]
    single_key: str | None
    """The key of a path that consists of one key: the most frequent and fastest case."""
    is_gathering: bool
    """Whether the path can match several values: it selects list members without picking one."""

    def __new__(cls, text: str, steps: tuple[Step, ...] | None = None) -> Self:
        """Parse a field path, unless it has `steps`. Raises ValueError with a message for people."""
        path = super().__new__(cls, text)
        path.steps = steps = _parse_steps(text) if steps is None else steps
        path.single_key = steps[0] if len(steps) == 1 and isinstance(steps[0], str) else None
        path.is_gathering = _is_gathering(steps)
        return path

    def to_gathering(self) -> FieldPath:
        """Return the same path to every member of the list there. A path that gathers already is returned unchanged."""
        return self if self.is_gathering else FieldPath(self, (*self.steps, EachMember()))

    def find_first(self, document: JsonValue) -> JsonValue | MissingValue:
        """Find the value at this path in `document`, the first for a gathering path; MISSING without one."""
        if self.single_key is not None:
            return document.get(self.single_key, MISSING) if isinstance(document, dict) else MISSING
        values = self.find_all(document).values
        return values[0] if values else MISSING

    def find_all(self, document: JsonValue) -> PathMatch:
        """Every value there, in order, and whether the list they are gathered from is there."""
        values, listed = [document], False
        last = max((at for at, step in enumerate(self.steps) if isinstance(step, EachMember)), default=-1)
        picks = False
        for step in self.steps[: last + 1]:
            if isinstance(step, EachMember):
                lists = [value for value in values if isinstance(value, list)]
                listed = bool(lists)
                values = [member for one in lists for member in one if step.condition is None or step.condition(member)]
            elif picks and isinstance(step, int):
                values = _pick_index(values, step)
            else:
                values = [at for value in values if not isinstance(at := _get_child(value, step), MissingValue)]
            picks = isinstance(step, EachMember)
        rest = self.steps[last + 1 :]
        if picks and rest and isinstance(rest[0], int):
            values, rest = _pick_index(values, rest[0]), rest[1:]
        reached = [_walk_steps(value, rest) for value in values]
        lacking = next((at for at, value in enumerate(reached) if value is MISSING), None)
        return PathMatch([value for value in reached if not isinstance(value, MissingValue)], listed, lacking)

    def describe_nearest_keys(self, document: JsonValue) -> str:
        """Describe the keys of the last mapping in `document` on the way to this path; empty without any."""
        keys, walked = document, 0
        for step in self.steps:
            child = MISSING if isinstance(step, EachMember) else _get_child(keys, step)
            if isinstance(child, MissingValue) or not isinstance(child, dict | list):
                break
            keys, walked = child, walked + 1
        if not isinstance(keys, dict) or not keys:
            return ""
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.steps[:walked])
        place = "".join(steps).lstrip(".")
        return f"{quote_name(place) if place else 'it'} has the key{'s' if len(keys) > 1 else ''} {format_keys(keys)}"

    def has_value(self, document: JsonValue) -> bool:
        """Whether there is something, be it null; of a gathering path whether its list is there."""
        if self.is_gathering:
            return self.find_all(document).has_list
        return self.find_first(document) is not MISSING


def _parse_steps(text: str) -> tuple[Step, ...]:
    if len(text) > PATH_CHARACTERS:
        raise ValueError(f"is a path of more than {PATH_CHARACTERS:,} characters")
    rest = text.strip().removeprefix("$")
    steps: list[Step] = []
    at = 0
    while at < len(rest):
        match = _STEP_PATTERN.match(rest, at)
        if match is None or (at > 0 and match["key"] and rest[at] != "."):
            raise ValueError(f"{quote_name(text)} is not a path from {quote_name(rest[at:])} on: {_PATH_EXAMPLES}")
        steps.append(_parse_step(match))
        at = match.end()
    return tuple(steps)


def _is_gathering(steps: tuple[Step, ...]) -> bool:
    followed = zip(steps, (*steps[1:], None), strict=False)
    return any(isinstance(step, EachMember) and not isinstance(following, int) for step, following in followed)


def _pick_index(values: list[JsonValue], at: int) -> list[JsonValue]:
    return [values[at]] if -len(values) <= at < len(values) else []


def _walk_steps(value: JsonValue, steps: tuple[Step, ...]) -> JsonValue | MissingValue:
    node: JsonValue | MissingValue = value
    for step in steps:
        node = node if isinstance(node, MissingValue) else _get_child(node, step)
    return node


def _get_child(value: JsonValue, step: Step) -> JsonValue | MissingValue:
    if isinstance(step, str):
        return value.get(step, MISSING) if isinstance(value, dict) else MISSING
    if isinstance(step, int) and isinstance(value, list) and -len(value) <= step < len(value):
        return value[step]
    return MISSING


def _parse_step(match: re.Match[str]) -> Step:
    if match["index"] is not None:
        return int(match["index"])
    if match["where"] is not None:
        return EachMember(PathCondition(match["where"]))
    if match["each"] is not None:
        return EachMember()
    return str(match["key"] or match["quoted"])


def _strip_quotes(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _format_scalar(value: JsonValue) -> str | None:
    """Format a scalar as JSON, such as `true`, `1` or `null`. Return None for a list or a mapping."""
    return None if isinstance(value, list | dict) else dump_compact_json(value)
