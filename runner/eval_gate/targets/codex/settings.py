"""Codex targets as people describe them (agentv behaviour 4)."""

from __future__ import annotations

import shlex
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator

from eval_gate.targets.described import Described
from eval_gate.targets.other_names import canonical, shown

OTHER_NAMES: Final = {"command": "executable", "binary": "executable", "arguments": "args"}
"""Other names of settings, and ours."""
PROVIDERS: Final = ("codex", "codex-cli")
"""Every name of the provider, in lower case."""
LONGEST_S: Final = 86_400


def no_nul(text: str) -> str:
    """The text. Raises ValueError for one that no program can be given."""
    if "\0" in text:
        raise ValueError("holds a NUL character")
    return text


def _words(value: object) -> object:
    """A text is split as a shell would split it, without running one."""
    if not isinstance(value, str):
        return value
    try:
        return shlex.split(value)
    except ValueError as error:
        raise ValueError(f"cannot be split into arguments: {str(error).lower()}") from error


Text = Annotated[str, Field(min_length=1), AfterValidator(no_nul)]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Value = Annotated[str, AfterValidator(no_nul)]


class CodexSettings(Described):
    """One Codex target. Paths are relative to the root of the run."""

    model_config = ConfigDict(json_schema_extra=shown(OTHER_NAMES, PROVIDERS))

    name: Text
    provider: Literal["codex"] = "codex"
    executable: Text = Field("codex", description="A name that is looked up on PATH, or a path.")
    args: Annotated[tuple[Value, ...], BeforeValidator(_words, json_schema_input_type=tuple[str, ...] | str)] = Field(
        (), description="More arguments, a list or one text as in a shell; they come before the final `-`."
    )
    cwd: Text | None = Field(None, description="Where Codex works; a fresh empty folder per case unless given.")
    timeout_seconds: float | None = Field(None, gt=0, le=LONGEST_S)
    log_dir: Text | None = Field(None, description=".agentv/logs/codex unless given.")
    log_format: Literal["summary", "json"] = Field("summary", description="A line per event, or the events themselves.")
    system_prompt: Text | None = Field(None, description="Stands first in the prompt, instead of our own words.")
    workers: int | None = Field(None, ge=1, le=1000)
    judge_target: Text | None = None
    provider_batching: bool = Field(default=False, description="Codex cannot: every case is asked on its own.")
    pass_env: tuple[Variable, ...] = Field((), description="Variables that are passed as they are set here.")
    env: dict[Variable, Value] = Field(default_factory=dict, description="More variables for Codex, such as its key.")

    @model_validator(mode="before")
    @classmethod
    def _one_name(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        found = canonical(data, OTHER_NAMES)
        provider = found.get("provider")
        if isinstance(provider, str) and provider.strip().lower() in PROVIDERS:
            found["provider"] = "codex"
        return found
