"""Asking a model with everything around it: recording, pace, retries, price."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eval_gate.config.settings import CacheMode
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Message, ToolSpec
from eval_gate.struct import FrozenStruct
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.model.chat import Chat, ModelTurn
from eval_gate.targets.model.pace import Pace
from eval_gate.targets.model.recording import Recording, key_of
from eval_gate.targets.retry import RetryPolicy, retried
from eval_gate.targets.setup import NO_SETUP, TargetSetup
from eval_gate.text.redact import Redactor

TOO_MANY = 429


class ModelAnswer(FrozenStruct):
    """One answer. `cost_usd` None is unknown; a replayed answer costs nothing."""

    turn: ModelTurn
    attempts: int
    cost_usd: float | None
    replayed: bool = False


class Asker:
    """One model, asked by many cases at once. What it says, and what was recorded, is without secrets from here on."""

    def __init__(
        self,
        chat: Chat,
        policy: RetryPolicy,
        pace: Pace,
        recording: Recording,
        redact: Redactor | None = None,
        setup: TargetSetup = NO_SETUP,
    ) -> None:
        """`setup`: a response is only replayed where it came from a model that was set up alike."""
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
    ) -> ModelAnswer:
        """The answer, recorded or new. Raises TargetError.

        `schema` is no part of what an answer is recorded by: the messages ask for the same form, and whether the
        provider was held to it is only known once it was asked.
        """
        key = key_of(self._recorded_by, self.chat, messages, tools, sample)
        known = self._recording.find(key)
        if known is not None:
            return ModelAnswer(self._redact.model(known), 0, 0.0, replayed=True)
        if self._recording.mode is CacheMode.REPLAY:
            raise TargetError(
                "there is no recorded answer to this question, and none may be asked for (cache: replay)",
                fault=TargetFault.NOT_ASKED,
                hint="record one with --cache auto or record",
            )
        turn, attempts = await retried(lambda: self._once(messages, tools, schema), self._policy)
        self._recording.add(key, turn)
        return ModelAnswer(turn, attempts, self._price(turn))

    async def aclose(self) -> None:
        """Give connections back."""
        await self.chat.aclose()

    async def _once(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], schema: Mapping[str, JsonValue] | None
    ) -> ModelTurn:
        async with self._pace.turn():
            try:
                turn = await self.chat.ask(messages, tools, schema)
            except TargetError as error:
                error.mask(self._redact.message)
                if error.status == TOO_MANY:
                    self._pace.refused(error.retry_after_s)
                raise
        self._pace.note_success()
        return self._redact.model(turn)

    def _price(self, turn: ModelTurn) -> float | None:
        if turn.usage is None:
            return None
        from eval_gate.targets.model.prices import price

        return price(self.chat.provider, turn.model or self.chat.model, turn.usage)
