"""Chat with a model through pydantic-ai: one request for each call, every failure a TargetError.

Conversations are converted to types of pydantic-ai, and its replies to our turns.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final

from msgspec import json as json_of
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Message, ToolCall, ToolSpec
from eval_gate.model.limits import MAX_TOKENS, in_range
from eval_gate.model.usage import Usage
from eval_gate.struct import replace
from eval_gate.targets.model.chat import ModelTurn
from eval_gate.targets.model.providers.errors import FAILURES, ErrorExplainer
from eval_gate.targets.model.providers.models import ProviderModel, collect_responses, is_schema_refused
from eval_gate.targets.model.settings import ModelSettings
from eval_gate.text.javascript.strings import as_text
from eval_gate.text.redaction import Redactor
from eval_gate.text.untrusted.bounded_json import parse_untrusted_json
from eval_gate.text.untrusted.surrogates import to_well_formed

_NO_SCHEMA: Final = (
    "its provider refuses a JSON schema, so it is called without one (set `structured_output: false` at the target "
    "to avoid the attempt)"
)
MAX_REMEMBERED: Final = 1_024
_GENERATED_ID_PREFIX: Final = "pyd_ai_"
"""Prefix of call ids that pydantic-ai generated, because the provider sent none."""
_ANY_OBJECT: Final[dict[str, JsonValue]] = {"type": "object", "properties": {}, "additionalProperties": True}


class ModelChat:
    """Chat over one pool of connections. Never repeats a request."""

    def __init__(self, settings: ModelSettings, built: ProviderModel, *, redact: Redactor, timeout_s: float) -> None:
        self.provider, self.model = settings.route
        self.address = built.address
        self.settings = built.settings
        self._built = built
        self._timeout_s = timeout_s
        self._transcript = MessageConverter()
        self._explainer = ErrorExplainer(f"{self.provider} ({self.model})", settings.retryable_status_codes, redact)
        self._failures: tuple[type[Exception], ...] = (*FAILURES, *built.failures)
        self._takes_schema = built.takes_schema and settings.structured_output
        self.notice: str | None = None

    async def ask(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> ModelTurn:
        """One request, and one more where a schema is refused. Raises TargetError; may be cancelled at any time."""
        with collect_responses() as answers:
            try:
                async with asyncio.timeout(self._timeout_s):
                    response = await self._send_request(self._transcript.to_provider_messages(messages), tools, schema)
                turn = self._transcript.to_turn(response, messages)
            except TimeoutError as error:
                raise self._explainer.explain_timeout(self._timeout_s) from error
            except self._failures as error:
                raise self._explainer.explain_error(error, answers[-1] if answers else None) from error
        if turn is None:
            raise self._explainer.explain_unreadable(answers[-1] if answers else None)
        return turn

    async def _send_request(
        self, messages: list[ModelMessage], tools: Sequence[ToolSpec], schema: Mapping[str, JsonValue] | None
    ) -> ModelResponse:
        if schema is None or not self._takes_schema:
            return await self._built.request(messages, build_request_parameters(tools))
        try:
            return await self._built.request(messages, build_request_parameters(tools, schema))
        except ModelHTTPError as error:
            if not is_schema_refused(error):
                raise
        response = await self._built.request(messages, build_request_parameters(tools))
        # only now: with another reason for the refusal this would have been refused too
        self._takes_schema = False
        self.notice = _NO_SCHEMA
        return response

    async def aclose(self) -> None:
        """Close all connections."""
        await self._built.close()


def build_request_parameters(
    tools: Sequence[ToolSpec], schema: Mapping[str, JsonValue] | None = None
) -> ModelRequestParameters:
    """Build the parameters with the tools that a model may call and the schema for its text.

    The schemas of tools are sent as they are, never in the strict mode of a vendor. The messages do not mention the
    schema.
    """
    return ModelRequestParameters(
        output_mode="text" if schema is None else "native",
        output_object=None if schema is None else OutputObjectDefinition(dict(schema), name="reply", strict=True),
        prompted_output_template=False,
        function_tools=[
            ToolDefinition(
                name=tool.name,
                description=tool.description,
                parameters_json_schema=_ANY_OBJECT if tool.parameters is None else dict(tool.parameters),
                strict=False,
            )
            for tool in tools
        ],
    )


class MessageConverter:
    """Converter between our messages and those of pydantic-ai. Keeps what our messages cannot hold.

    Anthropic and Gemini sign the thinking of a model before its tool calls, and require it back with the results.
    """

    def __init__(self) -> None:
        self._remembered: OrderedDict[tuple[str, ...], ModelResponse] = OrderedDict()

    def to_provider_messages(self, messages: Sequence[Message]) -> list[ModelMessage]:
        """Convert the conversation; consecutive messages that are not from the model become one request."""
        provider_messages: list[ModelMessage] = []
        parts: list[ModelRequestPart] = []
        calls = _CallTracker()
        for index, message in enumerate(messages):
            if message.role != "assistant":
                parts.append(_build_request_part(message, calls))
                continue
            if parts:
                provider_messages.append(ModelRequest(parts=parts))
                parts = []
            calls.add_turn(message, index)
            provider_messages.append(self._build_response(messages, index, calls))
        if parts:
            provider_messages.append(ModelRequest(parts=parts))
        return provider_messages

    def to_turn(self, response: ModelResponse, messages: Sequence[Message]) -> ModelTurn | None:
        """Convert the response of the model, unless it is empty and gives no finish reason."""
        response = _assign_stable_ids(response, messages)
        calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
        text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
        thinking = "\n\n".join(
            part.content for part in response.parts if isinstance(part, ThinkingPart) and part.content
        )
        finish = response.finish_reason
        if not (text or calls or finish or (response.provider_details or {}).get("finish_reason")):
            return None
        if calls and any(isinstance(part, ThinkingPart) or part.provider_details for part in response.parts):
            self._remember_response((_hash_messages(messages), *(part.tool_call_id for part in calls)), response)
        return ModelTurn(
            text=to_well_formed(text),
            tool_calls=tuple(
                ToolCall(name=to_well_formed(part.tool_name), params=parse_arguments(part.args), id=part.tool_call_id)
                for part in calls
            ),
            usage=_to_usage(response.usage),
            model=response.model_name or None,
            # Gemini and some servers have no word of their own for calls
            finish="tool_call" if calls and finish in {None, "stop"} else finish,
            thinking=to_well_formed(thinking) or None,
        )

    def _remember_response(self, key: tuple[str, ...], response: ModelResponse) -> None:
        self._remembered[key] = response
        if len(self._remembered) > MAX_REMEMBERED:
            self._remembered.popitem(last=False)

    def _build_response(self, messages: Sequence[Message], index: int, calls: _CallTracker) -> ModelResponse:
        message = messages[index]
        if message.tool_calls and self._remembered:
            response = self._remembered.get((_hash_messages(messages[:index]), *(id_ for id_, _ in calls.open)))
            if response is not None:
                return response
        text = as_text(message.content)
        parts: list[ModelResponsePart] = [TextPart(content=text)] if text else []
        parts += [
            ToolCallPart(tool_name=call.name, args=dict(call.params), tool_call_id=id_)
            for call, (id_, _) in zip(message.tool_calls, calls.open, strict=True)
        ]
        return ModelResponse(parts=parts)


class _CallTracker:
    """Tool calls of a conversation by id, and those of the last turn without a result."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self.open: list[tuple[str, str]] = []

    def add_turn(self, message: Message, index: int) -> None:
        """Add a turn of the model, whose tool calls now wait for their results. A call without an id gets one."""
        self.open = [(call.id or f"call_{index}_{number}", call.name) for number, call in enumerate(message.tool_calls)]
        self._names |= dict(self.open)

    def match_result(self, message: Message) -> tuple[str, str]:
        """Id and name of the call that this result is for: without an id, the first open one of that name, or at all.

        A result that no call asked for goes out as it is: the provider says what it thinks of it.
        """
        fitting = [id_ for id_, name in self.open if name == message.name] or [id_ for id_, _ in self.open]
        id_ = message.tool_call_id or next(iter(fitting), "call_0")
        self.open = [call for call in self.open if call[0] != id_]
        return id_, self._names.get(id_) or message.name or "tool"


def _build_request_part(message: Message, calls: _CallTracker) -> ModelRequestPart:
    match message.role:
        case "system":
            return SystemPromptPart(content=as_text(message.content))
        case "tool":
            id_, name = calls.match_result(message)
            return ToolReturnPart(tool_name=name, content=message.content, tool_call_id=id_)
        case _:
            return UserPromptPart(content=as_text(message.content))


def _assign_stable_ids(response: ModelResponse, messages: Sequence[Message]) -> ModelResponse:
    """Replace generated ids of tool calls: they become part of the next request, the same in every run."""
    made_up = [part for part in response.parts if isinstance(part, ToolCallPart) and _has_generated_id(part)]
    if not made_up:
        return response
    digest = _hash_messages(messages)[:12]
    numbers = {id(part): number for number, part in enumerate(made_up)}
    parts = [
        replace(part, tool_call_id=f"call_{digest}_{numbers[id(part)]}")
        if isinstance(part, ToolCallPart) and id(part) in numbers
        else part
        for part in response.parts
    ]
    return replace(response, parts=parts)


def _has_generated_id(part: ToolCallPart) -> bool:
    return not part.tool_call_id or part.tool_call_id.startswith(_GENERATED_ID_PREFIX)


def _hash_messages(messages: Sequence[Message]) -> str:
    hasher = sha256()
    for message in messages:
        hasher.update(json_of.encode(message) + b"\n")
    return hasher.hexdigest()


def parse_arguments(arguments: object) -> dict[str, JsonValue]:
    """Parse the arguments of a tool call; others than a JSON object are the model's mistake, and count as empty."""
    try:
        # through text in any case: values of vendors' own types and halves of surrogate pairs do not survive it
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, allow_nan=False)
        value = parse_untrusted_json(text)
        if not isinstance(value, dict):
            return {}
        plain = json.dumps(value, ensure_ascii=False, allow_nan=False)
        if plain.isascii():
            return value
        cleaned: dict[str, JsonValue] = json.loads(to_well_formed(plain))
    except (ValueError, TypeError, RecursionError):
        return {}
    return cleaned


def _to_usage(counted: RequestUsage) -> Usage | None:
    """Tokens of the whole request: read from a cache and thought ones are among them. None when nothing was counted."""
    if counted.unmeasured_requests or not (counted.input_tokens or counted.output_tokens):
        return None
    counts = (counted.input_tokens, counted.output_tokens)
    if any(in_range(count, MAX_TOKENS) is None for count in counts):
        return None  # not what anybody counted
    return Usage(input_tokens=counts[0], output_tokens=counts[1])
