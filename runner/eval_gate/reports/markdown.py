"""The pull request comment and the job summary, in GitHub's Markdown.

What all rows of a table share is said once, above it. Foreign text is escaped here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

from eval_gate.errors import GateError
from eval_gate.reports import phrases
from eval_gate.reports.context import ReportContext
from eval_gate.reports.difference import AROUND
from eval_gate.reports.fit import COMMENT_LIMIT, LADDER, Detail, fit
from eval_gate.reports.phrases import case_link, name_link, why_cell
from eval_gate.reports.templating import environment, tidy
from eval_gate.reports.view.groups import Cause
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.view.sides import Sides
from eval_gate.reports.view.view import OPEN_ROWS, View
from eval_gate.reports.words.numbers import count
from eval_gate.struct import FrozenStruct
from eval_gate.text import escape
from eval_gate.text.escape import code_cell, code_span, plain

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
MAX_WHY: Final = 200
_NONE: Final = "–"
_ENOUGH: Final = 3
"""Rows that have to share something before it is said once: two can be read."""


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
        *(
            phrases.case_link,
            phrases.suspected_words,
            phrases.names,
            phrases.names_seen,
            phrases.names_here,
            phrases.names_by_reason,
        ),
        *(phrases.prose, phrases.sentence, phrases.measured_block, phrases.staleness),
        *(phrases.why_cell, phrases.terms_cell, phrases.entry_line),
        *(case_table, score_table, cause_table, sides_fold),
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


class _Column(FrozenStruct):
    """One column and its cells."""

    title: str
    align: str
    cell: Callable[[CaseRow], str]


def case_table(rows: Sequence[CaseRow], title: str, compared: bool = True) -> str:  # noqa: FBT001, FBT002 (a filter)
    """The cases, with what was seen of each and what failed; only their names where all have that in common."""
    if not rows:
        return ""
    by_record = any(row.evidence for row in rows)
    seen = [_seen(rows)] if by_record else _outcomes(compared=compared)
    what = _Column(f"What {'changed' if compared and not by_record else 'failed'}", ":--", _what_cell)
    said, own = [], []
    for columns, once in ((seen, _seen_words if by_record else _both), ([what], _what_words)):
        if all(_all_alike(rows, column) for column in columns):
            said.append(once(rows[0]))
        else:
            own += columns
    above = [f"**All {len(rows)}:** {' · '.join(said)}", ""] if said else []
    if not own:
        return "\n".join([*above, ", ".join(map(case_link, rows))])
    most = _most(rows) if by_record and seen[0] in own else ""
    return "\n".join([*above, *([most, ""] if most else []), *_lines(rows, title, own)])


def score_table(rows: Sequence[CaseRow], title: str) -> str:
    """Graded cases with their scores, and what they lack."""
    scores = _Column("Score", "--:", lambda row: row.scores or _NONE)
    missing = _Column("What is missing", ":--", _what_cell)
    return "\n".join(_lines(rows, title, [scores, missing]))


def cause_table(causes: Sequence[Cause[CaseRow]], limit: int) -> str:
    """What failures have in common, the most frequent first: the check, what it said, and cases to look at."""
    lines = ["| Cause | Cases | For example |", "|:--|--:|:--|"]
    for cause in causes[:limit]:
        examples = ", ".join(map(name_link, cause.examples))
        lines.append(f"| {_cause_cell(cause)} | {cause.count} | {examples} |")
    if len(causes) > limit:
        lines += ["", f"{count(len(causes) - limit, 'more cause')} not shown."]
    return "\n".join(lines)


def _cause_cell(cause: Cause[CaseRow]) -> str:
    said = [f"{code_cell(value.what)} ({value.count})" for value in cause.values]
    rest = f"<br>and {count(cause.rest, 'other value')}" if cause.rest else ""
    return code_cell(cause.what) + "".join(f"<br>{words}" for words in said) + rest


_AS_MOST: Final = "as most"


def _seen(rows: Sequence[CaseRow]) -> _Column:
    common = _common(rows)

    def cell(row: CaseRow) -> str:
        return _AS_MOST if common is not None and row.seen_lines == common else why_cell(row)

    return _Column("What was seen", ":--", cell)


def _seen_words(row: CaseRow) -> str:
    return "; ".join(plain(words, MAX_WHY) for words in row.seen_lines)


def _common(rows: Sequence[CaseRow]) -> tuple[str, ...] | None:
    """What most of the rows have in common, where there are enough of them and it is not all."""
    lines, number = Counter(row.seen_lines for row in rows).most_common(1)[0]
    return lines if _ENOUGH <= number < len(rows) and number * 2 > len(rows) else None


def _most(rows: Sequence[CaseRow]) -> str:
    """`**11 of these 12:** failed 3 of 3 here, 0 of 3 on main`."""
    common = _common(rows)
    if common is None:
        return ""
    alike = [row for row in rows if row.seen_lines == common]
    return f"**{len(alike)} of these {len(rows)}:** {_seen_words(alike[0])}"


def _outcomes(*, compared: bool) -> list[_Column]:
    here = _Column("Here", "--:", lambda row: row.here or _NONE)
    return [_Column("Baseline", "--:", lambda row: row.then or _NONE), here] if compared else [here]


def _both(row: CaseRow) -> str:
    """`pass → fail`, `fail`."""
    return " → ".join(filter(None, [row.then, row.here]))


def _what_cell(row: CaseRow) -> str:
    return code_cell(row.what or _NONE)


def _what_words(row: CaseRow) -> str:
    return code_span(row.what or "no reason was given")


def _all_alike(rows: Sequence[CaseRow], column: _Column) -> bool:
    return len(rows) >= _ENOUGH and len({column.cell(row) for row in rows}) == 1


def _lines(rows: Sequence[CaseRow], title: str, columns: Sequence[_Column]) -> list[str]:
    head = "".join(f" {column.title} |" for column in columns)
    rule = "".join(f"{column.align}|" for column in columns)
    cells = ("".join(f" {column.cell(row)} |" for column in columns) for row in rows)
    body = [f"| {case_link(row)} |{shown}" for row, shown in zip(rows, cells, strict=True)]
    return [f"| {title} |{head}", f"|:--|{rule}", *body]
