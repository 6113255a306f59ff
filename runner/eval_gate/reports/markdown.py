"""Pull request comment and job summary in GitHub's Markdown.

What all rows of a table share is said once, above it. Foreign text is escaped here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from eval_gate.errors import GateError
from eval_gate.reports import markdown_fragments
from eval_gate.reports.context import ReportContext
from eval_gate.reports.detail_levels import COMMENT_LIMIT, DETAIL_LEVELS, DetailLevel, render_within_limit
from eval_gate.reports.markdown_fragments import format_case_link, format_evidence_cell, format_name_link
from eval_gate.reports.template_engine import build_environment, tidy_markdown
from eval_gate.reports.text_difference import CONTEXT_CHARACTERS
from eval_gate.reports.view.groups import Cause
from eval_gate.reports.view.report_view import OPEN_ROWS, ReportView
from eval_gate.reports.view.response_comparison import ResponseComparison
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.wording.numbers import format_count
from eval_gate.struct import FrozenStruct
from eval_gate.text import escape
from eval_gate.text.escape import escape_markdown, format_code_cell, format_code_span

if TYPE_CHECKING:
    from jinja2 import Environment


MAX_QUESTION: Final = 200
MAX_CHECKS: Final = 3
"""Checks that are named; the rest is in the page."""
MAX_CHECK: Final = 160
SUMMARY_LIMIT: Final = 900_000
"""Characters of a job summary. Beyond a mebibyte GitHub drops all of it, and a character may be more than a byte."""
SUMMARY_LEVELS: Final = (
    DetailLevel(rows=2_000, names=2_000, warnings=200, responses=20),
    DetailLevel(rows=2_000, names=2_000, warnings=200),
    DetailLevel(rows=500, names=500, warnings=100),
    *DETAIL_LEVELS[1:],
)
MAX_EVIDENCE: Final = 200
_NONE: Final = "–"
_MIN_SHARED_ROWS: Final = 3
"""Rows that have to share something before it is said once: two can be read."""


def render_comment(view: ReportView, *, limit: int = COMMENT_LIMIT, start: int = 0) -> str:
    """Render the pull request comment in at most `limit` characters.

    It has the marker, the verdict and its reasons, the cases to look at, the next step, counts, warnings and
    provenance. `start` selects a later detail level, for another attempt after the comment was refused.
    """
    return _render_template("comment.md.j2", view, limit, DETAIL_LEVELS[start:])


def render_summary(view: ReportView, *, limit: int = SUMMARY_LIMIT) -> str:
    """Render the job summary in at most `limit` characters and at most `limit` bytes.

    It is the complete page: the rules, every case, the responses, and the grounds of the verdict.
    """
    text = ""
    for allowed in (limit, limit // 4):  # a character takes four bytes at most
        text = _render_template("summary.md.j2", view, allowed, SUMMARY_LEVELS)
        if len(text.encode()) <= limit:
            break
    return text


def render_problem(error: GateError, context: ReportContext, heading: str, *, as_comment: bool = False) -> str:
    """Render the page of a step that ended before it had a run; as a comment it begins with the marker."""
    marker = escape.to_comment_key(context.comment_key) if as_comment else None
    names = {"error": error, "context": context, "heading": heading, "marker": marker}
    return tidy_markdown(get_environment().get_template("problem.md.j2").render(names))


def _render_template(name: str, view: ReportView, limit: int, ladder: tuple[DetailLevel, ...]) -> str:
    template = get_environment().get_template(name)
    return render_within_limit(
        lambda detail: tidy_markdown(template.render(_build_variables(view, detail))), limit, ladder
    )


@cache
def get_environment() -> Environment:
    """Return the cached template environment of comment, summary and problem page."""
    pieces = (
        *(
            markdown_fragments.format_case_link,
            markdown_fragments.format_suspected_count,
            markdown_fragments.format_names,
            markdown_fragments.format_names_with_evidence,
            markdown_fragments.format_names_with_results,
            markdown_fragments.format_names_by_reason,
        ),
        *(
            markdown_fragments.format_prose,
            markdown_fragments.format_sentence,
            markdown_fragments.format_setup_changes,
            markdown_fragments.describe_stale_fact,
        ),
        *(
            markdown_fragments.format_evidence_cell,
            markdown_fragments.format_terms_cell,
            markdown_fragments.format_waiver,
        ),
        *(render_case_table, render_score_table, render_cause_table, render_responses),
    )
    filters = {piece.__name__: piece for piece in pieces}
    return build_environment({**filters, "html": escape.escape_html, "block": escape.format_code_block}, html=False)


def _build_variables(view: ReportView, detail: DetailLevel) -> dict[str, object]:
    return {
        "view": view,
        "context": view.context,
        "detail": detail,
        "summary": view.summary,
        "marker": escape.to_comment_key(view.context.comment_key),
        "open_rows": OPEN_ROWS,
        "links_line": markdown_fragments.format_links(view),
        "provenance": markdown_fragments.format_provenance(view),
        "spent": markdown_fragments.format_spending(view),
        "baseline_words": markdown_fragments.describe_baseline(view) if view.comparison else None,
        "unmeasured_note": markdown_fragments.describe_unmeasured_runs(view),
        "older_note": markdown_fragments.describe_older_baseline(view),
        "stale_note": markdown_fragments.describe_stale_baseline(view) if view.baseline_is_stale else None,
    }


def render_responses(row: CaseRow, around: int = CONTEXT_CHARACTERS) -> str:
    """Render prompt, tool calls and the difference of both responses as an escaped, folded section.

    Each response is limited to `around` characters. Return an empty string if nothing is stored that could be
    shown.
    """
    sides = row.response_comparison
    if sides is None:
        return ""
    title = "Baseline and here" if sides.has_baseline else "Answer"
    parts = [
        f"<details><summary>{title}: {escape.escape_html(row.label)}</summary>",
        *_format_prompt_lines(sides),
        *_format_responses(sides, around),
    ]
    if row.page_url:
        parts.append(f"[All of it]({row.page_url})")
    return "\n\n".join([*parts, "</details>"])


def _format_prompt_lines(sides: ResponseComparison) -> list[str]:
    said = []
    if sides.question:
        said.append(f"**Asked:** {escape.escape_markdown(sides.question, MAX_QUESTION)}")
    if sides.expected:
        wanted = escape.format_first_few(
            sides.expected, MAX_CHECKS, lambda one: escape.format_code_span(one, MAX_CHECK)
        )
        said.append(f"**Wanted:** {wanted}")
    if sides.call_changes:
        said.append(f"**Calls:** {'; '.join(map(markdown_fragments.format_prose, sides.call_changes))}")
    return ["<br>\n".join(said)] if said else []


def _format_responses(sides: ResponseComparison, around: int) -> list[str]:
    """Format the notes about the responses, then their difference.

    If only one side has a response, format that one. Equal responses are shown once.
    """
    found = sides.compare_responses(around)
    notes = [" ".join(sides.notes)] if sides.notes else []
    if found is None:
        return notes
    if found.is_equal or sides.baseline_response is None or sides.current_response is None:
        lines = "\n".join(line[2:] for line in found.to_lines())
        return [*notes, escape.format_code_block(lines)] if lines.strip() else notes
    return [*notes, escape.format_code_block("\n".join(found.to_lines()), language="diff")]


class _Column(FrozenStruct):
    """One column and its cells."""

    title: str
    align: str
    cell: Callable[[CaseRow], str]


def render_case_table(rows: Sequence[CaseRow], title: str, compared: bool = True) -> str:  # noqa: FBT001, FBT002 (a filter)
    """Render a table of cases with their evidence and failures.

    What all cases share is stated once above the table. If they share everything, the table is a list of names.
    """
    if not rows:
        return ""
    by_record = any(row.evidence for row in rows)
    seen = [_build_evidence_column(rows)] if by_record else _build_result_columns(compared=compared)
    what = _Column(f"What {'changed' if compared and not by_record else 'failed'}", ":--", _format_failure_cell)
    said, own = [], []
    for columns, once in ((seen, _format_evidence if by_record else _format_results), ([what], _format_failure)):
        if all(_is_uniform(rows, column) for column in columns):
            said.append(once(rows[0]))
        else:
            own += columns
    above = [f"**All {len(rows)}:** {' · '.join(said)}", ""] if said else []
    if not own:
        return "\n".join([*above, ", ".join(map(format_case_link, rows))])
    most = _format_common_evidence(rows) if by_record and seen[0] in own else ""
    return "\n".join([*above, *([most, ""] if most else []), *_render_table(rows, title, own)])


def render_score_table(rows: Sequence[CaseRow], title: str) -> str:
    """Graded cases with their scores, and what they lack."""
    scores = _Column("Score", "--:", lambda row: row.scores or _NONE)
    missing = _Column("What is missing", ":--", _format_failure_cell)
    return "\n".join(_render_table(rows, title, [scores, missing]))


def render_cause_table(causes: Sequence[Cause[CaseRow]], limit: int) -> str:
    """Render a table of at most `limit` causes: the check, its message, the number of cases, and examples.

    Causes come in the given order, the most frequent first.
    """
    lines = ["| Cause | Cases | For example |", "|:--|--:|:--|"]
    for cause in causes[:limit]:
        examples = ", ".join(map(format_name_link, cause.examples))
        lines.append(f"| {_format_cause(cause)} | {cause.count} | {examples} |")
    if len(causes) > limit:
        lines += ["", f"{format_count(len(causes) - limit, 'more cause')} not shown."]
    return "\n".join(lines)


def _format_cause(cause: Cause[CaseRow]) -> str:
    said = [f"{format_code_cell(value.text)} ({value.count})" for value in cause.values]
    rest = f"<br>and {format_count(cause.rest, 'other value')}" if cause.rest else ""
    return format_code_cell(cause.text) + "".join(f"<br>{words}" for words in said) + rest


_AS_MOST: Final = "as most"


def _build_evidence_column(rows: Sequence[CaseRow]) -> _Column:
    common = _find_common_evidence(rows)

    def cell(row: CaseRow) -> str:
        return _AS_MOST if common is not None and row.evidence_lines == common else format_evidence_cell(row)

    return _Column("What was seen", ":--", cell)


def _format_evidence(row: CaseRow) -> str:
    return "; ".join(escape_markdown(words, MAX_EVIDENCE) for words in row.evidence_lines)


def _find_common_evidence(rows: Sequence[CaseRow]) -> tuple[str, ...] | None:
    """Find the evidence that most rows share.

    Return None if all rows share it, at most half of them do, or too few to be worth stating.
    """
    lines, number = Counter(row.evidence_lines for row in rows).most_common(1)[0]
    return lines if _MIN_SHARED_ROWS <= number < len(rows) and number * 2 > len(rows) else None


def _format_common_evidence(rows: Sequence[CaseRow]) -> str:
    """`**11 of these 12:** failed 3 of 3 here, 0 of 3 on main`."""
    common = _find_common_evidence(rows)
    if common is None:
        return ""
    alike = [row for row in rows if row.evidence_lines == common]
    return f"**{len(alike)} of these {len(rows)}:** {_format_evidence(alike[0])}"


def _build_result_columns(*, compared: bool) -> list[_Column]:
    here = _Column("Here", "--:", lambda row: row.current_result or _NONE)
    return [_Column("Baseline", "--:", lambda row: row.baseline_result or _NONE), here] if compared else [here]


def _format_results(row: CaseRow) -> str:
    """`pass → fail`, `fail`."""
    return " → ".join(filter(None, [row.baseline_result, row.current_result]))


def _format_failure_cell(row: CaseRow) -> str:
    return format_code_cell(row.failure_summary or _NONE)


def _format_failure(row: CaseRow) -> str:
    return format_code_span(row.failure_summary or "no reason was given")


def _is_uniform(rows: Sequence[CaseRow], column: _Column) -> bool:
    return len(rows) >= _MIN_SHARED_ROWS and len({column.cell(row) for row in rows}) == 1


def _render_table(rows: Sequence[CaseRow], title: str, columns: Sequence[_Column]) -> list[str]:
    head = "".join(f" {column.title} |" for column in columns)
    rule = "".join(f"{column.align}|" for column in columns)
    cells = ("".join(f" {column.cell(row)} |" for column in columns) for row in rows)
    body = [f"| {format_case_link(row)} |{shown}" for row, shown in zip(rows, cells, strict=True)]
    return [f"| {title} |{head}", f"|:--|{rule}", *body]
