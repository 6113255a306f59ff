"""Sums over cases. What is unknown stays unknown: None, never 0."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from eval_gate.model.result import CaseResult, Status, Summary

Number = TypeVar("Number", int, float)


def total(values: Iterable[Number | None]) -> Number | None:
    """The sum of the known values; None when none is known."""
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if known else None


def summarise(cases: Sequence[CaseResult], wall_ms: float | None = None) -> Summary:
    """Counts and sums of these cases. `passRate` is passed / (passed + failed)."""
    counts = dict.fromkeys(Status, 0)
    for case in cases:
        counts[case.status] += 1
    judged = counts[Status.PASSED] + counts[Status.FAILED]
    usages = [case.usage for case in cases if case.usage is not None]
    return Summary(
        total_cases=len(cases),
        passed=counts[Status.PASSED],
        failed=counts[Status.FAILED],
        errored=counts[Status.ERROR],
        skipped=counts[Status.SKIPPED],
        not_run=counts[Status.NOT_RUN],
        flaky=sum(case.flaky for case in cases),
        skipped_assertions=sum(case.assertions_skipped for case in cases),
        total_duration_ms=round(sum(case.duration_ms for case in cases), 3),
        wall_ms=wall_ms,
        input_tokens=total(usage.input_tokens for usage in usages),
        output_tokens=total(usage.output_tokens for usage in usages),
        estimated_cost_usd=total(case.cost_usd for case in cases),
        judge_cost_usd=total(case.judge_cost_usd for case in cases),
        replayed=sum(case.details.replayed for case in cases),
        pass_rate=counts[Status.PASSED] / judged if judged else None,
    )
