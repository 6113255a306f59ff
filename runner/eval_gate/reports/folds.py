"""What a case said in the baseline and says here, as a fold in Markdown. Foreign text is escaped here."""

from __future__ import annotations

from eval_gate.reports.difference import AROUND
from eval_gate.reports.phrases import prose
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.view.sides import Sides
from eval_gate.text.escape import block, code_span, html_text, plain

MAX_QUESTION = 200
MAX_WANTED = 3
"""Checks that are named; the rest is in the page."""
MAX_WORDS = 160


def sides_fold(row: CaseRow, around: int = AROUND) -> str:
    """Question, calls and the difference of both answers, folded; empty where nothing is kept that could be shown.

    At most `around` characters of each answer.
    """
    sides = row.sides
    if sides is None:
        return ""
    title = "Baseline and here" if sides.compared else "Answer"
    parts = [f"<details><summary>{title}: {html_text(row.label)}</summary>", *_words(sides), *_answers(sides, around)]
    if row.page:
        parts.append(f"[All of it]({row.page})")
    return "\n\n".join([*parts, "</details>"])


def _words(sides: Sides) -> list[str]:
    said = []
    if sides.question:
        said.append(f"**Asked:** {plain(sides.question, MAX_QUESTION)}")
    if sides.wanted:
        shown, rest = sides.wanted[:MAX_WANTED], len(sides.wanted) - MAX_WANTED
        named = ", ".join(code_span(one, MAX_WORDS) for one in shown)
        said.append(f"**Wanted:** {named}{f' and {rest} more' if rest > 0 else ''}")
    if sides.calls:
        said.append(f"**Calls:** {'; '.join(map(prose, sides.calls))}")
    return ["<br>\n".join(said)] if said else []


def _answers(sides: Sides, around: int) -> list[str]:
    """What there is to say about the answers, and the difference; only what is there where there is one side."""
    found = sides.difference(around)
    notes = [" ".join(sides.notes)] if sides.notes else []
    if found is None:
        return notes
    if found.same or sides.then is None or sides.here is None:
        lines = "\n".join(line[2:] for line in found.lines())
        return [*notes, block(lines)] if lines.strip() else notes
    return [*notes, block("\n".join(found.lines()), language="diff")]
