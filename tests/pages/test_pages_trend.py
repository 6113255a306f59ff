"""The page of a branch over time as it is seen, with one run, a few and as many as a history has."""

from __future__ import annotations

import pytest

from eval_gate.analysis.trend.trend_page import write_trend
from eval_gate.reports.context import ReportContext
from tests.pages.runs import HOSTILE
from tests.support.browser import DESK, PHONE, SMALL_PHONE, opened
from tests.support.results import make_result
from tests.support.reuse import build_history, make_branch_runs

TAPES = {"one": ("P", "P"), "few": ("PPPPF", "PFPPP"), "reused": ("FP" + "P=" * 50, "PF" + "=F" * 25 + "=P" * 25)}
DOTS = {"one": 1, "few": 5, "reused": 100}
CONTEXT = ReportContext(name=HOSTILE, repository="acme/desk", baseline_branch="main")


@pytest.fixture(params=TAPES)
def branch(request, tmp_path):
    """The name of a branch, and its page."""

    def make_cases(_, word):
        status = "failed" if word == "F" else "passed"
        return [make_result(name, status, cost_usd=0.01) for name in (HOSTILE, "steady" * 30)]

    history = build_history(make_branch_runs(zip(*TAPES[request.param], strict=True), make_cases))
    return request.param, write_trend(tmp_path, history, 1.0, CONTEXT)[0]


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE, SMALL_PHONE])
def test_trend__any_number_of_runs__fits_its_window_and_loads_nothing(chrome, branch, size, colours) -> None:
    name, page = branch
    with opened(chrome, page, size=size, color_scheme=colours, bypass_csp=True) as seen:
        seen.page.locator("summary").click()
        assert seen.overflow() == 0
        assert seen.violations() == []
        assert (seen.complaints, seen.requests) == ([], [page.as_uri()])
        assert [seen.page.locator("figure").nth(at).locator(".dot").count() for at in range(3)] == [DOTS[name]] * 3
