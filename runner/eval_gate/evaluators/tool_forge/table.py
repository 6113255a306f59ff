"""Table of the evaluator functions for tool-forge assertions."""

from __future__ import annotations

from typing import Final

from eval_gate.evaluators.base import EvaluationContext, EvaluatorScore, EvaluatorTable
from eval_gate.evaluators.tool_forge import response_assertions, tool_assertions
from eval_gate.model.specs import evaluator as specs


async def _evaluate_rubric(spec: specs.Rubric, context: EvaluationContext) -> EvaluatorScore:
    """Graded by a judge, which is loaded with the first rubric."""
    from eval_gate.evaluators.tool_forge.rubric import evaluate_rubric

    return await evaluate_rubric(spec, context)


TABLE: Final[EvaluatorTable] = {
    specs.ToolsCalled: tool_assertions.evaluate_tools_called,
    specs.ToolsCalledAnyOrder: tool_assertions.evaluate_tools_called_any_order,
    specs.ToolsAcceptable: tool_assertions.evaluate_tools_acceptable,
    specs.ToolsNotCalled: tool_assertions.evaluate_tools_not_called,
    specs.ToolParams: tool_assertions.evaluate_tool_params,
    specs.NoToolErrors: tool_assertions.evaluate_no_tool_errors,
    specs.ResponseNonEmpty: response_assertions.evaluate_response_non_empty,
    specs.ResponseContains: response_assertions.evaluate_response_contains,
    specs.ResponseContainsAny: response_assertions.evaluate_response_contains_any,
    specs.ResponseContainsNumber: response_assertions.evaluate_response_contains_number,
    specs.ResponseNotContains: response_assertions.evaluate_response_not_contains,
    specs.ResponseMatches: response_assertions.evaluate_response_matches,
    specs.MaxLatency: response_assertions.evaluate_max_latency,
    specs.MaxTokens: response_assertions.evaluate_max_tokens,
    specs.Rubric: _evaluate_rubric,
}
