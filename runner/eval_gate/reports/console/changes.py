"""What changed, on a terminal: what the verdict rests on first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from eval_gate.reports.console.style import MAX_ID
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.view.view import View
from eval_gate.reports.words.waivers import WaiverWords
from eval_gate.text.escape import console_line, cut

MAX_ROWS: Final = 30
MAX_SEEN: Final = 300
MAX_TERMS: Final = 500

Paint = Callable[[str, str], str]
"""A colour and a text give the text in that colour."""


def changes(view: View, paint: Paint, *, verbose: bool) -> Iterator[str]:
    """A block for each list of cases that is not empty, with an empty line behind it."""
    drops = _named(f"SCORE DROPS OVER {view.score_tolerance}", view.score_drops)
    yield from _block(paint("red", _named("REGRESSIONS", view.regressions)), view.regressions)
    yield from _block(paint("red", _named("MUST PASS", view.must_pass)), view.must_pass)
    yield from _block(paint("yellow", _named("NOT DECIDED", view.not_decided)), view.not_decided)
    if view.suite_drop:
        yield from (paint("yellow", f"ALL CASES TOGETHER: {view.suite_drop}"), "")
    yield from _block(
        paint("yellow", _named("BROKEN ON THE BASE, NOT BY THIS CHANGE", view.main_broke)), view.main_broke
    )
    yield from _waived(view, paint)
    for group in view.errors_by_blame:
        named = _named(f"{group.title}s".upper(), group.rows)
        yield from _block(paint("yellow", f"{named}: {group.means}"), group.rows)
    yield from _block(paint("yellow", drops), view.score_drops)
    if view.new_passes:
        yield paint("green", _named("NEW PASSES", view.new_passes, scores=True))
        for row in view.new_passes[:MAX_ROWS]:
            if row.evidence:
                yield f"  {cut(console_line(row.label), MAX_ID)}: {console_line(row.why_words, MAX_SEEN)}"
        yield ""
    yield from _block(_named("NOT SURE", view.doubtful), view.doubtful if view.refined else ())
    others = (
        ("FLAKY", () if view.refined else view.flaky),
        ("INCOMPARABLE", view.incomparable),
        ("NOT JUDGED IN THE BASELINE EITHER", view.still_errored),
        ("ADDED", view.added if verbose else ()),
        ("REMOVED", view.removed),
    )
    for name, rows in others:
        if rows:
            yield from (_named(name, rows, scores=True), "")


def _waived(view: View, paint: Paint) -> Iterator[str]:
    """What does not count, and by whose word."""
    if view.waived:
        yield paint("yellow", _named("ACCEPTED AND QUARANTINED", view.waived))
        for row in view.waived[:MAX_ROWS]:
            yield f"{_entry(row.label, row.waived)}; {console_line(row.why_words or row.seen, MAX_SEEN)}"
        yield ""
    for name, entries in (("NEW", view.waivers.brought), ("PROPOSED AND NOT COUNTED", view.waivers.proposed)):
        if entries:
            yield paint("yellow", f"{name} IN THIS PULL REQUEST ({len(entries)})")
            yield from (_entry(entry.named, entry) for entry in entries[:MAX_ROWS])
            yield ""


def _entry(name: str, words: WaiverWords | None) -> str:
    return f"  {cut(console_line(name), MAX_ID)}: {console_line(words.terms if words else '', MAX_TERMS)}"


def _block(title: str, rows: tuple[CaseRow, ...]) -> Iterator[str]:
    if rows:
        yield title
        yield from _table(rows)
        yield ""


def _table(rows: Sequence[CaseRow]) -> Iterator[str]:
    from tabulate import tabulate

    if not rows:
        return
    shown = rows[:MAX_ROWS]
    names = [cut(console_line(row.label), MAX_ID) for row in shown]
    what = [console_line(row.what or "", 100) for row in shown]
    if any(row.evidence for row in rows):
        headers = ["case", "what was seen", "what failed"]
        cells = [names, [console_line(row.why_words or row.seen, MAX_SEEN) for row in shown], what]
    else:
        headers = ["case", "baseline", "here", "what changed"]
        cells = [names, [row.then or "" for row in shown], [row.here or "" for row in shown], what]
    columns = list(zip(*cells, strict=True))
    yield from tabulate(columns, headers=headers, disable_numparse=True).splitlines()


def _named(name: str, rows: tuple[CaseRow, ...], *, scores: bool = False) -> str:
    """`REGRESSIONS (2): a, b`; where no table follows, graded cases with their scores."""
    more = f" … and {len(rows) - MAX_ROWS} more" if len(rows) > MAX_ROWS else ""
    shown = [f"{console_line(row.label)} {(scores and row.scores) or ''}".rstrip() for row in rows[:MAX_ROWS]]
    return f"{name} ({len(rows)}): {', '.join(shown)}{more}"
