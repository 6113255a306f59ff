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
    """Split a text into arguments as a shell does, without running a shell."""
    if not isinstance(value, str):
        return value
    try:
        return shlex.split(value)
    except ValueError as error:
        raise ValueError(f"cannot be split into arguments: {str(error).lower()}") from error


class CodexSettings(ProgramSettings):
    """Settings of a Codex target. Paths are relative to the root of the run."""

    other_names: ClassVar[Mapping[str, str]] = {"command": "executable", "binary": "executable", "arguments": "args"}

    provider: Literal["codex"] = "codex"
    executable: Annotated[Place, AGENT_PLACE] = Field(
        default="codex", description="Name to look up on PATH, or a path."
    )
    args: Annotated[
        Secret[tuple[Value, ...]],
        BeforeValidator(_split_arguments, json_schema_input_type=tuple[str, ...] | str),
        AGENT_PLACE,
    ] = Field(
        default_factory=tuple,
        description="Additional arguments before the final `-`: a list, or one string as in a shell.",
    )
    cwd: Place | None = Field(
        default=None, description="Working folder of Codex; by default a new empty folder for each case."
    )
    timeout_seconds: float | None = Field(default=None, gt=0, le=LONGEST_S)
    log_dir: Annotated[Place | None, NoEffect("it is where logs are written")] = Field(
        default=None, description="Folder for logs; .agentv/logs/codex by default."
    )
    log_format: Annotated[Literal["summary", "json"], NoEffect("it is how logs are written")] = Field(
        default="summary", description="summary (one line for each event) or json (the events themselves)."
    )
    system_prompt: Annotated[Secret[Text] | None, AGENT_SETTING] = Field(
        default=None, description="Text at the start of the prompt, instead of the built-in one."
    )
    provider_batching: bool = Field(default=False, description="Not supported: Codex runs once for each case.")
