"""An HTTP agent as people describe it."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field, JsonValue

from eval_gate.model.limits import MAX_ANSWER_BYTES
from eval_gate.targets.settings import Described, TargetSettings, Text


class PresetName(StrEnum):
    """Known ways an agent speaks HTTP."""

    EVAL_GATE = "eval-gate"
    TOOL_FORGE_SIDECAR = "tool-forge-sidecar"
    OPENAI_CHAT = "openai-chat"


class HttpHealthCheck(Described):
    """Asked once before the run: any 2xx is healthy."""

    type: Literal["http"] = "http"
    url: Text
    timeout_seconds: float = Field(10, gt=0, le=600)


def _health_check(value: object) -> object:
    """An address alone is a health check."""
    return {"url": value} if isinstance(value, str) else value


class HttpSettings(TargetSettings):
    """One HTTP agent. Every key may also be written in snake_case."""

    refers_within_texts: ClassVar[bool] = True

    provider: Literal["http"] = "http"
    url: Text
    preset: PresetName = PresetName.EVAL_GATE
    headers: dict[str, str] = Field(default_factory=dict)
    request_template: JsonValue = Field(
        None, description="The body; {{message}}, {{conversation}} and {{caseId}} are replaced in its texts."
    )
    response_path: Text | None = Field(None, description="Where the answer's text is, such as data.reply or a[0].b.")
    tool_calls_path: Text | None = Field(None, description="Where the list of tool calls is.")
    healthcheck: Annotated[
        HttpHealthCheck | None,
        BeforeValidator(_health_check, json_schema_input_type=HttpHealthCheck | Text | None),
    ] = None
    max_retries: int | None = Field(None, ge=0, le=20)
    initial_delay_ms: float | None = Field(None, ge=0)
    max_delay_ms: float | None = Field(None, ge=0)
    backoff_factor: float | None = Field(None, ge=1)
    retryable_status_codes: frozenset[int] | None = None
    max_response_bytes: int = Field(MAX_ANSWER_BYTES, gt=0, le=1_000_000_000)

    @property
    def place(self) -> str:
        """The agent's URL."""
        return self.url
