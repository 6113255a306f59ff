"""What dialects written in camelCase share: names, texts, and strictness about both."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Text = Annotated[str, Field(min_length=1)]
CaseId = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]


class Wire(BaseModel):
    """Strict: a text is no list and no number. Unknown keys are kept, to be warned about with the nearest name."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="allow",
        alias_generator=to_camel,
        validate_by_name=False,
        validate_by_alias=True,
        defer_build=True,
    )


def keys_of(model: type[BaseModel]) -> set[str]:
    """The keys that are read, as they are written."""
    return {info.alias or name for name, info in model.model_fields.items()}
