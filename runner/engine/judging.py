"""A model as the judge that evaluators ask: they know of no provider, and this knows of no evaluator."""

from __future__ import annotations

from runner.evaluators.base import EvaluatorError, JudgeReply
from runner.model.conversation import Message
from runner.targets.asking import Asker
from runner.targets.base import TargetError


class ModelJudge:
    """Grades by asking a model, with its retries, its pace and its recording."""

    def __init__(self, name: str, asker: Asker) -> None:
        self._name = name
        self._asker = asker

    @property
    def notices(self) -> tuple[str, ...]:
        """How the judge's rate limit was met, if it was."""
        return (f"judge {self._name}: {self._asker.notice}",) if self._asker.notice else ()

    async def ask(self, system: str, user: str) -> JudgeReply:
        """One question. Raises EvaluatorError: a judge that cannot be reached is no bad grade."""
        messages = (Message(role="system", content=system), Message(role="user", content=user))
        try:
            asked = await self._asker.ask(messages)
        except TargetError as error:
            raise EvaluatorError(f"the judge {self._name} could not be asked: {error.message}") from error
        return JudgeReply(asked.turn.text, asked.turn.usage, asked.cost_usd, asked.turn.model)

    async def aclose(self) -> None:
        """Give connections back."""
        await self._asker.aclose()
