"""Wording for passing cases that behave differently, with names in backticks.

Whoever shows the words escapes them.
"""

from __future__ import annotations

from typing import Final

from eval_gate.model.behaviour_change import (
    BehaviourChange,
    BehaviourChanges,
    BehaviourKind,
    ParameterDifference,
    WidespreadChange,
)
from eval_gate.reports.wording.numbers import quote_in_backticks
from eval_gate.text.escape import format_count

MAX_NAME: Final = 60
NO_EFFECT: Final = "This has no effect on the verdict."
_PARAMETERS: Final = {
    ParameterDifference.VALUE: "parameter {parameter} of {tool}",
    ParameterDifference.TYPE: "type of parameter {parameter} of {tool}",
    ParameterDifference.ADDED: "new parameter {parameter} of {tool}",
    ParameterDifference.MISSING: "missing parameter {parameter} of {tool}",
}


def format_behaviour_title(found: BehaviourChanges) -> str:
    """`3 cases pass and behave differently`; other words if only widespread values differ."""
    if not found.cases:
        return "Values differ in most passing cases"
    return format_count(found.cases, "case passes and behaves differently", "cases pass and behave differently")


def describe_behaviour_change(change: BehaviourChange) -> str:
    """Name what is different, such as "parameter `id` of `lookup`"."""
    tool = quote_in_backticks(change.tool or "", MAX_NAME)
    match change.kind:
        case BehaviourKind.TOOL:
            return _describe_tool_change(change)
        case BehaviourKind.CALL_COUNT:
            return f"number of calls of {tool}"
        case BehaviourKind.PARAMETER:
            words = _PARAMETERS[change.difference or ParameterDifference.VALUE]
            return words.format(parameter=quote_in_backticks(change.parameter or "", MAX_NAME), tool=tool)
        case BehaviourKind.RESPONSE:
            return "response lost many of its words"


def _describe_tool_change(change: BehaviourChange) -> str:
    if change.baseline is None:
        return "new tool"
    return "missing tool" if change.current is None else "another tool"


def describe_widespread_change(change: WidespreadChange) -> str:
    """Describe what differs in most cases, and why nobody knows whether it varies by itself, in two sentences."""
    if change.parameter:
        names = (quote_in_backticks(name or "", MAX_NAME) for name in (change.parameter, change.tool))
        what = f"Parameter {' of '.join(names)} has another value"
    else:
        what = "The response lost many of its words"
    return (
        f"{what} in {change.cases} of {format_count(change.compared, 'case')}. "
        "It may change in every run: the history has only one run so far."
    )
