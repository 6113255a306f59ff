"""Client of a model with recording, concurrency limit, retries and price.

`ConcurrencyLimiter` limits the concurrent requests to a provider. It lowers the limit after each refusal because of the
rate limit, and then raises it slowly. Prices come from the list in genai-prices; nothing is downloaded.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from eval_gate.config.settings import RecordingMode
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Message, ToolSpec
from eval_gate.model.limits import MAX_COST_USD, in_range
from eval_gate.model.usage import Usage
from eval_gate.struct import FrozenStruct
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.deadline import pause_case_clock
from eval_gate.targets.model.chat import Chat, ModelTurn
from eval_gate.targets.model.recording import Recording, compute_recording_key
from eval_gate.targets.retry import RetryPolicy, call_with_retries
from eval_gate.targets.setup import NO_SETUP, TargetSetup
from eval_gate.text.redaction import Redactor

TOO_MANY_REQUESTS = 429
_MIN_IN_FLIGHT: Final = 1.0
_MAX_PAUSE_S: Final = 60.0
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

    def __init__(
        self,
        chat: Chat,
        policy: RetryPolicy,
        pace: ConcurrencyLimiter,
        recording: Recording,
        redact: Redactor | None = None,
        setup: TargetSetup = NO_SETUP,
    ) -> None:
        """Create a client for the model of `chat`.

        A recorded response is replayed only if it came from a model with the same `setup`.
        """
        self.chat = chat
        self._policy = policy
        self._pace = pace
        self._recording = recording
        self._redact = redact or Redactor()
        self.setup = setup
        """What a result of this model is of; as a judge it is more than what a response is recorded by."""
        self._recorded_by = setup.fingerprint

    @property
    def notice(self) -> str | None:
        """What happened to the pace, if anything did."""
        return self._pace.notice

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
        key = compute_recording_key(self._recorded_by, self.chat, messages, tools, sample)
        known = self._recording.find(key)
        if known is not None:
            return ModelReply(self._redact.mask_struct(known), 0, 0.0, replayed=True)
        if self._recording.mode is RecordingMode.REPLAY:
            raise TargetError(
                "no response is recorded for this prompt, and the model must not be called (recording: replay)",
                fault=TargetFault.NOT_SENT,
                hint="record one with --recording auto or record",
            )
        turn, attempts = await call_with_retries(lambda: self._ask_once(messages, tools, schema), self._policy)
        self._recording.add(key, turn)
        return ModelReply(turn, attempts, self._estimate_price(turn))

    async def aclose(self) -> None:
        """Give connections back."""
        await self.chat.aclose()

    async def _ask_once(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], schema: Mapping[str, JsonValue] | None
    ) -> ModelTurn:
        async with self._pace.hold_slot():
            try:
                turn = await self.chat.ask(messages, tools, schema)
            except TargetError as error:
                error.mask_secrets(self._redact.mask_message)
                if error.status == TOO_MANY_REQUESTS:
                    self._pace.note_refusal(error.retry_after_s)
                raise
        self._pace.note_success()
        return self._redact.mask_struct(turn)

    def _estimate_price(self, turn: ModelTurn) -> float | None:
        if turn.usage is None:
            return None
        return estimate_price(self.chat.provider, turn.model or self.chat.model, turn.usage)


class ConcurrencyLimiter:
    """Limit of requests in flight: additive increase, multiplicative decrease (Chiu and Jain 1989)."""

    def __init__(self, most: int) -> None:
        self._most = float(most)
        self._limit = float(most)
        self._lowest = float(most)
        self._in_flight = 0
        self._refused = 0
        self._free = asyncio.Condition()
        self._not_before = 0.0

    @asynccontextmanager
    async def hold_slot(self) -> AsyncIterator[None]:
        """Hold one of the slots for requests in flight inside this context.

        Waits until a slot is free and a pause is over.
        """
        with pause_case_clock():
            async with self._free:
                await self._free.wait_for(lambda: self._in_flight < max(self._limit, _MIN_IN_FLIGHT))
                self._in_flight += 1
        try:
            with pause_case_clock():
                await self._wait_until_allowed()
            yield
        finally:
            self._in_flight -= 1
            await self._notify_waiting()

    def note_refusal(self, retry_after_s: float | None) -> None:
        """Halve the limit after the provider refused a request for its rate limit.

        `retry_after_s` is the time that the provider asks for, in seconds. Requests wait that long, at most 60 s.
        """
        self._refused += 1
        self._limit = max(self._limit / 2, _MIN_IN_FLIGHT)
        self._lowest = min(self._lowest, self._limit)
        if retry_after_s:
            now = asyncio.get_running_loop().time()
            self._not_before = max(self._not_before, now + min(retry_after_s, _MAX_PAUSE_S))

    def note_success(self) -> None:
        """One more went well: about one more at once for every round of answers."""
        if self._limit < self._most:
            self._limit = min(self._limit + 1 / self._limit, self._most)

    @property
    def notice(self) -> str | None:
        """What became of it, for the result; None when no limit was met."""
        if not self._refused:
            return None
        times = "once" if self._refused == 1 else f"{self._refused} times"
        down = (
            f", concurrent requests were reduced to {int(self._lowest)} of {int(self._most)}" if self._most > 1 else ""
        )
        return f"the provider limited the rate {times} (429){down}"

    async def _wait_until_allowed(self) -> None:
        left = self._not_before - asyncio.get_running_loop().time()
        if left > 0:
            await asyncio.sleep(left)
            await self._wait_until_allowed()  # somebody else may have been refused meanwhile

    async def _notify_waiting(self) -> None:
        async with self._free:
            self._free.notify_all()


def estimate_price(provider: str, model: str, usage: Usage) -> float | None:
    """US dollars for these tokens, or None when the price or the tokens are not known: never 0 for what is unknown.

    `usage` knows nothing of caches: tokens read from one are counted at the full price, so this is an upper bound.
    """
    if usage.input_tokens is None or usage.output_tokens is None or provider in _UNPRICED:
        return None
    import genai_prices

    try:
        counted = genai_prices.Usage(input_tokens=usage.input_tokens, output_tokens=usage.output_tokens)
        found = genai_prices.calc_price(counted, model, provider_id=_PRICE_LIST_NAMES.get(provider, provider))
    except (LookupError, ValueError):  # a model or a provider the list does not have, a count that is none
        return None
    # the list has models without any price, which it adds up to 0
    return in_range(float(found.total_price), MAX_COST_USD) if found.total_price else None
