"""How all data of this room behaves: frozen, camelCase in JSON, snake_case in Python.

Modules that a run loads and that declare such data do without `from __future__ import annotations`: pydantic would
compile each annotation by itself, and there are nine hundred.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Generic, Self, TypeVar, cast

from pydantic import BaseModel, ConfigDict, FailFast, GetCoreSchemaHandler, JsonValue
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema

__all__ = ["FailFastNamed", "Frozen", "JsonValue", "Many", "Named", "Record", "SameObject", "construct", "lean"]


class _Camel(BaseModel):  # noqa: PLW1641 (pydantic gives every frozen kind its own hash)
    model_config = ConfigDict(
        frozen=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        defer_build=True,
    )

    def __eq__(self, other: object) -> bool:
        # much of a large run is one object, or a None, and all of it is held against its defaults to be written
        if self is other:
            return True
        if not isinstance(other, _Camel):
            return NotImplemented
        return type(self) is type(other) and self.__dict__ == other.__dict__  # there is nothing else in our data

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
_Thing = TypeVar("_Thing")
Many = Annotated[tuple[_Thing, ...], FailFast()]
"""Some of a kind, in a file that a stranger may have written: one mistake is as bad as a million of half a kilobyte."""


class FailFastNamed:
    """`FailFast` for a mapping: what checks it has known it for longer than pydantic's own sign for it has."""

    def __get_pydantic_core_schema__(self, kind: Any, schema_of: GetCoreSchemaHandler) -> CoreSchema:
        return cast("CoreSchema", {**schema_of(kind), "fail_fast": True})


Named = Annotated[dict[str, _Thing], FailFastNamed()]
"""The same by name."""


class SameObject(Generic[_Thing]):
    """A large thing as the key of a cache: equal where it is the very same object.

    Every step of a verdict asks the same of the same two runs, and to compare what is in them takes as long.
    """

    def __init__(self, thing: _Thing) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameObject) and self.thing is other.thing

    def __hash__(self) -> int:
        return id(self.thing)


def construct(kind: type[_Data], /, **values: object) -> _Data:
    """Data of values that we made ourselves, which nobody checks: each has to be of exactly its field's type.

    That costs a tenth of data that is checked. What strangers wrote is checked where it is read.
    """
    defaults, names = _defaults(kind)
    fields = {**defaults, **values}
    assert len(fields) == len(defaults), values.keys() - names
    return _put_together(kind, fields, names)


def lean(one: _Data) -> _Data:
    """The same data, which was read and checked, without a set of its own of which fields were given: a third of it."""
    _put_given(one, _defaults(type(one))[1])
    return one


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
    _put_values(one, values)
    _put_given(one, given)
    _put_extra(one, None)
    _put_private(one, None)
    return one


_put_values, _put_given, _put_extra, _put_private = (
    vars(BaseModel)[slot].__set__
    for slot in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)
"""What `object.__setattr__` does by name, in two thirds of its time: a large run is a million things."""
