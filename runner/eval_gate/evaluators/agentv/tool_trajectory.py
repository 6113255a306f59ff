"""Evaluator for the called tools, their number and their order (AgentV 1.6).

Source: agentv evaluation spec, "Tool Trajectory Evaluator"; agentv behaviour 6.3 and 13.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import islice
from typing import Final

from eval_gate.evaluators.base import EvaluationContext, EvaluatorError, EvaluatorScore
from eval_gate.evaluators.trace import list_called_tools
from eval_gate.evaluators.wording import MAX_ITEMS, MAX_NAME, format_names, format_times, limit_items, truncate
from eval_gate.model.conversation import Response
from eval_gate.model.execution import NO_TRACE
from eval_gate.model.specs.evaluator import ToolTrajectory
from eval_gate.struct import Struct, field
from eval_gate.text.untrusted.surrogates import to_well_formed

FROM_MESSAGES: Final = "The calls are those of the output messages; the trace was ignored."


class _TrajectoryFindings(Struct):
    """Passed and failed checks, in the order of the configuration."""

    hits: list[str] = field(default_factory=list)
    misses: list[str] = field(default_factory=list)


async def evaluate_tool_trajectory(spec: ToolTrajectory, context: EvaluationContext) -> EvaluatorScore:
    """`any_order`: the share of minimums that are met. `in_order`, `exact`: 1 or 0, and what is not as expected.

    Raises EvaluatorError for a configuration that expects nothing: that would be a pass for anything.
    """
    if not (spec.minimums if spec.mode == "any_order" else spec.expected):
        wanted = "minimums" if spec.mode == "any_order" else "expected"
        raise EvaluatorError(f"{truncate(spec.name)}: `{wanted}` is empty, so mode {spec.mode} has nothing to check")
    calls = list_called_tools(context.response)
    if calls is None:
        return _build_score(spec, 0.0, _TrajectoryFindings(misses=[NO_TRACE]), None)
    match spec.mode:
        case "any_order":
            found = _check_minimums(spec.minimums, calls)
            score = len(found.hits) / len(spec.minimums)
        case "in_order":
            found = _check_in_order(spec.expected, calls)
            score = 0.0 if found.misses else 1.0
        case "exact":
            found = _check_exact(spec.expected, calls)
            score = 0.0 if found.misses else 1.0
    return _build_score(spec, score, found, _describe_call_source(context.response))


def _build_score(
    spec: ToolTrajectory, score: float, found: _TrajectoryFindings, reasoning: str | None
) -> EvaluatorScore:
    return EvaluatorScore(
        score=score,
        hits=limit_items(found.hits),
        misses=limit_items(found.misses),
        error=f"{truncate(spec.name)}: {found.misses[0]}" if found.misses else None,
        checks_run=1,
        reasoning=reasoning,
    )


def _describe_call_source(response: Response) -> str | None:
    return FROM_MESSAGES if response.messages and response.trace is not None else None


def _check_minimums(minimums: dict[str, int], calls: Sequence[str]) -> _TrajectoryFindings:
    """One constraint per tool: it was called so often at least. A minimum of 0 is always met."""
    found = _TrajectoryFindings()
    counts = Counter(calls)
    for name, minimum in minimums.items():
        line = f"{_format_name(name)} called {format_times(counts[name])} (minimum: {minimum})"
        (found.hits if counts[name] >= minimum else found.misses).append(line)
    return found


def _check_in_order(expected: Sequence[str], calls: Sequence[str]) -> _TrajectoryFindings:
    """Check that each step follows the one before, whatever lies between; a missing step is passed over."""
    found = _TrajectoryFindings()
    positions: defaultdict[str, list[int]] = defaultdict(list)
    for position, name in enumerate(calls, 1):
        positions[name].append(position)
    last, last_name = 0, ""
    for step, name in enumerate(expected, 1):
        where = positions.get(name, [])
        following = bisect_right(where, last)
        if following < len(where):
            last, last_name = where[following], name
            found.hits.append(f"step {step}: {_format_name(name)} is call {last}")
        elif where:
            found.misses.append(
                f"step {step}: {_format_name(name)} is not called after {_format_name(last_name)} (call {last}), "
                f"only at call {where[-1]}: called {_format_calls(calls)}"
            )
        else:
            found.misses.append(f"step {step}: {_format_name(name)} is never called: called {_format_calls(calls)}")
    return found


def _check_exact(expected: Sequence[str], calls: Sequence[str]) -> _TrajectoryFindings:
    """Check that the target called the expected tools in the same order, and no others."""
    found = _TrajectoryFindings()
    same = next(
        (at for at, (name, call) in enumerate(zip(expected, calls, strict=False)) if name != call),
        min(len(expected), len(calls)),
    )
    found.hits += [f"call {at}: {_format_name(name)} as expected" for at, name in enumerate(expected[:same], 1)]
    if same == len(expected) == len(calls):
        return found
    parting = _describe_first_difference(expected, calls, same)
    found.misses.append(f"{parting}: expected {_format_calls(expected)}, called {_format_calls(calls)}")
    wanted, called = Counter(expected), Counter(calls)
    differing = (name for name in dict.fromkeys((*expected, *calls)) if called[name] != wanted[name])
    # one more than are kept, so that it shows that there are more: calls may be very many
    for name in islice(differing, MAX_ITEMS):
        what = "extra" if called[name] > wanted[name] else "missing"
        found.misses.append(
            f"{_format_name(name)} is {what}: called {format_times(called[name])}, expected "
            f"{format_times(wanted[name])}"
        )
    return found


def _describe_first_difference(expected: Sequence[str], calls: Sequence[str], same: int) -> str:
    """Where two sequences part that are the same before index `same`."""
    if same == len(calls):
        return f"call {same + 1} should be {_format_name(expected[same])}, but it is missing"
    if same == len(expected):
        return f"call {same + 1} is {_format_name(calls[same])}, which is not expected"
    return f"call {same + 1} is {_format_name(calls[same])} and should be {_format_name(expected[same])}"


def _format_name(name: str) -> str:
    return truncate(to_well_formed(name), MAX_NAME)


def _format_calls(calls: Sequence[str]) -> str:
    return to_well_formed(format_names(calls)) if calls else "no tool"
