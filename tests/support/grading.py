"""What tests of evaluators share: a judge with a script, and contexts around a case and a response."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping
from typing import TypeVar

from eval_gate.evaluators.aggregation import score_case
from eval_gate.evaluators.base import (
    CaseScore,
    EvaluationContext,
    EvaluatorError,
    EvaluatorScore,
    Judge,
    JudgeReply,
)
from eval_gate.evaluators.dispatch import run_evaluator
from eval_gate.model.case import Aggregation, CaseBrief
from eval_gate.model.conversation import OutputCall, OutputMessage, Response, ToolCall, TraceEvent
from eval_gate.model.specs.evaluator import EvaluatorSpec
from eval_gate.text.javascript.regex import PatternMatcher
from eval_gate.text.tokens import TokenData
from tests.support.cases import make_case

Evaluated = TypeVar("Evaluated")
ENVIRONMENT = {"PATH": os.environ["PATH"]}


class ScriptedJudge:
    """Gives these replies one after another, and remembers what it was asked. A function gets the user prompt."""

    def __init__(self, *replies: str | JudgeReply | EvaluatorError | Callable[[str], str]) -> None:
        self._replies = list(replies)
        self.asked: list[tuple[str, str]] = []

    async def ask(self, system: str, user: str, schema: object = None) -> JudgeReply:
        self.asked.append((system, user))
        reply = self._replies.pop(0)
        if isinstance(reply, EvaluatorError):
            raise reply
        if isinstance(reply, JudgeReply):
            return reply
        return JudgeReply(reply if isinstance(reply, str) else reply(user))


def make_brief(**fields) -> CaseBrief:
    """A question with its yardstick. `question` stands for both of its forms."""
    values = {"question": "Where is it?", "expected_outcome": "Names the city."} | fields
    return CaseBrief(**({"linked_question": values["question"]} | values))


def make_context(
    *specs: EvaluatorSpec,
    response: Response | str = "In Rome.",
    judge: Judge | None = None,
    judges: Mapping[str, Judge] | None = None,
    brief: CaseBrief | None = None,
    **case,
) -> EvaluationContext:
    """An AgentV case with these evaluators, and a response that is a text where nothing else is said."""
    made = Response(text=response, tool_calls_known=False) if isinstance(response, str) else response
    fields = {"aggregation": Aggregation.WEIGHTED_MEAN, "brief": brief or make_brief()} | case
    return EvaluationContext(
        make_case(expect=specs, **fields),
        made,
        TokenData(),
        PatternMatcher(),
        judge=judge,
        judges=judges or {},
        environment=ENVIRONMENT,
    )


def run_evaluation(
    evaluate: Callable[[EvaluationContext], Coroutine[None, None, Evaluated]], context: EvaluationContext
) -> Evaluated:
    """Evaluate in a loop of its own, and end the process that matches patterns with it."""

    async def evaluate_once() -> Evaluated:
        try:
            return await evaluate(context)
        finally:
            await context.patterns.aclose()

    return asyncio.run(evaluate_once())


def run_spec(spec: EvaluatorSpec, context: EvaluationContext) -> EvaluatorScore:
    """What one evaluator says."""
    return run_evaluation(lambda around: run_evaluator(spec, around), context)


def judgement_of(*specs: EvaluatorSpec, **around) -> CaseScore:
    """What all evaluators say together."""
    return run_evaluation(score_case, make_context(*specs, **around))


def with_messages(*names: str, text: str = "ok", **fields) -> Response:
    """A target that reports one message of the assistant with these calls."""
    message = OutputMessage(role="assistant", content=text, tool_calls=tuple(OutputCall(tool=name) for name in names))
    calls = tuple(ToolCall(name=name) for name in names)
    return Response(text=text, tool_calls=calls, messages=(message,), **fields)


def with_trace(*names: str, text: str = "ok", **fields) -> Response:
    """A target that reports a trace with these calls, each with its result, and no messages."""
    events = [
        event for name in names for event in (TraceEvent(type="tool_call", name=name), TraceEvent(type="tool_result"))
    ]
    calls = tuple(ToolCall(name=name) for name in names)
    return Response(text=text, tool_calls=calls, trace=tuple(events), **fields)
