"""Client of a model with recording, concurrency limit, retries and price.

Prices come from the list in genai-prices; nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from eval_gate.config.settings import RecordingMode
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Message, ToolSpec
from eval_gate.model.limits import MAX_COST_USD, in_range
from eval_gate.model.usage import Usage
from eval_gate.struct import FrozenStruct
from eval_gate.targets.base import RetryPolicy, TargetError, TargetFault
from eval_gate.targets.model.chat import Chat, ModelTurn
from eval_gate.targets.model.recording import Recording, compute_recording_key
from eval_gate.targets.retry import LoadLimiter, call_with_retries
from eval_gate.targets.setup import NO_SETUP, TargetSetup
from eval_gate.text.redaction import Redactor

_PRICE_LIST_NAMES: Final = {
    "azure-responses": "azure",
    "bedrock": "aws",
    "bedrock-mantle": "aws",
    "gemini": "google",
    "google-cloud": "google",
    "openai-chat": "openai",
    "openai-responses": "openai",
    "xai": "x-ai",
}
_UNPRICED: Final = frozenset({"openai-compatible", "litellm", "ollama", "vllm"})
"""Providers without a price: your own servers, because the list treats `openai-compatible` as OpenAI."""


class ModelReply(FrozenStruct):
    """Reply of a model. `cost_usd` is None if unknown, and 0 for a replayed reply."""

    turn: ModelTurn
    attempts: int
    cost_usd: float | None
    replayed: bool = False


class ModelClient:
    """Client of one model, shared by many cases. Masks secrets in replies and recordings."""

    place: str | None = None
    """Where the model is described, for people; None if it is no target of a list."""

    def __init__(
        self,
        chat: Chat,
        policy: RetryPolicy,
        limiter: LoadLimiter,
        recording: Recording,
        redact: Redactor | None = None,
        setup: TargetSetup = NO_SETUP,
    ) -> None:
        """Create a client, which replays only recorded responses of a model with the same `setup`."""
        self.chat = chat
        self._policy = policy
        self.limiter = limiter
        self._recording = recording
        self._redact = redact or Redactor()
        self.setup = setup
        """Setup of the model in results, and part of the recording key."""

    @property
    def notices(self) -> tuple[str, ...]:
        """Whether the provider refused requests because of its load, and what followed."""
        return self.limiter.list_notices("the provider")

    async def ask(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] = (),
        sample: int = 0,
        schema: Mapping[str, JsonValue] | None = None,
    ) -> ModelReply:
        """Return the recorded reply to a request, or send the request and record the reply.

        Raises TargetError.

        `schema` is not part of the recording key. The messages ask for the same form, and only the request shows
        whether the provider enforces the schema.
        """
        key = compute_recording_key(self.setup.fingerprint, self.chat, messages, tools, sample)
        recorded_turn = self._recording.find(key)
        if recorded_turn is not None:
            return ModelReply(self._redact.mask_struct(recorded_turn), 0, 0.0, replayed=True)
        if self._recording.mode is RecordingMode.REPLAY:
            raise TargetError(
                "no response is recorded for this prompt, and the model must not be called (recording: replay)",
                fault=TargetFault.NOT_SENT,
                hint="record one with --recording auto or record",
            )
        turn, attempts = await call_with_retries(
            lambda: self._ask_once(messages, tools, schema), self._policy, self.limiter
        )
        self._recording.add(key, turn)
        name = turn.model or self.chat.model
        cost = None if turn.usage is None else estimate_price(self.chat.provider, name, turn.usage)
        return ModelReply(turn, attempts, cost)

    async def aclose(self) -> None:
        """Close the connections."""
        await self.chat.aclose()

    async def _ask_once(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], schema: Mapping[str, JsonValue] | None
    ) -> ModelTurn:
        try:
            return self._redact.mask_struct(await self.chat.ask(messages, tools, schema))
        except TargetError as error:
            error.mask_secrets(self._redact.mask_message)
            raise


def estimate_price(provider: str, model: str, usage: Usage) -> float | None:
    """US dollars for these tokens, or None when the price or the tokens are not known: never 0 for what is unknown.

    `usage` knows nothing of caches: tokens read from one are counted at the full price, so this is an upper bound.
    """
    if usage.input_tokens is None or usage.output_tokens is None or provider in _UNPRICED:
        return None
    import genai_prices

    try:
        counted = genai_prices.Usage(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
        price = genai_prices.calc_price(counted, model, provider_id=_PRICE_LIST_NAMES.get(provider, provider))
    except (LookupError, ValueError):  # a model or a provider the list does not have, a count that is none
        return None
    # the list has models without any price, which it adds up to 0
    return in_range(float(price.total_price), MAX_COST_USD) if price.total_price else None
