"""A comparison of targets for people and programs: console, Markdown, one page of HTML, JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from eval_gate.config.outputs import ReportRequest
from eval_gate.errors import GateError
from eval_gate.model.execution import Status
from eval_gate.reports.console.style import FOLD_ABOVE, MAX_ID, ConsoleStyle
from eval_gate.reports.files import write_each
from eval_gate.reports.fit import COMMENT_LIMIT, Detail, fit
from eval_gate.reports.matrix.view import NOT_THERE, Matrix, MatrixCase, MatrixCell, foot_of
from eval_gate.reports.templating import environment, tidy
from eval_gate.reports.words.numbers import count
from eval_gate.text import escape
from eval_gate.text.inert import json_text

if TYPE_CHECKING:
    from jinja2 import Environment

FORMATS: Final = {"md": "matrix.md", "html": "matrix.html", "json": "matrix.json", "console": "matrix.txt"}
"""What a comparison can be, with the usual names of the files."""
MAX_TARGET: Final = 24
"""Characters of a target's name above a column."""
MAX_PAGE_ROWS: Final = 5_000
_LADDER: Final = tuple(Detail(rows=rows, names=0, warnings=0) for rows in (500, 200, 50, 20, 5, 0))
_SIGNS: Final = {Status.PASSED: "✅ ", Status.FAILED: "❌ ", Status.ERROR: "⚠️ "}


def refuse_unknown(requests: Sequence[ReportRequest]) -> None:
    """Raise GateError for a report that a comparison cannot be."""
    unknown = [request.format for request in requests if request.format not in FORMATS]
    if unknown:
        raise GateError(
            "unknown-value",
            f"a comparison of several targets cannot be written as {unknown[0]}",
            f"one of {', '.join(FORMATS)}; `eval-gate report RUN --format {unknown[0]}` renders the run of one target",
        )


def write_matrix(requests: Sequence[ReportRequest], matrix: Matrix, folder: Path) -> tuple[Path, ...]:
    """Write every report; where they are. Those without a file name go to `folder`."""
    return write_each(requests, folder, FORMATS, lambda form: render_matrix(form, matrix))


def render_matrix(report_format: str, matrix: Matrix, style: ConsoleStyle | None = None) -> str:
    """The comparison in one of `FORMATS`."""
    match report_format:
        case "md":
            return fit(lambda detail: _markdown(matrix, detail.rows), COMMENT_LIMIT, _LADDER)
        case "html":
            return _html(matrix)
        case "json":
            return json_text(matrix.model_dump_json(by_alias=True, indent=2)) + "\n"
        case _:
            style = style or ConsoleStyle()
            return style.text(_console_lines(matrix, style))


def _console_lines(matrix: Matrix, style: ConsoleStyle) -> Iterator[str]:
    from tabulate import SEPARATING_LINE, tabulate

    shown = matrix.cases
    if len(shown) > FOLD_ABOVE and not style.verbose:
        shown = (*matrix.differing, *matrix.unasked)[:FOLD_ABOVE]
    names = [escape.cut(escape.console_line(target.name), MAX_TARGET) for target in matrix.targets]
    rows = [
        [_mark(case), escape.cut(escape.console_line(case.label), MAX_ID), *map(_words, case.cells)] for case in shown
    ]
    foot = [["", name, *words] for name, words in foot_of(matrix)]
    table = [*rows, [SEPARATING_LINE], *foot] if rows else foot
    yield from (
        line.rstrip() for line in tabulate(table, headers=["", "case", *names], disable_numparse=True).splitlines()
    )
    if len(shown) < len(matrix.cases):
        yield f"{count(len(matrix.cases) - len(shown), 'case')} not listed (--verbose lists them)"
    yield ""
    for name, target in zip(names, matrix.targets, strict=True):
        yield f"{name}: gate {target.gate}: {escape.console_line(target.reasons, 500)}"
        if target.result_path:
            yield f"  {escape.console_line(target.result_path, 500)}"


def _mark(case: MatrixCase) -> str:
    """`≠` where results differ, `?` where that is not known."""
    return "≠" if case.differs else "" if case.asked_of_all else "?"


def _words(cell: MatrixCell | None) -> str:
    return cell.words if cell is not None else NOT_THERE


def _signed_words(cell: MatrixCell | None) -> str:
    """The words behind the sign that pages have for them."""
    return f"{_SIGNS.get(cell.status, '')}{cell.words}" if cell is not None else NOT_THERE


def _markdown(matrix: Matrix, rows: int) -> str:
    return tidy(engine(html=False).get_template("matrix.md.j2").render(matrix=matrix, foot=foot_of(matrix), rows=rows))


def _html(matrix: Matrix) -> str:
    template = engine(html=True).get_template("matrix.html.j2")
    return template.render(matrix=matrix, foot=foot_of(matrix), cases=matrix.cases[:MAX_PAGE_ROWS])


@cache
def engine(*, html: bool) -> Environment:
    """What renders the table of several gates, as a page or as Markdown."""
    return environment({"cell": _words if html else _signed_words}, html=html)
