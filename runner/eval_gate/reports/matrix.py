"""Comparison of several targets on the same cases: data, console, Markdown, HTML and JSON.

Each report only renders a `Matrix`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import json

from eval_gate.config.outputs import ReportRequest
from eval_gate.errors import ExitCode, GateError
from eval_gate.gate.case_comparison import count_passes
from eval_gate.gate.pass_score import apply_recorded_pass_score
from eval_gate.gate.score_changes import exceeds_limit
from eval_gate.model.base import Record
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import DEFAULT_SCORE_TOLERANCE, Outcome, Verdict
from eval_gate.model.execution import Status
from eval_gate.model.execution_usage import measure_execution
from eval_gate.model.result import CaseResult, RunResult, Summary
from eval_gate.model.setup import TargetIdentity
from eval_gate.reports.console.style import MAX_ID, ConsoleStyle
from eval_gate.reports.context import ReportContext
from eval_gate.reports.detail_levels import COMMENT_LIMIT, DetailLevel, render_within_limit
from eval_gate.reports.markdown_fragments import format_prose
from eval_gate.reports.rendering import write_each
from eval_gate.reports.template_engine import build_environment, tidy_markdown
from eval_gate.reports.view.scores import compute_mean_score
from eval_gate.reports.wording import numbers as wording
from eval_gate.reports.wording.advice import find_advice
from eval_gate.struct import FrozenStruct
from eval_gate.text import escape
from eval_gate.text.escape import format_count
from eval_gate.text.safe_output import neutralize_json

if TYPE_CHECKING:
    from jinja2 import Environment


MISSING_CELL: Final = "–"
FORMATS: Final = {"md": "matrix.md", "html": "matrix.html", "json": "matrix.json", "console": "matrix.txt"}
"""Report formats of a comparison, with the default file names."""
FOLD_ABOVE: Final = 200
"""Number of cases above which only --verbose lists those with the same result everywhere."""
MAX_TARGET: Final = 24
"""Characters of a target's name above a column."""
MAX_PAGE_ROWS: Final = 5_000
_DETAIL_LEVELS: Final = tuple(DetailLevel(rows=rows, names=0, warnings=0) for rows in (500, 200, 50, 20, 5, 0))
_SIGNS: Final = {Status.PASSED: "✅ ", Status.FAILED: "❌ ", Status.ERROR: "⚠️ "}


class TargetRun(FrozenStruct):
    """Run of one target in a comparison of targets, with its verdict, or the reason why there is none."""

    name: str
    run: RunResult | None = None
    result_path: str | None = None
    problem: str | None = None


class MatrixTarget(Record, kw_only=True):
    """Column of the comparison: one target with the counts and verdict of its run."""

    name: str
    target: TargetIdentity | None = None
    run_id: str | None = None
    result_path: str | None = None
    summary: Summary | None = None
    verdict: Verdict | None = None
    problem: str | None = None
    next_step: str | None = None
    """Next step if its gate did not pass."""
    mean_score: float | None = None
    """Mean over its graded cases with a score; None without any."""
    reused_cases: int = 0
    """Cases whose result is that of an earlier run: time and cost of the run do not include them."""

    @property
    def gate(self) -> str:
        """The verdict of its gate in one or two words."""
        return self.verdict.outcome.value if self.verdict else "not run"

    @property
    def reasons(self) -> str:
        """The reasons of its verdict, or why it has no run."""
        if self.verdict is not None:
            return "; ".join(reason.message for reason in self.verdict.reasons)
        return self.problem or "the comparison ended first"


class MatrixCell(Record, kw_only=True):
    """Result of one case with one target; `passes` and `trials` are 0 if no trial has a score."""

    status: Status
    score: float = 0.0
    graded: bool = False
    passes: int = 0
    trials: int = 0
    duration_ms: float = 0.0
    cost_usd: float | None = None
    error: str | None = None

    @property
    def text(self) -> str:
        """`pass`, `fail 0.67`, `2 of 3 pass`, `error`, `not run`; with the score if it is neither 0 nor 1."""
        if not self.status.is_scored:
            return self.status.value.replace("_", " ")
        word = "pass" if self.status is Status.PASSED else "fail"
        if self.trials > 1:
            word = wording.format_passes(self.passes, self.trials)
        return f"{word} {wording.format_score(self.score)}" if self.graded or 0 < self.score < 1 else word


class MatrixCase(Record, kw_only=True):
    """Row of the comparison: one case, with one cell for each target; None if the target does not have the case."""

    eval_file: str
    id: str
    label: str
    """The id, with its eval file if another suite has the same id."""
    description: str = ""
    differs: bool
    """Whether targets that ran the case have different statuses, or scores that differ by more than the tolerance."""
    cells: tuple[MatrixCell | None, ...]

    @property
    def ran_everywhere(self) -> bool:
        """Whether every target has a response or an error."""
        return all(cell is not None and cell.status is not Status.NOT_RUN for cell in self.cells)


class Matrix(Record, kw_only=True):
    """Comparison of several targets: cases that differ first, then cases that some target did not run."""

    timestamp: str
    version: str
    targets: tuple[MatrixTarget, ...]
    cases: tuple[MatrixCase, ...]

    @property
    def differing(self) -> tuple[MatrixCase, ...]:
        """The cases whose results differ."""
        return tuple(case for case in self.cases if case.differs)

    @property
    def not_run_everywhere(self) -> tuple[MatrixCase, ...]:
        """The other cases that some target did not run, so whether they differ is unknown."""
        return tuple(case for case in self.cases if not case.differs and not case.ran_everywhere)

    @property
    def same_everywhere(self) -> tuple[MatrixCase, ...]:
        """The cases with the same result everywhere."""
        return tuple(case for case in self.cases if not case.differs and case.ran_everywhere)

    @property
    def outcome(self) -> Outcome:
        """Outcome of the whole comparison: failed if a gate failed, else inconclusive if one is."""
        outcomes = {target.verdict.outcome if target.verdict else Outcome.INCONCLUSIVE for target in self.targets}
        return next(one for one in (Outcome.FAILED, Outcome.INCONCLUSIVE, Outcome.PASSED) if one in outcomes)

    @property
    def exit_code(self) -> ExitCode:
        """Exit code of a comparison that was not interrupted."""
        codes = {target.verdict.exit_code if target.verdict else ExitCode.INCOMPLETE for target in self.targets}
        return next(one for one in (ExitCode.FAILED, ExitCode.INCOMPLETE, ExitCode.PASSED) if one in codes)

    @property
    def heading(self) -> str:
        """`3 targets, 12 cases: 2 differ`."""
        targets, cases = (
            format_count(len(self.targets), "target"),
            format_count(len(self.cases), "case"),
        )
        differing, not_run = len(self.differing), len(self.not_run_everywhere)
        differences = f"{differing} differ{'s' if differing == 1 else ''}" if differing else "no differences"
        return f"{targets}, {cases}: {differences}{f', {not_run} not run with every target' if not_run else ''}"


def build_matrix(
    legs: Sequence[TargetRun], timestamp: str, version: str, *, score_tolerance: float = DEFAULT_SCORE_TOLERANCE
) -> Matrix:
    """Build the comparison of these targets, in their order.

    Cases with different results come first. `timestamp` is the start of the comparison, `version` that of Eval
    Gate.
    """
    runs = [apply_recorded_pass_score(leg.run) if leg.run is not None else None for leg in legs]
    cases = [run.index_cases() if run is not None else {} for run in runs]
    keys = dict.fromkeys(key for column in cases for key in column)
    id_counts = Counter(key.case_id for key in keys)
    rows = [
        _build_case(key, [column.get(key) for column in cases], score_tolerance, unique=id_counts[key.case_id] == 1)
        for key in keys
    ]
    return Matrix(
        timestamp=timestamp,
        version=version,
        targets=tuple(_build_target(leg, run) for leg, run in zip(legs, runs, strict=True)),
        cases=tuple(sorted(rows, key=lambda row: (not row.differs, row.ran_everywhere))),
    )


def _build_target(leg: TargetRun, run: RunResult | None) -> MatrixTarget:
    if run is None:
        return MatrixTarget(name=leg.name, problem=leg.problem)
    mean = compute_mean_score((case for _, case in run.iter_cases()), ())
    advice = find_advice(run, run.verdict, ReportContext()) if run.verdict else None
    return MatrixTarget(
        name=leg.name,
        target=run.target,
        run_id=run.run_id,
        result_path=leg.result_path,
        summary=run.summary,
        verdict=run.verdict,
        problem=leg.problem,
        next_step=advice.next_step if advice else None,
        mean_score=mean.mean if mean else None,
        reused_cases=sum(len(suite.cases) for suite in run.suites if suite.reused),
    )


def _build_case(
    key: CaseKey, results: Sequence[CaseResult | None], score_tolerance: float, *, unique: bool
) -> MatrixCase:
    cases = [case for case in results if case is not None]
    return MatrixCase(
        eval_file=key.suite,
        id=key.case_id,
        label=key.case_id if unique else f"{key.case_id} ({key.suite})",
        description=cases[0].description if cases else "",
        differs=_has_difference(cases, score_tolerance),
        cells=tuple(_build_cell(case) if case is not None else None for case in results),
    )


def _has_difference(cases: Sequence[CaseResult], score_tolerance: float) -> bool:
    """Whether results of a case differ; a target that did not run it is left out."""
    run_cases = [case for case in cases if case.status is not Status.NOT_RUN]
    scores = sorted(case.score for case in run_cases if case.graded and case.status.is_scored)
    scores_differ = bool(scores) and exceeds_limit(scores[-1] - scores[0], score_tolerance)
    return scores_differ or any(one.status is not other.status for one, other in pairwise(run_cases))


def _build_cell(case: CaseResult) -> MatrixCell:
    counted, one = count_passes(case), measure_execution(case)
    return MatrixCell(
        status=case.status,
        score=case.score,
        graded=case.graded,
        passes=counted.passes if counted else 0,
        trials=counted.executions if counted else 0,
        duration_ms=one.duration_ms,
        cost_usd=one.cost_usd,
        error=case.error,
    )


def build_totals(matrix: Matrix) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Build the last rows of every table, totals by target, without counts that are 0 everywhere."""
    counts = (("failed", "failed"), ("errors", "errored"), ("skipped", "skipped"), ("not run", "not_run"))
    columns = [target.summary for target in matrix.targets]
    lines = [("passed", [f"{one.passed} of {one.total_cases}" if one else MISSING_CELL for one in columns])]
    for name, field in counts:
        numbers = [getattr(one, field) if one else None for one in columns]
        if any(numbers):
            lines.append((name, [MISSING_CELL if number is None else str(number) for number in numbers]))
    lines += _build_total_line("reused", [str(one.reused_cases or "") for one in matrix.targets])
    scores = [target.mean_score for target in matrix.targets]
    lines += _build_total_line(
        "mean score", [None if score is None else wording.format_score(score) for score in scores]
    )
    lines += _build_total_line(
        "cost", [_format_cost(one.estimated_cost_usd) if one else None for one in columns], always=True
    )
    lines += _build_total_line("LLM judges", [_format_cost(one.judge_cost_usd) if one else None for one in columns])
    lines += _build_total_line(
        "time", [wording.format_seconds(one.total_duration_ms) if one else None for one in columns]
    )
    lines.append(("gate", [target.gate for target in matrix.targets]))
    return tuple((name, tuple(words)) for name, words in lines)


def _format_cost(dollars: float | None) -> str | None:
    return None if dollars is None else wording.format_money(dollars)


def _build_total_line(name: str, words: Iterable[str | None], *, always: bool = False) -> list[tuple[str, list[str]]]:
    """Build a total line; none if no target has a value, unless `always`."""
    words = list(words)
    return [(name, [word or MISSING_CELL for word in words])] if always or any(words) else []


def check_formats(requests: Sequence[ReportRequest]) -> None:
    """Raise GateError for a format that a comparison does not have."""
    unknown = [request.format for request in requests if request.format not in FORMATS]
    if unknown:
        raise GateError(
            "unknown-value",
            f"--report {unknown[0]}: not available for a comparison of several targets",
            f"use one of {', '.join(FORMATS)}, or render the run of one target with `eval-gate report RUN --format "
            f"{unknown[0]}`",
        )


def write_matrix(requests: Sequence[ReportRequest], matrix: Matrix, folder: Path) -> tuple[Path, ...]:
    """Write every report, those without a file name to `folder`, and return the files."""
    return write_each(requests, folder, FORMATS, lambda form: render_matrix(form, matrix))


def render_matrix(report_format: str, matrix: Matrix, style: ConsoleStyle | None = None) -> str:
    """Render the comparison of targets in one of `FORMATS`; `style` is for the console."""
    match report_format:
        case "md":
            text = get_environment(html=False).get_template("matrix.md.j2")
            foot = build_totals(matrix)
            return render_within_limit(
                lambda detail: tidy_markdown(text.render(matrix=matrix, foot=foot, rows=detail.rows)),
                COMMENT_LIMIT,
                _DETAIL_LEVELS,
            )
        case "html":
            page = get_environment(html=True).get_template("matrix.html.j2")
            return page.render(matrix=matrix, foot=build_totals(matrix), cases=matrix.cases[:MAX_PAGE_ROWS])
        case "json":
            return neutralize_json(json.format(json.encode(matrix), indent=2).decode()) + "\n"
        case _:
            style = style or ConsoleStyle()
            return style.join_lines(_render_console(matrix, style))


def _render_console(matrix: Matrix, style: ConsoleStyle) -> Iterator[str]:
    from tabulate import SEPARATING_LINE, tabulate

    cases = matrix.cases
    if len(cases) > FOLD_ABOVE and not style.verbose:
        cases = (*matrix.differing, *matrix.not_run_everywhere)[:FOLD_ABOVE]
    names = [escape.truncate_text(escape.to_console_line(target.name), MAX_TARGET) for target in matrix.targets]
    rows = [
        [
            _format_mark(case),
            escape.truncate_text(escape.to_console_line(case.label), MAX_ID),
            *map(_format_cell, case.cells),
        ]
        for case in cases
    ]
    foot = [["", name, *words] for name, words in build_totals(matrix)]
    table = [*rows, [SEPARATING_LINE], *foot] if rows else foot
    yield from (
        line.rstrip() for line in tabulate(table, headers=["", "case", *names], disable_numparse=True).splitlines()
    )
    if len(cases) < len(matrix.cases):
        yield f"{format_count(len(matrix.cases) - len(cases), 'case')} not listed (--verbose lists them)"
    yield ""
    for name, target in zip(names, matrix.targets, strict=True):
        yield f"{name}: gate {target.gate}: {escape.to_console_line(target.reasons, 500)}"
        if target.next_step:
            yield f"  Next step: {escape.to_console_line(target.next_step, 600)}"
        if target.result_path:
            yield f"  {escape.to_console_line(target.result_path, 500)}"


def _format_mark(case: MatrixCase) -> str:
    """`≠` if results differ, `?` if that is unknown."""
    return "≠" if case.differs else "" if case.ran_everywhere else "?"


def _format_cell(cell: MatrixCell | None) -> str:
    return cell.text if cell is not None else MISSING_CELL


def _format_cell_with_sign(cell: MatrixCell | None) -> str:
    """Format a cell with the sign of its status before the text."""
    return f"{_SIGNS.get(cell.status, '')}{cell.text}" if cell is not None else MISSING_CELL


@cache
def get_environment(*, html: bool) -> Environment:
    """Return the cached template environment of the target comparison, for HTML or Markdown."""
    cell = _format_cell if html else _format_cell_with_sign
    return build_environment({"cell": cell, "format_prose": format_prose}, html=html)
