"""Several targets side by side, to the letter: read tests/golden/matrix/ as a user would."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest
from jinja2 import Environment, PackageLoader

from eval_gate.config.outputs import ReportRequest
from eval_gate.config.policy import Policy
from eval_gate.errors import GateError
from eval_gate.model.result import RunResult
from eval_gate.model.setup import TargetIdentity
from eval_gate.reports.console.style import ConsoleStyle
from eval_gate.reports.matrix import (
    FORMATS,
    Matrix,
    TargetRun,
    build_matrix,
    check_formats,
    render_matrix,
    write_matrix,
)
from eval_gate.results.baseline import NOT_REQUESTED
from tests.support.pages import without_sheet
from tests.support.results import make_result, make_run, make_suite_result
from tests.support.verdicts import judge_against
from tests.unit.reports import test_reports_properties as properties

BEGAN = "2026-11-21T10:00:00Z"
HOSTILE = "</details>|`x`\n::error::no ##[warning] @team #12 ![i](http://x) <script>alert(1)</script> \x1b[31m\u202e"


def judged(name: str, *cases, **fields) -> RunResult:
    target = TargetIdentity(name=name, provider="openai", identity=f"openai:{name}", model=name)
    policy = fields.pop("policy", Policy())
    return judge_against(make_run(make_suite_result(list(cases)), target=target, **fields), NOT_REQUESTED, policy)


def leg(name: str, *cases, **fields) -> TargetRun:
    run_id = f"00000000-0000-4000-8000-{len(name):012}"
    return TargetRun(name, judged(name, *cases, run_id=run_id, **fields), f"evals/results/{run_id}/run.json")


def graded(case_id: str, score: float, **fields):
    return make_result(case_id, "passed" if score == 1 else "failed", score=score, graded=True, **fields)


def few() -> Matrix:
    return build_matrix(
        [
            leg(
                "gpt-5-mini",
                make_result("refund/partial", cost_usd=0.002),
                graded("refund/tone", 1.0, cost_usd=0.0031),
                make_result("faq/hours", trials="PPF", cost_usd=0.004),
                make_result("faq/address"),
                graded("faq/greeting", 0.85),
                make_result("order/later"),
            ),
            leg(
                "claude",
                make_result("refund/partial", "failed"),
                graded("refund/tone", 0.67),
                make_result("faq/hours", "failed", trials="PFF"),
                make_result("faq/address"),
                graded("faq/greeting", 0.9),
                make_result("order/later", "not_run"),
                stop_reason="the budget of $1 is used up ($1.0210 spent)",
            ),
            leg(
                "local",
                make_result("refund/partial", "error"),
                graded("refund/tone", 0.2),
                make_result("faq/hours", trials="PPP"),
                make_result("faq/address"),
                graded("faq/greeting", 0.9),
                make_result("order/later"),
            ),
        ],
        BEGAN,
        "1.0.0",
    )


def partly() -> Matrix:
    """The second target could not even be begun, and the last case of the first was not reached."""
    first = leg("a", make_result("one"), make_result("two"), make_result("three", "not_run"), stop_reason="interrupted")
    return build_matrix([first, TargetRun("gone", problem="the snapshot cannot be had: no connection")], BEGAN, "1.0.0")


def hostile() -> Matrix:
    cases = [make_result(HOSTILE, status, error=HOSTILE, description=HOSTILE) for status in ("passed", "failed")]
    return build_matrix(
        [leg(HOSTILE, cases[0]), leg("b|c", cases[1], stop_reason=HOSTILE), TargetRun("`", problem=HOSTILE)],
        BEGAN,
        "1.0.0",
    )


@pytest.mark.parametrize(("report_format", "ending"), [("console", "txt"), ("md", "md"), ("html", "html")])
def test_matrix__few__looks_like_this(golden, report_format, ending) -> None:
    text = render_matrix(report_format, few())
    golden(f"matrix/few.{ending}", without_sheet(text) if ending == "html" else text)


def test_matrix__target_without_a_run__is_shown_and_nothing_is_called_the_same(golden) -> None:
    golden("matrix/partly.md", render_matrix("md", partly()))
    golden("matrix/partly.txt", render_matrix("console", partly()))
    assert partly().same_everywhere == ()


def test_matrix__json__is_all_of_it(golden) -> None:
    text = render_matrix("json", few())
    assert msgspec.json.decode(text, type=Matrix) == few()
    made = json.loads(text)
    golden("matrix/cases.json", json.dumps(made["cases"], indent=2) + "\n")
    assert [target["name"] for target in made["targets"]] == ["gpt-5-mini", "claude", "local"]
    assert made["targets"][0]["summary"]["passed"] == 5
    assert made["targets"][0]["verdict"]["outcome"] == "failed"


def test_matrix__hostile_names__look_like_this(golden) -> None:
    golden("matrix/hostile.md", render_matrix("md", hostile()))
    golden("matrix/hostile.txt", render_matrix("console", hostile()))


def test_markdown__hostile_names__are_code_or_entities_in_their_cells() -> None:
    text = render_matrix("md", hostile())
    outside = re.sub(r"<summary>.*</summary>|(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert not re.search(r"<script|@team|!\[i|</details>", outside)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {5}


def test_console__hostile_names__are_no_commands_and_no_colours() -> None:
    text = render_matrix("console", hostile(), ConsoleStyle(verbose=True))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]|##\[", text)
    assert not any(line.lstrip().startswith("::") for line in text.splitlines())
    assert render_matrix("console", few(), ConsoleStyle(ascii=True)).isascii()


def test_html__hostile_names__are_escaped() -> None:
    page = render_matrix("html", hostile())
    assert "<script" not in page
    assert "default-src 'none'" in page
    assert "\x1b" not in page


def test_markdown_template__foreign_text__only_goes_through_a_filter(monkeypatch) -> None:
    monkeypatch.setattr(properties, "SAFE_FILTERS", properties.SAFE_FILTERS | {"cell"})
    monkeypatch.setattr(properties, "OURS", properties.OURS | {"matrix.heading", "target.gate"})
    monkeypatch.setattr(properties, "MACROS", properties.MACROS | {"head", "body", "rest"})
    source = PackageLoader("eval_gate.reports").get_source(Environment(), "matrix.md.j2")[0]
    assert properties.unsafe_outputs(source) == []


def many(cases: int, differing: int) -> Matrix:
    names = [f"a-case-with-a-name-of-some-length-{number:05}" for number in range(cases)]
    first = [make_result(name) for name in names]
    second = [make_result(name, "failed" if number < differing else "passed") for number, name in enumerate(names)]
    return build_matrix([leg("one", *first), leg("two", *second)], BEGAN, "1.0.0")


@pytest.mark.slow
def test_reports__thousands_of_cases__are_bounded_and_say_what_is_left_out() -> None:
    matrix = many(6_000, 1_000)
    markdown, page, console = (render_matrix(form, matrix) for form in ("md", "html", "console"))
    assert len(markdown) <= 60_000
    assert re.search(r"^[\d,]+ more cases not shown here\.$", markdown, re.MULTILINE)
    assert "1,000 more cases not shown here" in page
    assert "5,800 cases not listed (--verbose lists them)" in console
    assert len(console.splitlines()) < 230
    assert len(render_matrix("console", matrix, ConsoleStyle(verbose=True)).splitlines()) > 6_000


def test_console__many_cases_that_are_the_same__lists_those_that_differ() -> None:
    console = render_matrix("console", many(300, 2))
    assert "298 cases not listed" in console
    assert console.count("≠") == 2


@pytest.mark.parametrize(
    ("first", "second", "differs"),
    [
        (make_result("a"), make_result("a"), False),
        (make_result("a"), make_result("a", "failed"), True),
        (make_result("a"), make_result("a", "error"), True),
        (make_result("a"), make_result("a", "not_run"), False),
        (make_result("a", trials="PPP"), make_result("a", trials="PPF"), False),
        (graded("a", 0.4), graded("a", 0.5), False),
        (graded("a", 0.4), graded("a", 0.6), True),
        (make_result("a", "failed", score=0.2), make_result("a", "failed", score=0.8), False),
    ],
    ids=["same", "fails", "error", "not-run", "trials", "tolerated", "apart", "no-grades"],
)
def test_differs__results__only_where_targets_ended_differently(first, second, differs) -> None:
    matrix = build_matrix([leg("one", first), leg("two", second)], BEGAN, "1.0.0")
    assert matrix.cases[0].differs is differs


def test_pass_score__of_the_gate__is_what_counts_as_a_pass() -> None:
    policy = Policy(pass_score=0.8)
    matrix = build_matrix([leg(name, graded("a", 0.85), policy=policy) for name in ("one", "two")], BEGAN, "1.0.0")
    assert [cell.text for cell in matrix.cases[0].cells] == ["pass 0.85", "pass 0.85"]


def test_same_id__in_two_suites__are_two_rows_with_their_files() -> None:
    suites = [make_suite_result([make_result("a")], eval_file=name) for name in ("one.json", "two.json")]
    run = judge_against(make_run(*suites), NOT_REQUESTED, Policy())
    matrix = build_matrix([TargetRun("x", run), TargetRun("y", run)], BEGAN, "1.0.0")
    assert [case.label for case in matrix.cases] == ["a (one.json)", "a (two.json)"]


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        (["passed", "passed"], 0),
        (["passed", "failed"], 1),
        (["passed", "error"], 3),
        (["failed", "error"], 1),
        (["error", "failed"], 1),
        (["passed", None], 3),
        (["failed", None], 1),
    ],
    ids=str,
)
def test_exit_code__of_several__is_a_known_failure_before_what_could_not_be_decided(statuses, code) -> None:
    legs = [
        leg(f"t{number}", make_result("a", status)) if status else TargetRun("gone", problem="broken")
        for number, status in enumerate(statuses)
    ]
    assert build_matrix(legs, BEGAN, "1.0.0").exit_code == code


def test_write__formats__have_their_usual_names_or_the_one_asked_for(tmp_path: Path) -> None:
    requests = [*(ReportRequest(name, None) for name in FORMATS), ReportRequest("md", tmp_path / "deep" / "table.md")]
    written = write_matrix(requests, few(), tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in written] == [
        *("matrix.md", "matrix.html", "matrix.json", "matrix.txt"),
        "deep/table.md",
    ]
    assert all(path.read_text() for path in written)


def test_refuse_unknown__junit__says_what_there_is() -> None:
    with pytest.raises(GateError, match="not available for a comparison of several targets") as caught:
        check_formats([ReportRequest("md", None), ReportRequest("junit", None)])
    assert "md, html, json, console" in caught.value.hint
