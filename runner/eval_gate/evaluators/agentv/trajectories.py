"""Evaluators for AgentV's tool calls: their number and order, their arguments, and the use of a skill.

Source: agentv evaluation spec, "Tool Trajectory Evaluator"; agentv behaviour 6.3 and 13; AgentV 4.42.4, "Tool
Trajectory Graders" and `skill-trigger`. A trajectory of version 1.6 scores 1 or 0, or the share of met minimums. A
sequence of version 4 scores the share of steps, limits and calls that are as expected.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import islice
from typing import Final

from eval_gate.evaluators.base import EvaluationContext, EvaluatorError, EvaluatorScore, UnknownCallsError
from eval_gate.evaluators.trace import ReportedCall, list_called_tools, list_calls
from eval_gate.evaluators.wording import (
    MAX_ITEMS,
    MAX_NAME,
    double_quote,
    format_names,
    format_times,
    limit_items,
    truncate,
)
from eval_gate.model.base import JsonValue
from eval_gate.model.execution import CALLS_UNKNOWN, NO_TRACE
from eval_gate.model.specs.agentv import CallSequence, ExpectedCall, SkillTrigger
from eval_gate.model.specs.evaluator import NamedEvaluatorSpec, ToolTrajectory
from eval_gate.struct import Struct, field
from eval_gate.text.distinct_values import format_distinct_numbers
from eval_gate.text.dotted_path import NOT_FOUND, find_by_path
from eval_gate.text.javascript.strings import as_text
from eval_gate.text.json_values import are_json_equal
from eval_gate.text.untrusted.surrogates import to_well_formed

FROM_MESSAGES: Final = "The calls are those of the output messages; the trace was ignored."


class _CallTally(Struct):
    hits: list[str] = field(default_factory=list)
    misses: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, line: str, *, passed: bool) -> None:
        (self.hits if passed else self.misses).append(line)

    def build_score(self, spec: NamedEvaluatorSpec, score: float, reasoning: str | None = None) -> EvaluatorScore:
        return EvaluatorScore(
            score=score,
            hits=limit_items(self.hits),
            misses=limit_items(self.misses),
            error=f"{truncate(spec.name)}: {self.misses[0]}" if self.misses else None,
            checks_run=1,
            warnings=tuple(f"{truncate(spec.name)}: {note}" for note in limit_items(self.notes)),
            reasoning=reasoning,
        )


async def evaluate_tool_trajectory(spec: ToolTrajectory, context: EvaluationContext) -> EvaluatorScore:
    """`any_order`: the share of minimums that are met. `in_order`, `exact`: 1 or 0, and what is not as expected.

    Raises EvaluatorError for a configuration that expects nothing: that would be a pass for anything.
    """
    if not (spec.minimums if spec.mode == "any_order" else spec.expected):
        key = "minimums" if spec.mode == "any_order" else "expected"
        raise EvaluatorError(f"{truncate(spec.name)}: `{key}` is empty, so mode {spec.mode} has nothing to check")
    calls = list_called_tools(context.response)
    if calls is None:
        return _CallTally(misses=[NO_TRACE]).build_score(spec, 0.0)
    match spec.mode:
        case "any_order":
            tally = _check_minimums(spec.minimums, calls)
        case "in_order":
            tally = _check_in_order(spec.expected, calls)
        case "exact":
            tally = _check_exact(spec.expected, calls)
    score = len(tally.hits) / len(spec.minimums) if spec.mode == "any_order" else float(not tally.misses)
    ignores_trace = context.response.messages and context.response.trace is not None
    return tally.build_score(spec, score, FROM_MESSAGES if ignores_trace else None)


def _check_minimums(minimums: dict[str, int], calls: Sequence[str]) -> _CallTally:
    """Check the minimum number of calls of each tool. A minimum of 0 is always met."""
    tally = _CallTally()
    counts = Counter(calls)
    for name, minimum in minimums.items():
        line = f"{_format_name(name)} called {format_times(counts[name])} (minimum: {minimum})"
        tally.add(line, passed=counts[name] >= minimum)
    return tally


def _check_in_order(expected: Sequence[str], calls: Sequence[str]) -> _CallTally:
    """Check that each step follows the one before, whatever lies between; a missing step is passed over."""
    tally = _CallTally()
    positions: defaultdict[str, list[int]] = defaultdict(list)
    for position, name in enumerate(calls, 1):
        positions[name].append(position)
    last, last_name = 0, ""
    for step, name in enumerate(expected, 1):
        where = positions.get(name, [])
        following = bisect_right(where, last)
        if following < len(where):
            last, last_name = where[following], name
            tally.hits.append(f"step {step}: {_format_name(name)} is call {last}")
        elif where:
            tally.misses.append(
                f"step {step}: {_format_name(name)} is not called after {_format_name(last_name)} (call {last}), "
                f"only at call {where[-1]}: called {_format_calls(calls)}"
            )
        else:
            tally.misses.append(f"step {step}: {_format_name(name)} is never called: called {_format_calls(calls)}")
    return tally


def _check_exact(expected: Sequence[str], calls: Sequence[str]) -> _CallTally:
    """Check that the target called the expected tools in the same order, and no others."""
    tally = _CallTally()
    same = next(
        (at for at, (name, call) in enumerate(zip(expected, calls, strict=False)) if name != call),
        min(len(expected), len(calls)),
    )
    tally.hits += [f"call {at}: {_format_name(name)} as expected" for at, name in enumerate(expected[:same], 1)]
    if same == len(expected) == len(calls):
        return tally
    parting = _describe_first_difference(expected, calls, same)
    tally.misses.append(f"{parting}: expected {_format_calls(expected)}, called {_format_calls(calls)}")
    expected_counts, call_counts = Counter(expected), Counter(calls)
    differing = (name for name in dict.fromkeys((*expected, *calls)) if call_counts[name] != expected_counts[name])
    # one more than the limit, so that the result says that there are more: calls may be very many
    for name in islice(differing, MAX_ITEMS):
        what = "extra" if call_counts[name] > expected_counts[name] else "missing"
        tally.misses.append(
            f"{_format_name(name)} is {what}: called {format_times(call_counts[name])}, expected "
            f"{format_times(expected_counts[name])}"
        )
    return tally


def _describe_first_difference(expected: Sequence[str], calls: Sequence[str], same: int) -> str:
    if same == len(calls):
        return f"call {same + 1} should be {_format_name(expected[same])}, but it is missing"
    if same == len(expected):
        return f"call {same + 1} is {_format_name(calls[same])}, which is not expected"
    return f"call {same + 1} is {_format_name(calls[same])} and should be {_format_name(expected[same])}"


def _format_calls(calls: Sequence[str]) -> str:
    return to_well_formed(format_names(calls)) if calls else "no tool"


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
        return _CallTally(misses=[NO_TRACE]).build_score(spec, 0.0)
    tally = _CallTally()
    match spec.mode:
        case "in_order":
            _compare_in_order(spec.expected, calls, tally)
        case "exact":
            _compare_exact(spec.expected, calls, tally)
        case "superset":
            _compare_superset(spec.expected, calls, tally)
        case "subset":
            _compare_subset(spec.expected, calls, tally)
    return tally.build_score(spec, len(tally.hits) / (len(tally.hits) + len(tally.misses)))


def _compare_in_order(expected: Sequence[ExpectedCall], calls: Sequence[ReportedCall], tally: _CallTally) -> None:
    """Find each step after the one before it. A call of the same tool counts as the step, with any arguments."""
    at = 0
    for step in expected:
        match = next((index for index in range(at, len(calls)) if calls[index].name == step.tool), None)
        if match is None:
            tally.add(f"{_format_name(step.tool)} is not called{' after that' if at else ''}", passed=False)
            at = len(calls)
            continue
        at = match + 1
        _compare_step(step, calls[match], at, tally)


def _compare_exact(expected: Sequence[ExpectedCall], calls: Sequence[ReportedCall], tally: _CallTally) -> None:
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


def _compare_superset(expected: Sequence[ExpectedCall], calls: Sequence[ReportedCall], tally: _CallTally) -> None:
    """Check that every step has a call of its own, in any order."""
    unmatched = list(calls)
    for step in expected:
        match = next((call for call in unmatched if _matches_step(step, call)), None)
        if match is None:
            tally.add(f"{_format_name(step.tool)} is not called as expected", passed=False)
        else:
            unmatched.remove(match)
            tally.add(f"{_format_name(step.tool)} is called", passed=True)


def _compare_subset(expected: Sequence[ExpectedCall], calls: Sequence[ReportedCall], tally: _CallTally) -> None:
    """Check that every call is an expected one."""
    for number, call in enumerate(calls, 1):
        allowed = any(_matches_step(step, call) for step in expected)
        tally.add(
            f"call {number} is {_format_name(call.name)}{'' if allowed else ', which is not allowed'}", passed=allowed
        )
    if not calls:
        tally.add("no tool is called", passed=True)


def _matches_step(step: ExpectedCall, call: ReportedCall) -> bool:
    return call.name == step.tool and _matches_args(step, call.args)


def _compare_step(step: ExpectedCall, call: ReportedCall, number: int, tally: _CallTally) -> None:
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
    line = f"{_format_name(step.tool)} took {took} ms (at most {most})"
    tally.add(line, passed=call.duration_ms <= limit)


def _add_unmet_limit(step: ExpectedCall, tally: _CallTally) -> None:
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


def _is_same_at(path: str, expected_args: JsonValue, actual_args: JsonValue) -> bool:
    """Whether the field at a dotted path is the same, or no value is expected there."""
    expected, actual = find_by_path(expected_args, path), find_by_path(actual_args, path)
    return expected is NOT_FOUND or (actual is not NOT_FOUND and are_json_equal(expected, actual))


def _format_name(name: str) -> str:
    return truncate(to_well_formed(name), MAX_NAME)


async def evaluate_skill_trigger(spec: SkillTrigger, context: EvaluationContext) -> EvaluatorScore:
    """Score 1 if the skill was used, or not used, as expected, else 0.

    Raises EvaluatorError where calls are not known and it should not have been used: that would be a pass.
    """
    calls = list_calls(context.response)
    if calls is None and spec.should_trigger == spec.negate:
        raise UnknownCallsError(f"{truncate(spec.name)}: {CALLS_UNKNOWN}, so it is unknown whether the skill was used")
    used = next((call for call in calls or () if _uses_skill(spec.skill, call)), None)
    if used is None:
        line = f"skill {double_quote(spec.skill)} was not used{'' if calls is not None else f': {NO_TRACE}'}"
    else:
        line = to_well_formed(f"skill {double_quote(spec.skill)} was used: call of {truncate(used.name)}")
    if (used is not None) == spec.should_trigger:
        return EvaluatorScore(score=1.0, hits=(line,), checks_run=1)
    return EvaluatorScore(score=0.0, misses=(line,), error=f"{truncate(spec.name)}: {line}", checks_run=1)


def _uses_skill(skill: str, call: ReportedCall) -> bool:
    """Whether a call uses the skill: by name, by reading a file of the skill, or by returning a path of its folder."""
    tool, folder = call.name.lower(), f"skills/{skill}/"
    args = call.args if isinstance(call.args, dict) else {}
    if tool == "skill" and skill in as_text(args.get("skill") or ""):
        return True
    if tool == "read" and folder in as_text(args.get("file_path", args.get("path")) or ""):
        return True
    return call.output is not None and folder in as_text(call.output)
