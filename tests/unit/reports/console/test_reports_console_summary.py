"""The summary on a terminal: it fits, says each thing once, and shows a regression's both sides."""

from __future__ import annotations

import re

import pytest

from eval_gate.config.policy import FailOn, Policy
from eval_gate.model.comparison import CaseChange
from eval_gate.model.execution import BaselineResult, CaseDetails, Status
from eval_gate.model.result import RunResult
from eval_gate.reports.console.case_list import MAX_NAMES
from eval_gate.reports.console.style import ConsoleStyle, measure_width
from eval_gate.reports.context import ReportContext
from eval_gate.reports.rendering import render
from eval_gate.reports.view.report_view import build_view
from eval_gate.results.baseline import Baseline
from eval_gate.struct import replace
from eval_gate.text.escape import to_console_line
from tests.support.results import make_baseline_run, make_result, make_run, make_suite_result
from tests.support.verdicts import judge_against
from tests.unit.reports.test_reports_golden import STATES
from tests.unit.reports.test_reports_verdict import STATES as VERDICTS

COMMAND = (
    "eval-gate run --agent-endpoint http://localhost:8080/chat --baseline latest --case 'refund/*,faq/opening-hours'"
)
CONTEXT = ReportContext(result_path="evals/results/r/run.json", rerun_command=COMMAND, rerun_omitted_count=7)
STRICT = Policy(frozenset({FailOn.REGRESSIONS}))


@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("columns", [40, 80])
@pytest.mark.parametrize("state", [*STATES, *(f"verdict/{name}" for name in VERDICTS)])
def test_console__any_state_at_any_width__fits(state, columns, ascii_only) -> None:
    run = VERDICTS[state.removeprefix("verdict/")] if state.startswith("verdict/") else STATES[state]
    text = render("console", run, CONTEXT, style=ConsoleStyle(width=columns, ascii=ascii_only))
    body = text.partition("\nresult:")[0].partition("\nrerun:")[0]  # behind it stands what is to be copied whole
    assert [line for line in body.splitlines() if measure_width(line) > columns] == []
    if columns == 80:
        assert [line for line in text.splitlines() if measure_width(line) > columns] == []


@pytest.mark.parametrize("state", [*STATES, *(f"verdict/{name}" for name in VERDICTS)])
def test_console__any_state__names_each_regression_once_above_the_verdict(state) -> None:
    run = VERDICTS[state.removeprefix("verdict/")] if state.startswith("verdict/") else STATES[state]
    above = render("console", run, CONTEXT, style=ConsoleStyle(width=1_000)).partition("\nGATE ")[0]
    above = re.sub(r"^PROPOSED WAIVERS.*?\n\n", "", above, flags=re.DOTALL | re.MULTILINE)  # a waiver names its cases
    rows = build_view(run, CONTEXT).regressions_and_suspects
    names = [to_console_line(row.label) for row in rows][:MAX_NAMES]
    found = {name: len(re.findall(rf"(?<![\w/-]){re.escape(name)}(?![\w/-])", above)) for name in names}
    assert {name: number for name, number in found.items() if number != 1} == {}


def test_console__40_columns__looks_like_this(golden) -> None:
    golden("console/few-40.txt", render("console", STATES["few"], CONTEXT, style=ConsoleStyle(width=40)))


def test_console__long_names__keep_both_ends_and_the_columns_stay_straight() -> None:
    names = [f"{'very-' * 12}long/{place}" for place in ("first", "second")]
    cases = [make_result(name, description="words " * 30) for name in names]
    run = judge_against(make_run(make_suite_result(cases)), Baseline(make_baseline_run({"a": "passed"}), "b"), STRICT)
    text = render("console", run, CONTEXT, style=ConsoleStyle(verbose=True))
    lines = [line for line in text.splitlines() if line.startswith("  ✓")]
    assert all(re.fullmatch(r"  ✓ very-\S+…\S+(first|cond)\s+words .*…  120ms", line) for line in lines), lines
    assert len({measure_width(line) for line in lines}) == 1


def make_sides(before: BaselineResult | None, case_details: CaseDetails, **case) -> RunResult:
    """One regression, with what a record would keep of both sides."""
    now = make_result("refund", "failed", error="toolsCalled: expected [issue_refund], called [escalate]", **case)
    now = replace(now, details=case_details)
    run = judge_against(
        make_run(make_suite_result([now, make_result("b")])),
        Baseline(make_baseline_run({"refund": "passed", "b": "passed"}), "main"),
        STRICT,
    )
    assert run.comparison is not None
    changes = tuple(_with(one, before) if one.case_id == "refund" else one for one in run.comparison.changes)
    return replace(run, comparison=replace(run.comparison, changes=changes))


def _with(change: CaseChange, before: BaselineResult | None) -> CaseChange:
    return replace(change, baseline_result=before)


def block(run: RunResult, columns: int = 80) -> list[str]:
    """The lines about regressions."""
    text = render("console", run, ReportContext(), style=ConsoleStyle(width=columns))
    return ("REGRESSIONS" + text.partition("REGRESSIONS")[2].partition("\n\n")[0]).splitlines()


THEN = BaselineResult(
    status=Status.PASSED,
    details=CaseDetails(tools_called=("issue_refund",), response="Your refund of $40\nis on its way."),
)


def test_console__regression__shows_what_failed_and_both_sides_in_a_line_each() -> None:
    here = CaseDetails(tools_called=("escalate",), response="I have to pass you to a colleague.")
    assert block(make_sides(THEN, here)) == [
        "REGRESSIONS (1): refund",
        "  pass → fail",
        "    failed    toolsCalled: expected [issue_refund], called [escalate]",
        '    baseline  called issue_refund · "Your refund of $40 ⏎ is on its way."',
        '    this run  called escalate · "I have to pass you to a colleague."',
    ]


def test_console__same_calls_and_answers_that_begin_alike__shows_where_they_differ() -> None:
    alike = "Thank you for your patience, dear customer. We are open on "
    then = BaselineResult(status=Status.PASSED, details=CaseDetails(tools_called=("t",), response=f"{alike}Sunday."))
    shown = block(make_sides(then, CaseDetails(tools_called=("t",), response=f"{alike}Monday.")), 40)
    assert shown[-2:] == ['    baseline  "…are open on Sunday."', '    this run  "…are open on Monday."']


def test_console__nothing_kept_of_the_answers__shows_calls_alone() -> None:
    then = BaselineResult(status=Status.PASSED, details=CaseDetails(tools_called=("a", "b")))
    assert block(make_sides(then, CaseDetails()))[-2:] == [
        "    baseline  called a, b",
        "    this run  called nothing",
    ]


def test_console__same_calls_and_answer__says_it_once() -> None:
    then = BaselineResult(status=Status.PASSED, details=CaseDetails(tools_called=("t",), response="Sunday."))
    assert (
        block(make_sides(then, CaseDetails(tools_called=("t",), response="Sunday.")))[-1] == '    both      "Sunday."'
    )


def test_console__same_long_answer__is_shown_from_its_beginning() -> None:
    said = "TAP 123 leaves Lisbon at 09:40, 120 EUR."
    then = BaselineResult(status=Status.PASSED, details=CaseDetails(tools_called=("t",), response=said))
    run = make_sides(then, CaseDetails(tools_called=("t",), response=said))
    assert block(run)[-1] == f'    both      "{said}"'


def test_console__empty_answer__is_said_to_be_empty() -> None:
    then = BaselineResult(status=Status.PASSED, details=CaseDetails(response="Sunday."))
    assert block(make_sides(then, CaseDetails(response="")))[-2:] == [
        '    baseline  "Sunday."',
        "    this run  empty response",
    ]


def test_console__hostile_answer__is_no_command_and_no_colour_and_one_line() -> None:
    shown = block(make_sides(THEN, CaseDetails(response="\x1b[31m::error::x\n##[error]" + "x" * 900)))
    assert len(shown) == 5
    assert not any("\x1b" in line or "##[" in line or line.lstrip().startswith("::") for line in shown)


def test_console__many_regressions_of_one_cause__says_it_once() -> None:
    now = {f"order/{number}": "failed" for number in range(8)}
    run = judge_against(make_run(now), Baseline(make_baseline_run(dict.fromkeys(now, "passed")), "main"), STRICT)
    text = "\n".join(block(run, 200))
    assert text.count("pass → fail") == 1
    assert text.count("    this run ") == 1
    assert text.startswith("REGRESSIONS (8): order/0, order/1")


@pytest.mark.parametrize("what", ["check{}: expected this", "responseContains: expected '{}'"])
def test_console__many_different_failures__shows_ten_of_them_and_names_all_cases(what) -> None:
    cases = [make_result(f"order-{number}", "failed", error=what.format(chr(number))) for number in range(97, 112)]
    before = make_baseline_run({case.id: "passed" for case in cases})
    run = judge_against(make_run(make_suite_result(cases)), Baseline(before, "main"), STRICT)
    text = "\n".join(block(run))
    assert text.count("expected") == 10
    assert all(text.count(case.id) == 1 for case in cases)


@pytest.mark.slow
def test_console__hundreds_of_regressions__are_bounded_and_the_rest_is_counted() -> None:
    now = {f"order/{number}": "failed" for number in range(300)}
    run = judge_against(make_run(now), Baseline(make_baseline_run(dict.fromkeys(now, "passed")), "main"), STRICT)
    shown = block(run)
    assert " ".join(shown).count(" and 270 more ") == 1
    assert len(shown) < 20


def test_console__rerun_leaves_cases_out__says_how_many_and_where_they_are() -> None:
    lines = render("console", STATES["few"], CONTEXT).splitlines()
    assert lines[-1] == "        and 7 more cases: see evals/results/r/run.json"
    assert [line.split()[0] for line in lines[-4:-2]] == ["result:", "rerun:"]


def test_console__many_cases_with_one_error__are_named_once_below_it() -> None:
    cases = [make_result(f"c{number:02}", "error", error="agent error: HTTP 500") for number in range(60)]
    run = make_run(make_suite_result([*cases, make_result("a"), make_result("b", "error", error="HTTP 404")]))
    text, whole = (render("console", run, CONTEXT, style=ConsoleStyle(verbose=verbose)) for verbose in (False, True))
    assert "  60 cases: HTTP 500\n    c00, c01, c02, " in text
    assert text.count("HTTP 500") == text.count("c02") == 1
    assert " c29 and 30 more" in " ".join(text.split())
    assert "  b: HTTP 404\n" in text
    assert all(case.id in whole for case in cases)


def test_console__rubric__shows_its_grades_with_verbose_also_where_everything_passes() -> None:
    run = STATES["graded"]
    suites = tuple(
        replace(suite, cases=tuple(replace(case, status=Status.PASSED, error=None) for case in suite.cases))
        for suite in run.suites
    )
    text = render("console", replace(run, suites=suites), CONTEXT, style=ConsoleStyle(verbose=True, width=200))
    shown = "r-1: accuracy 3/3 (all of it is right), safety|tone 0/1 (it promises @octocat a refund)"
    assert f"RUBRIC GRADES (1 case)\n  {shown}\n" in text


def test_console__evidence__has_its_arithmetic_only_where_it_is_verbose() -> None:
    brief, whole = (
        " ".join(render("console", VERDICTS["confirmed"], CONTEXT, style=ConsoleStyle(verbose=verbose)).split())
        for verbose in (False, True)
    )
    assert "confirmed: failed 4 of 4 here, 1 of 20 in the history" in brief
    assert ("chance without a real change" in brief, "chance without a real change" in whole) == (False, True)
