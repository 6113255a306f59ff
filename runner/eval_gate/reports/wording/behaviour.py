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
    """`3 cases pass and behave differently`."""
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
