"""A chat with a model through pydantic-ai: one request per question, every failure a TargetError."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Message, ToolSpec
from eval_gate.targets.model.chat import ModelTurn
from eval_gate.targets.model.providers.errors import FAILURES, Explainer
from eval_gate.targets.model.providers.messages import Transcript, offered_tools
from eval_gate.targets.model.providers.models import BuiltModel, refuses_schema
from eval_gate.targets.model.providers.pool import answers_noted
from eval_gate.targets.model.settings import ModelSettings
from eval_gate.text.redact import Redactor

_NO_SCHEMA: Final = (
    "its provider refuses to hold it to a JSON schema, so it is asked without one (`structured_output: false` at the "
    "target spares the question)"
)


class ModelChat:
    """A `Chat`: a model behind one pool of connections. Nothing here or below repeats a request."""

    def __init__(self, settings: ModelSettings, built: BuiltModel, *, redact: Redactor, timeout_s: float) -> None:
        self.provider, self.model = settings.route
        self.address = built.address
        self.settings = built.deciding
        self._built = built
        self._timeout_s = timeout_s
        self._transcript = Transcript()
        self._explainer = Explainer(f"{self.provider} ({self.model})", settings.retryable_status_codes, redact)
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
        with answers_noted() as answers:
            try:
                async with asyncio.timeout(self._timeout_s):
                    response = await self._response(self._transcript.outgoing(messages), tools, schema)
                turn = self._transcript.incoming(response, messages)
            except TimeoutError as error:
                raise self._explainer.late(self._timeout_s) from error
            except self._failures as error:
                raise self._explainer.explain(error, answers[-1] if answers else None) from error
        if turn is None:
            raise self._explainer.unreadable(answers[-1] if answers else None)
        return turn

    async def _response(
        self, messages: list[ModelMessage], tools: Sequence[ToolSpec], schema: Mapping[str, JsonValue] | None
    ) -> ModelResponse:
        if schema is None or not self._takes_schema:
            return await self._built.request(messages, offered_tools(tools))
        try:
            return await self._built.request(messages, offered_tools(tools, schema))
        except ModelHTTPError as error:
            if not refuses_schema(error):
                raise
        response = await self._built.request(messages, offered_tools(tools))
        # only now: with another reason for the refusal this would have been refused too
        self._takes_schema = False
        self.notice = _NO_SCHEMA
        return response

    async def aclose(self) -> None:
        """Close all connections."""
        await self._built.close()
