"""Definition of one setting: its key, flag, variable and help text.

A setting is a field of a frozen dataclass, with `define_setting` in place of its default. The key of the configuration
file, its JSON Schema, the variable, the command-line option and the action's input follow from it. This module does not
load pydantic, so that `--help` starts fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, field, fields
from enum import Enum, StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar, cast

if TYPE_CHECKING:
    from dataclasses import Field

    from pydantic import JsonValue

T = TypeVar("T")
Text: TypeAlias = str
"""A text that is not empty and holds no NUL, as the validation checks."""
Place: TypeAlias = str
"""A text that names a file, a folder or an address, without a part that is too long for a file name."""
LARGEST: Final = 1_000_000_000
"""The largest number of a setting that has no limit of its own, in both directions."""
ENVIRONMENT_PREFIX: Final = "EVAL_GATE_"
_TYPES: Final[Mapping[str, type]] = {
    "int": int,
    "float": float,
    "bool": bool,
    "tuple": list[str],
    "frozenset": list[str],
}
"""Types of command-line values by the first word of a field's type; text for all others."""
_METAVARS: Final[Mapping[type, str]] = {int: "N", float: "X"}


class Panel(StrEnum):
    """Groups of options in `--help`."""

    RUN = "What to run"
    TARGET = "Target"
    BASELINE = "Baseline"
    VERDICT = "Verdict"
    OUTPUT = "Output"
    BUDGET = "Budget"


class Setting(NamedTuple):
    """Row of the settings table. Without `key` and `flag` both follow from the field: `timeout_ms`."""

    description: str
    key: str = ""
    other_keys: tuple[str, ...] = ()
    """Keys of specifications that mean the same setting. They are read wherever `key` is."""
    flag: str = ""
    """An argument where it has no hyphens."""
    other_flags: tuple[str, ...] = ()
    metavar: str | None = None
    default_text: str = ""
    """The default, for people, where it depends on something."""
    panel: Panel | None = None
    """The group of the option in `--help`."""
    help: str = ""
    """What `--help` says, where that is something else than the description."""
    option: bool = True
    """Whether the command line has an option for it."""
    input: bool = True
    """Whether a workflow may set it."""
    in_action: JsonValue = None
    """The default in the action, where that is another one."""
    limits: Mapping[str, Any] = MappingProxyType({})
    """Constraints as pydantic's `Field` takes them. Numbers are finite, and by default within LARGEST."""
    each: Callable[[str], object] | None = None
    """Reads one text of a list, or the only one. Raises ValueError with what is wrong, for a person."""
    whole: Callable[[tuple[Any, ...]], object] = tuple
    """Makes the value out of what `each` returned. Raises ValueError as well."""
    no_effect: str = ""
    """Why it cannot change a result, so that it is no part of the set-up that results are compared by."""
    compared_as: str = ""
    """What of a result tells that it was another one, where it is not compared by its own value."""
    name: str = ""
    kind: str = ""
    """The type of the field, as it is written."""
    default: object = None

    @property
    def keys(self) -> tuple[str, ...]:
        """Its own key, then those of specifications."""
        return self.key, *self.other_keys

    @property
    def keyword(self) -> str:
        """`timeout_ms`."""
        return _to_snake_case(self.key)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variable of each key."""
        return tuple(ENVIRONMENT_PREFIX + _to_snake_case(key).upper() for key in self.keys)

    @property
    def variable(self) -> str:
        """`EVAL_GATE_TIMEOUT_MS`."""
        return self.variables[0]

    @property
    def input_name(self) -> str:
        """`timeout-ms`."""
        return self.flag.removeprefix("--") if self.flag.startswith("--") else self.key

    @property
    def type(self) -> type:
        """What the command line takes: a number, a flag, a text, or texts."""
        return _TYPES.get(self.kind.partition(" ")[0].partition("[")[0], str)

    @property
    def takes_list(self) -> bool:
        """Whether the file may hold a list."""
        return "tuple[" in self.kind or "frozenset[" in self.kind

    @property
    def takes_lists_by_file(self) -> bool:
        """Whether the file may also hold a mapping of lists by glob of eval files."""
        return "| dict[" in self.kind

    @property
    def effective_metavar(self) -> str | None:
        """What stands for the value in `--help`."""
        return self.metavar or _METAVARS.get(self.type)

    @property
    def default_in_action(self) -> str:
        """The default in the action, for people; empty where it is the same."""
        return _format_default(self.in_action)

    @property
    def full_description(self) -> str:
        """The description, and the default where it depends on something: of a schema, of an input of the action."""
        return f"{self.description} Default: {self.default_text}." if self.default_text else self.description

    @property
    def help_text(self) -> str:
        """What `--help` says."""
        text = self.help or self.description
        if self.type == list[str] and self.flag.startswith("--"):
            text += " Repeatable."
        default = self.default_text or _format_default(self.default)
        return f"{text}  [default: {default}]" if default else text


def define_setting(default: T, description: str, **row: Any) -> T:
    """Return a dataclass field for a setting, with its default, its description and the rest of its `row`."""
    return field(default=default, metadata={"row": Setting(description, **row)})


def iter_settings(part: type) -> Iterator[Setting]:
    """Yield the settings of a dataclass and of its parts, in the order of their declaration."""
    for one in iter_fields(part):
        yield from iter_settings(inner) if (inner := find_part_type(one)) else (build_setting(one),)


def iter_values(part: Any) -> Iterator[tuple[Setting, Any]]:
    """Every row of these settings and of the parts they are made of, with its value."""
    for one in iter_fields(type(part)):
        value = getattr(part, one.name)
        yield from iter_values(value) if find_part_type(one) else ((build_setting(one), value),)


def iter_fields(part: type) -> Iterator[Field[Any]]:
    """Return the fields that are settings or hold parts with settings; others only accompany these."""
    return (one for one in fields(part) if "row" in one.metadata or find_part_type(one))


def find_part_type(one: Field[Any]) -> type | None:
    """Return the dataclass of settings that the field holds, or None if the field is a setting itself."""
    return None if one.default_factory is MISSING else cast("type", one.default_factory)


def build_setting(one: Field[Any]) -> Setting:
    """Build the complete `Setting` of one field, with its key, flag, name, type and default."""
    row: Setting = one.metadata["row"]
    first, *rest = one.name.split("_")
    key = row.key or first + "".join(map(str.capitalize, rest))
    flag = row.flag or "--" + _to_snake_case(key).replace("_", "-")
    return row._replace(key=key, flag=flag, name=one.name, kind=str(one.type), default=one.default)


def _to_snake_case(key: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)


def _format_default(default: object) -> str:
    if isinstance(default, tuple | frozenset | list):
        return ", ".join(map(_format_default, sorted(default)))
    if isinstance(default, Enum):
        return str(default.value)
    if default is None or isinstance(default, bool):
        return ""
    return f"{default:g}" if isinstance(default, int | float) else str(default)
