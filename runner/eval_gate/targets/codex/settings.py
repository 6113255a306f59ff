"""Settings of a Codex target (agentv behaviour 4)."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field

from eval_gate.targets.settings import (
    AGENT_PLACE,
    AGENT_SETTING,
    LONGEST_S,
    NoEffect,
    Place,
    ProgramSettings,
    Text,
    Value,
)
from eval_gate.text.secret import Secret


def _split_arguments(value: object) -> object:
    """Split a text into arguments as a shell does, without running a shell.

    Other values are returned unchanged. Raises ValueError if the text cannot be split.
    """
    if not isinstance(value, str):
        return value
    try:
        return shlex.split(value)
    except ValueError as error:
        raise ValueError(f"cannot be split into arguments: {str(error).lower()}") from error


class CodexSettings(ProgramSettings):
    """One Codex target. Paths are relative to the root of the run."""

    other_names: ClassVar[Mapping[str, str]] = {"command": "executable", "binary": "executable", "arguments": "args"}

    provider: Literal["codex"] = "codex"
    executable: Annotated[Place, AGENT_PLACE] = Field(
        default="codex", description="A name that is looked up on PATH, or a path."
    )
    args: Annotated[
        Secret[tuple[Value, ...]],
        BeforeValidator(_split_arguments, json_schema_input_type=tuple[str, ...] | str),
        AGENT_PLACE,
    ] = Field(
        default_factory=tuple,
        validate_default=True,
        description="More arguments, a list or one text as in a shell; they come before the final `-`.",
    )
    cwd: Place | None = Field(
        default=None, description="Where Codex works; a fresh empty folder per case unless given."
    )
    timeout_seconds: float | None = Field(default=None, gt=0, le=LONGEST_S)
    log_dir: Annotated[Place | None, NoEffect("it is where logs are written")] = Field(
        default=None, description=".agentv/logs/codex unless given."
    )
    log_format: Annotated[Literal["summary", "json"], NoEffect("it is how logs are written")] = Field(
        default="summary", description="A line per event, or the events themselves."
    )
    system_prompt: Annotated[Secret[Text] | None, AGENT_SETTING] = Field(
        default=None, description="Stands first in the prompt, instead of our own words."
    )
    provider_batching: bool = Field(default=False, description="Codex cannot: every case is asked on its own.")
