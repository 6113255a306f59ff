"""A chat with a model through pydantic-ai: one request per question, every failure a TargetError."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from eval_gate.model.conversation import Message, ToolSpec
from eval_gate.targets.model.chat import Turn
from eval_gate.targets.model.providers.errors import FAILURES, Explainer
from eval_gate.targets.model.providers.messages import Transcript, offered
from eval_gate.targets.model.providers.models import BuiltModel
from eval_gate.targets.model.providers.pool import answers_noted
from eval_gate.targets.model.settings import ModelSettings
from eval_gate.text.redact import Redactor


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

    async def ask(self, messages: Sequence[Message], tools: Sequence[ToolSpec] = ()) -> Turn:
        """One request. Raises TargetError and nothing else; may be cancelled at any time."""
        with answers_noted() as answers:
            try:
                async with asyncio.timeout(self._timeout_s):
                    response = await self._built.request(self._transcript.outgoing(messages), offered(tools))
                turn = self._transcript.incoming(response, messages)
            except TimeoutError as error:
                raise self._explainer.late(self._timeout_s) from error
            except self._failures as error:
                raise self._explainer.explain(error, answers[-1] if answers else None) from error
        if turn is None:
            raise self._explainer.unreadable(answers[-1] if answers else None)
        return turn

    async def aclose(self) -> None:
        """Close all connections."""
        await self._built.close()
