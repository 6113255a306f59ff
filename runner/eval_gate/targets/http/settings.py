"""An HTTP agent as people describe it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from eval_gate.model.limits import MAX_ANSWER_BYTES
from eval_gate.targets.retry import RetryPolicy

Text = Annotated[str, Field(min_length=1)]


class Provider(StrEnum):
    """What can answer a message."""

    HTTP = "http"


class PresetName(StrEnum):
    """Known ways an agent speaks HTTP."""

    EVAL_GATE = "eval-gate"
    TOOL_FORGE_SIDECAR = "tool-forge-sidecar"
    OPENAI_CHAT = "openai-chat"


class _Settings(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, validate_by_name=False, validate_by_alias=True
    )


class HealthCheck(_Settings):
    """Asked once before the run: any 2xx is healthy."""

    type: Annotated[str, Field(pattern="^http$")] = "http"
    url: Text
    timeout_seconds: float = Field(10, gt=0, le=600)


class HttpSettings(_Settings):
    """One HTTP agent. Every key may also be written in snake_case."""

    name: Text
    provider: Provider = Provider.HTTP
    url: Text
    preset: PresetName = PresetName.EVAL_GATE
    headers: dict[str, str] = Field(default_factory=dict)
    request_template: JsonValue = Field(
        None, description="The body; {{message}}, {{conversation}} and {{caseId}} are replaced in its texts."
    )
    response_path: Text | None = Field(None, description="Where the answer's text is, such as data.reply or a[0].b.")
    tool_calls_path: Text | None = Field(None, description="Where the list of tool calls is.")
    healthcheck: HealthCheck | Text | None = None
    workers: int | None = Field(None, ge=1, le=1000)
    judge_target: Text | None = None
    provider_batching: bool = False
    max_retries: int | None = Field(None, ge=0, le=20)
    initial_delay_ms: float | None = Field(None, ge=0)
    max_delay_ms: float | None = Field(None, ge=0)
    backoff_factor: float | None = Field(None, ge=1)
    retryable_status_codes: frozenset[int] | None = None
    max_response_bytes: int = Field(MAX_ANSWER_BYTES, gt=0, le=1_000_000_000)

    def retry_policy(self, max_retries: int | None) -> RetryPolicy:
        """The target's policy; `max_retries` from the command line wins."""
        own = self.model_dump(include=set(RetryPolicy.model_fields), exclude_none=True)
        return RetryPolicy(**own | ({} if max_retries is None else {"max_retries": max_retries}))
