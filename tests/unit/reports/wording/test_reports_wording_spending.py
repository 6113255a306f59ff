"""How what a run cost and took is put in words."""

from __future__ import annotations

from eval_gate.config.policy import Policy
from eval_gate.model.run_totals import ConcurrencySaving
from eval_gate.reports.console.style import ConsoleStyle
from eval_gate.reports.context import ReportContext
from eval_gate.reports.markdown import render_comment, render_summary
from eval_gate.reports.rendering import render
from eval_gate.reports.view.report_view import build_view
from eval_gate.reports.wording.spending import describe_saving
from eval_gate.results.baseline import NOT_REQUESTED
from tests.support.results import make_run
from tests.support.verdicts import judge_against

SAID = "Cases ran one at a time. With --concurrency 4, this run would take about 5 s instead of 19 s."


def test_saving__of_a_run__is_one_sentence_with_whole_seconds() -> None:
    assert describe_saving(ConcurrencySaving(4, 18.9, 5.2), "--concurrency {}") == SAID
    assert describe_saving(None, "--concurrency {}") is None


def test_saving__in_reports__is_the_end_of_the_console_and_in_the_summary_but_no_news_for_a_comment() -> None:
    run = judge_against(make_run({"a": "passed"}), NOT_REQUESTED, Policy())
    context = ReportContext(saving=SAID)
    assert render("console", run, context, style=ConsoleStyle(width=120)).splitlines()[-1] == SAID
    said = SAID.replace("--concurrency 4", "`concurrency: 4`")
    view = build_view(run, ReportContext(saving=said))
    assert said in render_summary(view)
    assert said not in render_comment(view)
    assert "one at a time" not in render("console", run, ReportContext())
