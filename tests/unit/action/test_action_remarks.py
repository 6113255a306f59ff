"""Titles and remarks of checks, whatever the run holds."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_gate.config.policy import FailOn, Policy
from eval_gate.github.check_runs import MAX_ANNOTATION_TITLE, MAX_MESSAGE, MAX_TEXT
from eval_gate.model.case import Location
from eval_gate.model.comparison import CaseClass, Outcome
from eval_gate.reports.case_annotations import MAX_ANNOTATION_TEXT, CaseAnnotations, build_annotations
from eval_gate.reports.check_run import (
    MAX_TITLE,
    format_cancelled_title,
    format_check_title,
    format_problem_title,
    render_check_run,
)
from eval_gate.reports.context import ReportContext
from eval_gate.reports.view.report_view import ReportView, build_view
from eval_gate.results.baseline import NOT_REQUESTED, Baseline, NoBaseline
from tests.support.results import make_baseline_run, make_result, make_run, make_suite_result
from tests.support.sizes import size
from tests.support.verdicts import judge_against

CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
HOSTILE = st.sampled_from(
    [
        "\n::error::pwned\n",
        "##[error]x",
        "\x1b[31m",
        "\u202e",
        "</details>",
        "`",
        "|",
        "@team",
        "\x00",
        "\r",
        "%0A",
        "界" * 50,
        "x" * 300,
    ]
)
TEXT = st.lists(HOSTILE | st.text(max_size=20), max_size=4).map("".join)
FILE = st.sampled_from(["evals/a.json", "/etc/passwd", "../a.json", "a/../../b.json", "", "a b.json", "./a.json", ".."])
STATUS = st.sampled_from(["passed", "failed", "error", "skipped", "not_run"])
POLICY = st.builds(
    Policy,
    st.sampled_from(
        [
            frozenset({FailOn.REGRESSIONS}),
            frozenset({FailOn.FAILURES}),
            frozenset({FailOn.NEVER}),
            frozenset({FailOn.REGRESSIONS, FailOn.FLAKY, FailOn.STALE}),
        ]
    ),
    st.none() | st.floats(0, 1),
    st.integers(0, 3),
)
ABSENT = st.builds(NoBaseline, st.just("baseline-artifact-not-found"), TEXT, st.booleans())


@st.composite
def views(draw) -> ReportView:
    ids = draw(st.lists(TEXT.filter(str.strip), min_size=1, max_size=6, unique=True))
    cases = [
        make_result(
            case_id,
            draw(STATUS),
            error=draw(st.none() | TEXT),
            trials=draw(st.sampled_from([None, "PPF", "FFF", "EPF"])),
            location=draw(st.none() | st.builds(Location, file=FILE, line=st.integers(-1, 500))),
        )
        for case_id in ids
    ]
    stale = draw(st.booleans())
    now = make_run(
        make_suite_result(cases, tool_name=draw(TEXT) or "t", stale=stale),
        stop_reason=draw(st.none() | TEXT.filter(str.strip)),
    )
    then = make_baseline_run({case_id: draw(STATUS) for case_id in [*ids, "gone"]})
    baseline = Baseline(then, "b", draw(st.none() | st.floats(0, 400)), draw(st.none() | st.integers(0, 400)))
    judged = judge_against(now, draw(st.sampled_from([baseline, NOT_REQUESTED]) | ABSENT), draw(POLICY))
    return build_view(judged, ReportContext(name=draw(TEXT), baseline_branch=draw(TEXT) or None))


@pytest.mark.slow
@settings(max_examples=size(150))
@given(views())
def test_check__any_run__has_a_title_of_one_short_line_and_texts_that_github_takes(view) -> None:
    text = render_check_run(view)
    assert 0 < len(text.title) <= MAX_TITLE == 80
    assert not CONTROLS.search(text.title)
    assert text.title == text.title.strip()
    assert len(text.summary) <= MAX_TEXT
    assert len(text.page) <= MAX_TEXT
    assert not CONTROLS.search(text.summary.replace("\n", "").replace("\u200b", ""))


@pytest.mark.slow
@settings(max_examples=size(150))
@given(views())
def test_check__title__never_says_better_than_the_verdict(view) -> None:
    title = format_check_title(view)
    match view.verdict.outcome:
        case Outcome.INCONCLUSIVE:
            assert title.startswith("Inconclusive:")
        case Outcome.FAILED:
            assert not title.startswith(("No regressions", "No baseline", "Baseline not comparable", "Could not"))
        case Outcome.PASSED:
            assert not title.startswith(("Could not", "Pass rate"))
    if view.verdict.outcome is Outcome.PASSED and view.regressions:
        assert title.startswith(f"{len(view.regressions)} regression")


@pytest.mark.slow
@settings(max_examples=size(150))
@given(views())
def test_remarks__any_run__are_lines_in_files_of_the_repository_the_worst_first(view) -> None:
    remarks = build_annotations(view).items
    for remark in remarks:
        path = PurePosixPath(remark.file)
        assert remark.line > 0
        assert remark.file
        assert not path.is_absolute()
        assert ".." not in path.parts
        assert 0 < len(remark.title) <= MAX_ANNOTATION_TITLE
        assert 0 < len(remark.message) <= MAX_ANNOTATION_TEXT <= MAX_MESSAGE
        assert not CONTROLS.search(remark.title + remark.message)
        assert not remark.blocking or view.verdict.outcome is Outcome.FAILED
    words = [remark.title.partition(":")[0] for remark in remarks]
    errors = ["Agent error", "Unreachable agent", "Evaluation error", "Case without a score"]
    order = ["Regression", "Failing case", *errors, "Broken before this change", "Inconclusive"]
    assert words == sorted(words, key=order.index)


@pytest.mark.slow
@given(views())
def test_remarks__every_regression_whose_place_is_known__has_one_or_is_counted(view) -> None:
    known = [
        row
        for row in view.regressions
        if row.location and row.location.line > 0 and row.location.file == "evals/a.json"
    ]
    remarks = build_annotations(view)
    titles = [remark.title for remark in remarks.items if remark.file == "evals/a.json"]
    assert sum(title.startswith("Regression: ") for title in titles) + remarks.omitted_count >= len(known)


def judged(count: int, status: str = "failed") -> ReportView:
    cases = [make_result(f"c{number:04}", status) for number in range(count)]
    then = make_baseline_run({case.id: "passed" for case in cases})
    return build_view(
        judge_against(make_run(make_suite_result(cases)), Baseline(then, "b"), Policy(frozenset({FailOn.REGRESSIONS}))),
        ReportContext(),
    )


@pytest.mark.parametrize(("cases", "shown"), [(9, 9), (10, 10), (11, 10), (250, 10)])
def test_remarks__very_many__are_ten_and_the_others_are_counted(cases, shown) -> None:
    found = build_annotations(judged(cases))
    assert (len(found.items), found.omitted_count) == (shown, cases - shown)


def test_remarks__passing_cases__have_none() -> None:
    assert build_annotations(judged(5, "passed")) == CaseAnnotations()


@pytest.mark.slow
def test_check__very_many_of_everything__the_title_fits() -> None:
    then = {f"r{n}": "passed" for n in range(1_000)} | {f"n{n}": "failed" for n in range(1_000)}
    now = {case: "failed" if status == "passed" else "passed" for case, status in then.items()}
    baseline = Baseline(make_baseline_run(then), "b", 400.0, 400)
    view = build_view(judge_against(make_run(now), baseline, Policy(frozenset({FailOn.REGRESSIONS}))), ReportContext())
    assert format_check_title(view) == (
        "1,000 regressions, 1,000 new passes — 1000 of 2000 pass (baseline: 1000 of 2000)"
    )


def test_check__why_nothing_could_be_decided__is_one_line_without_signs_that_steer() -> None:
    run = make_run({"a": "error"}, stop_reason="first\n::error::x\x1b[31m\u202e" + "y" * 200)
    title = format_check_title(build_view(judge_against(run, NOT_REQUESTED, Policy()), ReportContext()))
    assert title.startswith("Inconclusive: first ⏎ ::error::x")
    assert (len(title), title.endswith("…")) == (80, True)
    assert not CONTROLS.search(title)


def test_check__long_reason__the_title_is_cut_between_words() -> None:
    run = make_run(
        {"a": "error"}, stop_reason="the agent refused every connection to http://host.docker.internal:8080/chat"
    )
    title = format_check_title(build_view(judge_against(run, NOT_REQUESTED, Policy()), ReportContext()))
    assert title == "Inconclusive: the agent refused every connection to…"


def test_check__hostile_reason__is_no_markdown_in_the_summary() -> None:
    run = make_run({"a": "error"}, stop_reason="<script> @team [x](http://evil.test) `a`")
    summary = render_check_run(build_view(judge_against(run, NOT_REQUESTED, Policy()), ReportContext())).summary
    assert not re.search(r"<script|@team|\]\(http", summary)


@pytest.mark.parametrize("error", ["\x00", "\u202e\n", "\x1b[31m", "\u200b"])
def test_remarks__a_reason_that_nobody_can_see__is_still_a_message(error) -> None:
    """GitHub refuses a check whose annotation says nothing, with all the others."""
    run = make_run(make_suite_result([make_result("a", "failed", error=error)]))
    for with_baseline in (True, False):
        baseline = Baseline(make_baseline_run({"a": "passed"}), "b") if with_baseline else NOT_REQUESTED
        (remark,) = build_annotations(build_view(judge_against(run, baseline, Policy()), ReportContext())).items
        assert remark.message.rpartition("fail. ")[2].strip()


@pytest.mark.slow
@pytest.mark.parametrize("total", [0, 1, 120])
@given(st.data())
def test_cancelled__any_counts__says_how_far_it_came(total, data) -> None:
    done = data.draw(st.integers(0, total))
    cases = {f"c{number}": "passed" if number < done else "not_run" for number in range(total)}
    title = format_cancelled_title(build_view(judge_against(make_run(cases), NOT_REQUESTED, Policy()), ReportContext()))
    assert title == f"Cancelled at {done}/{total}"


@given(TEXT, st.booleans())
def test_problem__any_message__is_a_short_line_that_says_whose_fault_it_is(message, usage) -> None:
    title = format_problem_title(message, usage=usage)
    assert title.startswith("Configuration error" if usage else "Inconclusive")
    assert len(title) <= 80
    assert not CONTROLS.search(title)


def test_check__all_classes_at_once__the_title_is_about_the_regressions() -> None:
    then = make_baseline_run({"r": "passed", "n": "failed", "s": "failed", "p": "passed"})
    now = make_run({"r": "failed", "n": "passed", "s": "failed", "p": "passed", "a": "failed"})
    view = build_view(judge_against(now, Baseline(then, "b"), Policy(frozenset({FailOn.REGRESSIONS}))), ReportContext())
    assert [change.case_id for change in view.comparison.select_changes(CaseClass.REGRESSION)] == ["r"]
    assert format_check_title(view) == "1 regression, 1 new pass — 2 of 5 pass (baseline: 2 of 4)"
