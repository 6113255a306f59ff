"""Table of the evaluator functions for AgentV."""

from __future__ import annotations

from typing import Final

from eval_gate.evaluators.agentv.assertions import (
    evaluate_execution_metrics,
    evaluate_field_accuracy,
    evaluate_text_assertion,
)
from eval_gate.evaluators.agentv.code_judge import evaluate_code_grader, evaluate_code_judge
from eval_gate.evaluators.agentv.composite import evaluate_composite
from eval_gate.evaluators.agentv.rubrics import evaluate_rubric_judge
from eval_gate.evaluators.agentv.trajectories import (
    evaluate_call_sequence,
    evaluate_skill_trigger,
    evaluate_tool_trajectory,
)
from eval_gate.evaluators.base import EvaluatorTable
from eval_gate.evaluators.judge.llm_judge import evaluate_llm_judge
from eval_gate.model.specs import agentv as assertions
from eval_gate.model.specs import evaluator as specs

TABLE: Final[EvaluatorTable] = {
    specs.LlmJudge: evaluate_llm_judge,
    specs.RubricJudge: evaluate_rubric_judge,
    specs.CodeJudge: evaluate_code_judge,
    specs.CodeGrader: evaluate_code_grader,
    specs.ToolTrajectory: evaluate_tool_trajectory,
    specs.Composite: evaluate_composite,
    assertions.TextAssertion: evaluate_text_assertion,
    assertions.CallSequence: evaluate_call_sequence,
    assertions.SkillTrigger: evaluate_skill_trigger,
    assertions.ExecutionMetrics: evaluate_execution_metrics,
    assertions.FieldAccuracy: evaluate_field_accuracy,
}
