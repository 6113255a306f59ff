"""Which function judges which evaluator of AgentV."""

from __future__ import annotations

from typing import Final

from eval_gate.evaluators.agentv.assertions import execution_metrics, field_accuracy, text_assertion
from eval_gate.evaluators.agentv.call_sequence import call_sequence, skill_trigger
from eval_gate.evaluators.agentv.code_judge import code_grader, code_judge
from eval_gate.evaluators.agentv.composite import composite
from eval_gate.evaluators.agentv.rubrics import rubric_judge
from eval_gate.evaluators.agentv.tool_trajectory import tool_trajectory
from eval_gate.evaluators.base import ByClass
from eval_gate.evaluators.judge.judge import llm_judge
from eval_gate.model.specs import agentv as assertions
from eval_gate.model.specs import evaluator as specs

TABLE: Final[ByClass] = {
    specs.LlmJudge: llm_judge,
    specs.RubricJudge: rubric_judge,
    specs.CodeJudge: code_judge,
    specs.CodeGrader: code_grader,
    specs.ToolTrajectory: tool_trajectory,
    specs.Composite: composite,
    assertions.TextAssertion: text_assertion,
    assertions.CallSequence: call_sequence,
    assertions.SkillTrigger: skill_trigger,
    assertions.ExecutionMetrics: execution_metrics,
    assertions.FieldAccuracy: field_accuracy,
}
