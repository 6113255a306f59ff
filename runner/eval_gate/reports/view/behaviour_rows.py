"""Passing cases that behave differently, as reports show them: equal changes are one row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import cached_property

from eval_gate.model.behaviour_change import BehaviourChange, BehaviourChanges
from eval_gate.model.case import CaseKey
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.wording.behaviour import (
    describe_behaviour_change,
    format_behaviour_title,
)
from eval_gate.struct import FrozenStruct


class BehaviourRow(FrozenStruct):
    """One change of behaviour and the cases that have it. Sides are None if there is nothing."""

    cases: tuple[CaseRow, ...]
    what: str
    """What is different, with names in backticks."""
    baseline: str | None
    current: str | None


class BehaviourReport(FrozenStruct, eq=False, dict=True):
    """All that reports say about passing cases that behave differently."""

    found: BehaviourChanges
    cases: tuple[CaseRow, ...]
    """Listed cases, in file order."""

    @cached_property
    def title(self) -> str:
        """`3 cases pass and behave differently`."""
        return format_behaviour_title(self.found)

    @cached_property
    def rows(self) -> tuple[BehaviourRow, ...]:
        """Changes in file order, each once for all cases that have it."""
        known = {row.key: row for row in self.cases}
        groups: dict[BehaviourChange, list[CaseRow]] = defaultdict(list)
        for one in self.found.changes:
            if (row := known.get(one.key)) is not None:
                groups[_drop_case(one)].append(row)
        return tuple(
            BehaviourRow(tuple(rows), describe_behaviour_change(one), one.baseline, one.current)
            for one, rows in groups.items()
        )

    def list_case_changes(self, key: CaseKey) -> list[BehaviourRow]:
        """List the changes of one case."""
        return [row for row in self.rows if any(case.key == key for case in row.cases)]


def _drop_case(change: BehaviourChange) -> BehaviourChange:
    return BehaviourChange(
        suite="",
        case_id="",
        kind=change.kind,
        tool=change.tool,
        parameter=change.parameter,
        difference=change.difference,
        baseline=change.baseline,
        current=change.current,
    )


def build_behaviour_report(
    found: BehaviourChanges | None, select: Callable[[], tuple[CaseRow, ...]]
) -> BehaviourReport | None:
    """Build the report of changed behaviour, if any is known; `select` selects rows of marked cases."""
    if found is None or not found.cases:
        return None
    return BehaviourReport(found, select())
