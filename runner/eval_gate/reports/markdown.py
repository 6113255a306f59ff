"""The pull request comment and the job summary, in GitHub's Markdown."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from eval_gate.errors import GateError
from eval_gate.reports import phrases, tables
from eval_gate.reports.context import ReportContext
from eval_gate.reports.difference import AROUND
from eval_gate.reports.fit import COMMENT_LIMIT, LADDER, Detail, fit
from eval_gate.reports.templating import environment, tidy
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.view.sides import Sides
from eval_gate.reports.view.view import OPEN_ROWS, View
from eval_gate.text import escape

if TYPE_CHECKING:
    from jinja2 import Environment

MAX_QUESTION: Final = 200
MAX_WANTED: Final = 3
"""Checks that are named; the rest is in the page."""
MAX_WORDS: Final = 160
SUMMARY_LIMIT: Final = 900_000
"""Characters of a job summary. Beyond a mebibyte GitHub drops all of it, and a character may be more than a byte."""
SUMMARY_LADDER: Final = (
    Detail(rows=2_000, names=2_000, warnings=200, answers=20),
    Detail(rows=2_000, names=2_000, warnings=200),
    Detail(rows=500, names=500, warnings=100),
    *LADDER[1:],
)


def render_comment(view: View, *, limit: int = COMMENT_LIMIT, start: int = 0) -> str:
    """The comment: marker, verdict, why, the cases to look at, what to do, counts, warnings, provenance.

    At most `limit` characters; `start` begins further down the ladder, after a refusal.
    """
    return _render("comment.md.j2", view, limit, LADDER[start:])


def render_summary(view: View, *, limit: int = SUMMARY_LIMIT) -> str:
    """The job summary: the complete page, with the rules, every case, answers, and how it was decided.

    At most `limit` characters and bytes.
    """
    text = ""
    for allowed in (limit, limit // 4):  # a character takes four bytes at most
        text = _render("summary.md.j2", view, allowed, SUMMARY_LADDER)
        if len(text.encode()) <= limit:
            break
    return text


def render_problem(error: GateError, context: ReportContext, heading: str, *, as_comment: bool = False) -> str:
    """The page of a step that ended before there was a run; as a comment it begins with the marker."""
    marker = escape.comment_key(context.comment_key) if as_comment else None
    names = {"error": error, "context": context, "heading": heading, "marker": marker}
    return tidy(engine().get_template("problem.md.j2").render(names))


def _render(name: str, view: View, limit: int, ladder: tuple[Detail, ...]) -> str:
    template = engine().get_template(name)
    return fit(lambda detail: tidy(template.render(_names(view, detail))), limit, ladder)


@cache
def engine() -> Environment:
    """What renders comment, summary and problem."""
    pieces = (
        *(phrases.case_link, phrases.names, phrases.names_seen, phrases.names_here, phrases.names_by_reason),
        *(phrases.prose, phrases.sentence, phrases.measured_block, phrases.staleness),
        *(phrases.why_cell, phrases.terms_cell, phrases.entry_line),
        *(tables.case_table, tables.score_table, tables.cause_table, sides_fold),
    )
    filters = {piece.__name__: piece for piece in pieces}
    return environment({**filters, "html": escape.html_text, "block": escape.block}, html=False)


def _names(view: View, detail: Detail) -> dict[str, object]:
    return {
        "view": view,
        "context": view.context,
        "detail": detail,
        "summary": view.summary,
        "marker": escape.comment_key(view.context.comment_key),
        "open_rows": OPEN_ROWS,
        "links_line": phrases.links_line(view),
        "provenance": phrases.provenance(view),
        "spent": phrases.spent(view),
        "baseline_words": phrases.baseline(view) if view.comparison else None,
        "unmeasured_note": phrases.unmeasured_words(view),
        "older_note": phrases.older_baseline(view),
        "stale_note": phrases.stale_baseline(view) if view.baseline_is_stale else None,
    }


def sides_fold(row: CaseRow, around: int = AROUND) -> str:
    """What a case said in the baseline and says here: question, calls and the difference of both answers.

    Folded, and escaped; empty where nothing is kept that could be shown.

    At most `around` characters of each answer.
    """
    sides = row.sides
    if sides is None:
        return ""
    title = "Baseline and here" if sides.compared else "Answer"
    parts = [
        f"<details><summary>{title}: {escape.html_text(row.label)}</summary>",
        *_words(sides),
        *_answers(sides, around),
    ]
    if row.page:
        parts.append(f"[All of it]({row.page})")
    return "\n\n".join([*parts, "</details>"])


def _words(sides: Sides) -> list[str]:
    said = []
    if sides.question:
        said.append(f"**Asked:** {escape.plain(sides.question, MAX_QUESTION)}")
    if sides.expected:
        wanted = escape.first_few(sides.expected, MAX_WANTED, lambda one: escape.code_span(one, MAX_WORDS))
        said.append(f"**Wanted:** {wanted}")
    if sides.calls:
        said.append(f"**Calls:** {'; '.join(map(phrases.prose, sides.calls))}")
    return ["<br>\n".join(said)] if said else []


def _answers(sides: Sides, around: int) -> list[str]:
    """What there is to say about the answers, and the difference; only what is there where there is one side."""
    found = sides.difference(around)
    notes = [" ".join(sides.notes)] if sides.notes else []
    if found is None:
        return notes
    if found.same or sides.then is None or sides.here is None:
        lines = "\n".join(line[2:] for line in found.lines())
        return [*notes, escape.block(lines)] if lines.strip() else notes
    return [*notes, escape.block("\n".join(found.lines()), language="diff")]
