"""Factories for cases with both sides kept: question, answers, calls, and what the baseline said."""

from __future__ import annotations

from collections.abc import Mapping

from eval_gate.model.execution import BaselineResult, CaseDetails, Status, StoredCall
from eval_gate.model.result import CaseText, RunResult
from eval_gate.struct import replace

Call = tuple[str, dict[str, object]]
Side = tuple[str | None, list[Call]]
"""An answer and its calls; no answer where it is not kept."""


def make_details(answer: str | None, calls: list[Call] | None = None, **fields) -> CaseDetails:
    """What is kept of one execution."""
    kept = tuple(StoredCall(name=name, arguments=arguments) for name, arguments in calls or [])
    values = {
        "tools_called": tuple(call.name for call in kept),
        "tool_calls": kept,
        "response": answer,
        "response_length": len(answer or ""),
    }
    return CaseDetails(**(values | fields))


def make_asked(question: str, *expectation: str) -> CaseText:
    """Question and expectation."""
    return CaseText(prompt=question, expectation=expectation)


def with_before(run: RunResult, before: Mapping[str, Side | None]) -> RunResult:
    """The judged run, of whose cases the baseline's record keeps these answers and calls; None where it keeps none."""
    assert run.comparison is not None
    changes = tuple(
        replace(one, baseline_result=_before(before[one.case_id])) if one.case_id in before else one
        for one in run.comparison.changes
    )
    return replace(run, comparison=replace(run.comparison, changes=changes))


def _before(side: Side | None) -> BaselineResult | None:
    return BaselineResult(status=Status.PASSED, score=1.0, details=make_details(*side)) if side else None
