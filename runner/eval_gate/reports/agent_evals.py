"""Reports of the Agent Evals command: JSON, Markdown and a console summary.

Source: Agent Evals, "Output" and "Flowchart: Print summary"; agent-evals behaviour 3.5, E-02, E-08. A case that was not
run is an error here, because the format has no other status for it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from eval_gate.errors import ExitCode, GateError
from eval_gate.files.writing import open_new_file
from eval_gate.model.case import EvalSuite
from eval_gate.model.execution import EvaluatorResult, Status
from eval_gate.model.result import CaseResult, RunResult, SuiteResult
from eval_gate.reports.console.style import MAX_DESCRIPTION, MAX_ID, ConsoleStyle, align_columns
from eval_gate.reports.wording.numbers import format_percent, format_seconds
from eval_gate.struct import FrozenStruct, field
from eval_gate.text.escape import escape_markdown, format_code_span, format_count, to_console_line, truncate_text
from eval_gate.text.safe_output import neutralize_json

FORMAT: Final = "agent-evals"
KINDS: Final = ("json", "md")
_STATUS_WORDS: Final = {
    Status.PASSED: "pass",
    Status.FAILED: "fail",
    Status.ERROR: "error",
    Status.SKIPPED: "skip",
    Status.NOT_RUN: "error",
}
_COUNT_NAMES: Final = (("pass", "passed"), ("fail", "failed"), ("error", "errors"), ("skip", "skipped"))
_MAX_MESSAGE: Final = 500
_MAX_ATTEMPTS: Final = 1_000
_COLOURS: Final = {"pass": "green", "fail": "red", "error": "yellow", "skip": "dim"}
_STATUS_WIDTH: Final = 5


class ReportTimes(FrozenStruct):
    """Times of an Agent Evals report: when it was generated, and start and end of each suite by eval file."""

    generated_at: datetime
    suites: Mapping[str, tuple[datetime, datetime]] = field(default_factory=dict)


def build_report(run: RunResult, suites: Sequence[EvalSuite], moments: ReportTimes) -> dict[str, Any]:
    """Build the report as data, under the names of the Agent Evals format.

    The report has only the Agent Evals suites of `run`; `suites` are the suites as loaded. A suite without times in
    `moments` counts from the start of the run until the report was generated, which is an upper bound.
    """
    versions = {suite.file: suite.version for suite in suites}
    entries = [
        _build_suite(suite, versions.get(suite.eval_file), run, moments)
        for suite in run.suites
        if suite.format == FORMAT
    ]
    statuses = [case["status"] for suite in entries for case in suite["cases"]]
    return {
        "generatedAt": _format_time(moments.generated_at),
        "durationMs": sum(suite["durationMs"] for suite in entries),
        "summary": {"totalSuites": len(entries), "totalCases": len(statuses), **_count_statuses(statuses)},
        "suites": entries,
    }


def render_json(report: Mapping[str, Any]) -> str:
    """Render the report as indented JSON for machines."""
    return neutralize_json(json.dumps(report, ensure_ascii=False, indent=2)) + "\n"


def _build_suite(suite: SuiteResult, version: str | None, run: RunResult, moments: ReportTimes) -> dict[str, Any]:
    start, end = moments.suites.get(suite.eval_file, (datetime.fromisoformat(run.timestamp), moments.generated_at))
    cases = [_build_case(case) for case in suite.cases]
    statuses = [case["status"] for case in cases]
    return {
        "suiteName": suite.tool_name,
        "suiteVersion": version or "1.0.0",
        "startedAt": _format_time(start),
        "completedAt": _format_time(end),
        "durationMs": round((end - start).total_seconds() * 1000),
        "summary": {"total": len(statuses), **_count_statuses(statuses)},
        "cases": cases,
    }


def _build_case(case: CaseResult) -> dict[str, Any]:
    judged = case.status.is_scored
    return {
        "caseId": case.id,
        "caseName": case.description or case.id,
        "status": _STATUS_WORDS[case.status],
        "durationMs": round(case.duration_ms),
        "output": case.details.response if judged else None,
        "assertionResults": [_build_assertion(result) for result in case.evaluator_results] if judged else [],
        "error": None if judged else case.error or case.status.value.replace("_", " "),
    }


def _build_assertion(result: EvaluatorResult) -> dict[str, Any]:
    facts = result.evaluator_provider_request or {}
    message = next(iter((*result.misses, *result.hits)), "")
    return {
        "assertion": facts.get("assertion", {"type": result.type}),
        "passed": result.score >= 1.0 and not result.vetoed,
        "message": facts.get("message", message),
        "actual": facts.get("actual"),
        "expected": facts.get("expected"),
    }


def _count_statuses(statuses: Sequence[str]) -> dict[str, float]:
    """Count the statuses; the pass rate, 0 to 1, is that of all cases with errors, and 0 without cases."""
    counts: dict[str, float] = {name: statuses.count(word) for word, name in _COUNT_NAMES}
    return counts | {"passRate": counts["passed"] / len(statuses) if statuses else 0.0}


def _format_time(moment: datetime) -> str:
    """`2026-11-21T10:00:00.000Z`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def render_markdown(report: Mapping[str, Any]) -> str:
    """Render the report as a Markdown page, with the text of suites, models and files escaped."""
    summary = report["summary"]
    verdict = _format_pass_count(summary["passed"], summary["totalCases"])
    counts = ("totalSuites", "totalCases", "passed", "failed", "errors", "skipped")
    lines = [
        "# Agent Evals",
        "",
        f"{verdict} in {_format_seconds(report['durationMs'])}, {report['generatedAt']}.",
        "",
        "| suites | cases | passed | failed | errors | skipped |",
        "|--:|--:|--:|--:|--:|--:|",
        f"| {' | '.join(str(summary[count]) for count in counts)} |",
    ]
    for suite in report["suites"]:
        lines += _render_markdown_suite(suite)
    return "\n".join(lines) + "\n"


def _render_markdown_suite(suite: Mapping[str, Any]) -> Iterable[str]:
    summary = suite["summary"]
    verdict = _format_pass_count(summary["passed"], summary["total"])
    yield from ("", f"## {escape_markdown(suite['suiteName'])}", "")
    yield f"Version {escape_markdown(suite['suiteVersion'])}: {verdict} in {_format_seconds(suite['durationMs'])}."
    yield from ("", "| status | case | name | duration |", "|:--|:--|:--|--:|")
    for case in suite["cases"]:
        status = case["status"].upper()
        yield (
            f"| {status} | {escape_markdown(case['caseId'])} | {escape_markdown(case['caseName'])} | "
            f"{_format_seconds(case['durationMs'])} |"
        )
    for case in suite["cases"]:
        if case["status"] != "pass":
            yield from ("", f"### {escape_markdown(case['caseId'])}: {escape_markdown(case['caseName'])}", "")
            yield from _render_markdown_details(case)


def _render_markdown_details(case: Mapping[str, Any]) -> Iterable[str]:
    if case["error"]:
        yield f"- {case['status'].upper()} {escape_markdown(case['error'], _MAX_MESSAGE)}"
    for result in case["assertionResults"]:
        word = "PASS" if result["passed"] else "FAIL"
        yield (
            f"- {word} {escape_markdown(_format_assertion_name(result['assertion']))}: "
            f"{escape_markdown(result['message'], _MAX_MESSAGE)}"
        )
        if not result["passed"]:
            yield f"  - expected {format_code_span(_format_value(result['expected']))}"
            yield f"  - got {format_code_span(_format_value(result['actual']))}"


def format_failures(report: Mapping[str, Any]) -> tuple[str, ...]:
    """Format the additional console lines of `--verbose`, safe for a terminal or a log.

    Return one line for each failed assertion, with the expected and the actual value, and one for each error.
    """
    lines = []
    for suite in report["suites"]:
        for case in suite["cases"]:
            place = f"{suite['suiteName']} / {case['caseId']}"
            if case["status"] == "error":
                lines.append(f"{place}: {case['error']}")
            lines += [
                f"{place}: {_format_assertion_name(result['assertion'])}: {result['message']} "
                f"(expected {_format_value(result['expected'])}, got {_format_value(result['actual'])})"
                for result in case["assertionResults"]
                if not result["passed"]
            ]
    return tuple(map(to_console_line, lines))


def _format_assertion_name(assertion: Mapping[str, Any]) -> str:
    """`contains`, or with its description `contains (names the city)`."""
    described = assertion.get("description")
    return f"{assertion['type']} ({described})" if described else str(assertion["type"])


def _format_value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _format_pass_count(passed: int, total: int) -> str:
    return f"{passed} of {total} passed"


def _format_seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.1f} s"


def write_report_files(
    folder: Path, texts: Mapping[str, str], moment: datetime, prefix: str = "report"
) -> tuple[Path, ...]:
    """Write each text, by its ending, as `report-2026-11-21T10-00-00.json`, and return the files.

    All files of a call have the same stem, with a number if a file of that name exists. Raises GateError
    `output-not-writable`.
    """
    stem = f"{prefix}-{moment.astimezone(UTC):%Y-%m-%dT%H-%M-%S}"
    try:
        for number in range(1, _MAX_ATTEMPTS):
            name = stem if number == 1 else f"{stem}-{number}"
            files = {folder / f"{name}.{ending}": text for ending, text in texts.items()}
            if not any((folder / f"{name}.{kind}").exists() for kind in KINDS) and _try_write(files):
                return tuple(files)
    except OSError as error:
        raise _build_output_error(folder, error.strerror) from error
    raise _build_output_error(folder, "too many reports in one second")


def _try_write(files: Mapping[Path, str]) -> bool:
    new_files: list[Path] = []
    for file, text in files.items():
        descriptor = open_new_file(file)
        if descriptor is None:
            for new_file in new_files:
                new_file.unlink()
            return False
        new_files.append(file)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(text.encode("utf-8", "backslashreplace"))
    return True


def _build_output_error(folder: Path, why: str | None) -> GateError:
    return GateError(
        "output-not-writable",
        f"cannot write to {folder}: {why}",
        "choose another folder with --out",
        exit_code=ExitCode.USAGE,
    )


def render_console_summary(report: Mapping[str, Any], warnings: tuple[str, ...], style: ConsoleStyle) -> str:
    """Render each case with its status, then the counts; with `style.verbose` also the failed assertions."""
    return style.join_lines(_render_console(report, warnings, style))


def _render_console(report: Mapping[str, Any], warnings: tuple[str, ...], style: ConsoleStyle) -> Iterator[str]:
    for suite in report["suites"]:
        yield from _render_console_suite(suite, style)
        yield ""
    why = format_failures(report)
    if style.verbose:
        yield from why
        yield from ("",) if why else ()
    yield from style.render_warnings(warnings)
    yield _render_counts(report["summary"])
    if why and not style.verbose:
        yield "--verbose shows the failed assertions"


def _render_console_suite(suite: Mapping[str, Any], style: ConsoleStyle) -> Iterator[str]:
    name, version = to_console_line(suite["suiteName"], 60), to_console_line(suite["suiteVersion"], 20)
    passed, total = suite["summary"]["passed"], suite["summary"]["total"]
    yield f"{name} {version}: {passed} of {total} passed, {format_seconds(suite['durationMs'])}"
    rows = [
        (
            truncate_text(to_console_line(case["caseId"]), MAX_ID),
            truncate_text(to_console_line(case["caseName"]), MAX_DESCRIPTION),
            format_seconds(case["durationMs"]),
        )
        for case in suite["cases"]
    ]
    for case, line in zip(suite["cases"], align_columns(rows, ("left", "left", "right")), strict=True):
        word = case["status"].upper().ljust(_STATUS_WIDTH)
        yield f"  {style.paint(_COLOURS[case['status']], word)}  {line}"


def _render_counts(counts: Mapping[str, Any]) -> str:
    """`2 suites, 7 cases: 2 passed, 2 failed, 3 errors (28.6 %)`."""
    parts = [f"{counts['passed']} passed", f"{counts['failed']} failed", format_count(counts["errors"], "error")]
    if counts["skipped"]:
        parts.append(f"{counts['skipped']} skipped")
    totals = f"{format_count(counts['totalSuites'], 'suite')}, {format_count(counts['totalCases'], 'case')}"
    return f"{totals}: {', '.join(parts)} ({format_percent(counts['passRate'])})"
