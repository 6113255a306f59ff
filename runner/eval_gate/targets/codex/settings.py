"""Codex targets as people describe them (agentv behaviour 4)."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field

from eval_gate.targets.settings import (
    LONGEST_S,
    OF_THE_AGENT,
    PLACE_OF_THE_AGENT,
    NoEffect,
    Place,
    ProgramSettings,
    Text,
    Value,
)
from eval_gate.text.secret import Secret


def _words(value: object) -> object:
    """A text is split as a shell would split it, without running one."""
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
    executable: Annotated[Place, PLACE_OF_THE_AGENT] = Field(
        default="codex", description="A name that is looked up on PATH, or a path."
    )
    args: Annotated[
        Secret[tuple[Value, ...]],
        BeforeValidator(_words, json_schema_input_type=tuple[str, ...] | str),
        PLACE_OF_THE_AGENT,
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
    system_prompt: Annotated[Secret[Text] | None, OF_THE_AGENT] = Field(
        default=None, description="Stands first in the prompt, instead of our own words."
    )
    provider_batching: bool = Field(default=False, description="Codex cannot: every case is asked on its own.")
