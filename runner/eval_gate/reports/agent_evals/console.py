"""What the Agent Evals command says at its end, on a terminal or in a log.

Source: Agent Evals, "Flowchart: Print summary"; agent-evals behaviour 3.5, E-02.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from eval_gate.reports.agent_evals.report import failures
from eval_gate.reports.console.style import MAX_DESCRIPTION, MAX_ID, ConsoleStyle, columns
from eval_gate.reports.words.numbers import count, percent, seconds
from eval_gate.text.escape import console_line, cut

_COLOURS: Final = {"pass": "green", "fail": "red", "error": "yellow", "skip": "dim"}
_WIDEST: Final = 5


def summary(made: Mapping[str, Any], warnings: tuple[str, ...], style: ConsoleStyle) -> str:
    """Every case with its status, then the counts. `made` is the report as data; with `style.verbose` why it is so."""
    return style.text(_lines(made, warnings, style))


def _lines(made: Mapping[str, Any], warnings: tuple[str, ...], style: ConsoleStyle) -> Iterator[str]:
    for suite in made["suites"]:
        yield from _suite(suite, style)
        yield ""
    why = failures(made)
    if style.verbose:
        yield from why
        yield from ("",) if why else ()
    yield from style.warnings(warnings)
    yield _counts(made["summary"])
    if why and not style.verbose:
        yield "--verbose says what did not hold"


def _suite(suite: Mapping[str, Any], style: ConsoleStyle) -> Iterator[str]:
    name, version = console_line(suite["suiteName"], 60), console_line(suite["suiteVersion"], 20)
    passed, total = suite["summary"]["passed"], suite["summary"]["total"]
    yield f"{name} {version}: {passed} of {total} passed, {seconds(suite['durationMs'])}"
    rows = [
        (
            cut(console_line(case["caseId"]), MAX_ID),
            cut(console_line(case["caseName"]), MAX_DESCRIPTION),
            seconds(case["durationMs"]),
        )
        for case in suite["cases"]
    ]
    for case, line in zip(suite["cases"], columns(rows, ("left", "left", "right")), strict=True):
        word = case["status"].upper().ljust(_WIDEST)
        yield f"  {style.paint(_COLOURS[case['status']], word)}  {line}"


def _counts(counts: Mapping[str, Any]) -> str:
    """`2 suites, 7 cases: 2 passed, 2 failed, 3 errors (28.6 %)`."""
    parts = [f"{counts['passed']} passed", f"{counts['failed']} failed", count(counts["errors"], "error")]
    if counts["skipped"]:
        parts.append(f"{counts['skipped']} skipped")
    asked = f"{count(counts['totalSuites'], 'suite')}, {count(counts['totalCases'], 'case')}"
    return f"{asked}: {', '.join(parts)} ({percent(counts['passRate'])})"
