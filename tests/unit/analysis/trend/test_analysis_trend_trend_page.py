"""Page and badge of a branch over time: what they show, and that no text of others gets out of its place."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree as ET

import pytest

from eval_gate.analysis.trend.branch_trend import TrendRun
from eval_gate.analysis.trend.trend_page import build_badge, build_charts, write_trend
from eval_gate.model.comparison import Outcome, Verdict
from eval_gate.model.result import GitFacts, RunResult
from eval_gate.reports.context import ReportContext
from eval_gate.results.history import HistoryRun
from eval_gate.results.run_figures import RunFigures
from eval_gate.struct import replace
from tests.support.results import make_result
from tests.support.reuse import build_history, make_branch_runs

GREEN, AMBER, RED, GRAY = "#1a7f37", "#9a6700", "#cf222e", "#59636e"
HOSTILE = "</title><script>alert(1)</script>&\"'\u202e"


def run_of(passed: int, ran: int, outcome: Outcome | None = Outcome.PASSED, **figures) -> TrendRun:
    run = HistoryRun(run_id="r", timestamp="2026-10-01T00:00:00Z", figures=RunFigures(outcome=outcome, **figures))
    return TrendRun(run, passed, ran, 0)


@pytest.mark.parametrize(
    ("run", "message", "color"),
    [
        (run_of(30, 30), "100 % passing", GREEN),
        (run_of(34, 35), "97 % passing", GREEN),
        (run_of(2999, 3000), "99 % passing", GREEN),
        (run_of(1, 3000), "1 % passing", AMBER),
        (run_of(8, 9), "89 % passing", AMBER),
        (run_of(9, 9, None), "100 % passing", GRAY),
        (run_of(34, 35, Outcome.FAILED), "97 % passing, gate failed", RED),
        (run_of(34, 35, Outcome.INCONCLUSIVE), "97 % passing, gate inconclusive", GRAY),
        (run_of(0, 0), "no results", GRAY),
    ],
)
def test_build_badge__newest_run__says_its_pass_rate_and_a_gate_that_did_not_pass(run, message, color) -> None:
    expected = {"schemaVersion": 1, "label": "evals", "message": message, "color": color}
    assert build_badge(run, run.run, ReportContext()) == expected


def test_write_trend__newest_run_is_incomplete__is_never_green(tmp_path) -> None:
    runs = make_branch_runs(["PP", "PP"], lambda *_: [make_result("a")])
    badges = []
    for newest in (runs[1], replace(runs[1], complete=False), replace(runs[1], complete=False, partial=True)):
        _, _, data = write_trend(tmp_path, build_history([pass_gate(runs[0]), pass_gate(newest)]), 1.0, ReportContext())
        badges.append(json.loads(data.read_text()))
    assert [(one["message"], one["color"]) for one in badges] == [
        ("100 % passing", GREEN), ("100 % passing, gate inconclusive", GRAY), ("100 % passing", GREEN)
    ]  # fmt: skip


def pass_gate(run: RunResult) -> RunResult:
    outcome = Outcome.PASSED if run.complete else Outcome.INCONCLUSIVE
    return replace(run, verdict=Verdict(outcome=outcome, exit_code=outcome.exit_code, reasons=()))


def test_build_charts__values__are_placed_between_the_ends_of_the_axis() -> None:
    runs = [run_of(10, 10, cost_usd=2.0), run_of(9, 10), run_of(17, 20, cost_usd=1.0)]
    rate, cost = build_charts(runs)
    assert (rate.low, rate.high, [(dot.x, dot.y) for dot in rate.dots]) == (
        "80.0 %", "100.0 %", [(0.0, 0.0), (50.0, 50.0), (100.0, 75.0)]
    )  # fmt: skip
    assert (cost.low, cost.high, [dot.y for dot in cost.dots]) == ("$0.00", "$2.00", [0.0, None, 50.0])
    assert [(dot.x, dot.value) for dot in build_charts([run_of(0, 0), run_of(1, 1)])[0].dots] == [
        (0.0, "–"), (100.0, "100.0 %")
    ]  # fmt: skip


def write_branch(folder, tape: str, case_id: str = "a", context: ReportContext | None = None, sha: str = "abc{:04}"):
    made = make_branch_runs(
        [(word, "P") for word in tape], lambda _, word: [make_result(case_id, "failed" if word == "F" else "passed")]
    )
    runs = [replace(run, git=GitFacts(sha=sha.format(number))) for number, run in enumerate(made)]
    return [file.read_text() for file in write_trend(folder, build_history(runs), 1.0, context or ReportContext())]


def test_write_trend__case_that_broke_and_was_fixed__links_both_commits(tmp_path) -> None:
    context = ReportContext(repository="acme/desk", baseline_branch="main")
    page, *_ = write_branch(tmp_path, "PPPPPPFFPPP=", context=context)
    assert "2 of 2 pass" in page
    (row,) = re.findall(r"<tr><td><code[^>]*>a</code>.*", page)
    assert re.findall(r'href="https://github.com/acme/desk/([^"]+)"', row) == [
        "commit/abc0006", "compare/abc0005...abc0006", "commit/abc0008", "compare/abc0007...abc0008"
    ]  # fmt: skip
    assert page.count('class="hole"') == 1 * len(re.findall("<figure>", page))
    assert '<i class="hollow"></i>reused some results' in page


def test_write_trend__text_of_others__stays_text(tmp_path) -> None:
    context = ReportContext(name=HOSTILE, repository="acme/desk")
    page, badge, data = write_branch(tmp_path, "PPPPPPFF", HOSTILE, context, sha='"><b>{:04}')
    for text in (page, badge):
        assert "<script" not in text
        assert "<b>" not in re.sub(r"<figcaption>.*", "", text)
        assert "\u202e" not in text
    assert "href" not in page
    assert ET.fromstring(badge).find("{*}title").text.startswith("</title><script>")
    assert json.loads(data)["label"].startswith("</title><script>alert(1)</script>")


def test_write_trend__loads_nothing(tmp_path) -> None:
    page, badge, _ = write_branch(tmp_path, "PF")
    assert "default-src 'none'" in page
    for text in (page, badge):
        assert not re.search(r"<(script|link|img|iframe|image|use)\b|url\((?!#)|@import|\bsrc=", text)
