"""Who is to blame, said the same everywhere, and what no page may ever say."""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ET

import pytest

from eval_gate.model.comparison import CaseClass, Outcome
from eval_gate.model.execution import ErrorKind, Status
from eval_gate.model.waiver import WaiverKind
from eval_gate.reports.check_run import render_check_run
from eval_gate.reports.context import ReportContext
from eval_gate.reports.rendering import render
from eval_gate.reports.view.report_view import build_view
from eval_gate.reports.wording.numbers import format_pass_counts
from eval_gate.struct import replace
from tests.support.verdicts import make_executed, make_judged, make_waiver, make_waivers
from tests.unit.reports.test_reports_golden import STATES as PLAIN
from tests.unit.reports.test_reports_verdict import PULL_REQUEST, STATES, blamed

EVERY = STATES | {f"plain {name}": run for name, run in PLAIN.items()}
INNOCENT = "This says nothing about your change"
TEN = "P" * 10


@pytest.mark.slow
@pytest.mark.parametrize("state", EVERY)
def test_page__change_may_be_the_cause__never_says_that_it_is_not(state) -> None:
    view = build_view(EVERY[state], PULL_REQUEST)
    broken = {row.error_kind for row in view.cases if row.status is Status.ERROR}
    suspect = (
        view.regressions
        or view.unconfirmed
        or view.inconclusive_cases
        or view.summary.failed
        or broken - {ErrorKind.EVALUATION_ERROR}
    )
    said = [render(form, EVERY[state], PULL_REQUEST) for form in ("md", "html", "console")]
    assert not (suspect and any(INNOCENT in text for text in said))


@pytest.mark.parametrize("state", EVERY)
def test_reports__passing_cases__are_counted_among_all_that_ran(state) -> None:
    run = EVERY[state]
    view = build_view(run, PULL_REQUEST)
    counts = view.pass_counts
    assert format_pass_counts(counts) in " ".join(render("console", run, PULL_REQUEST).split())
    if view.verdict.outcome is not Outcome.INCONCLUSIVE:
        assert re.search(rf"\b{counts.passed} of {counts.ran} cases? pass|^No case ran", view.opening)


def test_page__every_kind_of_blame__has_its_own_words_counts_and_place() -> None:
    above = render("md", blamed(), PULL_REQUEST).partition("<details><summary>26 cases")
    assert (
        "17 pass, 9 do not pass (3 regressions, 2 without a score in the baseline too, 1 agent error, "
        "2 agent unreachable, 1 evaluation error)" in above[2]
    )
    for words in ("**1 agent error**", "**2 cases with the agent unreachable**", "**1 evaluation error**"):
        assert words in above[0]
    assert "agent error in 7 of 7 here, responded in 10 of 10 on main" in above[0]
    assert "order/bulk" not in above[0]  # main has it too
    assert "No score here or in the baseline: `order/bulk` (agent error)" in above[2]


def test_page__notes_of_the_judge__stand_above_every_fold() -> None:
    above = render("md", STATES["otherwise-compared"], PULL_REQUEST).partition("<details>")[0]
    assert "This run had no re-runs" in above
    assert "is now compared with" in above


def test_junit__types__are_the_blame() -> None:
    root = ET.fromstring(render("junit", blamed(), PULL_REQUEST))
    types = {case.get("name"): error.get("type") for case in root.iter("testcase") for error in case.iter("error")}
    assert types["refund/partial"] == "agent_error"
    assert "order/bulk" not in types  # main has it too, so that it blocks nothing
    assert (types["pay/card"], types["faq/tone"]) == ("agent_unreachable", "evaluation_error")
    assert int(root.get("errors")) == len(types)


@pytest.mark.parametrize("kind", ["waiver", "quarantine"])
def test_crash__that_is_a_regression__can_be_accepted_as_one(kind) -> None:
    waivers = make_waivers(make_waiver("a", kind, is_new=False))
    run = make_judged({"a": "CCCC", "b": "P"}, {"a": TEN, "b": TEN}, waivers=waivers)
    assert run.comparison.changes[0].change is CaseClass.REGRESSION
    assert run.verdict.outcome is Outcome.PASSED
    (row,) = build_view(run, PULL_REQUEST).waived
    assert row.waiver.kind is WaiverKind(kind)
    root = ET.fromstring(render("junit", run, PULL_REQUEST))
    assert (root.get("errors"), root.get("skipped")) == ("0", "1")


def test_inconclusive_crash__blocks_as_an_error__and_is_seen_above_the_fold() -> None:
    run = make_judged({"a": "CC", "b": "P"}, {"a": "PPFPPFPPFP", "b": TEN}, reruns=1)
    view = build_view(run, PULL_REQUEST)
    assert view.verdict.outcome is not Outcome.PASSED
    listed = [*view.regressions, *view.unconfirmed, *view.errors, *view.inconclusive_cases]
    assert [row.id for row in listed] == ["a"]
    assert "agent error" in render("md", run, PULL_REQUEST).partition("<details>")[0]


def test_name_of_an_earlier_run__of_anybody__is_nothing_but_a_name() -> None:
    run = STATES["main-broke"]
    hostile = {"run_id": "<b>|`x", "sha": None}
    changes = tuple(
        replace(one, compared_with=replace(one.compared_with, **hostile)) if one.compared_with else one
        for one in run.comparison.changes
    )
    run = replace(run, comparison=replace(run.comparison, changes=changes))
    shown = " ".join(render("console", run, ReportContext()).split())
    assert "compared with ?b???x, because the baseline" in shown
    assert "<b>" not in render("md", run, PULL_REQUEST) + render_check_run(build_view(run, PULL_REQUEST)).page


@pytest.mark.parametrize(
    ("begins", "error_kind"),
    [
        ("CLI exited with code 1: …", ErrorKind.AGENT_ERROR),
        ("script tone.py exited with code 1: …", ErrorKind.EVALUATION_ERROR),
        ("the hook before_each exited with code 1: …", ErrorKind.EVALUATION_ERROR),
    ],
    ids=["agent", "grader", "hook"],
)
def test_reports__error_that_quotes_a_traceback__keep_what_failed_and_its_last_line(begins, error_kind) -> None:
    middle = "".join(f' ⏎ File "/srv/bot/agent.py", line {line}, in step_{line} ⏎ return step()' for line in range(8))
    last = "KeyError: 'order_status_of_the_customer'"
    error = f"{begins}{middle} ⏎ {last}"
    case = replace(make_executed("it", "E"), error=error, error_kind=error_kind, http_status=None)
    run = make_judged([case], {"it": TEN}, waivers=make_waivers(make_waiver("it")))
    plain = make_judged([case], {"it": TEN})
    assert plain.comparison.changes[0].reason.endswith(last)
    shown = [render(form, one, PULL_REQUEST) for form in ("md", "console", "junit", "html") for one in (plain, run)]
    remarks = render_check_run(build_view(plain, PULL_REQUEST)).summary
    for text in (*shown, remarks):
        words = html.unescape(re.sub(r"&#8203;", "", " ".join(text.split())))
        assert last in words
        assert begins.rstrip(":… ") in words
