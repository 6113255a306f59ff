"""Tool calls as the current AgentV grades them: with which arguments and in which order, and whether a skill was used.

Source: AgentV 4.42.4, "Tool Trajectory Graders" and `skill-trigger`. The score of a sequence is the share of what is as
expected; the specification of 1.6, where a sequence is all or nothing, has its own evaluator (`tool_trajectory`).
"""

from __future__ import annotations

from collections.abc import Sequence

from eval_gate.evaluators.base import Evaluation, EvaluationContext, EvaluatorError
from eval_gate.evaluators.equality import deep_equal
from eval_gate.evaluators.trace import MadeCall, made_calls
from eval_gate.evaluators.wording import MAX_NAME, cut, double, items
from eval_gate.model.base import JsonValue
from eval_gate.model.execution import CALLS_UNKNOWN, NO_TRACE
from eval_gate.model.specs.agentv import CallSequence, ExpectedCall, SkillTrigger
from eval_gate.struct import Struct, field
from eval_gate.text.apart import numbers_apart
from eval_gate.text.dotted_path import NOWHERE, field_at
from eval_gate.text.foreign.well_formed import well_formed
from eval_gate.text.javascript.strings import as_text


class _Tally(Struct):
    """What is as expected and what is not, each a line and a point."""

    hits: list[str] = field(default_factory=list)
    misses: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, line: str, *, passed: bool) -> None:
        (self.hits if passed else self.misses).append(line)

    @property
    def score(self) -> float:
        return len(self.hits) / (len(self.hits) + len(self.misses))


async def call_sequence(spec: CallSequence, context: EvaluationContext) -> Evaluation:
    """The share of steps, limits and calls that are as expected.

    Raises EvaluatorError where calls are not known and the score would be turned round: that would be a pass.
    """
    calls = made_calls(context.response)
    if calls is None:
        if spec.negate:
            raise EvaluatorError(f"{cut(spec.name)}: {CALLS_UNKNOWN}, so nobody knows that no such call was made")
        return Evaluation(score=0.0, misses=(NO_TRACE,), error=f"{cut(spec.name)}: {NO_TRACE}", checks_run=1)
    tally = _Tally()
    match spec.mode:
        case "in_order":
            _in_order(spec.expected, calls, tally)
        case "exact":
            _exact(spec.expected, calls, tally)
        case "superset":
            _superset(spec.expected, calls, tally)
        case "subset":
            _subset(spec.expected, calls, tally)
    error = f"{cut(spec.name)}: {tally.misses[0]}" if tally.misses else None
    return Evaluation(
        score=tally.score,
        hits=items(tally.hits),
        misses=items(tally.misses),
        error=error,
        checks_run=1,
        warnings=tuple(f"{cut(spec.name)}: {note}" for note in items(tally.notes)),
    )


def _in_order(expected: Sequence[ExpectedCall], calls: Sequence[MadeCall], tally: _Tally) -> None:
    """Each step is looked for behind the one before it. A call of the tool with other arguments takes its place."""
    at = 0
    for step in expected:
        found = next((index for index in range(at, len(calls)) if calls[index].name == step.tool), None)
        if found is None:
            tally.add(f"{_name(step.tool)} is not called{' after that' if at else ''}", passed=False)
            at = len(calls)
            continue
        at = found + 1
        _step(step, calls[found], at, tally)


def _exact(expected: Sequence[ExpectedCall], calls: Sequence[MadeCall], tally: _Tally) -> None:
    """The same calls in the same order; each beyond them counts as one that is wrong."""
    for number, (step, call) in enumerate(zip(expected, calls, strict=False), 1):
        if call.name == step.tool:
            _step(step, call, number, tally)
        else:
            tally.add(f"call {number} is {_name(call.name)} and should be {_name(step.tool)}", passed=False)
            _unmet_limit(step, tally)
    for number, step in enumerate(expected[len(calls) :], len(calls) + 1):
        tally.add(f"call {number} should be {_name(step.tool)}, but there is none", passed=False)
        _unmet_limit(step, tally)
    for number, call in enumerate(calls[len(expected) :], len(expected) + 1):
        tally.add(f"call {number} is {_name(call.name)}, where no call should be", passed=False)


def _superset(expected: Sequence[ExpectedCall], calls: Sequence[MadeCall], tally: _Tally) -> None:
    """Every step has a call of its own, in whatever order."""
    left = list(calls)
    for step in expected:
        found = next((call for call in left if _fits(step, call)), None)
        if found is None:
            tally.add(f"{_name(step.tool)} is not called as expected", passed=False)
        else:
            left.remove(found)
            tally.add(f"{_name(step.tool)} is called", passed=True)


def _subset(expected: Sequence[ExpectedCall], calls: Sequence[MadeCall], tally: _Tally) -> None:
    """Every call is one of those allowed."""
    for number, call in enumerate(calls, 1):
        allowed = any(_fits(step, call) for step in expected)
        tally.add(f"call {number} is {_name(call.name)}{'' if allowed else ', which is not allowed'}", passed=allowed)
    if not calls:
        tally.add("no tool is called", passed=True)


def _fits(step: ExpectedCall, call: MadeCall) -> bool:
    return call.name == step.tool and _args_fit(step, call.args)


def _step(step: ExpectedCall, call: MadeCall, number: int, tally: _Tally) -> None:
    """A call of the right tool: its arguments, and how long it took where that is limited."""
    if not _args_fit(step, call.args):
        tally.add(f"call {number}: {_name(step.tool)} is called with other arguments", passed=False)
        _unmet_limit(step, tally)
        return
    tally.add(f"call {number}: {_name(step.tool)} as expected", passed=True)
    limit = step.max_duration_ms
    if limit is None:
        return
    if call.duration_ms is None:
        tally.notes.append(f"nobody says how long {_name(step.tool)} took: its max_duration_ms is not judged")
        return
    took, most = numbers_apart(call.duration_ms, limit)
    said = f"{_name(step.tool)} took {took} ms (at most {most})"
    tally.add(said, passed=call.duration_ms <= limit)


def _unmet_limit(step: ExpectedCall, tally: _Tally) -> None:
    """The limit of a call that was not made, or not as expected, is not kept."""
    if step.max_duration_ms is not None:
        tally.add(f"{_name(step.tool)} within {step.max_duration_ms:g} ms: not called as expected", passed=False)


def _args_fit(step: ExpectedCall, args: JsonValue) -> bool:
    if step.args is None or step.match == "ignore":
        return True
    if not isinstance(args, dict):
        return False
    match step.match:
        case "superset":
            return all(key in args and deep_equal(value, args[key]) for key, value in step.args.items())
        case "subset":
            return all(key in step.args and deep_equal(value, step.args[key]) for key, value in args.items())
        case "exact":
            return deep_equal(step.args, args)
        case fields:
            return all(_same_at(field, step.args, args) for field in fields)


def _same_at(path: str, wanted: JsonValue, given: JsonValue) -> bool:
    """Whether the field at a dotted path is the same; one of which nothing is expected always is."""
    expected, actual = field_at(wanted, path), field_at(given, path)
    return expected is NOWHERE or (actual is not NOWHERE and deep_equal(expected, actual))


def _name(name: str) -> str:
    return cut(well_formed(name), MAX_NAME)


async def skill_trigger(spec: SkillTrigger, context: EvaluationContext) -> Evaluation:
    """1 where the skill was used as it should, else 0.

    Raises EvaluatorError where calls are not known and it should not have been used: that would be a pass.
    """
    calls = made_calls(context.response)
    if calls is None and spec.should_trigger == spec.negate:
        raise EvaluatorError(f"{cut(spec.name)}: {CALLS_UNKNOWN}, so nobody knows that the skill was not used")
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
