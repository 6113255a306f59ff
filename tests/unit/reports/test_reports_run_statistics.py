"""The number of passing cases, which is the same in every report."""

from eval_gate.config.policy import FailOn, Policy
from eval_gate.reports.check_run import render_check_run
from eval_gate.reports.context import ReportContext
from eval_gate.reports.markdown import render_comment, render_summary
from eval_gate.reports.run_statistics import PassCounts, count_passing_cases
from eval_gate.reports.view.report_view import build_view
from eval_gate.results.baseline import NOT_REQUESTED, Baseline
from tests.support.results import make_baseline_run, make_run
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
