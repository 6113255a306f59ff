"""What all descriptions of targets have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Described(BaseModel):
    """Keys in camelCase; whoever reads a file takes snake_case too. Unknown keys are refused."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )
