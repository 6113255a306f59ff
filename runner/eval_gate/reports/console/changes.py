"""What changed, on a terminal: what the verdict rests on first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from eval_gate.reports.console.style import MAX_ID, ConsoleStyle
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.view.view import View
from eval_gate.reports.words.waivers import WaiverWords
from eval_gate.text.escape import console_line, cut

MAX_ROWS: Final = 30
MAX_SEEN: Final = 300
MAX_TERMS: Final = 500


def changes(view: View, style: ConsoleStyle) -> Iterator[str]:
    """A block for each list of cases that is not empty, with an empty line behind it."""
    yield from _block(style, "red", "REGRESSIONS", view.regressions)
    yield from _block(style, "red", "MUST PASS", view.must_pass)
    yield from _block(style, "yellow", "NOT DECIDED", view.not_decided)
    if view.suite_drop:
        yield from (style.paint("yellow", f"ALL CASES TOGETHER: {view.suite_drop}"), "")
    yield from _block(style, "yellow", "BROKEN ON THE BASE, NOT BY THIS CHANGE", view.main_broke)
    yield from _waived(view, style)
    for group in view.errors_by_blame:
        yield from _block(style, "yellow", f"{group.title}s".upper(), group.rows, f": {group.means}")
    yield from _block(style, "yellow", f"SCORE DROPS OVER {view.score_tolerance}", view.score_drops)
    if view.new_passes:
        yield style.paint("green", _named("NEW PASSES", view.new_passes, scores=True))
        for row in view.new_passes[:MAX_ROWS]:
            if row.evidence:
                yield f"  {cut(console_line(row.label), MAX_ID)}: {console_line(row.why_words, MAX_SEEN)}"
        yield ""
    yield from _block(style, None, "NOT SURE", view.doubtful if view.refined else ())
    others = (
        ("FLAKY", () if view.refined else view.flaky),
        ("INCOMPARABLE", view.incomparable),
        ("NOT JUDGED IN THE BASELINE EITHER", view.still_errored),
        ("ADDED", view.added if style.verbose else ()),
        ("REMOVED", view.removed),
    )
    for name, rows in others:
        if rows:
            yield from (_named(name, rows, scores=True), "")


def _waived(view: View, style: ConsoleStyle) -> Iterator[str]:
    """What does not count, and by whose word."""
    if view.waived:
        yield style.paint("yellow", _named("ACCEPTED AND QUARANTINED", view.waived))
        for row in view.waived[:MAX_ROWS]:
            yield f"{_entry(row.label, row.waived)}; {console_line(row.why_words or row.seen, MAX_SEEN)}"
        yield ""
    for name, entries in (("NEW", view.waivers.brought), ("PROPOSED AND NOT COUNTED", view.waivers.proposed)):
        if entries:
            yield style.paint("yellow", f"{name} IN THIS PULL REQUEST ({len(entries)})")
            yield from (_entry(entry.named, entry) for entry in entries[:MAX_ROWS])
            yield ""


def _entry(name: str, words: WaiverWords | None) -> str:
    return f"  {cut(console_line(name), MAX_ID)}: {console_line(words.terms if words else '', MAX_TERMS)}"


def _block(
    style: ConsoleStyle, colour: str | None, name: str, rows: Sequence[CaseRow], means: str = ""
) -> Iterator[str]:
    """The names of the cases, what they mean, and a table of them; nothing where there are none."""
    from tabulate import tabulate

    if not rows:
        return
    title, shown = f"{_named(name, rows)}{means}", rows[:MAX_ROWS]
    yield style.paint(colour, title) if colour else title
    headers, seen = ["baseline", "here", "what changed"], [[row.then or "", row.here or ""] for row in shown]
    if any(row.evidence for row in rows):
        headers = ["what was seen", "what failed"]
        seen = [[console_line(row.why_words or row.seen, MAX_SEEN)] for row in shown]
    cells = [
        (cut(console_line(row.label), MAX_ID), *both, console_line(row.what or "", 100))
        for row, both in zip(shown, seen, strict=True)
    ]
    yield from tabulate(cells, headers=["case", *headers], disable_numparse=True).splitlines()
    yield ""


def _named(name: str, rows: Sequence[CaseRow], *, scores: bool = False) -> str:
    """`REGRESSIONS (2): a, b`; where no table follows, graded cases with their scores."""
    more = f" … and {len(rows) - MAX_ROWS} more" if len(rows) > MAX_ROWS else ""
    shown = [f"{console_line(row.label)} {(scores and row.scores) or ''}".rstrip() for row in rows[:MAX_ROWS]]
    return f"{name} ({len(rows)}): {', '.join(shown)}{more}"
