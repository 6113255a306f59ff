"""Sums over what may be unknown: None is never 0, and what is known is not lost beside it."""

from __future__ import annotations

import pytest

from eval_gate.model.execution import Status
from eval_gate.model.result import CaseResult
from eval_gate.model.run_totals import count_scored_cases, summarize_cases
from eval_gate.model.usage import Usage, add_up
from tests.support.results import make_run


@pytest.mark.parametrize(
    ("values", "expected"),
    [((), None), ((None, None), None), ((None, 2), 2), ((0, None), 0), ((1, 2), 3), ((0.5, None, 0.25), 0.75)],
)
def test_total__unknown_among_them__is_left_out_and_never_counts_as_0(values, expected) -> None:
    assert add_up(iter(values)) == expected


def test_usage_total__each_count_by_itself__is_unknown_only_where_nobody_says() -> None:
    assert Usage.add_up([]) is None
    assert Usage.add_up([None, None]) is None
    assert Usage.add_up([None, Usage(input_tokens=3)]) == Usage(input_tokens=3, output_tokens=None)
    both = [Usage(input_tokens=3, output_tokens=0), None, Usage(input_tokens=4)]
    assert Usage.add_up(both) == Usage(input_tokens=7, output_tokens=0)


def test_summarise__cases_that_say_nothing__leave_tokens_and_cost_unknown() -> None:
    silent = CaseResult(id="a", passed=True, status=Status.PASSED)
    told = CaseResult(id="b", passed=False, status=Status.FAILED, usage=Usage(input_tokens=5), cost_usd=0.5)
    summary = summarize_cases([silent])
    assert (summary.input_tokens, summary.output_tokens, summary.estimated_cost_usd) == (None, None, None)
    summary = summarize_cases([silent, told])
    assert (summary.input_tokens, summary.output_tokens, summary.estimated_cost_usd) == (5, None, 0.5)
    assert (summary.pass_rate, summarize_cases([]).pass_rate) == (0.5, None)


def test_judged_of__skipped_cases__are_none_to_judge() -> None:
    run = make_run({"a": "passed", "b": "failed", "c": "error", "d": "not_run", "e": "skipped"})
    assert count_scored_cases(run) == (2, 4)
