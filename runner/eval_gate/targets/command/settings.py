"""Settings of a command target (agentv spec, "CLI Template Configuration"; agentv behaviour 4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, ValidationInfo, field_validator, model_validator
from pydantic.alias_generators import to_camel

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
from eval_gate.text.command_template import CASE_PLACEHOLDERS, MESSAGE_PLACEHOLDERS, CommandTemplate
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


def _contains(command: Secret[str], placeholders: Iterable[str]) -> bool:
    """Whether the command has one of these placeholders."""
    return not set(placeholders).isdisjoint(CommandTemplate.from_command(command.open()).names)


def _list_placeholders(names: Sequence[str]) -> str:
    """List placeholders as they are written: `{A}, {B} or {C}`."""
    *first_names, last_name = (f"{{{name}}}" for name in names)
    return f"{', '.join(first_names)} or {last_name}"


_NOT_IN_LINES: Final = (*MESSAGE_PLACEHOLDERS, "OUTPUT_FILE")
"""Placeholders that a command with `conversation: lines` cannot have."""
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
        description="A shell command with {PROMPT}, {PROMPT_FILE} or {CONVERSATION_FILE}, {GUIDELINES}, {FILES},"
        " {EVAL_ID}, {ATTEMPT}, {SESSION}, {OUTPUT_FILE}; values are quoted. The response is the content of"
        " {OUTPUT_FILE}, or the output."
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
    # these are last: each is checked against those before it
    resume_command: Annotated[Secret[CommandText] | None, AGENT_PLACE] = Field(
        default=None,
        description="Command of the second and later turns of a conversation, with {SESSION}; by default the same.",
    )
    conversation: Literal["lines"] | None = Field(
        default=None,
        description="lines: one process for a whole conversation; it reads and prints a line of JSON for each turn.",
    )
    conversation_timeout_seconds: Seconds | None = Field(
        default=None, description="Time limit of all turns of a conversation together, with conversation: lines."
    )

    @property
    def remembers_turns(self) -> bool:
        """Whether the program may know the earlier turns of a conversation, and gets only the new message."""
        is_resumed = self.conversation is not None or self.resume_command is not None
        return is_resumed or _contains(self.command_template, ["SESSION"])

    @property
    def conversation_problem(self) -> str | None:
        """Why it cannot run a conversation, as the rest of a sentence; None if it can."""
        if self.provider_batching:
            return "it runs many cases in one call (providerBatching)"
        if self.conversation is not None or _contains(self.command_template, MESSAGE_PLACEHOLDERS):
            return None
        lacking = _list_placeholders(MESSAGE_PLACEHOLDERS)
        what = f"its command does not get the messages: it has no {lacking}"
        place = self.find_place("commandTemplate")
        return (
            f"{what}. For a program that reads a line for each turn, add `conversation: lines`{place and f' ({place})'}"
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """Whether the command cannot know which case it runs for."""
        if (
            self.provider_batching
            or self.conversation is not None
            or _contains(self.command_template, CASE_PLACEHOLDERS)
        ):
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

    @field_validator("resume_command")
    @classmethod
    def _check_resume_command(cls, resume_command: Secret[str] | None, info: ValidationInfo) -> Secret[str] | None:
        if resume_command is None:
            return None
        if info.data.get("provider_batching"):
            raise ValueError("has no effect with providerBatching, which runs many cases in one call: remove either")
        if not _contains(resume_command, ["SESSION"]):
            raise ValueError("needs {SESSION}: without it, a turn could go on with the conversation of another case")
        if not _contains(resume_command, MESSAGE_PLACEHOLDERS):
            raise ValueError(f"needs the new message: {_list_placeholders(MESSAGE_PLACEHOLDERS)}")
        first = info.data.get("command_template")
        if first is not None and info.data.get("agent_protocol") is None and not _contains(first, ["SESSION"]):
            raise ValueError("needs a commandTemplate with {SESSION} too, or an agentProtocol that reads the id")
        return resume_command

    @field_validator("conversation")
    @classmethod
    def _check_lines(cls, conversation: str | None, info: ValidationInfo) -> str | None:
        if conversation is None:
            return None
        values = info.data
        for name in ("agent_protocol", "provider_batching", "resume_command"):
            if values.get(name):
                raise ValueError(
                    f"lines has one process for all turns, so {to_camel(name)} has no effect: remove either"
                )
        if values.get("response_format", ResponseFormat.JSON) is not ResponseFormat.JSON:
            raise ValueError("lines reads one line of JSON for each turn, so responseFormat has to be json")
        command = values.get("command_template")
        if command is not None and _contains(command, _NOT_IN_LINES):
            listed = _list_placeholders(_NOT_IN_LINES)
            raise ValueError(f"lines exchanges lines of JSON, so a command must not contain {listed}")
        return conversation

    @field_validator("conversation_timeout_seconds")
    @classmethod
    def _check_whole_limit(cls, limit: float | None, info: ValidationInfo) -> float | None:
        if limit is not None and not info.data.get("conversation", True):
            raise ValueError("has no effect without `conversation: lines`: use timeoutSeconds, the limit of each turn")
        return limit
