"""What holds for every report, whatever the run holds."""

import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import Environment, PackageLoader, nodes

from runner.gate.baseline import NOT_ASKED_FOR, Baseline
from runner.gate.judge import judge
from runner.gate.policy import Policy
from runner.reports.console import ConsoleStyle, pad, width
from runner.reports.fit import LADDER
from runner.reports.markdown import render_comment, render_summary
from runner.reports.render import FORMATS, render
from runner.reports.view import ReportContext, view_of
from tests.support.results import make_baseline_run, make_result, make_run, make_suite_result

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
    return judge(now, Baseline(then, "b") if then else NOT_ASKED_FOR, Policy())


@settings(max_examples=60)
@given(runs())
def test_reports__any_run__are_made_and_stay_in_their_form(run) -> None:
    context = ReportContext()
    for report_format in FORMATS:
        assert render(report_format, run, context).endswith("\n") or report_format == "html"
    ET.fromstring(render("junit", run, context))
    for line in render("console", run, context, style=ConsoleStyle(verbose=True)).splitlines():
        assert not line.lstrip().startswith("::")
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", line)


@settings(max_examples=60)
@given(runs(), st.integers(min_value=200, max_value=3_000))
def test_comment__any_limit__is_kept_and_begins_with_the_marker(run, limit) -> None:
    text = render_comment(view_of(run, ReportContext(comment_key="k")), limit=limit)
    assert len(text) <= limit
    assert text.startswith("<!-- eval-gate:v1 key=k -->\n## ")


def hostile_run():
    case = make_result(HOSTILE, "failed", description=HOSTILE, error=HOSTILE)
    suite = make_suite_result([case], tool_name=HOSTILE, eval_file=HOSTILE, warnings=(HOSTILE,))
    return judge(make_run(suite, stopped=HOSTILE), NOT_ASKED_FOR, Policy())


@pytest.mark.parametrize("make", [render_comment, render_summary])
def test_markdown__hostile_text__is_code_or_entities(make) -> None:
    text = make(view_of(hostile_run(), ReportContext(name=HOSTILE)))
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert "<script" not in outside
    assert "@team" not in outside
    assert "![i]" not in outside
    assert outside.count("</details>") == outside.count("<details>")


def test_html__hostile_text__is_escaped() -> None:
    page = render("html", hostile_run(), ReportContext(name=HOSTILE))
    assert "<script" not in page
    assert "default-src 'none'" in page


@pytest.mark.contract("console.hostile")
def test_console__hostile_text__is_no_command_and_no_colour() -> None:
    text = render("console", hostile_run(), ReportContext(), style=ConsoleStyle(verbose=True))
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
    text = render("console", judge(make_run(make_suite_result(cases)), NOT_ASKED_FOR, Policy()), ReportContext())
    rows = [line for line in text.splitlines() if line.startswith("  ✓")]
    assert len({width(row) for row in rows}) == 1
    assert width(pad("東京", 6)) == 6


def test_console__large_suite__lists_only_what_did_not_pass() -> None:
    cases = {f"c{number}": "failed" if number == 7 else "passed" for number in range(300)}
    run = judge(make_run(cases), NOT_ASKED_FOR, Policy())
    short = render("console", run, ReportContext())
    assert "299 passing cases not listed" in short
    assert "c7 " in short
    assert "c8 " not in short
    assert "c8 " in render("console", run, ReportContext(), style=ConsoleStyle(verbose=True))


def test_comment__refused_once__gets_shorter_step_by_step() -> None:
    cases = [make_result(f"case-{number:04}", "failed") for number in range(500)]
    then = make_baseline_run({case.id: "passed" for case in cases})
    view = view_of(judge(make_run(make_suite_result(cases)), Baseline(then, "b"), Policy()), ReportContext())
    lengths = [len(render_comment(view, start=step)) for step in range(len(LADDER))]
    assert lengths == sorted(lengths, reverse=True)
    assert "500 regressions" in render_comment(view, start=len(LADDER) - 1)


SAFE_FILTERS = {"code", "code_cell", "text", "html", "block", "case_link", "names", "staleness", "percent", "signed"}
OURS = {
    # our own words and numbers, and addresses that we made
    *("marker", "provenance", "stale_note", "count", "case_table", "folding_table", "cause_table", "suite_table"),
    *("stale_line", "title"),
}
OUR_FIELDS = {
    *("symbol", "heading", "count", "passed", "failed", "other", "total_cases", "errored", "not_run", "skipped"),
    *("then", "here", "baseline_passed", "report_url", "assertions_run", "what"),
}


def unsafe_outputs(template: str) -> list[str]:
    """Expressions of a Markdown template that print something without saying how it is made safe."""
    environment = Environment(loader=PackageLoader("runner.reports"))
    source = environment.loader.get_source(environment, template)[0]
    found = []
    for output in environment.parse(source).find_all(nodes.Output):
        for expression in output.nodes:
            if not isinstance(expression, nodes.TemplateData) and not _safe(expression):
                found.append(f"{template}:{expression.lineno}: {expression}")
    return found


def _safe(node) -> bool:
    match node:
        case nodes.Const():
            return True
        case nodes.Filter(name="length" | "min" | "join" | "format" | "lower"):
            return True
        case nodes.Filter():
            return node.name in SAFE_FILTERS
        case nodes.CondExpr():
            return _safe(node.expr1) and (node.expr2 is None or _safe(node.expr2))
        case nodes.Or():
            return _safe(node.left) and _safe(node.right)
        case nodes.Sub():
            return True
        case nodes.Name():
            return node.name in OURS
        case nodes.Getattr():
            return node.attr in OUR_FIELDS - {"what"}
        case nodes.Call():
            inner = node.node
            return (isinstance(inner, nodes.Name) and inner.name in OURS) or (
                isinstance(inner, nodes.Getattr) and inner.attr == "replace"
            )
    return False


@pytest.mark.parametrize("template", ["comment.md.j2", "summary.md.j2", "parts.md.j2"])
def test_templates__foreign_text__only_through_a_filter(template) -> None:
    assert unsafe_outputs(template) == []
