"""Declare what the data of the model is: frozen structs, camelCase in JSON, snake_case in Python.

They are built without a check at run time, since mypy makes it; `decode_json` and `msgspec.convert` check what is read.
"""

from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

from msgspec import DecodeError, Struct, field, json, to_builtins

if TYPE_CHECKING:
    from pydantic import JsonValue
else:
    JsonValue = Any
    """Whatever stands in a JSON document: msgspec has no name for a type that holds itself."""

__all__ = ["Frozen", "JsonValue", "Record", "as_fields", "as_json", "decode_json", "field"]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Frozen(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Data that this program makes and never changes: an unknown key is a defect."""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Record(Struct, frozen=True, kw_only=True, rename="camel"):
    """Data that is written to a file and read later, perhaps by an older or newer version.

    Unknown keys are ignored on reading, so that a newer baseline can still be compared with.
    """


_Data = TypeVar("_Data")


def decode_json(data: bytes, kind: type[_Data]) -> _Data:
    """Read data of this kind from JSON. Raises MsgspecError for anything else, bytes that are no UTF-8 included."""
    try:
        return json.decode(data, type=kind)
    except (UnicodeDecodeError, RecursionError) as error:
        raise DecodeError(str(error)) from error


def as_json(value: Struct) -> dict[str, JsonValue]:
    """Return what stands in a JSON document for this data: camelCase keys, and lists for tuples."""
    return {name: _plain(one) for name, one in to_builtins(value).items()}


def as_fields(value: Struct) -> dict[str, JsonValue]:
    """Return the same under the names that the fields have here, which fingerprints are made of."""
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
            found: JsonValue = value
            return found
