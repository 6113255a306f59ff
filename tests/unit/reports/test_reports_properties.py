"""What holds for every report, whatever the run holds."""

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import Environment, PackageLoader, nodes

from eval_gate.config.outputs import FORMATS
from eval_gate.config.policy import Policy
from eval_gate.model.comparison import CaseChange, CaseClass
from eval_gate.model.execution import CaseDetails
from eval_gate.reports.console.style import ConsoleStyle, measure_width
from eval_gate.reports.context import ReportContext
from eval_gate.reports.detail_levels import DETAIL_LEVELS, render_within_limit
from eval_gate.reports.markdown import render_comment, render_summary
from eval_gate.reports.rendering import render
from eval_gate.reports.view.report_view import build_view
from eval_gate.results.baseline import NOT_REQUESTED, Baseline
from eval_gate.struct import replace
from tests.support.results import FILE, make_baseline_run, make_result, make_run, make_suite_result
from tests.support.sizes import size
from tests.support.verdicts import judge_against

HOSTILE = "</details>|`x`\n::error::no ##[warning] @team #12 ![i](http://x) <script>alert(1)</script> \x1b[31m\u202e"
TEXT = st.text(alphabet="ab`|~*_[]()<>#@:\n\x1b\u202e&'\"-{}%\x00é界", max_size=40)
STATUS = st.sampled_from(["passed", "failed", "error", "skipped", "not_run"])


@st.composite
def runs(draw):
    ids = draw(st.lists(TEXT.filter(str.strip), min_size=1, max_size=5, unique=True))
    cases = [
        make_result(case_id, draw(STATUS), description=draw(TEXT), error=draw(st.none() | TEXT)) for case_id in ids
    ]
    now = make_run(
        make_suite_result(cases, tool_name=draw(TEXT) or "t", warnings=tuple(draw(st.lists(TEXT, max_size=2))))
    )
    then = make_baseline_run({case_id: draw(STATUS) for case_id in ids}) if draw(st.booleans()) else None
    return judge_against(now, Baseline(then, "b") if then else NOT_REQUESTED, Policy())


@pytest.mark.slow
@settings(max_examples=size(60))
@given(runs())
def test_reports__any_run__are_made_and_stay_in_their_form(run) -> None:
    context = ReportContext()
    for report_format in FORMATS:
        assert render(report_format, run, context).endswith("\n") or report_format == "html"
    ET.fromstring(render("junit", run, context))
    for line in render("console", run, context, style=ConsoleStyle(verbose=True)).splitlines():
        assert not line.lstrip().startswith("::")
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", line)


COUNTS = re.compile(r"\d+ cases?: \d+ pass")


@pytest.mark.slow
@settings(max_examples=size(60))
@given(runs(), st.integers(min_value=500, max_value=5_000))
def test_markdown__any_limit__is_kept_with_marker_heading_and_counts(run, limit) -> None:
    view = build_view(run, ReportContext(comment_key="k", name="n" * 200))
    comment, summary = render_comment(view, limit=limit), render_summary(view, limit=limit)
    assert len(comment) <= limit
    assert len(summary.encode()) <= limit
    assert comment.startswith("<!-- eval-gate:v1 key=k -->\n## ")
    assert summary.startswith("# ")
    assert COUNTS.search(comment)
    assert limit < 2_000 or COUNTS.search(summary)


def test_summary__no_room_for_a_single_case__still_counts_them() -> None:
    cases = [make_result("a", "failed"), make_result("b", "error"), make_result("c", "skipped"), make_result("d")]
    run = make_run(make_suite_result(cases))
    judged = judge_against(run, Baseline(make_baseline_run(dict.fromkeys("abcd", "passed")), "b"), Policy())
    view = build_view(judged, ReportContext(name="n" * 200))
    summary = render_summary(view, limit=1_700)
    assert "All cases" not in summary
    assert "4 cases: 1 pass, 2 do not pass" in summary


@given(st.integers(min_value=0, max_value=400), st.integers(min_value=0, max_value=500))
def test_fit__any_limit__is_kept_by_the_first_step_that_fits(size, limit) -> None:
    def made(detail):
        return "x" * (size * (detail.rows + 1))

    text = render_within_limit(made, limit)
    assert len(text) <= limit
    whole = [step for step in DETAIL_LEVELS if len(made(step)) <= limit]
    assert not whole or text == made(whole[0])


def test_fit__one_character_too_long__is_shortened() -> None:
    def made(detail):
        return "x" * (detail.rows + 1)

    assert len(render_within_limit(made, 21)) == 21
    assert len(render_within_limit(made, 20)) == 11


def test_comment__nothing_fits_but_the_counts__still_says_what_was_left_out() -> None:
    view = build_view(hostile_run(), ReportContext(comment_key="k"))
    text = render_comment(view, limit=300)
    assert text.splitlines()[0] == "<!-- eval-gate:v1 key=k -->"
    assert "1 case: 0 pass, 1 does not pass" in text
    assert "The rest does not fit here" in text


def test_summary__answers_of_many_bytes__is_counted_in_bytes() -> None:
    cases = [make_result(f"c{number}", "failed", details=CaseDetails(response="界" * 4_000)) for number in range(20)]
    view = build_view(judge_against(make_run(make_suite_result(cases)), NOT_REQUESTED, Policy()), ReportContext())
    assert "界" in render_summary(view)
    short = render_summary(view, limit=30_000)
    assert len(short.encode()) <= 30_000
    assert "界" not in short


def hostile_run():
    case = make_result(HOSTILE, "failed", description=HOSTILE, error=HOSTILE)
    suite = make_suite_result([case], tool_name=HOSTILE, eval_file=HOSTILE, warnings=(HOSTILE,))
    return judge_against(make_run(suite, stop_reason=HOSTILE), NOT_REQUESTED, Policy())


@pytest.mark.parametrize("make", [render_comment, render_summary])
def test_markdown__hostile_text__is_code_or_entities(make) -> None:
    text = make(build_view(hostile_run(), ReportContext(name=HOSTILE)))
    # inside <summary> Markdown is not read, only HTML is
    assert all(re.fullmatch(r"[^<>]*", inside) for inside in re.findall(r"<summary>(.*)</summary>", text))
    outside = re.sub(r"<summary>.*</summary>|(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert "<script" not in outside
    assert "@team" not in outside
    assert "![i]" not in outside
    assert outside.count("</details>") == outside.count("<details>")


def test_html__hostile_text__is_escaped() -> None:
    page = render("html", hostile_run(), ReportContext(name=HOSTILE))
    assert page.count("<script") == 4  # ours, and the data
    assert page.count("alert(1)") > 0
    assert "<script>alert(1)" not in page
    assert "default-src 'none'" in page


@pytest.mark.contract("console.hostile")
@pytest.mark.parametrize("verbose", [False, True])
def test_console__hostile_text__is_no_command_and_no_colour(verbose) -> None:
    text = render("console", hostile_run(), ReportContext(), style=ConsoleStyle(verbose=verbose))
    assert "\x1b" not in text
    assert not any(line.lstrip().startswith("::") for line in text.splitlines())
    assert "##[" not in text


@pytest.mark.contract("console.alignment")
def test_console__wide_characters__keep_the_columns_straight() -> None:
    cases = [
        make_result("gs-1", description="東京の天気"),
        make_result("gs-22", description="weather"),
        make_result("絵", description="🌦"),
    ]
    text = render(
        "console",
        judge_against(make_run(make_suite_result(cases)), NOT_REQUESTED, Policy()),
        ReportContext(),
        style=ConsoleStyle(verbose=True),
    )
    rows = [line for line in text.splitlines() if line.startswith("  ✓")]
    assert len({measure_width(row) for row in rows}) == 1
    assert measure_width("東京") == 4


def test_console__large_suite__lists_only_what_did_not_pass() -> None:
    cases = {f"c{number}": "failed" if number == 7 else "passed" for number in range(300)}
    run = judge_against(make_run(cases), NOT_REQUESTED, Policy())
    short = render("console", run, ReportContext())
    assert "✗ get_weather golden  299 of 300 pass\n\nFAILED (1): c7\n" in short
    assert "c8" not in short
    assert "c8 " in render("console", run, ReportContext(), style=ConsoleStyle(verbose=True))


def test_console__many_suites__lists_those_in_which_a_case_did_not_pass() -> None:
    suites = [
        make_suite_result(
            {"a": "failed" if number == 7 else "passed"}, tool_name=f"tool-{number:02}", eval_file=f"{number}"
        )
        for number in range(40)
    ]
    lines = render("console", judge_against(make_run(*suites), NOT_REQUESTED, Policy()), ReportContext()).splitlines()
    assert lines[:2] == ["✗ tool-07 golden  0 of 1 pass", "… and 39 more suites in which every case passes"]


@pytest.mark.slow
def test_comment__refused_once__gets_shorter_step_by_step() -> None:
    cases = [make_result(f"case-{number:04}", "failed") for number in range(500)]
    then = make_baseline_run({case.id: "passed" for case in cases})
    view = build_view(judge_against(make_run(make_suite_result(cases)), Baseline(then, "b"), Policy()), ReportContext())
    lengths = [len(render_comment(view, start=step)) for step in range(len(DETAIL_LEVELS))]
    assert lengths == sorted(lengths, reverse=True)
    assert "500 regressions" in render_comment(view, start=len(DETAIL_LEVELS) - 1)


SAFE_FILTERS = {
    *(
        "code",
        "code_cell",
        "text",
        "html",
        "block",
        "format_case_link",
        "format_names",
        "format_names_by_reason",
    ),
    *(
        "format_sentence",
        "format_names_with_evidence",
        "format_names_with_results",
        "format_evidence_cell",
        "format_terms_cell",
        "format_waiver",
        "format_prose",
        "format_prose_cell",
        "format_reuse",
        "format_setup_changes",
    ),
    *(
        "render_case_table",
        "render_regression_table",
        "render_score_table",
        "render_cause_groups",
        "render_flaky_table",
    ),
    *("render_responses", "render_evidence", "format_row_count", "render_behaviour", "render_metrics"),
    *("format_percent", "format_signed", "format_seconds", "length", "min", "urlencode"),
}
OURS = {
    # our own words and numbers, and addresses that we made
    *(
        "marker",
        "provenance",
        "spent",
        "links_line",
        "baseline_words",
        "stale_note",
        "unmeasured_note",
        "refresh_note",
        "older_note",
        "title",
        "level",
    ),
    *("view.symbol", "view.heading", "view.lead", "view.spending", "view.stale_count"),
    *("context.page_url", "context.report_url", "context.errors_doc_url"),
    *(
        "cause.count",
        "first.count",
        "row.baseline_result",
        "row.current_result",
        "row.scores",
        "row.outcome",
        "row.change_text",
    ),
    *("suite.passed", "suite.failed", "suite.other", "suite.baseline_passed", "suite.score"),
    *("suite.regressions", "suite.new_passes", "view.counts", "view.failing_title", "suite.stale", "current_title"),
    *("view.behaviour.title", "view.metrics.title"),
    *("group.headline", "group.explanation", "group.title_for_many"),
    *("group.tiers", "view.score_tolerance", "view.reruns", "words"),
    *(f"summary.{name}" for name in ("total_cases", "passed", "failed", "errored", "skipped", "not_run")),
}
MACROS = {
    *("title", "why", "next_step", "cautions", "links", "folds", "folding_table", "suite_table", "grade_table"),
    *("setup_changes", "grouped", "stale_line", "warning_list", "section", "list", "count", "rows_table"),
    *("waived_table", "entry_list", "new_waivers", "waive_offer", "inconclusive_words", "inconclusive", "notes_above"),
    *("by_base_agent", "main_broke", "stale_baseline", "waiver_warnings", "rest", "named", "caller"),
    *("reuse",),
}


def unsafe_outputs(source: str) -> list[str]:
    """Expressions of a Markdown template that print something without saying how it is made safe."""
    return [
        f"line {expression.lineno}: {expression}"
        for output in Environment().parse(source).find_all(nodes.Output)
        for expression in output.nodes
        if not isinstance(expression, nodes.TemplateData) and not _safe(expression)
    ]


def _safe(node) -> bool:
    match node:
        case nodes.Const():
            return True
        case nodes.Filter(name="trim" | "join"):
            return _safe(node.node)
        case nodes.Filter(name="map"):
            return isinstance(node.args[0], nodes.Const) and node.args[0].value in SAFE_FILTERS
        case nodes.Filter():
            return node.name in SAFE_FILTERS
        case nodes.CondExpr():
            return _safe(node.expr1) and (node.expr2 is None or _safe(node.expr2))
        case nodes.Or():
            return _safe(node.left) and _safe(node.right)
        case nodes.Sub():
            return True  # only numbers can be subtracted
        case nodes.Name() | nodes.Getattr():
            return _path(node) in OURS
        case nodes.Call():
            return isinstance(node.node, nodes.Name) and node.node.name in MACROS
    return False


def _path(node) -> str:
    return node.name if isinstance(node, nodes.Name) else f"{_path(node.node)}.{node.attr}"


@pytest.mark.rows_each("template")
@pytest.mark.parametrize("template", ["comment.md.j2", "summary.md.j2", "parts.md.j2", "verdict.md.j2"])
def test_templates__foreign_text__only_through_a_filter(template) -> None:
    source = PackageLoader("eval_gate.reports").get_source(Environment(), template)[0]
    for name in set(re.findall(r"\| (\w+)", source)) & {"safe", "e", "escape"}:
        pytest.fail(f"{template} uses {name}, which is no escaping of Markdown")
    assert unsafe_outputs(source) == []


@pytest.mark.parametrize(
    "source",
    [
        "{{ row.failure_summary }}",
        "{{ row.id or 'x' }}",
        "{{ names | join }}",
        "{{ (row.id) if x }}",
        "{{ view.opening | lower }}",
        "{{ view.asked | map('lower') | join }}",
    ],
)
def test_templates__unfiltered_text__is_found(source) -> None:
    assert len(unsafe_outputs(source)) == 1


@pytest.mark.parametrize("change", list(CaseClass), ids=str)
def test_summary__every_class_of_cases__is_named(change) -> None:
    """No case disappears because of what the comparison calls it."""
    gone = change is CaseClass.REMOVED
    now = make_run({} if gone else {"the-case": "passed"})
    judged = judge_against(now, Baseline(make_baseline_run({"the-case": "passed"}), "b"), Policy())
    only = CaseChange(suite=FILE, case_id="the-case", change=change)
    run = replace(judged, comparison=replace(judged.comparison, changes=(only,)))
    assert "the-case" in render_summary(build_view(run, ReportContext()))


def test_view__same_id_in_two_suites__is_told_apart() -> None:
    suites = [
        make_suite_result({"same": "failed", "own": "failed"}),
        make_suite_result({"same": "failed"}, eval_file="b"),
    ]
    view = build_view(judge_against(make_run(*suites), NOT_REQUESTED, Policy()), ReportContext())
    assert [row.label for row in view.failing] == [f"same ({FILE})", "own", "same (b)"]


@pytest.mark.slow
def test_html__thousands_of_answers__only_those_of_failing_cases() -> None:
    cases = [make_result(f"c{number}", details=CaseDetails(response="passing words")) for number in range(1_001)]
    cases.append(make_result("bad", "failed", details=CaseDetails(response="failing words")))
    page = render("html", judge_against(make_run(make_suite_result(cases)), NOT_REQUESTED, Policy()), ReportContext())
    assert "failing words" in page
    assert "passing words" not in page
    assert "left out" in page
