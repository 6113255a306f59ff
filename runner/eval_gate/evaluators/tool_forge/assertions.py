"""Which function judges which assertion."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from eval_gate.evaluators.base import Evaluation, EvaluationContext, EvaluatorError
from eval_gate.evaluators.tool_forge import response, tools
from eval_gate.model import evaluator as specs
from eval_gate.text.javascript.regex import PatternWorkerError

ByClass: TypeAlias = dict[type[specs.EvaluatorSpec], Callable[[Any, EvaluationContext], Awaitable[Evaluation]]]
"""Each function takes its own class of spec; the key says which, so a table is typed by its use in `evaluate`.

The name that people read (`type`) does not tell them apart: two classes are an `llm_judge`.
"""

_ASSERTIONS: Final[ByClass] = {
    specs.ToolsCalled: tools.tools_called,
    specs.ToolsAcceptable: tools.tools_acceptable,
    specs.ToolsNotCalled: tools.tools_not_called,
    specs.ToolParams: tools.tool_params,
    specs.NoToolErrors: tools.no_tool_errors,
    specs.ResponseNonEmpty: response.response_non_empty,
    specs.ResponseContains: response.response_contains,
    specs.ResponseContainsAny: response.response_contains_any,
    specs.ResponseNotContains: response.response_not_contains,
    specs.ResponseMatches: response.response_matches,
    specs.MaxLatency: response.max_latency,
    specs.MaxTokens: response.max_tokens,
}


async def evaluate(spec: specs.EvaluatorSpec, context: EvaluationContext) -> Evaluation:
    """Judge by one evaluator. Raises EvaluatorError when it could not be judged: never a failed assertion."""
    assertion = _ASSERTIONS.get(type(spec))
    try:
        if assertion is None:
            from eval_gate.evaluators.grading import GRADERS

            assertion = GRADERS[type(spec)]
        return await assertion(spec, context)
    except PatternWorkerError as error:
        raise EvaluatorError(f"{spec.type}: {error}") from error
