"""What holds for every verdict that people see, whatever cases, branches, reasons and comments are called."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_gate.config.outputs import FORMATS
from eval_gate.config.policy import FailOn
from eval_gate.gate.waivers.waive_command import WaiveCommand, parse_commands
from eval_gate.model.comparison import Outcome
from eval_gate.model.execution import Status
from eval_gate.model.result import RunResult
from eval_gate.model.waiver import CommentOrigin, FileOrigin, RefusedCommand, Waiver, WaiverKind
from eval_gate.reports.check_run import format_check_title, render_check_run
from eval_gate.reports.console.style import ConsoleStyle
from eval_gate.reports.context import ReportContext
from eval_gate.reports.detail_levels import DETAIL_LEVELS
from eval_gate.reports.markdown import render_comment, render_summary
from eval_gate.reports.rendering import render
from eval_gate.reports.run_statistics import compute_pass_rates
from eval_gate.reports.view.report_view import ReportView, build_view
from eval_gate.struct import replace
from tests.support.pages import markup_of
from tests.support.sizes import size
from tests.support.verdicts import (
    REGRESSIONS,
    STEADY,
    TODAY,
    make_executed,
    make_judged,
    make_waiver,
    make_waivers,
)

pytestmark = pytest.mark.slow

HOSTILE = st.sampled_from(
    [
        "\n::error::pwned\n",
        "##[error]x",
        "\x1b[31m",
        "\u202e",
        "</details>",
        "<script>alert(1)</script>",
        "-->",
        "`",
        "```",
        "~~~~",
        "|",
        "@team",
        "#12",
        "[x](http://evil.test)",
        "![i](http://evil.test)",
        "\r\n\r\n# h",
        "\x00",
        "界" * 50,
        "x" * 300,
    ]
)
TEXT = st.lists(HOSTILE | st.text(max_size=12), min_size=1, max_size=3).map("".join)
NAME = TEXT.filter(str.strip)
URL = st.sampled_from(
    [
        "https://github.com/acme/bot/pull/7#issuecomment-1",
        "https://github.com/a) [x](http://evil.test",
        "javascript:alert(1)",
        "http://evil.test/",
        "https://github.com.evil.test/",
        "https://github.com/\n\n# h",
        'https://github.com/"onmouseover="x',
    ]
)
LETTERS = st.text("PF", min_size=1, max_size=5) | st.text("PFE", min_size=1, max_size=4)
RECORD = st.text("PF", min_size=1, max_size=8)
POLICY = st.sampled_from(
    [
        REGRESSIONS,
        replace(REGRESSIONS, must_pass=("*",)),
        replace(REGRESSIONS, allowed_regressions=2, min_pass_rate=0.5),
        replace(REGRESSIONS, fail_on=frozenset({FailOn.REGRESSIONS, FailOn.FLAKY, FailOn.FAILURES})),
        replace(REGRESSIONS, fail_on=frozenset({FailOn.NEVER})),
    ]
)


@st.composite
def waivers(draw, ids: list[str]) -> Waiver:
    by_file = draw(st.booleans())
    origin = (
        FileOrigin(file=draw(TEXT), line=draw(st.integers(1, 9)), is_new=draw(st.none() | st.booleans()))
        if by_file
        else CommentOrigin(author=draw(TEXT), url=draw(URL), written_at="2026-11-20T10:00:00Z")
    )
    return Waiver(
        kind=draw(st.sampled_from(WaiverKind)),
        case=draw(st.sampled_from(ids) | NAME),
        reason=draw(TEXT),
        until=TODAY + timedelta(days=draw(st.integers(-2, 20))),
        owner=draw(st.none() | TEXT),
        origin=origin,
    )


@st.composite
def runs(draw) -> RunResult:
    ids = draw(st.lists(NAME, min_size=1, max_size=5, unique=True))
    cases = [
        make_executed(one, draw(LETTERS), error=draw(TEXT), cost_usd=draw(st.none() | st.just(0.01))) for one in ids
    ]
    records = {one: draw(RECORD) for one in ids if draw(st.integers(0, 5))} if draw(st.integers(0, 6)) else None
    known = make_waivers(
        *draw(st.lists(waivers(ids), max_size=4)),
        trusted=draw(st.booleans()),
        refusals=tuple(draw(st.lists(st.builds(RefusedCommand, author=TEXT, url=URL, message=TEXT), max_size=2))),
        troubles=tuple(draw(st.lists(TEXT, max_size=2))),
    )
    reruns = draw(st.sampled_from([0, 1, 6]))
    return make_judged(cases, records or None, policy=draw(POLICY), waivers=known, reruns=reruns)


CONTEXTS = st.builds(
    ReportContext,
    name=TEXT,
    comment_key=st.just("k"),
    repository=st.sampled_from([None, "acme/bot"]),
    head_sha=st.just("a" * 40),
    base_branch=st.none() | NAME,
    can_waive_by_comment=st.booleans(),
    waive_requires_sha=st.booleans(),
)


@settings(max_examples=size(60))
@given(runs(), CONTEXTS)
def test_reports__any_verdict__are_made_and_stay_in_their_form(run, context) -> None:
    for report_format in FORMATS:
        assert render(report_format, run, context).endswith("\n") or report_format == "html"
    root = ET.fromstring(render("junit", run, context))
    for name, tag in (("failures", "failure"), ("skipped", "skipped")):
        assert len(root.findall(f"./testsuite/testcase/{tag}")) == int(root.get(name))
    for line in render("console", run, context, style=ConsoleStyle(verbose=True)).splitlines():
        assert not line.lstrip().startswith("::")
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", line)


LINK = re.compile(r"\]\(([^)]*)\)")


@settings(max_examples=size(60))
@given(runs(), CONTEXTS)
def test_markdown__any_verdict__foreign_text_is_code_or_entities(run, context) -> None:
    view = build_view(run, context)
    for text in (render_comment(view), render_summary(view), render_check_run(view).summary):
        fenced = re.sub(r"(?ms)^(~{3,})text\n.*?^\1$", "", text)
        outside = re.sub(r"<summary>.*</summary>|(`+)(?!`).*?(?<!`)\1(?!`)", "", fenced)
        assert "<script" not in outside
        assert "@team" not in outside
        assert all(url.startswith("https://github.com/") for url in LINK.findall(outside))
        assert outside.count("</details>") == outside.count("<details>")
        assert outside.count("<!--") <= 1  # the marker
    page = render("html", run, context)
    assert page.count("<script") == 4  # ours, and the data
    page = markup_of(page)
    assert all(
        url.startswith(("#cases", "#about", "https://github.com/")) for url in re.findall(r'href="([^"]*)"', page)
    )


@settings(max_examples=size(60))
@given(runs(), st.integers(min_value=700, max_value=8_000))
def test_markdown__any_limit__is_kept_with_heading_and_counts(run, limit) -> None:
    view = build_view(run, ReportContext(comment_key="k", name="n" * 200, can_waive_by_comment=True))
    comment, summary = render_comment(view, limit=limit), render_summary(view, limit=limit)
    assert len(comment) <= limit
    assert len(summary.encode()) <= limit
    assert comment.startswith("<!-- eval-gate:v1 key=k -->\n## ")
    assert re.search(r"\d+ cases?: \d+ pass", comment)


@settings(max_examples=size(60))
@given(runs())
def test_view__every_failing_case__is_in_exactly_one_list(run) -> None:
    view = build_view(run, ReportContext())
    lists = (
        *(view.regressions, view.must_pass, view.unconfirmed, view.waived, view.still_failing),
        *(
            view.failing,
            view.new_and_flaky,
            view.inconclusive_or_flaky if view.uses_history else view.inconclusive_cases,
        ),
    )
    seen = [(row.suite, row.id) for rows in lists for row in rows]
    assert len(seen) == len(set(seen))
    assert {(row.suite, row.id) for row in view.cases if row.status is Status.FAILED} <= set(seen)


@settings(max_examples=size(60))
@given(runs())
def test_view__rules_and_lists__count_the_same(run) -> None:
    view = build_view(run, ReportContext())
    values = {rule.name: rule.value for rule in view.rules}
    if "Regressions" in values:
        more = f", {len(view.suspected)} more suspected" if view.suspected else ""
        assert values["Regressions"] == f"{len(view.regressions)}{more}"
    if "Pass rate" in values and compute_pass_rates(view.run).judged:
        assert values["Pass rate"] == f"{compute_pass_rates(view.run).current * 100:.1f} %"
    if "Flaky cases" in values and view.uses_history:
        assert int(values["Flaky cases"]) >= len(view.inconclusive_cases)


@settings(max_examples=size(100))
@given(runs())
def test_reports__counts__are_the_same_everywhere(run) -> None:
    context = ReportContext()
    view = build_view(run, context)
    comment, summary = render_comment(view), render_summary(view)
    console, check = render("console", run, context), render_check_run(view).summary
    assert all(view.counts in text for text in (comment, summary, check))
    assert all(words in " ".join(console.split()) for words in (*view.passing_counts, *view.other_counts))
    failing = sum(row.status in {Status.FAILED, Status.ERROR} for row in view.cases)
    found = re.search(r"(\d+) do(?:es)? not pass(?: \(([^)]*)\))?", view.counts)
    assert (int(found[1]) if found else 0) == failing
    if found and found[2]:
        assert sum(int(number) for number in re.findall(r"(\d+) ", found[2])) <= failing
    if view.reruns:
        assert all(view.reruns in text for text in (comment, summary, console, render("html", run, context)))


@settings(max_examples=size(150))
@given(runs())
def test_heading__never_says_better_than_what_was_found(run) -> None:
    view = build_view(run, ReportContext())
    heading, title = view.heading, format_check_title(view)
    assert len(title) <= 80
    waived = any(
        row.change_class == "regression" and row.waiver.kind is WaiverKind.WAIVER for row in view.waived if row.waiver
    )
    if view.verdict.outcome is Outcome.PASSED:
        assert not (waived or view.regressions) or "no regressions" not in heading.lower()
        assert not waived or "waived" in heading
        assert not (waived or view.regressions) or not title.startswith("No regressions")
        assert not view.inconclusive_cases or view.regressions or view.suite_drop or "inconclusive" in heading
    if view.verdict.outcome is Outcome.FAILED:
        assert not title.startswith(("No regressions", "No baseline"))


@settings(max_examples=size(150))
@given(runs(), CONTEXTS)
def test_waive_command__any_names__is_read_as_these_cases_of_this_commit(run, context) -> None:
    view = build_view(run, context)
    if view.waive_comment is None:
        return
    assert view.verdict.outcome is Outcome.FAILED
    (found,) = parse_commands(view.waive_comment)
    assert isinstance(found, WaiveCommand)
    assert set(found.cases) <= {row.id for row in view.regressions}
    assert found.commit == (context.head_sha if context.waive_requires_sha else None)
    assert view.waive_comment in render_comment(view)


def crowded() -> ReportView:
    """As many as there may be of everything, each as long as it may be."""
    names = [f"{number:03}{'|' * 297}" for number in range(400)]
    entries = [
        make_waiver(name, line=number + 1, is_new=True, owner="<b>" * 100, reason="@team " * 83)
        for number, name in enumerate(names[:300])
    ]
    ghosts = [make_waiver(f"ghost{number}{'`' * 200}", is_new=True, reason="#1 " * 160) for number in range(200)]
    refusals = tuple(RefusedCommand(author="e" * 100, url="u" * 400, message="s" * 4_000) for _ in range(30))
    waivers = make_waivers(*entries, *ghosts, refusals=refusals, troubles=("t" * 10_000,))
    here = dict.fromkeys(names, "FFFF") | {f"fine/{number}": "P" for number in range(600)}
    run = make_judged(here, dict.fromkeys(here, "PPPPP"), waivers=waivers)
    return build_view(run, ReportContext(can_waive_by_comment=True, base_branch="`" * 300))


def test_markdown__as_much_as_there_may_be__fits_and_counts_what_is_left_out() -> None:
    view = crowded()
    comment, summary, check = render_comment(view), render_summary(view), render_check_run(view)
    assert len(comment) <= 60_000
    assert len(summary.encode()) <= 900_000
    assert len(check.page) <= 60_000
    assert len(check.summary) <= 60_000
    assert "100 regressions, 300 regressions waived" in comment
    assert "300 waived" in comment
    assert "200 entries that accept" not in comment  # of 500 new ones, in whatever state
    assert "500 new waivers or quarantines in this pull request" in comment
    assert "<b>" not in comment


@pytest.mark.parametrize("start", range(len(DETAIL_LEVELS)))
def test_comment__any_step_of_the_ladder__names_the_verdict_and_counts(start) -> None:
    text = render_comment(crowded(), start=start)
    assert "100 regressions" in text
    assert "300 waived" in text


def test_junit__steady_and_waived__only_what_counts_is_a_failure() -> None:
    waivers = make_waivers(make_waiver("a", is_new=False))
    run = make_judged({"a": "FFFF", "b": "FFFF", "c": "P"}, dict.fromkeys("abc", STEADY), waivers=waivers)
    root = ET.fromstring(render("junit", run, ReportContext()))
    assert (root.get("failures"), root.get("skipped")) == ("1", "1")
    assert root.find("./testsuite/testcase[@name='a']/skipped").get("type") == "waived"
