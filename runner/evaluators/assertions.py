"""Which function judges which assertion."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from runner.evaluators import judge, response, rubric, tools
from runner.evaluators.base import Evaluation, EvaluationContext, EvaluatorError
from runner.model.evaluator import EvaluatorSpec
from runner.text.ecma_regex import PatternWorkerError

# each function takes its own spec class; the key says which, so the table is typed by its use below
_BY_TYPE: Final[dict[str, Callable[[Any, EvaluationContext], Awaitable[Evaluation]]]] = {
    "toolsCalled": tools.tools_called,
    "toolsAcceptable": tools.tools_acceptable,
    "toolsNotCalled": tools.tools_not_called,
    "toolParams": tools.tool_params,
    "noToolErrors": tools.no_tool_errors,
    "responseNonEmpty": response.response_non_empty,
    "responseContains": response.response_contains,
    "responseContainsAny": response.response_contains_any,
    "responseNotContains": response.response_not_contains,
    "responseMatches": response.response_matches,
    "maxLatencyMs": response.max_latency,
    "maxTokens": response.max_tokens,
    "llm_judge": judge.llm_judge,
    "rubric": rubric.rubric,
}


async def evaluate(spec: EvaluatorSpec, context: EvaluationContext) -> Evaluation:
    """Judge one assertion. Raises EvaluatorError when it could not be judged: never a failed assertion."""
    try:
        return await _BY_TYPE[spec.type](spec, context)
    except PatternWorkerError as error:
        raise EvaluatorError(f"{spec.type}: {error}") from error
