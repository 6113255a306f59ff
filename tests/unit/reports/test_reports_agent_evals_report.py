"""The Agent Evals command's reports, to the letter: read tests/golden/agent-evals/ as a user would."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from eval_gate.errors import GateError
from eval_gate.evaluators.agent_evals.table import TABLE
from eval_gate.evaluators.base import EvaluationContext
from eval_gate.evaluators.dispatch import build_evaluator_result
from eval_gate.model.conversation import FileEntry, Response
from eval_gate.model.execution import CaseDetails
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.model.specs.agent_evals import FileExists, FileJsonPath, OutputContains, OutputEquals, SuiteAssertion
from eval_gate.reports.agent_evals import (
    ReportTimes,
    build_report,
    format_failures,
    render_json,
    render_markdown,
    write_report_files,
)
from eval_gate.text.javascript.regex import PatternMatcher
from eval_gate.text.tokens import TokenData
from tests.support.cases import make_case, make_suite
from tests.support.grading import run_evaluation
from tests.support.results import make_result, make_run, make_suite_result

BEGAN = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)
MOMENTS = ReportTimes(
    BEGAN + timedelta(seconds=9.5),
    {
        "suites/notes.json": (BEGAN, BEGAN + timedelta(seconds=6.25)),
        "suites/hostile.json": (BEGAN + timedelta(seconds=6.25), BEGAN + timedelta(seconds=9)),
    },
)
FILES = (FileEntry(path="notes/data.json", kind="file", text='{"name": "test"}'),)


def judged(case_id: str, name: str, answer: str, *specs: SuiteAssertion, **fields) -> CaseResult:
    """A case as the engine leaves it, with what these assertions really say."""
    context = EvaluationContext(make_case(), Response(text=answer, files=FILES), TokenData(), PatternMatcher())
    said = [(spec, run_evaluation(partial(TABLE[type(spec)], spec), context)) for spec in specs]
    passed = all(evaluation.passed for _, evaluation in said)
    values = {
        "description": name,
        "assertions_run": len(specs),
        "details": CaseDetails(response=answer),
        "error": next((evaluation.error for _, evaluation in said if evaluation.error), None),
        "evaluator_results": tuple(build_evaluator_result(spec, evaluation, 1.0) for spec, evaluation in said),
    }
    return make_result(case_id, "passed" if passed else "failed", **(values | fields))


def a_run() -> RunResult:
    notes = [
        judged("write", "Writes a note", "Noted.", FileExists(path="notes/data.json"), OutputContains(value="Noted")),
        judged(
            "json",
            "Answers in JSON",
            '{"status": "failed"}',
            OutputEquals(expected={"status": "success"}),
            OutputContains(value="status", label="names the status"),
            FileJsonPath(path="notes/data.json", json_path="$.name", expected="other"),
            FileExists(path="../secret.txt"),
        ),
        make_result("slow", "error", description="Takes its time", duration_ms=120.0, error="timeout: no response"),
        make_result("broken", "error", description="Breaks", error="Max turns (3) exceeded"),
        make_result("later", "not_run", description="Was never asked"),
        make_result("none", "passed", description="Asserts nothing", assertions_run=0),
    ]
    hostile = [
        judged(
            "pipes|and`ticks`",
            "<img src=x> | @everyone ![](http://evil.test)",
            "::error::no\n# heading | `code`",
            OutputContains(value="``` | <b>", label="[link](http://evil.test)"),
        )
    ]
    return make_run(
        make_suite_result(notes, eval_file="suites/notes.json", format="agent-evals", tool_name="notes", tier=None),
        make_suite_result(hostile, eval_file="suites/hostile.json", format="agent-evals", tool_name="a|b", tier=None),
        make_suite_result({"gs-1": "failed"}),
    )


def build_example_report() -> dict:
    suites = [make_suite(file="suites/notes.json", format="agent-evals", version="2.1.0")]
    return build_report(a_run(), suites, MOMENTS)


@pytest.mark.contract("agent_evals.report.json")
def test_json__of_a_run__is_as_the_format_has_it(golden) -> None:
    golden("agent-evals/report.json", render_json(build_example_report()))


@pytest.mark.contract("agent_evals.report.md")
def test_markdown__of_a_run__is_readable_and_escaped(golden) -> None:
    golden("agent-evals/report.md", render_markdown(build_example_report()))


@pytest.mark.contract("agent_evals.report.verbose")
def test_failures__of_a_run__are_a_line_each(golden) -> None:
    golden("agent-evals/verbose.txt", "\n".join(format_failures(build_example_report())) + "\n")


@pytest.mark.contract("agent_evals.report.json")
def test_report__counts__are_of_all_cases_and_only_of_this_formats_suites() -> None:
    report = build_example_report()
    assert report["summary"] == {
        "totalSuites": 2,
        "totalCases": 7,
        "passed": 2,
        "failed": 2,
        "errors": 3,
        "skipped": 0,
        "passRate": 2 / 7,
    }
    assert [suite["suiteVersion"] for suite in report["suites"]] == ["2.1.0", "1.0.0"]
    assert build_report(make_run(), [], ReportTimes(BEGAN))["summary"]["passRate"] == 0.0


@pytest.mark.contract("agent_evals.report.json")
def test_report__case_without_an_answer__is_an_error_with_no_output_and_no_assertions() -> None:
    cases = {case["caseId"]: case for case in build_example_report()["suites"][0]["cases"]}
    for name, error in (("slow", "timeout: no response"), ("broken", "Max turns (3) exceeded"), ("later", "not run")):
        assert cases[name]["status"] == "error"
        assert (cases[name]["output"], cases[name]["assertionResults"], cases[name]["error"]) == (None, [], error)
    assert (cases["none"]["status"], cases["none"]["error"]) == ("pass", None)


def test_report__suite_without_moments__took_at_most_as_long_as_the_run() -> None:
    suite = build_report(a_run(), [], ReportTimes(BEGAN + timedelta(seconds=2)))["suites"][0]
    assert (suite["startedAt"], suite["completedAt"]) == ("2026-11-21T10:00:00.000Z", "2026-11-21T10:00:02.000Z")
    assert suite["durationMs"] == 2000


@pytest.mark.contract("agent_evals.report.names")
def test_write__reports_of_one_second__have_names_of_their_own(tmp_path: Path) -> None:
    folder = tmp_path / "agent-evals" / "reports"
    first = write_report_files(folder, {"json": "{}", "md": "#"}, BEGAN)
    second = write_report_files(folder, {"md": "##"}, BEGAN)
    third = write_report_files(folder, {"json": "[]", "md": "###"}, BEGAN)
    assert [path.name for path in (*first, *second, *third)] == [
        "report-2026-11-21T10-00-00.json",
        "report-2026-11-21T10-00-00.md",
        "report-2026-11-21T10-00-00-2.md",
        "report-2026-11-21T10-00-00-3.json",
        "report-2026-11-21T10-00-00-3.md",
    ]
    assert [path.read_text() for path in first] == ["{}", "#"]


@pytest.mark.contract("agent_evals.report.names")
def test_write__a_link_in_the_place__is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    (tmp_path / "report-2026-11-21T10-00-00.md").symlink_to(outside)
    (written,) = write_report_files(tmp_path, {"md": "#"}, BEGAN)
    assert not outside.exists()
    assert written.name == "report-2026-11-21T10-00-00-2.md"


def test_write__no_folder_to_be_had__says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(GateError, match="cannot be written"):
        write_report_files(tmp_path / "file" / "reports", {"md": "#"}, BEGAN)


def test_json__half_characters__can_be_written_and_read(tmp_path: Path) -> None:
    report = build_example_report()
    report["suites"][0]["cases"][0]["output"] = "\ud800 é"
    (written,) = write_report_files(tmp_path, {"json": render_json(report)}, BEGAN)
    assert json.loads(written.read_bytes())["suites"][0]["cases"][0]["output"] == "\ud800 é"
