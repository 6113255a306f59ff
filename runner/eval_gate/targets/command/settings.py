"""Settings of a command target (agentv spec, "CLI Template Configuration"; agentv behaviour 4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, model_validator

from eval_gate.errors import GateError
from eval_gate.targets.command.programs import ProgramName
from eval_gate.targets.response.settings import ResponseFormat, StreamSettings
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
from eval_gate.text.command_template import CASE_PLACEHOLDERS, CommandTemplate
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
    """Health check before the first case: a URL that returns 2xx, or a command that exits with 0."""

    type: Literal["http", "command"]
    url: SecretAddress[Annotated[str, AfterValidator(_check_url)]] | None = Field(
        default=None, description="URL to request, with `type: http`."
    )
    command_template: Secret[CommandText] | None = Field(
        default=None, description="Command to run, with `type: command`."
    )
    cwd: Place | None = Field(
        default=None, description="Folder of the command, with `type: command`; the target's by default."
    )
    timeout_seconds: Seconds | None = Field(
        default=None, description="Time limit; the target's by default, or else 30."
    )

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        needed, extras = ("url", ("commandTemplate", "cwd")) if self.type == "http" else ("commandTemplate", ("url",))
        values = self.model_dump(by_alias=True, exclude_none=True)
        if needed not in values:
            raise ValueError(f"a healthcheck of type {self.type} needs {needed}")
        wrong_keys = [name for name in extras if name in values]
        if wrong_keys:
            raise ValueError(f"a healthcheck of type {self.type} has no {' and no '.join(wrong_keys)}")
        return self


class CliSettings(ProgramSettings, StreamSettings):
    """Settings of a command target. Relative folders start at the folder of the eval file."""

    is_own_command: ClassVar[bool] = True
    other_names: ClassVar[Mapping[str, str]] = {
        "command": "commandTemplate",
        "attachmentsFormat": "filesFormat",
        "cliVerbose": "verbose",
        "keepOutputFiles": "keepTempFiles",
    }

    provider: Literal["cli"] = "cli"
    command_template: Annotated[Secret[CommandText], AGENT_PLACE] = Field(
        description="A shell command with {PROMPT} or {PROMPT_FILE}, {GUIDELINES}, {FILES}, {EVAL_ID}, {ATTEMPT},"
        " {SESSION}, {OUTPUT_FILE}; values are quoted. The response is the content of {OUTPUT_FILE}, or the output."
    )
    agent_protocol: ProgramName | None = Field(
        default=None,
        description="The program whose event stream is the response, so that tool calls, tokens and cost are known.",
    )
    files_format: Annotated[
        str, AfterValidator(_check_file_format), NotSecret("it is how a file is named in a command")
    ] = Field(default="{path}", description="Format of one file in {FILES}, with {path} and {basename}.")
    cwd: Place | None = Field(
        default=None, description="Folder where the command runs; by default the eval file's folder."
    )
    timeout_seconds: Seconds | None = Field(default=None, description="Time limit of one call.")
    healthcheck: Annotated[HealthCheck | None, READINESS] = None
    verbose: Annotated[bool, NoEffect("it is what is said of a response")] = Field(
        default=False, description="Report the command with every response."
    )
    keep_temp_files: Annotated[bool, NoEffect("it is what is left behind")] = Field(
        default=False, description="Keep the prompt and output files."
    )
    provider_batching: bool = Field(default=False, description="Send all cases of a file in one call.")
    batch_size: int | None = Field(
        default=None, ge=1, description="Number of cases in one call, with providerBatching."
    )
    max_retries: Annotated[int | None, RETRIES] = Field(
        default=None, ge=0, le=20, description="Maximum retries of a call that timed out."
    )

    @property
    def remarks(self) -> tuple[str, ...]:
        """Whether the command cannot know which case it runs for."""
        command = self.command_template.open()
        if self.provider_batching or any(f"{{{name}}}" in command for name in CASE_PLACEHOLDERS):
            return ()
        return ("the command has no {PROMPT} or {PROMPT_FILE}, so it does not get the prompt of the case",)

    @classmethod
    def complete_values(cls, values: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Complete the settings of a response that is described; else it is AgentV's, or plain text."""
        return values if cls.list_own_settings().isdisjoint(values) else super().complete_values(values)

    @model_validator(mode="after")
    def _check_reader(self) -> Self:
        described = self.given_response_settings
        if described and self.agent_protocol is not None:
            raise ValueError(f"agentProtocol reads the whole response, so {described[0]} has no effect: remove either")
        if self.agent_protocol is not None and self.provider_batching:
            raise ValueError("agentProtocol reads the response of one case, so providerBatching is not supported")
        if self.provider_batching and self.response_format is not ResponseFormat.JSON:
            raise ValueError("each response of a batch is one line of JSON, so responseFormat has to be json")
        return self
