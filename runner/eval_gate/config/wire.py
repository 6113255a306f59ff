"""Wire format of a configuration: one flat mapping built from the settings table, checked by pydantic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import EnumMeta
from functools import cache, partial
from typing import Annotated, Any, TypeVar, get_type_hints

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, create_model

from eval_gate.config.setting import LARGEST, Setting, build_setting, find_part_type, iter_fields
from eval_gate.config.settings import KEYS, RunConfig
from eval_gate.config.values import check_place, check_text

Text = Annotated[str, Field(min_length=1), AfterValidator(check_text)]
Place = Annotated[str, Field(min_length=1), AfterValidator(check_place)]
Part = TypeVar("Part")


def parse_config(text: str) -> RunConfig:
    """Parse the configuration from JSON. Raises pydantic's ValidationError with every mistake."""
    return _build_part(RunConfig, dict(_build_model().model_validate_json(text)))


def build_json_schema() -> dict[str, Any]:
    """Build the JSON Schema with which editors check a configuration file."""
    schema = _build_model().model_json_schema()
    properties = schema["properties"]
    schema["properties"] = {name: properties[key] for name, key in KEYS.items()}
    return schema


def _build_part(part: type[Part], values: Mapping[str, object]) -> Part:
    """Build a dataclass of settings, with its parts, from values by key."""
    fields = {
        one.name: _build_part(inner, values) if (inner := find_part_type(one)) else values[build_setting(one).key]
        for one in iter_fields(part)
    }
    return part(**fields)


@cache
def _build_model() -> type[BaseModel]:
    config = ConfigDict(extra="forbid", strict=True, title="Eval Gate configuration", hide_input_in_errors=True)
    return create_model("RunConfig", __config__=config, __doc__=RunConfig.__doc__, **_build_fields(RunConfig))


def _build_fields(part: type) -> Mapping[str, Any]:
    """Type and description of every key, parts within each other as one."""
    types = get_type_hints(part, localns={"Text": Text, "Place": Place, "JsonValue": JsonValue}, include_extras=True)
    fields: dict[str, Any] = {}
    for one in iter_fields(part):
        if inner := find_part_type(one):
            fields |= _build_fields(inner)
        else:
            row = build_setting(one)
            fields[row.key] = (
                _annotate_type(row, types[one.name]),
                Field(default=row.default, description=row.full_description),
            )
    return fields


def _annotate_type(row: Setting, kind: Any) -> Any:
    """How the value is written: what is read from texts is a list of them."""
    if row.each is None:
        return Annotated[kind, Field(**_build_limits(row)), *_iter_off_validators(kind)]
    if not row.takes_list:
        return Annotated[kind, Field(**row.limits), AfterValidator(partial(_parse_value, row.each))]
    texts = tuple[Annotated[Text, AfterValidator(row.each)], ...]
    listed: Any = Annotated[texts, Field(**row.limits), AfterValidator(row.whole)]
    if not row.takes_lists_by_file:
        return listed
    return listed | Annotated[dict[Annotated[Text, AfterValidator(row.each)], listed], Field(**row.limits)]


def _build_limits(row: Setting) -> Mapping[str, Any]:
    if row.type not in {int, float}:
        return row.limits
    limits: dict[str, Any] = {"allow_inf_nan": False} if row.type is float else {}
    if row.limits.keys().isdisjoint({"ge", "gt"}):
        limits["ge"] = -LARGEST
    if row.limits.keys().isdisjoint({"le", "lt"}):
        limits["le"] = LARGEST
    return {**row.limits, **limits}


def _parse_value(each: Callable[[str], object], value: str | None) -> object:
    """Parse the value with `each`, and return None and an empty text unchanged."""
    return value if value is None or value == "" else each(value)


def _iter_off_validators(kind: Any) -> Iterator[BeforeValidator]:
    """Yield a validator that turns false into `off`: YAML reads the word without quotes as false."""
    if isinstance(kind, EnumMeta) and "off" in [one.value for one in list[Any](kind)]:
        yield BeforeValidator(lambda value: kind("off") if value is False else value)
