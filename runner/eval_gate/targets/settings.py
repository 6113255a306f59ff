"""Settings that all targets share, and the spelling of settings."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, ClassVar, Final, Self, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticKnownError

from eval_gate.config.measures import check_measured_pattern
from eval_gate.config.setting import LARGEST
from eval_gate.config.values import check_place, check_text, find_boolean_mistake, has_infinite
from eval_gate.model.setup import SettingRole
from eval_gate.struct import FrozenStruct, field
from eval_gate.text.secret import Secret, SecretAddress

LONGEST_S: Final = 86_400
"""Maximum time limit of one response of a program, in seconds: a day."""
_TOO_LARGE: Final = (("greater_than_equal", {"ge": -LARGEST}), ("less_than_equal", {"le": LARGEST}))
_COMMON_OTHER_NAMES: Final = {"graderTarget": "judgeTarget"}
"""Aliases of settings of all targets, in camelCase, with our names (AgentV 4)."""
DUPLICATE_SETTING: Final = "is set twice, under different names and with different values"


class NoEffect(FrozenStruct):
    """Mark of a setting that cannot change a result, with the reason. It is not in the fingerprint."""

    reason: str


class NotSecret(FrozenStruct):
    """Mark of texts that are not secret, with the reason. All other texts are of type `Secret`."""

    reason: str


class AgentSetting(FrozenStruct):
    """Mark of a setting that describes the agent itself."""

    role: SettingRole


class CaseInsensitiveNames(FrozenStruct):
    """Mark of a setting whose keys are case-insensitive."""


AGENT_SETTING: Final = AgentSetting(SettingRole.AGENT)
"""Marks a setting that describes the agent itself, the subject of the evaluation."""
AGENT_PLACE: Final = AgentSetting(SettingRole.LOCATION)
"""Marks a setting with the location of the agent: its address or command."""
RETRIES: Final = NoEffect("what broke is tried again; what comes of a response stays as it is")
SIZES: Final = NoEffect("a response that is too large is an error, never another response")
SHOWN_PLACE: Final = NotSecret("messages name the file or folder")
SHOWN_RESPONSE_PLACE: Final = NotSecret("it says where in a response something stands, and messages name the place")
CANNED_RESPONSE: Final = NotSecret("it is the response itself, which a record keeps as any other")
READINESS: Final = NoEffect("it is only about whether somebody is there before the first case")


def find_no_effect(field: FieldInfo) -> NoEffect | None:
    """Why this setting cannot change a result; None for one that can."""
    return next((mark for mark in field.metadata if isinstance(mark, NoEffect)), None)


def find_role(field: FieldInfo) -> SettingRole | None:
    """Find which aspect of the agent itself a setting describes, if it is not about requests and responses."""
    return next((mark.role for mark in field.metadata if isinstance(mark, AgentSetting)), None)


Value = Annotated[str, AfterValidator(check_text)]
Text = Annotated[str, Field(min_length=1), AfterValidator(check_text)]
Place = Annotated[str, Field(min_length=1), AfterValidator(check_place), SHOWN_PLACE]
"""Path of a file or folder."""
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$"), NotSecret("it is the name of a variable")]


class DescribedSettings(BaseModel):
    """Base class of settings that users write: keys in camelCase or snake_case, unknown keys refused."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        hide_input_in_errors=True,  # it may be a secret
        defer_build=True,  # few runs describe targets of every kind
    )

    @field_validator("*", mode="before")
    @classmethod
    def _check_number_types(cls, value: object, info: ValidationInfo) -> object:
        """Python takes true for 1, and JSON has no infinite numbers. Raises PydanticKnownError and ValueError."""
        if mistake := find_boolean_mistake(cls.model_fields[info.field_name or ""].annotation):
            if isinstance(value, bool):
                raise PydanticKnownError(mistake)
            if isinstance(value, list | tuple) and any(isinstance(one, bool) for one in value):
                raise ValueError("expected only numbers, got true or false")
        if isinstance(value, list | tuple | dict) and has_infinite(value):
            raise ValueError("contains a number that is not finite")
        return value

    @field_validator("*")
    @classmethod
    def _check_number_limits(cls, value: object) -> object:
        """Numbers without a limit of their own have this one. Raises PydanticKnownError."""
        if isinstance(value, int | float) and abs(value) > LARGEST:
            raise PydanticKnownError(*_TOO_LARGE[value > 0])
        return value

    @classmethod
    def list_names(cls) -> tuple[str, ...]:
        """All settings, in camelCase."""
        return tuple(info.alias or name for name, info in cls.model_fields.items())


def expand_text(key: str) -> Callable[[object], object]:
    """Make a validator that takes a plain text for settings that have only `key`."""
    return lambda value: {key: value} if isinstance(value, str) else value


def list_names_at(shape: object, path: Sequence[str | int]) -> tuple[str, ...]:
    """List the settings, in camelCase, at `path` below a value of type `shape`; none inside other data."""
    if isinstance(shape, type) and issubclass(shape, DescribedSettings):
        if not path:
            return shape.list_names()
        fields = shape.model_fields.items()
        return list_names_at(
            next((info.annotation for name, info in fields if path[0] in {name, info.alias}), None), path[1:]
        )
    rest = path[1:] if get_origin(shape) in {dict, list, tuple} else path
    return next((names for one in get_args(shape) if (names := list_names_at(one, rest))), ())


class NormalizedSettings(FrozenStruct):
    """Settings by their canonical camelCase names, with the keys as written.

    `duplicates` are settings that also occur under a second name with another value, and where. The first one counts.
    """

    values: dict[str, JsonValue] = field(default_factory=dict)
    written_keys: dict[str, tuple[str, ...]] = field(default_factory=dict)
    duplicates: dict[str, tuple[str, ...]] = field(default_factory=dict)


def normalize_names(raw: Mapping[str, JsonValue], other_names: Mapping[str, str] | None = None) -> NormalizedSettings:
    """Convert a description to one name for each setting.

    `other_names` maps alternative names in camelCase to the names used here. Older files have the settings below
    `settings`. If a key is spelled in two ways, snake_case takes precedence (agentv behaviour 4).
    """
    nested = raw.get("settings")
    entries = [((key,), value) for key, value in raw.items() if key != "settings" or not isinstance(nested, dict)]
    nested_entries = [(("settings", key), value) for key, value in nested.items()] if isinstance(nested, dict) else []
    last: dict[str, tuple[tuple[str, ...], JsonValue]] = {}
    for path, value in sorted([*entries, *nested_entries], key=lambda entry: "_" in entry[0][-1]):
        last[to_camel_case(path[-1])] = path, value
    normalized = NormalizedSettings()
    for key, (path, value) in last.items():
        name = (_COMMON_OTHER_NAMES | dict(other_names or {})).get(key, key)
        if name not in normalized.values:
            normalized.values[name], normalized.written_keys[name] = value, path
        elif normalized.values[name] != value:
            normalized.duplicates[name] = path
    return normalized


def to_camel_case(key: str) -> str:
    """Convert a key to camelCase."""
    return to_camel(key) if "_" in key else key


def has_style(key: str) -> bool:
    """Whether it shows if its author writes snake_case or camelCase."""
    return "_" in key or key != key.lower()


def apply_style(name: str, example: str) -> str:
    """Convert a name in camelCase to the style of the key `example`."""
    return re.sub(r"[A-Z]", lambda sign: f"_{sign[0].lower()}", name) if "_" in example else name


class TargetSettings(DescribedSettings):
    """Settings that all targets have. Each kind adds its own."""

    model_config = ConfigDict(json_schema_extra=lambda schema, kind: kind.show_other_names(schema))

    other_names: ClassVar[Mapping[str, str]] = {}
    """Aliases of settings in camelCase, with our names."""
    keys: ClassVar[frozenset[str]] = frozenset()
    """Settings, in camelCase, with a credential: always `${{ NAME }}`, and needed only for requests."""
    refers_within_texts: ClassVar[bool] = False
    """Whether `${{ NAME }}` is also replaced within a string, and not only as the whole value."""

    _places: Mapping[str, str] = PrivateAttr(default_factory=dict)
    _references: Mapping[str, JsonValue] = PrivateAttr(default_factory=dict)
    _is_listed: bool = PrivateAttr(default=False)

    name: Annotated[Text, NoEffect("it is what the target is called"), NotSecret("every record has it")]
    provider: Annotated[str, NotSecret("it is a word of a known list")]
    workers: Annotated[int | None, NoEffect("it is how many cases are asked at once")] = Field(
        default=None, ge=1, le=1000
    )
    judge_target: Annotated[
        Text | None, NoEffect("who grades a case is compared by itself"), NotSecret("it is the name of a target")
    ] = None
    user_target: Annotated[
        Text | None,
        NoEffect("who plays the user is compared by itself"),
        NotSecret("it is the name of a target"),
    ] = None
    provider_batching: bool = False
    measures: Annotated[
        tuple[Annotated[Text, AfterValidator(check_measured_pattern), NotSecret("run results list the patterns")], ...],
        NoEffect("it decides what is reused, and the settings of the run name a change"),
    ] = Field(
        default=(),
        max_length=100,
        description="Globs of the files, and env:NAME for variables, that the cases of this target measure.",
    )

    def find_place(self, key: str) -> str | None:
        """Find where a setting is written, for people: `targets.yaml:4: targets[a].url`; None if unknown."""
        return self._places.get(key)

    def set_places(self, places: Mapping[str, str]) -> Self:
        """Note for messages where each setting is written, by our name in camelCase, and return the settings."""
        self._places = places
        return self

    def find_reference(self, key: str) -> str | None:
        """Find the text of a setting as written, if it refers to a variable.

        `key` is the name of the setting in camelCase. Return None if the value itself is written. Messages must show
        this text instead of the value, because masking does not find parts of a secret value.
        """
        text = self._references.get(key)
        return text if isinstance(text, str) else None

    def find_written_value(self, key: str) -> JsonValue:
        """Find the value of a setting as written, by its name in camelCase, if it refers to a variable."""
        return self._references.get(key)

    @property
    def is_listed(self) -> bool:
        """Whether a list of targets describes it, which every reader of the repository can see."""
        return self._is_listed

    def set_references(self, references: Mapping[str, JsonValue], *, listed: bool = False) -> Self:
        """Note which settings refer to variables. `listed` means that a list of targets describes the target."""
        self._references = references
        self._is_listed = listed
        return self

    def find_environment_addresses(self, environment: Mapping[str, str]) -> Mapping[str, JsonValue]:
        """Addresses, by the names of settings in camelCase, that it leaves to variables of its provider."""
        return {}

    @property
    def place(self) -> SecretAddress[str] | None:
        """Its address in the description; None without one."""
        return None

    @property
    def remarks(self) -> tuple[str, ...]:
        """What its author may not have meant, each in one sentence: shown wherever the target is chosen."""
        return ()

    def list_passed_variables(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """Variables of the environment that it is given although its description does not refer to their values."""
        return ()

    @classmethod
    def complete_values(cls, values: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Complete the settings, in their normalized names, with those that the kind of target adds."""
        return values

    @classmethod
    def select_access_settings(cls, entry: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        """Select the settings that decide which variables the target gets, where and for what."""
        return {name: value for name, value in entry.items() if name != "measures"}

    @model_validator(mode="before")
    @classmethod
    def _normalize_data(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        normalized = normalize_names(data, cls.other_names)
        if normalized.duplicates:
            raise ValueError(f"{next(iter(normalized.duplicates))} {DUPLICATE_SETTING}")
        return cls.complete_values(normalized.values)

    @classmethod
    def show_other_names(cls, schema: dict[str, JsonValue]) -> None:
        """Complete the JSON Schema, for editors: every name of a setting; one of several names is not required."""
        properties, required = schema["properties"], schema["required"]
        assert isinstance(properties, dict)
        assert isinstance(required, list)
        for other, ours in (_COMMON_OTHER_NAMES | dict(cls.other_names)).items():
            shape = properties[ours]
            assert isinstance(shape, dict)
            properties[other] = shape | {"description": f"The same as {ours}."}
        schema["required"] = [name for name in required if name not in cls.other_names.values()]


class ProgramSettings(TargetSettings):
    """Settings of targets that start a program: its environment variables."""

    is_own_command: ClassVar[bool] = False
    """Whether the user writes the command, so that its files are the user's own."""
    pass_env: tuple[VariableName, ...] = Field(default=(), description="Environment variables to pass on unchanged.")
    env: Secret[dict[VariableName, Value]] = Field(
        default_factory=dict, validate_default=True, description="Additional variables for the program."
    )

    def list_passed_variables(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """List the variables that the description passes to the program unchanged."""
        return self.pass_env
