"""Protocol of a chat with a model, the same for all providers."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from eval_gate.model.base import Frozen, JsonValue
from eval_gate.model.conversation import Message, ToolCall, ToolSpec
from eval_gate.model.usage import Usage


class ModelTurn(Frozen, kw_only=True, omit_defaults=True):
    """Reply of a model to one request. `text` is empty if it only called tools."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    model: str | None = None
    """Model name in the provider's response, which can be more precise than the requested name."""
    finish: str | None = None
    """Finish reason in provider-neutral words: `stop`, `length`, `content_filter`, `tool_call`, `error`."""
    thinking: str | None = None


class Chat(Protocol):
    """Chat with a model of a provider. One call of `ask` is one request, without retry, cache or rate limit."""

    provider: str
    """Our name for the provider, such as `azure` or `openai`."""
    model: str
    """The model or deployment that is asked."""
    address: str
    """Where it is asked, without credentials and query."""
    settings: dict[str, object]
    """Everything beside messages and tools that decides the answer (temperature, …): JSON values, no secret."""
    notice: str | None
    """What it was asked for in vain, in words for people; None for nothing."""

    async def ask(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> ModelTurn:
        """One request. Raises TargetError and nothing else; may be cancelled at any time.

        The text is to be JSON of this `schema`, where the provider can promise it: one that cannot is asked without.
        """
        ...

    async def aclose(self) -> None:
        """Give connections back."""
        ...
