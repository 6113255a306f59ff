"""How all data of this room behaves: frozen, camelCase in JSON, snake_case in Python."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue
from pydantic.alias_generators import to_camel

__all__ = ["Frozen", "JsonValue", "Record", "made"]


class _Camel(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        defer_build=True,
    )

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other values. The set of fields that were given is shared: in a large run it is half."""
        if deep or self.__pydantic_extra__ or self.__pydantic_private__:
            return super().model_copy(update=update, deep=deep)
        kind = type(self)
        given = self.__pydantic_fields_set__
        if update and not given.issuperset(update):
            given = given | update.keys()
        return _put_together(kind, {**self.__dict__, **(update or {})}, given)


class Frozen(_Camel):
    """Data that is made by us and never changes: an unknown key is a defect."""

    model_config = ConfigDict(extra="forbid")


class Record(_Camel):
    """Data that is written to a file and read back later, perhaps by an older or newer version of us.

    Unknown keys are ignored on reading, so that a newer baseline can still be compared with.
    """

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)


_Data = TypeVar("_Data", bound=_Camel)


def made(kind: type[_Data], /, **values: object) -> _Data:
    """Data of values that we made ourselves, which nobody checks: each has to be of exactly its field's type.

    That costs a tenth of data that is checked. What strangers wrote is checked where it is read.
    """
    defaults, names = _defaults(kind)
    assert names.issuperset(values), values.keys() - names
    return _put_together(kind, {**defaults, **values}, names)


@cache
def _defaults(kind: type[_Camel]) -> tuple[dict[str, Any], set[str]]:
    """What a field is where nothing is given (never changed, so that all may share it), and the names of all fields."""
    fields = kind.model_fields
    defaults = {
        name: None if field.is_required() else field.get_default(call_default_factory=True, validated_data={})
        for name, field in fields.items()
    }
    return defaults, set(fields)


def _put_together(kind: type[_Data], values: dict[str, Any], given: set[str]) -> _Data:
    one = object.__new__(kind)
    put = object.__setattr__
    put(one, "__dict__", values)
    put(one, "__pydantic_fields_set__", given)
    put(one, "__pydantic_extra__", None)
    put(one, "__pydantic_private__", None)
    return one
