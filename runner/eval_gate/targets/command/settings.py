"""Settings of a command target (agentv spec, "CLI Template Configuration"; agentv behaviour 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from eval_gate.errors import GateError
from eval_gate.targets.command.streams.presets import ProgramName
from eval_gate.targets.settings import (
    AGENT_PLACE,
    LONGEST_S,
    READINESS,
    RETRIES,
    DescribedSettings,
    NoEffect,
    NotSecret,
    Place,
    ProgramSettings,
)
from eval_gate.text.command_template import CommandTemplate
from eval_gate.text.secret import Secret, SecretAddress
from eval_gate.text.urls import to_public_url


def _check_command(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    CommandTemplate.from_command(text)
    return text


def _check_file_format(text: str) -> str:
    CommandTemplate.from_file_format(text)
    return text


def _check_url(text: str) -> str:
    try:
        to_public_url(text)
    except GateError as error:
        raise ValueError(error.message) from error
    return text


CommandText = Annotated[str, Field(min_length=1), AfterValidator(_check_command)]
Seconds = Annotated[float, Field(gt=0, le=LONGEST_S)]


class HealthCheck(DescribedSettings):
    """Asked once before the first case: an address that must answer 2xx, or a command that must exit with 0."""

    type: Literal["http", "command"]
    url: SecretAddress[Annotated[str, AfterValidator(_check_url)]] | None = Field(
        default=None, description="With `type: http`."
    )
    command_template: Secret[CommandText] | None = Field(default=None, description="With `type: command`.")
    cwd: Place | None = Field(default=None, description="With `type: command`; the target's own unless given.")
    timeout_seconds: Seconds | None = Field(default=None, description="The target's own unless given, else 30.")

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        needed, others = ("url", ("commandTemplate", "cwd")) if self.type == "http" else ("commandTemplate", ("url",))
        given = self.model_dump(by_alias=True, exclude_none=True)
        if needed not in given:
            raise ValueError(f"a healthcheck of type {self.type} needs {needed}")
        foreign = [name for name in others if name in given]
        if foreign:
            raise ValueError(f"a healthcheck of type {self.type} has no {' and no '.join(foreign)}")
        return self


class CliSettings(ProgramSettings):
    """One command that answers a case. Relative folders are below that of the eval file."""

    other_names: ClassVar[Mapping[str, str]] = {
        "command": "commandTemplate",
        "attachmentsFormat": "filesFormat",
        "cliVerbose": "verbose",
        "keepOutputFiles": "keepTempFiles",
    }

    provider: Literal["cli"] = "cli"
    command_template: Annotated[Secret[CommandText], AGENT_PLACE] = Field(
        description="A shell command with {PROMPT} or {PROMPT_FILE}, {GUIDELINES}, {FILES}, {EVAL_ID}, {ATTEMPT},"
        " {SESSION}, {OUTPUT_FILE}; values come quoted. The answer is what it writes to {OUTPUT_FILE}, else what it"
        " prints."
    )
    agent_protocol: ProgramName | None = Field(
        default=None,
        description="The program whose stream of events the answer is: then its tools, tokens and cost are known.",
    )
    files_format: Annotated[
        str, AfterValidator(_check_file_format), NotSecret("it is how a file is named in a command")
    ] = Field(default="{path}", description="How one file is written into {FILES}, with {path} and {basename}.")
    cwd: Place | None = Field(default=None, description="Where the command runs; the eval file's folder unless given.")
    timeout_seconds: Seconds | None = Field(default=None, description="How long one call may take.")
    healthcheck: Annotated[HealthCheck | None, READINESS] = None
    verbose: Annotated[bool, NoEffect("it is what is said of a response")] = Field(
        default=False, description="Say with every answer which command was run."
    )
    keep_temp_files: Annotated[bool, NoEffect("it is what is left behind")] = Field(
        default=False, description="Leave prompt and output files where they are."
    )
    provider_batching: bool = Field(default=False, description="All cases of a file in one call.")
    batch_size: int | None = Field(default=None, ge=1, description="With providerBatching: so many cases in one call.")
    max_retries: Annotated[int | None, RETRIES] = Field(
        default=None, ge=0, le=20, description="How often a call that timed out is repeated."
    )

    @model_validator(mode="after")
    def _check_batching(self) -> Self:
        if self.agent_protocol is not None and self.provider_batching:
            raise ValueError("agentProtocol reads the answer of one case: it has no providerBatching")
        return self
