"""Evaluators for AgentV 4 tool calls: arguments, order and use of a skill.

Source: AgentV 4.42.4, "Tool Trajectory Graders" and `skill-trigger`. The score of a sequence is the share of what is as
expected; the specification of 1.6, where a sequence is all or nothing, has its own evaluator (`tool_trajectory`).
"""

from __future__ import annotations

from collections.abc import Sequence

from eval_gate.evaluators.base import EvaluationContext, EvaluatorScore, UnknownCallsError
from eval_gate.evaluators.json_equality import are_json_equal
from eval_gate.evaluators.trace import ReportedCall, list_calls
from eval_gate.evaluators.wording import MAX_NAME, double_quote, limit_items, truncate
from eval_gate.model.base import JsonValue
from eval_gate.model.execution import CALLS_UNKNOWN, NO_TRACE
from eval_gate.model.specs.agentv import CallSequence, ExpectedCall, SkillTrigger
from eval_gate.struct import Struct, field
from eval_gate.text.distinct_values import format_distinct_numbers
from eval_gate.text.dotted_path import NOT_FOUND, find_by_path
from eval_gate.text.javascript.strings import as_text
from eval_gate.text.untrusted.surrogates import to_well_formed


class _SequenceTally(Struct):
    """Expected and unexpected calls, each with a line of text and a point."""

    hits: list[str] = field(default_factory=list)
    misses: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, line: str, *, passed: bool) -> None:
        (self.hits if passed else self.misses).append(line)

    @property
    def score(self) -> float:
        return len(self.hits) / (len(self.hits) + len(self.misses))


async def evaluate_call_sequence(spec: CallSequence, context: EvaluationContext) -> EvaluatorScore:
    """Score the share of steps, limits and calls that are as expected.

    Raises EvaluatorError if the tool calls are unknown and the score is negated: the unknown calls would count as a
    pass.
    """
    calls = list_calls(context.response)
    if calls is None:
        if spec.negate:
            raise UnknownCallsError(
                f"{truncate(spec.name)}: {CALLS_UNKNOWN}, so it is unknown whether such a call was made"
            )
        return EvaluatorScore(score=0.0, misses=(NO_TRACE,), error=f"{truncate(spec.name)}: {NO_TRACE}", checks_run=1)
    tally = _SequenceTally()
    match spec.mode:
        case "in_order":
            _compare_in_order(spec.expected, calls, tally)
        case "exact":
            _compare_exact(spec.expected, calls, tally)
        case "superset":
            _compare_superset(spec.expected, calls, tally)
        case "subset":
            _compare_subset(spec.expected, calls, tally)
    error = f"{truncate(spec.name)}: {tally.misses[0]}" if tally.misses else None
    return EvaluatorScore(
        score=tally.score,
        hits=limit_items(tally.hits),
        misses=limit_items(tally.misses),
        error=error,
        checks_run=1,
        warnings=tuple(f"{truncate(spec.name)}: {note}" for note in limit_items(tally.notes)),
    )


def _compare_in_order(expected: Sequence[ExpectedCall], calls: Sequence[ReportedCall], tally: _SequenceTally) -> None:
    """Each step is looked for behind the one before it. A call of the tool with other arguments takes its place."""
    at = 0
    for step in expected:
        found = next((index for index in range(at, len(calls)) if calls[index].name == step.tool), None)
        if found is None:
            tally.add(f"{_format_name(step.tool)} is not called{' after that' if at else ''}", passed=False)
            at = len(calls)
            continue
        at = found + 1
        _compare_step(step, calls[found], at, tally)


def _compare_exact(expected: Sequence[ExpectedCall], calls: Sequence[ReportedCall], tally: _SequenceTally) -> None:
    """Check that the calls begin with the expected ones; AgentV names further calls, but does not count them."""
    for number, (step, call) in enumerate(zip(expected, calls, strict=False), 1):
        if call.name == step.tool:
            _compare_step(step, call, number, tally)
        else:
            tally.add(
                f"call {number} is {_format_name(call.name)} and should be {_format_name(step.tool)}", passed=False
            )
            _add_unmet_limit(step, tally)
    for number, step in enumerate(expected[len(calls) :], len(calls) + 1):
        tally.add(f"call {number} should be {_format_name(step.tool)}, but it is missing", passed=False)
        _add_unmet_limit(step, tally)
    for number, call in enumerate(calls[len(expected) :], len(expected) + 1):
        tally.notes.append(f"call {number} is {_format_name(call.name)}, which is not expected and does not count")


def _compare_superset(expected: Sequence[ExpectedCall], calls: Sequence[ReportedCall], tally: _SequenceTally) -> None:
    """Every step has a call of its own, in whatever order."""
    left = list(calls)
    for step in expected:
        found = next((call for call in left if _matches_step(step, call)), None)
        if found is None:
            tally.add(f"{_format_name(step.tool)} is not called as expected", passed=False)
        else:
            left.remove(found)
            tally.add(f"{_format_name(step.tool)} is called", passed=True)


def _compare_subset(expected: Sequence[ExpectedCall], calls: Sequence[ReportedCall], tally: _SequenceTally) -> None:
    """Every call is one of those allowed."""
    for number, call in enumerate(calls, 1):
        allowed = any(_matches_step(step, call) for step in expected)
        tally.add(
            f"call {number} is {_format_name(call.name)}{'' if allowed else ', which is not allowed'}", passed=allowed
        )
    if not calls:
        tally.add("no tool is called", passed=True)


def _matches_step(step: ExpectedCall, call: ReportedCall) -> bool:
    return call.name == step.tool and _matches_args(step, call.args)


def _compare_step(step: ExpectedCall, call: ReportedCall, number: int, tally: _SequenceTally) -> None:
    """Check the arguments of a call to the right tool, and its duration if the step limits it."""
    if not _matches_args(step, call.args):
        tally.add(f"call {number}: {_format_name(step.tool)} is called with other arguments", passed=False)
        _add_unmet_limit(step, tally)
        return
    tally.add(f"call {number}: {_format_name(step.tool)} as expected", passed=True)
    limit = step.max_duration_ms
    if limit is None:
        return
    if call.duration_ms is None:
        tally.notes.append(f"the duration of {_format_name(step.tool)} is unknown: max_duration_ms is not checked")
        return
    took, most = format_distinct_numbers(call.duration_ms, limit)
    said = f"{_format_name(step.tool)} took {took} ms (at most {most})"
    tally.add(said, passed=call.duration_ms <= limit)


def _add_unmet_limit(step: ExpectedCall, tally: _SequenceTally) -> None:
    """Count the duration limit of a step as failed because no call matched the step."""
    if step.max_duration_ms is not None:
        tally.add(f"{_format_name(step.tool)} within {step.max_duration_ms:g} ms: not called as expected", passed=False)


def _matches_args(step: ExpectedCall, args: JsonValue) -> bool:
    if step.args is None or step.match == "ignore":
        return True
    if not isinstance(args, dict):
        return False
    match step.match:
        case "superset":
            return all(key in args and are_json_equal(value, args[key]) for key, value in step.args.items())
        case "subset":
            return all(key in step.args and are_json_equal(value, step.args[key]) for key, value in args.items())
        case "exact":
            return are_json_equal(step.args, args)
        case fields:
            return all(_is_same_at(field, step.args, args) for field in fields)


def _is_same_at(path: str, wanted: JsonValue, given: JsonValue) -> bool:
    """Whether the field at a dotted path is the same; one of which nothing is expected always is."""
    expected, actual = find_by_path(wanted, path), find_by_path(given, path)
    return expected is NOT_FOUND or (actual is not NOT_FOUND and are_json_equal(expected, actual))


def _format_name(name: str) -> str:
    return truncate(to_well_formed(name), MAX_NAME)


async def evaluate_skill_trigger(spec: SkillTrigger, context: EvaluationContext) -> EvaluatorScore:
    """1 where the skill was used as it should, else 0.

    Raises EvaluatorError where calls are not known and it should not have been used: that would be a pass.
    """
    calls = list_calls(context.response)
    if calls is None and spec.should_trigger == spec.negate:
        raise UnknownCallsError(f"{truncate(spec.name)}: {CALLS_UNKNOWN}, so it is unknown whether the skill was used")
    used = next((call for call in calls or () if _uses_skill(spec.skill, call)), None)
    if used is None:
        said = f"skill {double_quote(spec.skill)} was not used{'' if calls is not None else f': {NO_TRACE}'}"
    else:
        said = to_well_formed(f"skill {double_quote(spec.skill)} was used: call of {truncate(used.name)}")
    if (used is not None) == spec.should_trigger:
        return EvaluatorScore(score=1.0, hits=(said,), checks_run=1)
    return EvaluatorScore(score=0.0, misses=(said,), error=f"{truncate(spec.name)}: {said}", checks_run=1)


def _uses_skill(skill: str, call: ReportedCall) -> bool:
    """Whether a call uses the skill: by name, by reading a file of the skill, or by returning a path of its folder."""
    tool, folder = call.name.lower(), f"skills/{skill}/"
    args = call.args if isinstance(call.args, dict) else {}
    if tool == "skill" and skill in as_text(args.get("skill") or ""):
        return True
    if tool == "read" and folder in as_text(args.get("file_path", args.get("path")) or ""):
        return True
    return call.output is not None and folder in as_text(call.output)
