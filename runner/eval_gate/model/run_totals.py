"""Counts and sums over cases."""

from __future__ import annotations

from collections.abc import Sequence

from eval_gate.model.execution import Status
from eval_gate.model.result import CaseResult, RunResult, SuiteResult, Summary
from eval_gate.model.usage import Usage, add_up


def summarize_cases(
    cases: Sequence[CaseResult], wall_ms: float | None = None, executed: Sequence[CaseResult] | None = None
) -> Summary:
    """Count these case results, and sum up time, tokens and cost of those that were `executed`: by default all.

    `passRate` is passed / (passed + failed), and None if no case passed or failed. `wall_ms` is in milliseconds.
    """
    executed = cases if executed is None else executed
    counts = dict.fromkeys(Status, 0)
    for case in cases:
        counts[case.status] += 1
    scored = counts[Status.PASSED] + counts[Status.FAILED]
    usage = Usage.add_up(case.usage for case in executed) or Usage()
    return Summary(
        total_cases=len(cases),
        passed=counts[Status.PASSED],
        failed=counts[Status.FAILED],
        errored=counts[Status.ERROR],
        skipped=counts[Status.SKIPPED],
        not_run=counts[Status.NOT_RUN],
        flaky=sum([case.flaky for case in cases]),
        skipped_assertions=sum([case.assertions_skipped for case in cases]),
        total_duration_ms=round(sum([case.duration_ms for case in executed]), 3),
        wall_ms=wall_ms,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        estimated_cost_usd=add_up(case.cost_usd for case in executed),
        judge_cost_usd=add_up(case.judge_cost_usd for case in executed),
        replayed=sum([case.details.replayed for case in cases]),
        pass_rate=counts[Status.PASSED] / scored if scored else None,
    )


def summarize_suites(suites: Sequence[SuiteResult], wall_ms: float | None = None) -> Summary:
    """Count all cases of a run, and sum up the suites that it executed; `wall_ms` is in milliseconds."""
    executed = [case for suite in suites if suite.reused is None for case in suite.cases]
    return summarize_cases([case for suite in suites for case in suite.cases], wall_ms, executed)


def count_scored_cases(run: RunResult) -> tuple[int, int]:
    """Count the cases of a run with a score, and all cases that are not skipped."""
    statuses = [case.status for _, case in run.iter_cases() if case.status is not Status.SKIPPED]
    return sum(status.is_scored for status in statuses), len(statuses)
