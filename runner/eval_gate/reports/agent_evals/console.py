"""What the Agent Evals command says at its end, on a terminal or in a log.

Source: Agent Evals, "Flowchart: Print summary"; agent-evals behaviour 3.5, E-02.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from eval_gate.reports.agent_evals.report import failures
from eval_gate.reports.console.summary import MAX_DESCRIPTION, MAX_ID, ConsoleStyle, pad, width
from eval_gate.reports.words.numbers import count, percent, seconds
from eval_gate.text.escape import console_line, cut

MAX_WARNINGS: Final = 10
_COLOURS: Final = {"pass": "32", "fail": "31", "error": "33", "skip": "2"}
_WIDEST: Final = 5
_ASCII: Final = str.maketrans({"…": "...", "⏎": "/", "⚠": "!", "–": "-"})


def summary(made: Mapping[str, Any], warnings: tuple[str, ...], style: ConsoleStyle) -> str:
    """Every case with its status, then the counts. `made` is the report as data; with `style.verbose` why it is so."""
    text = "\n".join(_lines(made, warnings, style)) + "\n"
    return text.translate(_ASCII) if style.ascii else text


def _lines(made: Mapping[str, Any], warnings: tuple[str, ...], style: ConsoleStyle) -> Iterator[str]:
    for suite in made["suites"]:
        yield from _suite(suite, style)
        yield ""
    why = failures(made)
    if style.verbose:
        yield from why
        yield from ("",) if why else ()
    shown = warnings if style.verbose else warnings[:MAX_WARNINGS]
    yield from (f"⚠ {console_line(warning, 500)}" for warning in shown)
    if len(warnings) > len(shown):
        yield f"⚠ … and {count(len(warnings) - len(shown), 'more warning')} (--verbose lists them)"
    yield from ("",) if warnings else ()
    yield _counts(made["summary"])
    if why and not style.verbose:
        yield "--verbose says what did not hold"


def _suite(suite: Mapping[str, Any], style: ConsoleStyle) -> Iterator[str]:
    name, version = console_line(suite["suiteName"], 60), console_line(suite["suiteVersion"], 20)
    passed, total = suite["summary"]["passed"], suite["summary"]["total"]
    yield f"{name} {version}: {passed} of {total} passed, {seconds(suite['durationMs'])}"
    ids = [cut(console_line(case["caseId"]), MAX_ID) for case in suite["cases"]]
    names = [cut(console_line(case["caseName"]), MAX_DESCRIPTION) for case in suite["cases"]]
    id_width, name_width = max(map(width, ids), default=0), max(map(width, names), default=0)
    for case, case_id, case_name in zip(suite["cases"], ids, names, strict=True):
        word = _painted(case["status"], style)
        time = seconds(case["durationMs"])
        yield f"  {word}  {pad(case_id, id_width)}  {pad(case_name, name_width)}  {time:>8}"


def _painted(status: str, style: ConsoleStyle) -> str:
    word = status.upper().ljust(_WIDEST)
    return f"\x1b[{_COLOURS[status]}m{word}\x1b[0m" if style.colour else word


def _counts(counts: Mapping[str, Any]) -> str:
    """`2 suites, 7 cases: 2 passed, 2 failed, 3 errors (28.6 %)`."""
    parts = [f"{counts['passed']} passed", f"{counts['failed']} failed", count(counts["errors"], "error")]
    if counts["skipped"]:
        parts.append(f"{counts['skipped']} skipped")
    asked = f"{count(counts['totalSuites'], 'suite')}, {count(counts['totalCases'], 'case')}"
    return f"{asked}: {', '.join(parts)} ({percent(counts['passRate'])})"
