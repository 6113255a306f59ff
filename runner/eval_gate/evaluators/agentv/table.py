"""Which function judges which evaluator of AgentV."""

from __future__ import annotations

from typing import Final

from eval_gate.evaluators.agentv.code_judge import code_judge
from eval_gate.evaluators.agentv.composite import composite
from eval_gate.evaluators.agentv.rubrics import rubric_judge
from eval_gate.evaluators.agentv.tool_trajectory import tool_trajectory
from eval_gate.evaluators.base import ByClass
from eval_gate.evaluators.judge.judge import llm_judge
from eval_gate.model import evaluator as specs

TABLE: Final[ByClass] = {
    specs.LlmJudge: llm_judge,
    specs.RubricJudge: rubric_judge,
    specs.CodeJudge: code_judge,
    specs.ToolTrajectory: tool_trajectory,
    specs.Composite: composite,
}
