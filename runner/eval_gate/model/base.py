"""How all data of this room behaves: frozen, camelCase in JSON, snake_case in Python."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, JsonValue
from pydantic.alias_generators import to_camel

__all__ = ["Frozen", "JsonValue", "Record"]


class _Camel(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        defer_build=True,
    )


class Frozen(_Camel):
    """Data that is made by us and never changes: an unknown key is a defect."""

    model_config = ConfigDict(extra="forbid")


class Record(_Camel):
    """Data that is written to a file and read back later, perhaps by an older or newer version of us.

    Unknown keys are ignored on reading, so that a newer baseline can still be compared with.
    """

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)
