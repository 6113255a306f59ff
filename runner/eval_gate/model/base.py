"""Base classes of the data model: immutable structs, camelCase in JSON and snake_case in Python.

Constructors do not check types at run time, because mypy does. `decode_json` and `msgspec.convert` check what they
read.
"""

from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

from msgspec import DecodeError, Struct, field, json, to_builtins

if TYPE_CHECKING:
    from pydantic import JsonValue
else:
    JsonValue = Any
    """Any JSON value: msgspec has no name for a recursive type."""

__all__ = ["Frozen", "JsonValue", "Record", "as_fields", "as_json", "decode_json", "field"]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Frozen(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Immutable data that stays inside the program. An unknown key is a defect."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Record(Struct, frozen=True, kw_only=True, rename="camel"):
    """Data that is stored in a file and may be read by an older or newer version.

    Readers ignore unknown keys, so that a run can be compared with a baseline from a newer version.
    """


_Data = TypeVar("_Data")


def decode_json(data: bytes, kind: type[_Data]) -> _Data:
    """Decode data of this type from JSON. Raises MsgspecError for anything else, including bytes that are not UTF-8."""
    try:
        return json.decode(data, type=kind)
    except (UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(str(error)) from error


def as_json(value: Struct) -> dict[str, JsonValue]:
    """Convert the data to JSON values: camelCase keys, and lists for tuples."""
    return {name: _plain(one) for name, one in to_builtins(value).items()}


def as_fields(value: Struct) -> dict[str, JsonValue]:
    """Convert the data to JSON values with its Python field names, for fingerprints."""
    return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}


def _plain(value: Any) -> JsonValue:
    match value:
        case Struct():
            return as_fields(value)
        case list() | tuple():
            return [_plain(one) for one in value]
        case dict():
            return {name: _plain(one) for name, one in value.items()}
        case _:
            json_value: JsonValue = value
            return json_value
