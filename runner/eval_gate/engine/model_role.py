"""A model that a run calls in addition to the target: as an LLM judge, or as a simulated user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from eval_gate.evaluators.base import EvaluatorError, JudgeReply
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Message
from eval_gate.model.setup import TargetIdentity
from eval_gate.targets.base import TargetError
from eval_gate.targets.model.model_client import ModelClient
from eval_gate.text.quoting import quote_name


class ModelRole:
    """Model in a role of its own, with retries, rate limits and recording."""

    role: ClassVar[str]

    def __init__(self, name: str, client: ModelClient) -> None:
        self._name = name
        self._client = client

    @property
    def identity(self) -> str:
        """Name and address, without credentials."""
        chat = self._client.chat
        return format_identity(self._name, f"{chat.provider}:{chat.model}", chat.address)

    @property
    def target_identity(self) -> TargetIdentity:
        """Identity and setup of the model as a target."""
        chat = self._client.chat
        identity = TargetIdentity(name=self._name, provider=chat.provider, identity=self.identity, model=chat.model)
        return self._client.setup.apply_to(identity)

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices about the rate limit, and about parameters that the model does not support."""
        notices = (*self._client.notices, self._client.chat.notice)
        return tuple(f"{self.role} {self._name}: {notice}" for notice in notices if notice)

    async def ask(
        self, system: str, user: str, schema: Mapping[str, JsonValue] | None = None, sample: int = 0
    ) -> JudgeReply:
        """Send one prompt; `sample` is the number of the execution. Raises EvaluatorError: no response is no score."""
        messages = (Message(role="system", content=system), Message(role="user", content=user))
        try:
            reply = await self._client.ask(messages, sample=sample, schema=schema)
        except TargetError as error:
            message = f"the {self.role} {quote_name(self._name)} gave no response: {error.message}"
            raise EvaluatorError(message, hint=error.hint) from error
        return JudgeReply(reply.turn.text, reply.turn.usage, reply.cost_usd, reply.turn.model)

    async def aclose(self) -> None:
        """Give connections back."""
        await self._client.aclose()


def format_identity(name: str, what: str, address: str) -> str:
    """`grader (openai:gpt-5, https://api.openai.com/v1)`, without saying anything twice."""
    facts = [fact for fact in dict.fromkeys((what, address)) if fact and fact != name]
    return f"{name} ({', '.join(facts)})" if facts else name
