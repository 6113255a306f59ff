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
    """The model or deployment."""
    address: str
    """Address of the requests, without credentials and query."""
    settings: dict[str, object]
    """Everything but messages and tools that determines the response (temperature, …): JSON values, no secret."""
    notice: str | None
    """Settings that the provider refused, in words for people; None without any."""

    async def ask(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        schema: Mapping[str, JsonValue] | None = None,
    ) -> ModelTurn:
        """One request. Raises TargetError and nothing else; may be cancelled at any time.

        The text is JSON of this `schema` if the provider can enforce one; other providers get no schema.
        """
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...
