"""Which function judges which assertion of tool-forge."""

from __future__ import annotations

from typing import Final

from eval_gate.evaluators.base import ByClass, Evaluation, EvaluationContext
from eval_gate.evaluators.tool_forge import response, tools
from eval_gate.model.specs import evaluator as specs


async def _rubric(spec: specs.Rubric, context: EvaluationContext) -> Evaluation:
    """Graded by a judge, which is loaded with the first rubric."""
    from eval_gate.evaluators.tool_forge.rubric import rubric

    return await rubric(spec, context)


TABLE: Final[ByClass] = {
    specs.ToolsCalled: tools.tools_called,
    specs.ToolsCalledAnyOrder: tools.tools_called_any_order,
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
    specs.Rubric: _rubric,
}
