"""Tables of cases in Markdown. What all their rows share is said once, above. Foreign text is escaped here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from eval_gate.reports.phrases import case_link, name_link, why_cell
from eval_gate.reports.view.groups import Cause
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.words.numbers import count
from eval_gate.struct import FrozenStruct
from eval_gate.text.escape import code_cell, code_span, plain

MAX_WHY: Final = 200
_NONE: Final = "–"
_ENOUGH: Final = 3
"""Rows that have to share something before it is said once: two can be read."""


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
