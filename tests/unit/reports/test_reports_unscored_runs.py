"""The sentence about runs that were passed over because they could not be measured, everywhere it is read."""

import pytest

from eval_gate.config.policy import Policy
from eval_gate.model.result import GitFacts
from eval_gate.reports.context import ReportContext
from eval_gate.reports.rendering import render
from eval_gate.results.baseline import Baseline, build_unscored_run
from tests.support.results import make_baseline_run, make_run
from tests.support.verdicts import judge_against


def judged(count: int = 1):
    outages = tuple(
        build_unscored_run(
            make_run({"a": "error", "b": "error"}, run_id=f"outage-{number}", git=GitFacts(sha=f"{number}abc1234"))
        )
        for number in range(count)
    )
    baseline = Baseline(make_baseline_run({"a": "passed", "b": "passed"}), "latest", unscored_runs=outages)
    return judge_against(make_run({"a": "passed", "b": "passed"}), baseline, Policy())


@pytest.mark.parametrize("form", ["md", "console", "html"])
def test_report__newest_run_was_not_measured__names_it_and_what_was_compared_with(form) -> None:
    text = render(form, judged(), ReportContext(base_branch="main")).replace("`", "")
    text = " ".join(text.split())
    sentence = "newest run before this change, 0abc123, cannot be the baseline: 0 of 2 cases have a score. Compared"
    assert sentence in text
    assert "Compared with 3f2c1ab instead." in text


def test_report__several__counts_them() -> None:
    text = " ".join(render("console", judged(3), ReportContext()).split())
    assert "3 newer runs cannot be the baseline: in 0abc123, 0 of 2 cases have a score." in text


def test_report__one_before_a_red_one__is_not_called_the_newest() -> None:
    text = " ".join(render("console", judged(), ReportContext()).split())
    assert "A newer run, 0abc123, cannot be the baseline: 0 of 2 cases have a score." in text


def test_report__none__says_nothing() -> None:
    assert "cannot be the baseline" not in render("md", judged(0), ReportContext())
