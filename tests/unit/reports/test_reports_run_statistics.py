"""The number of passing cases, which is the same in every report."""

from typing import Any

import pytest

from eval_gate.config.policy import FailOn, Policy
from eval_gate.model.execution import ErrorKind
from eval_gate.reports.check_run import render_check_run
from eval_gate.reports.context import ReportContext
from eval_gate.reports.markdown import render_comment, render_summary
from eval_gate.reports.run_statistics import PassCounts, count_passing_cases, find_outage
from eval_gate.reports.view.report_view import build_view
from eval_gate.results.baseline import NOT_REQUESTED, Baseline
from tests.support.results import make_baseline_run, make_result, make_run
from tests.support.verdicts import judge_against

MIXED = dict.fromkeys("abcde", "passed") | {"f": "failed", "g": "error", "h": "error", "i": "skipped", "j": "not_run"}


def test_count_passing_cases__errors_on_both_sides__count_as_cases_that_ran() -> None:
    baseline = Baseline(make_baseline_run(dict.fromkeys("abcdefg", "passed") | {"h": "error", "i": "skipped"}), "main")
    run = judge_against(make_run(MIXED), baseline, Policy(frozenset({FailOn.REGRESSIONS})))
    assert count_passing_cases(run) == PassCounts(5, 8, PassCounts(7, 8))


def test_count_passing_cases__no_baseline__has_only_this_run() -> None:
    assert count_passing_cases(judge_against(make_run(MIXED), NOT_REQUESTED, Policy())) == PassCounts(5, 8)


def test_reports__failures_and_errors__say_the_same_number_and_no_other_rate() -> None:
    names = [f"case-{number:02}" for number in range(60)]
    now = dict.fromkeys(names, "passed") | dict.fromkeys(names[:7], "failed") | {names[7]: "error"}
    baseline = Baseline(make_baseline_run(dict.fromkeys(names, "passed")), "main")
    run = judge_against(make_run(now), baseline, Policy(frozenset({FailOn.REGRESSIONS})))
    view = build_view(run, ReportContext(base_branch="main"))
    for text in (render_comment(view), render_summary(view), render_check_run(view).title):
        assert "52 of 60 pass (baseline: 60 of 60)" in text.replace(" cases", "")
        assert "100.0 %" not in text.partition("<details>")[0]


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"error": "openai (gpt): answered HTTP 503: overloaded", "http_status": 503}, 503),
        ({"error": "agent error: HTTP 503 is what this program prints"}, None),
    ],
    ids=["of a model", "only in the text"],
)
def test_find_outage__http_status__is_what_was_stored_and_not_what_the_error_says(
    fields: dict[str, Any], status
) -> None:
    cases = [make_result(name, "error", error_kind=ErrorKind.AGENT_ERROR, **fields) for name in "abcd"]
    found = find_outage(make_run(cases))
    assert found is not None
    assert (found.status, len(found.cases)) == (status, 4)
