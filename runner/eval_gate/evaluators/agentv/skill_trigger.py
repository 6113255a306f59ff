"""Whether the agent made use of a skill: its skill tool was called with it, or a file of the skill was read.

Source: AgentV 4.42.4, `skill-trigger`.
"""

from __future__ import annotations

from eval_gate.evaluators.agentv.tool_trajectory import NO_TRACE
from eval_gate.evaluators.base import Evaluation, EvaluationContext, SilentTargetError
from eval_gate.evaluators.trace import MadeCall, made_calls
from eval_gate.evaluators.wording import cut, double
from eval_gate.model.specs.agentv import SkillTrigger
from eval_gate.text.foreign.well_formed import well_formed
from eval_gate.text.javascript.strings import as_text


async def skill_trigger(spec: SkillTrigger, context: EvaluationContext) -> Evaluation:
    """1 where the skill was used as it should, else 0.

    Raises SilentTargetError where calls are not known and it should not have been used: that would be a pass.
    """
    calls = made_calls(context.response)
    if calls is None and spec.should_trigger == spec.negate:
        raise SilentTargetError(f"{cut(spec.name)}: {NO_TRACE}, so nobody knows that the skill was not used")
    used = next((call for call in calls or () if _uses(spec.skill, call)), None)
    if used is None:
        said = f"skill {double(spec.skill)} was not used{'' if calls is not None else f': {NO_TRACE}'}"
    else:
        said = well_formed(f"skill {double(spec.skill)} was used: call of {cut(used.name)}")
    if (used is not None) == spec.should_trigger:
        return Evaluation(score=1.0, hits=(said,), checks_run=1)
    return Evaluation(score=0.0, misses=(said,), error=f"{cut(spec.name)}: {said}", checks_run=1)


def _uses(skill: str, call: MadeCall) -> bool:
    """The skill tool names the skill; any other reads a file of it, or gives one back."""
    tool, folder = call.name.lower(), f"skills/{skill}/"
    args = call.args if isinstance(call.args, dict) else {}
    if tool == "skill" and skill in as_text(args.get("skill") or ""):
        return True
    if tool == "read" and folder in as_text(args.get("file_path", args.get("path")) or ""):
        return True
    return call.output is not None and folder in as_text(call.output)
