"""Target with canned responses, to try a workflow without keys and without an agent."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Annotated, Final, Literal

from pydantic import Field, JsonValue, PlainValidator, TypeAdapter, ValidationInfo, field_validator

from eval_gate.config.settings import TargetChoice
from eval_gate.model.conversation import Response, ToolCall
from eval_gate.model.limits import MAX_DURATION_MS
from eval_gate.struct import replace
from eval_gate.targets.base import DescribedTarget, Request, TargetError, TargetFault
from eval_gate.targets.build_context import BuildContext
from eval_gate.targets.command.response import parse_record
from eval_gate.targets.settings import CANNED_RESPONSE, DescribedSettings, NotSecret, TargetSettings, expand_text
from eval_gate.text.escape import format_count

DEFAULT_RESPONSE = "This is the response of the mock target. Set `response` or `responses` in its description."


class MockCall(DescribedSettings):
    """One tool call of a canned response."""

    tool: Annotated[str, Field(min_length=1), CANNED_RESPONSE]
    input: Annotated[dict[str, JsonValue], CANNED_RESPONSE] = Field(default_factory=dict)
    success: bool | None = True
    result: Annotated[JsonValue, CANNED_RESPONSE] = Field(default=None, description="Result of the tool.")
    duration_ms: float | None = Field(default=None, ge=0, le=MAX_DURATION_MS)


class MockResponse(DescribedSettings):
    """A canned response, or an error instead."""

    response: Annotated[str, CANNED_RESPONSE] = DEFAULT_RESPONSE
    tool_calls: tuple[MockCall, ...] = ()
    output_messages: Annotated[list[dict[str, JsonValue]] | None, CANNED_RESPONSE] = Field(
        default=None, description="Messages in the format of AgentV commands."
    )
    trace: Annotated[list[dict[str, JsonValue]] | None, CANNED_RESPONSE] = Field(
        default=None, description="Trace in the format of AgentV commands."
    )
    error: Annotated[str | None, CANNED_RESPONSE] = Field(default=None, description="Error message instead.")

    def to_response(self) -> Response:
        """Convert the canned response; messages and trace are read as those of a command (AgentV)."""
        if self.output_messages is None and self.trace is None:
            return Response(
                text=self.response,
                tool_calls_known=True if "tool_calls" in self.model_fields_set else None,
                tool_calls_location="`tool_calls` in the mock's description",
                tool_calls=tuple(
                    ToolCall(
                        name=call.tool,
                        params=call.input,
                        success=call.success,
                        duration_ms=call.duration_ms,
                        result=call.result,
                    )
                    for call in self.tool_calls
                ),
            )
        record = self.model_dump(include={"output_messages", "trace"}, exclude_none=True)
        return parse_record(record | {"text": self.response})


_EXPAND: Final = expand_text("response")
_TURNS: Final = TypeAdapter(tuple[MockResponse, ...])


def _read_responses(value: object) -> MockResponse | tuple[MockResponse, ...]:
    """Read the response of a case, or a list with one for each turn; a text is a response. Raises ValidationError."""
    if not isinstance(value, list):
        return MockResponse.model_validate(_EXPAND(value))
    if not value:
        raise ValueError("must not be empty")
    return _TURNS.validate_python([*map(_EXPAND, value)])


class MockSettings(TargetSettings, MockResponse):
    """Settings of a mock target. `responses` are by case id; all other cases get the response that it is itself."""

    provider: Literal["mock"] = "mock"
    responses: dict[
        Annotated[str, NotSecret("it is the id of a case")],
        Annotated[
            MockResponse | tuple[MockResponse, ...],
            PlainValidator(_read_responses, json_schema_input_type=MockResponse | str | list[MockResponse | str]),
        ],
    ] = Field(default_factory=dict, description="Response by case id; a list has one for each turn of a conversation.")
    delay_ms: float = Field(default=0, ge=0, le=600_000)
    delay_min_ms: float | None = Field(default=None, ge=0, le=600_000)
    delay_max_ms: float | None = Field(default=None, ge=0, le=600_000)

    @field_validator("delay_max_ms")
    @classmethod
    def _check_delay_range(cls, most: float | None, info: ValidationInfo) -> float | None:
        least = info.data.get("delay_min_ms")
        if least is not None and most is not None and most < least:
            raise ValueError(f"is less than the smallest delay, {least:g}")
        return most


class MockTarget(DescribedTarget[MockSettings]):
    """Target that returns canned responses, in a conversation by the number of the turn."""

    conversation_problem = None
    remembers_turns = False
    notices = ("the responses are fixed: the target is a mock",)

    async def respond(self, request: Request) -> Response:
        """Return the canned response after its delay. Raises TargetError if the description gives an error instead."""
        started = time.perf_counter()
        await asyncio.sleep(self._choose_delay_s())
        canned_response = self._get_canned_response(request)
        if canned_response.error is not None:
            raise TargetError(f"mock error: {canned_response.error}", fault=TargetFault.REFUSED)
        response = canned_response.to_response()
        return replace(response, duration_ms=(time.perf_counter() - started) * 1000)

    def _get_canned_response(self, request: Request) -> MockResponse:
        settings = self._settings
        own = settings.responses.get(request.case_id)
        if not isinstance(own, tuple):
            return own or MockResponse.model_validate(
                settings.model_dump(include=set(MockResponse.model_fields), exclude_unset=True)
            )
        place = max(request.turn, 1) - 1
        if place < len(own):
            return own[place]
        what = (
            f"the mock has {format_count(len(own), 'response')} for this case, one for each turn, and this is another"
        )
        raise TargetError(what, fault=TargetFault.NOT_SENT, hint="add a response to the list in `responses`")

    def _choose_delay_s(self) -> float:
        settings = self._settings
        if settings.delay_min_ms is None and settings.delay_max_ms is None:
            return settings.delay_ms / 1000
        least = settings.delay_min_ms or 0.0
        most = settings.delay_max_ms if settings.delay_max_ms is not None else max(least, settings.delay_ms)
        return random.uniform(least, most) / 1000  # noqa: S311 (a delay, not a secret)


def build(settings: MockSettings, choice: TargetChoice, context: BuildContext) -> MockTarget:
    """Build the mock target, which needs only its settings."""
    return MockTarget(settings)
