"""Reused suites in every report: read tests/golden/reuse/ as a reviewer would."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from eval_gate.model.comparison import RuleCode
from eval_gate.model.execution import ErrorCause, ErrorKind
from eval_gate.model.reuse import EvaluatedState, MeasuredSuite, ReuseOff, RunReason
from eval_gate.reports.check_run import render_check_run
from eval_gate.reports.console.style import ConsoleStyle
from eval_gate.reports.context import ReportContext
from eval_gate.reports.detail_levels import DETAIL_LEVELS
from eval_gate.reports.markdown import render_comment, render_summary
from eval_gate.reports.matrix import TargetRun, build_matrix, build_totals, render_matrix
from eval_gate.reports.rendering import render
from eval_gate.reports.run_statistics import find_outage, has_only_agent_errors, pair_outcomes
from eval_gate.reports.view.report_view import build_view
from eval_gate.reports.wording.reuse import OFF_WORDS, REASON_WORDS, describe_origins, describe_reuse
from eval_gate.results.run_reader import read_run
from eval_gate.results.run_writer import write_result
from eval_gate.struct import replace
from tests.support.pages import case_on, markup_of, page_data
from tests.support.results import make_baseline_run, make_result, make_run
from tests.support.reused_results import (
    BASE,
    BILLING,
    CHANGED,
    OLDER,
    SEARCH,
    STATES,
    SUPPORT,
    decide,
    hostile,
    judge_run,
    make_suite,
    narrowed,
    off,
    partly,
    rechecked,
)
from tests.unit.reports.test_reports_golden import ON_GITHUB

ON_MAIN = replace(ON_GITHUB, base_branch=None, baseline_branch="main")
RUNS = {name: make() for name, make in STATES.items()}


def view_of(state):
    return build_view(RUNS[state], ON_MAIN if state == "rechecked" else ON_GITHUB)


@pytest.mark.parametrize("state", ["partly", "every", "off", "narrowed", "rechecked"])
def test_comment__reuse__looks_like_this(golden, state) -> None:
    golden(f"reuse/{state}.md", render_comment(view_of(state)))


def test_summary__reuse__looks_like_this(golden) -> None:
    golden("reuse/partly-summary.md", render_summary(view_of("partly")))


@pytest.mark.parametrize("state", ["every", "rechecked"])
def test_console__reuse__looks_like_this(golden, state) -> None:
    golden(f"reuse/{state}.txt", render("console", RUNS[state], ReportContext()))


def test_console__verbose__marks_reused_cases_and_says_why_others_ran(golden) -> None:
    golden("reuse/partly-verbose.txt", render("console", partly(), ReportContext(), style=ConsoleStyle(verbose=True)))


def test_check__reuse__has_this_title_and_summary(golden) -> None:
    text = render_check_run(view_of("every"))
    golden("reuse/every-check.md", f"{text.title}\n\n{text.summary}")


def test_junit__reused_suite__took_no_time() -> None:
    root = ET.fromstring(render("junit", partly(), ReportContext()))
    suites = {suite.get("name"): suite for suite in root.iter("testsuite")}
    assert [suite.get("time") for suite in suites.values()] == ["0.000", "0.000", "0.240"]
    assert {case.get("time") for case in suites[SEARCH].iter("testcase")} == {"0.000"}
    assert len(suites[BILLING].findall("testcase")) == 2


def test_page__reused_suites__are_marked_and_their_cases_cost_nothing() -> None:
    page = render("html", partly(), ON_GITHUB)
    data = page_data(page)
    assert data["reused"] == [0, 1]
    times = dict(zip(data["rows"]["id"], data["rows"]["ms"], strict=True))
    assert times == {"invoice": 0, "credit": 0, "find": 0, "rank": 0, "refund": 120, "greeting": 120}
    assert "ms" not in case_on(page, "find")["now"]
    assert case_on(page, "refund")["now"]["ms"] == 120
    assert '<td>reused from <code dir="auto">3f2c1ab</code> of 2026-11-19</td>' in markup_of(page)
    assert "<p>Reused 2 of 3 suites (4 of 6 cases), <code" in markup_of(page)


def test_words__every_member_has_its_own() -> None:
    """A new member without words would end a report with a KeyError."""
    for table in (REASON_WORDS, OFF_WORDS):
        assert len(set(table.values())) == len(table)
    assert OFF_WORDS.keys() == set(ReuseOff)
    assert SAID.keys() == set(RunReason)


@pytest.mark.parametrize("reason", ReuseOff, ids=str)
def test_reuse_off__the_reason_is_told_without_a_column_and_not_at_the_start_of_the_comment(reason) -> None:
    view = build_view(off(reason), ON_GITHUB)
    for text in (render_summary(view), render("console", view.run, ReportContext())):
        assert f"\nNothing was reused: {OFF_WORDS[reason]}." in text
    assert "Nothing was reused" not in render_comment(view).partition("<details>")[0]
    assert "Nothing was reused" not in render_check_run(view).summary
    assert "Reused or executed" not in render_summary(view) + markup_of(render("html", view.run, ON_GITHUB))


PARTS = "evals, graders, targets, tools, configuration, patterns of `measures`, version of Eval Gate"
SAID = {
    RunReason.NO_MEASURES: "no `measures`",
    RunReason.UNREADABLE: "`agents/supprt/**` matches no file",
    RunReason.FILES_CHANGED: "measured files changed",
    RunReason.SETUP_CHANGED: f"the setup changed ({PARTS})",
    RunReason.NO_EARLIER_RESULT: "no earlier result",
    RunReason.NOT_PASSED: "the earlier run did not pass, or is incomplete",
    RunReason.NOT_SCORED: "a case has no score in the earlier run",
    RunReason.RECHECK: "re-checked, last executed at `0aa11bb` of 2026-11-12",
}


def test_suite_table__every_reason_and_origin__is_said() -> None:
    rows = {row.file: row.origin for row in view_of("many").suites}
    first = {one.reason: one.suite for one in reversed(RUNS["many"].reuse.suites)}
    assert {reason: rows[first[reason]] for reason in SAID} == {one: f"executed: {said}" for one, said in SAID.items()}
    assert rows["evals/036.yaml"] == "executed: a problem with its measured files"
    assert rows["evals/001.yaml"] == "reused from `0aa11bb` of 2026-11-12 (not the baseline)"


def test_suite_table__file_that_changed_during_the_run__is_named_beside_the_reason() -> None:
    (executed,) = (one.suite for one in RUNS["partly"].reuse.suites if one.reason)
    unsure = MeasuredSuite(suite=executed, problem="`x` was changed during the run")
    run = replace(RUNS["partly"], evaluated_state=EvaluatedState(parts={}, suites=(unsure,)))
    assert describe_origins(run)[executed] == "executed: measured files changed; `x` was changed during the run"


def test_reuse__several_suites__names_a_few() -> None:
    sentence = describe_reuse(RUNS["many"])
    assert "they measure has changed since they last ran." in sentence
    assert "`evals/001.yaml`, `evals/002.yaml`, `evals/003.yaml` and 147 more" in sentence


def test_reuse__commit_is_unknown__names_the_run() -> None:
    run = partly()
    unknown = tuple(replace(one, reused=one.reused and replace(one.reused, sha=None)) for one in run.suites)
    assert f"since run `{BASE.run_id}`. Saved" in describe_reuse(replace(run, suites=unknown))


def test_reruns__of_reused_cases__are_not_counted() -> None:
    view = build_view(partly(), ON_GITHUB)
    assert any(case.reruns for _, case in view.run.iter_cases())
    assert view.reruns is None
    assert "re-run" not in view.counts


@pytest.mark.parametrize(
    ("before", "here", "words"),
    [
        ("prompts/**, agents/**", "agents/**", "`prompts/**, agents/**` → `agents/**`"),
        ('{"**":["a","b"]}', '{"**":["a"]}', '`{"**":["a","b"]}` → `{"**":["a"]}`'),
        ("a", "`@team`", "`a` → `'@team'`"),
    ],
)
def test_setup_changes__measures__are_named(before, here, words) -> None:
    view = build_view(narrowed(before, here), ON_GITHUB)
    assert view.setup_changes.format_lines(3)[0].startswith(f"setting `measures` {words} (6 cases)")
    assert "Every suite ran: the setup changed (patterns of `measures`)." in render_comment(view)


def test_advice__regression_in_a_rechecked_suite__does_not_blame_the_change() -> None:
    view = build_view(rechecked(), ON_MAIN)
    assert view.verdict.reasons[0].code == RuleCode.REGRESSIONS
    for text in (render_summary(view), render_check_run(view).summary, render("console", view.run, ON_MAIN)):
        assert "ix the change" not in text
        assert "the cause is outside of the measured files" in re.sub(r"\s+", " ", text)


def test_recheck__nothing_got_worse__is_in_the_suite_table_alone() -> None:
    view = build_view(rechecked(broken=False), ON_MAIN)
    assert (view.outside_cause, view.advice) == (None, None)
    assert "executed: re-checked, last executed at `0aa11bb` of 2026-11-12" in render_summary(view)


@pytest.mark.parametrize("level", range(len(DETAIL_LEVELS)))
def test_comment__any_detail__says_what_was_reused(level) -> None:
    assert "Reused 150 of 200 suites" in render_comment(view_of("many"), start=level)


def test_reports__hostile_names__are_inert() -> None:
    view = build_view(hostile(), ON_GITHUB)
    for text in (render_comment(view), render_summary(view), render_check_run(view).summary):
        outside = re.sub(r"(`+).*?\1", "", text)
        assert not re.search(r"<script|</details>\||@team|!\[|\x1b|\u202e", outside)
        assert not re.search("^::", text, re.MULTILINE)
    page = markup_of(render("html", hostile(), ON_GITHUB))
    assert "<script>alert" not in page
    lines = render("console", hostile(), ReportContext(), style=ConsoleStyle(verbose=True)).splitlines()
    assert not [line for line in lines if re.search("^ *::|##\\[|\x1b|\u202e", line)]
    ET.fromstring(render("junit", hostile(), ReportContext()))


def test_heading__hostile_commit__is_inert() -> None:
    suite = make_suite(BILLING, {"a": "passed"})
    run = decide(make_run(suite), {BILLING: replace(BASE, sha="`|<b>@x")})
    title = render_comment(build_view(judge_run(run, make_baseline_run(suite)), ON_GITHUB)).splitlines()[1]
    assert title.endswith("— passed, nothing measured has changed since `'|<b>@x`")


def test_run_without_measures__says_nothing() -> None:
    assert describe_reuse(replace(partly(), reuse=None)) is None
    run = judge_run(make_run({"a": "passed"}), make_baseline_run({"a": "passed"}))
    assert "euse" not in render_comment(build_view(run, ON_GITHUB)) + render("console", run, ReportContext())


@pytest.mark.parametrize("state", ["partly", "rechecked", "many"])
def test_stored_run__has_the_same_reports(tmp_path, state) -> None:
    stored = read_run(str(write_result(tmp_path, RUNS[state]).file), tmp_path)
    assert render_comment(build_view(stored, ON_GITHUB)) == render_comment(build_view(RUNS[state], ON_GITHUB))


def test_matrix__reused_cases__are_counted() -> None:
    matrix = build_matrix([TargetRun("a", partly()), TargetRun("b", off())], "2026-11-21T10:00:00Z", "1.0.0")
    totals = dict(build_totals(matrix))
    assert totals["reused"] == ("4", "–")
    assert totals["time"] == ("240 ms", "720 ms")
    assert "| **reused** | 4 |" in render_matrix("md", matrix)


def test_baseline__that_reused_suites__is_no_measure_of_time() -> None:
    suites = (make_suite(BILLING, {"a": "passed"}), make_suite(SUPPORT, {"b": "passed"}))
    then = make_baseline_run(*suites)
    reusing = decide(then, {BILLING: OLDER, SUPPORT: CHANGED})
    assert (then.summary.total_duration_ms, reusing.summary.total_duration_ms) == (240, 120)
    spending = [build_view(judge_run(make_run(*suites), one), ON_GITHUB).spending for one in (then, reusing)]
    assert spending == ["agent time 240 ms (0 %) · wall time 1.5 s", "agent time 240 ms · wall time 1.5 s"]


def test_outage__of_all_executed_cases__is_one_although_most_are_reused() -> None:
    broken = {"error_kind": ErrorKind.AGENT_ERROR, "error_cause": ErrorCause.AGENT_FAILED, "http_status": 503}
    suites = [
        make_suite(BILLING, {f"b{number}": "passed" for number in range(20)}),
        make_suite(SUPPORT, [make_result(f"s{number}", "error", **broken) for number in range(3)]),
    ]
    run = decide(make_run(*suites), {BILLING: BASE, SUPPORT: CHANGED})
    judged = judge_run(run, make_baseline_run(suites[0], make_suite(SUPPORT, {f"s{n}": "passed" for n in range(3)})))
    assert find_outage(judged).ran == 3
    assert has_only_agent_errors(judged)


def test_certainty__reused_cases__are_no_evidence() -> None:
    """Their results in both runs are one and the same."""
    assert len(pair_outcomes(partly())) == 2
