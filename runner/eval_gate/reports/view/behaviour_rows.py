"""Passing cases that behave differently, as reports show them: equal changes are one row.

Names in the texts are in backticks and unescaped; the reports escape them.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import Final

from eval_gate.model.behaviour_change import (
    BehaviourChange,
    BehaviourChanges,
    BehaviourKind,
    ParameterDifference,
)
from eval_gate.model.case import CaseKey
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.wording.numbers import quote_in_backticks
from eval_gate.struct import FrozenStruct, replace
from eval_gate.text.escape import format_count

MAX_NAME: Final = 60
_PARAMETERS: Final = {
    ParameterDifference.VALUE: "parameter {parameter} of {tool}",
    ParameterDifference.TYPE: "type of parameter {parameter} of {tool}",
    ParameterDifference.ADDED: "new parameter {parameter} of {tool}",
    ParameterDifference.MISSING: "missing parameter {parameter} of {tool}",
}


class BehaviourRow(FrozenStruct):
    """One change of behaviour and the cases that have it; a side without a value is None."""

    cases: tuple[CaseRow, ...]
    what: str
    """What is different."""
    baseline: str | None
    current: str | None


class BehaviourReport(FrozenStruct, eq=False, dict=True):
    """Texts and rows about passing cases that behave differently."""

    changes: BehaviourChanges
    cases: tuple[CaseRow, ...]
    """Listed cases, in file order."""

    @property
    def title(self) -> str:
        """`3 cases pass and behave differently`."""
        both = ("case passes and behaves differently", "cases pass and behave differently")
        return format_count(self.changes.cases, *both)

    @cached_property
    def rows(self) -> tuple[BehaviourRow, ...]:
        """Changes in file order, each once for all cases that have it."""
        rows_by_key = {row.key: row for row in self.cases}
        groups: dict[BehaviourChange, list[CaseRow]] = defaultdict(list)
        for one in self.changes.changes:
            if (row := rows_by_key.get(one.key)) is not None:
                groups[replace(one, suite="", case_id="")].append(row)
        return tuple(
            BehaviourRow(tuple(rows), _describe_change(one), one.baseline, one.current) for one, rows in groups.items()
        )

    def list_case_changes(self, key: CaseKey) -> list[BehaviourRow]:
        """List the changes of one case."""
        return [row for row in self.rows if any(case.key == key for case in row.cases)]


def _describe_change(change: BehaviourChange) -> str:
    """Name what is different, such as "parameter `id` of `lookup`", after the turn of a conversation."""
    return f"turn {change.turn}: {_name_difference(change)}" if change.turn else _name_difference(change)


def _name_difference(change: BehaviourChange) -> str:
    tool = quote_in_backticks(change.tool or "", MAX_NAME)
    match change.kind:
        case BehaviourKind.TOOL:
            return (
                "new tool" if change.baseline is None else "missing tool" if change.current is None else "another tool"
            )
        case BehaviourKind.CALL_COUNT:
            return f"number of calls of {tool}"
        case BehaviourKind.PARAMETER:
            words = _PARAMETERS[change.difference or ParameterDifference.VALUE]
            return words.format(parameter=quote_in_backticks(change.parameter or "", MAX_NAME), tool=tool)
        case BehaviourKind.FIELD:
            kind = "type of field" if change.difference is ParameterDifference.TYPE else "field"
            return f"{kind} {quote_in_backticks(change.parameter or '', MAX_NAME)}"
        case BehaviourKind.RESPONSE:
            return "response lost many of its words"
