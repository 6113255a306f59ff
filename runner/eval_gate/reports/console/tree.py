"""Suites with each of their cases, as the tool-forge contract shows them: the verbose part of the summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from eval_gate.gate.failure_causes import drop_error_prefix
from eval_gate.model.execution import Status, format_error
from eval_gate.model.result import CaseResult, SuiteResult, Summary
from eval_gate.reports.console.style import (
    MAX_DESCRIPTION,
    MAX_ID,
    ConsoleStyle,
    measure_width,
    pad_text,
)
from eval_gate.reports.view.report_view import ReportView
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.view.tables import SuiteRow
from eval_gate.staleness.staleness_checks import format_console_line
from eval_gate.text.escape import format_count, to_console_line

RULER_WIDTH: Final = 67
Cells: TypeAlias = tuple[str, str, str, str]
"""Id, description, time, result."""
_MARGIN: Final = 4
"""Columns of the sign before each line."""
_GAP: Final = "  "
_MIN_DESCRIPTION: Final = 8
"""Columns below which a description is left out."""

GLYPHS: Final = {
    Status.PASSED: ("✓", "+"),
    Status.FAILED: ("✗", "x"),
    Status.ERROR: ("!", "!"),
    Status.SKIPPED: ("-", "-"),
    Status.NOT_RUN: ("·", "."),
}
_STATUS_COLOURS: Final = {Status.PASSED: "green", Status.FAILED: "red", Status.ERROR: "yellow"}


def paint_glyph(status: Status, style: ConsoleStyle) -> str:
    """Return the sign of a status in its colour."""
    return style.paint(_STATUS_COLOURS.get(status, "dim"), GLYPHS[status][1 if style.ascii else 0])


def render_tree(view: ReportView, style: ConsoleStyle) -> Iterator[str]:
    """Render a block for each suite: title, a line for each case, the totals."""
    for suite, row, cases in view.iter_suites():
        across = min(RULER_WIDTH, style.width)
        tier = style.to_displayable(f" — {suite.tier.value} evals " if suite.tier else " — evals ")
        room = max(across - measure_width(f"═══ {tier}═══"), 3)
        title = f"═══ {style.cut_name(to_console_line(suite.tool_name, 60), room)}{tier}"
        yield style.paint("bold", f"{title}{'═' * max(3, across - measure_width(title))}")
        yield from _render_cases(cases, style)
        yield "─" * across
        yield from style.wrap_parts(_iter_suite_totals(suite, row), begin="  ", indent=" " * 4, between=" | ")
        for fact, sentence in zip(suite.stale_facts, suite.staleness_warnings, strict=False):
            text = to_console_line(format_console_line(fact, sentence))
            yield from style.wrap_text(text, begin="  ⚠ ", indent=" " * 4, colour="yellow")
        for notice in suite.notices:
            yield from style.wrap_text(to_console_line(notice), begin="  note: ", indent=" " * 4)
        yield ""


def _render_cases(rows: Sequence[CaseRow], style: ConsoleStyle) -> Iterator[str]:
    both = [(row, row.case) for row in rows if row.case is not None]
    lines = _render_case_lines([_build_cells(row, case, style) for row, case in both], style) if both else ()
    for (row, case), line in zip(both, lines, strict=True):
        yield f"  {paint_glyph(case.status, style)} {line}"
        if case.error and case.status is not Status.NOT_RUN:
            for one in row.failures if case.graded and case.status.is_scored else (_format_error(row, case),):
                yield from style.wrap_text(to_console_line(one, 500), begin="    → ", indent=" " * 6)


def _format_error(row: CaseRow, case: CaseResult) -> str:
    """Format the error of a case after its kind, such as `agent error: HTTP 500`, and name the kind once."""
    word = {Status.ERROR: row.current_result, Status.SKIPPED: "skipped"}.get(case.status)
    if not word:
        return row.expand_turn(case.error or "")
    return f"{word}: {row.expand_turn(drop_error_prefix(format_error(case.error, case.error_hint)))}"


def _build_cells(row: CaseRow, case: CaseResult, style: ConsoleStyle) -> Cells:
    """Id, description, time, and the score of a graded case, or how many of several executions passed."""
    took = row.execution.duration_ms if row.execution else 0.0
    time = "reused" if row.reused else f"{took:.0f}ms" if case.status.is_scored or took else ""
    result = row.current_cell if len(case.trials) > 1 or (case.graded and case.status.is_scored) else None
    flaky = ", flaky" if result and case.flaky else ""
    id_, description = (style.to_displayable(to_console_line(text)) for text in (case.id, case.description))
    return id_, description, time, f"{result or ''}{flaky}"


def _render_case_lines(rows: Sequence[Cells], style: ConsoleStyle) -> Iterator[str]:
    """Render one line per case; in a narrow output, ids lose their middle, and descriptions their end or all."""
    ids, words, times, results = (max(map(measure_width, column), default=0) for column in zip(*rows, strict=True))
    ids, words, results = min(ids, MAX_ID), min(words, MAX_DESCRIPTION), min(results, style.width // 2)
    room = style.width - _MARGIN - sum(len(_GAP) + columns for columns in (times, results) if columns)
    if ids + len(_GAP) + words > room:
        narrow = min(ids, max(room - len(_GAP) - words, room * 3 // 5))
        rest = room - len(_GAP) - narrow
        ids, words = (narrow, rest) if words and rest >= _MIN_DESCRIPTION else (max(min(ids, room), 1), 0)
    for name, description, time, result in rows:
        cells = [pad_text(style.cut_name(name, ids), ids), pad_text(style.cut_text(description, words), words)]
        cells += [pad_text(time, times, right=True), style.cut_text(result, results)]
        pairs = zip(cells, (ids, words, times, results), strict=True)
        yield _GAP.join(cell for cell, columns in pairs if columns).rstrip()


def _iter_suite_totals(suite: SuiteResult, row: SuiteRow) -> Iterator[str]:
    """Yield the four totals of a suite that the contract defines, then other totals that are not zero."""
    summary = suite.summary
    yield f"{summary.passed}/{summary.total_cases} passed"
    yield f"{summary.failed} failed"
    yield f"{summary.skipped_assertions} skipped assertions"
    yield f"{0 if suite.reused else summary.total_duration_ms:.0f}ms total"
    yield from iter_further_counts(summary, row)
    if row.origin:
        yield to_console_line(row.origin)


def iter_further_counts(summary: Summary, row: SuiteRow) -> Iterator[str]:
    """Yield the counts of a suite's cases without a score that are not zero, and its mean score."""
    if summary.errored:
        yield format_count(summary.errored, "error")
    if summary.skipped:
        yield f"{summary.skipped} skipped"
    if summary.not_run:
        yield f"{summary.not_run} not run"
    if row.score:
        yield f"mean score {row.score}"
