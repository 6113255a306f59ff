"""Which function grades what: evaluators that ask a judge or a command, and those of AgentV and of Agent Evals suites.

Apart from the table of assertions because most runs need none of them, and loading them takes its time.
"""

from __future__ import annotations

from typing import Final

from eval_gate.evaluators.agent_evals.table import SUITE_ASSERTIONS
from eval_gate.evaluators.agentv import code_judge, composite, tool_trajectory
from eval_gate.evaluators.agentv import rubrics as rubric_judge
from eval_gate.evaluators.base import Evaluation, EvaluationContext
from eval_gate.evaluators.judge import judge
from eval_gate.evaluators.tool_forge import rubric
from eval_gate.evaluators.tool_forge.assertions import ByClass, evaluate
from eval_gate.model import evaluator as specs


async def _composite(spec: specs.Composite, context: EvaluationContext) -> Evaluation:
    return await composite.composite(spec, context, evaluate)


GRADERS: Final[ByClass] = {
    specs.Rubric: rubric.rubric,
    specs.LlmJudge: judge.llm_judge,
    specs.RubricJudge: rubric_judge.rubric_judge,
    specs.CodeJudge: code_judge.code_judge,
    specs.ToolTrajectory: tool_trajectory.tool_trajectory,
    specs.Composite: _composite,
    **SUITE_ASSERTIONS,
}
