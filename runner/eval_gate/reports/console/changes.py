"""What changed, on a terminal: what the verdict rests on first, and what several cases share said once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

from eval_gate.model.execution import CaseDetails, Status
from eval_gate.model.result import CaseResult
from eval_gate.reports.console.style import MAX_ID, ConsoleStyle
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.view.view import View
from eval_gate.reports.words.waivers import WaiverWords
from eval_gate.text.escape import console_line, cut, first_few

MAX_ROWS: Final = 30
MAX_SIDES: Final = 10
"""Regressions of which both sides are shown."""
MAX_SEEN: Final = 300
MAX_WHAT: Final = 200
MAX_TERMS: Final = 500
MOST_NAMED: Final = 5
_FEW_CHECKS: Final = 2
"""More checks than these do not say what went wrong: the failure does."""
_AROUND: Final = 12
"""Characters that are left of what two answers begin with alike."""
_INDENT: Final = " " * 4
_BEHIND: Final = len("baseline") + 2


def changes(view: View, style: ConsoleStyle) -> Iterator[str]:
    """A block for each list of cases that is not empty, with an empty line behind it."""
    yield from _regressions(view, style)
    yield from _block(style, "red", "MUST PASS", view.must_pass)
    yield from _block(style, "yellow", "NOT DECIDED", view.not_decided)
    if view.suite_drop:
        yield from style.wrap(view.suite_drop, begin="ALL CASES TOGETHER: ", colour="yellow")
        yield ""
    yield from _block(style, "yellow", "FAILS WITH THE BASE BRANCH'S AGENT TOO, NOT OF THIS CHANGE", view.by_control)
    yield from _block(style, "yellow", "BROKEN ON THE BASE, NOT BY THIS CHANGE", view.main_broke)
    yield from _waived(view, style)
    for group in view.errors_by_blame:
        yield from _block(style, "yellow", f"{group.title}s".upper(), group.rows, group.means)
    yield from _block(style, "yellow", f"SCORE DROPS OVER {view.score_tolerance}", view.score_drops)
    if any(row.evidence for row in view.new_passes):
        yield from _block(style, "green", "NEW PASSES", view.new_passes)
    else:
        yield from _named(style, "green", "NEW PASSES", view.new_passes, scores=True)
    if view.fresh:
        colour = "yellow" if view.fresh_flaky else None
        yield from style.wrap(view.fresh, begin="NEW AND CHANGED CASES: ", colour=colour)
        yield ""
    yield from _block(style, "yellow", "NEW OR CHANGED, AND FLAKY", view.fresh_flaky)
    yield from _block(style, None, "NOT SURE", view.doubtful if view.refined else ())
    others = (
        ("FLAKY", () if view.refined else view.flaky),
        ("INCOMPARABLE", view.incomparable),
        ("NOT JUDGED IN THE BASELINE EITHER", view.still_errored),
        ("ADDED", view.added if style.verbose else ()),
        ("REMOVED", view.removed),
    )
    for name, rows in others:
        yield from _named(style, None, name, rows, scores=True)


def _regressions(view: View, style: ConsoleStyle) -> Iterator[str]:
    """The contract's line with every id, then what was seen, wanted and answered, once for all that share it."""
    rows = view.broken
    if not rows:
        return
    if view.regressions:
        yield from _title(style, "red", "REGRESSIONS", view.regressions)
    if view.suspected:
        yield from _title(style, "red", "SUSPECTED REGRESSIONS, NOT RE-RUN", view.suspected)
    shared = len({_seen(row) for row in rows}) == 1
    if shared:
        yield from style.wrap(f"{'each: ' if len(rows) > 1 else ''}{_seen(rows[0])}", begin="  ")
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for row in rows[:MAX_SIDES]:
        groups["" if shared else _seen(row), *_sides(row, style)].append(_label(row))
    for (seen, *both), labels in groups.items():
        if len(groups) > 1:
            yield from style.wrap(f"{', '.join(labels)}{f': {seen}' if seen else ''}", begin="  ", indent=" " * 4)
        yield from both
    if len(rows) > MAX_SIDES:
        yield f"  … and {len(rows) - MAX_SIDES} more"
    yield ""


def _sides(row: CaseRow, style: ConsoleStyle) -> Iterator[str]:
    """What was wanted, what the baseline answered and what is answered here: a line each, as far as they are known."""
    then, now = _answers(row)
    both = (("both", now),) if then == now else (("baseline", then), ("here", now))
    for label, words in (_wanted(row), *both):
        if words:
            begin = f"{_INDENT}{label:<{_BEHIND}}"
            yield begin + style.cut(words, max(style.width - len(begin), 1))


def _wanted(row: CaseRow) -> tuple[str, str]:
    """What the case expects, where that is short; else what failed, unless it is what stands for the answer."""
    checks = row.case.asked.expectation if row.case and row.case.asked else ()
    if 0 < len(checks) <= _FEW_CHECKS:
        return "wanted", console_line("; ".join(checks))
    return "failed", console_line(row.what or "") if row.judged else ""


def _answers(row: CaseRow) -> tuple[str, str]:
    """Calls and answer on both sides; calls only where they differ, and of long answers from where they differ."""
    before, case = row.compared.before if row.compared else None, row.case
    if case is None:
        return "", ""
    if before is None:
        return "", _side(case.details, _broken(case), _text(case.details), calls=bool(case.details.tools_called))
    calls = before.details.tools_called != case.details.tools_called
    earlier, here = _apart(_text(before.details), _text(case.details))
    said = before.error or "" if before.status is Status.ERROR else ""
    return _side(before.details, said, earlier, calls=calls), _side(case.details, _broken(case), here, calls=calls)


def _broken(case: CaseResult) -> str:
    return case.error or "" if case.status is Status.ERROR else ""


def _side(details: CaseDetails, broken: str, answer: str, *, calls: bool) -> str:
    """`called escalate · "I am sorry"`; what broke where there is no answer."""
    if broken:
        return console_line(broken)
    said = [_called(details.tools_called)] if calls else []
    if details.response is not None and not answer:
        return " · ".join([*said, "an empty answer"])
    return " · ".join([*said, *([f'"{answer}"'] if answer else [])])


def _called(names: tuple[str, ...]) -> str:
    return f"called {first_few(names, MOST_NAMED, lambda name: console_line(name, 60)) or 'nothing'}"


def _text(details: CaseDetails) -> str:
    return console_line(details.response or "")


def _apart(one: str, other: str) -> tuple[str, str]:
    """Both texts without most of what they begin with alike, where that is long enough to hide the difference."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    if same <= 2 * _AROUND or not one or not other or one == other:
        return one, other
    return f"…{one[same - _AROUND :]}", f"…{other[same - _AROUND :]}"


def _waived(view: View, style: ConsoleStyle) -> Iterator[str]:
    """What does not count, and by whose word."""
    said = dict[WaiverWords, str]()
    if view.waived:
        yield from style.wrap(f"ACCEPTED AND QUARANTINED ({len(view.waived)})", colour="yellow")
        for row in view.waived[:MAX_ROWS]:
            yield from _entry(style, row.label, row.waived, console_line(row.why_words or row.seen, MAX_SEEN))
            if row.waived:
                said.setdefault(row.waived, _label(row))
        yield from _more(view.waived)
        yield ""
    for name, entries in (("NEW", view.waivers.brought), ("PROPOSED AND NOT COUNTED", view.waivers.proposed)):
        if entries:
            yield from style.wrap(f"{name} IN THIS PULL REQUEST ({len(entries)})", colour="yellow")
            for entry in entries[:MAX_ROWS]:
                yield from _entry(style, entry.named, entry, above=said.get(entry))
            yield ""


def _entry(
    style: ConsoleStyle, name: str, words: WaiverWords | None, seen: str = "", *, above: str | None = None
) -> Iterator[str]:
    """A waiver's terms, and what was seen of its case; where they stand already if they do."""
    terms = f"see {above} above" if above else console_line(words.terms if words else "", MAX_TERMS)
    parts = "; ".join(filter(None, [terms, seen]))
    yield from style.wrap(f"{cut(console_line(name), MAX_ID)}: {parts}", begin="  ", indent=" " * 4)


def _block(
    style: ConsoleStyle, colour: str | None, name: str, rows: Sequence[CaseRow], means: str = ""
) -> Iterator[str]:
    """How many cases there are, what that means, and what was seen of them, once for all that share it."""
    if not rows:
        return
    yield from style.wrap(f"{name} ({len(rows)}){f': {means}' if means else ''}", colour=colour)
    groups: dict[str, list[str]] = defaultdict(list)
    for row in rows[:MAX_ROWS]:
        groups[_seen(row)].append(_label(row))
    for seen, labels in groups.items():
        yield from style.wrap(f"{', '.join(labels)}: {seen}", begin="  ", indent=" " * 4)
    yield from _more(rows)
    yield ""


def _named(
    style: ConsoleStyle, colour: str | None, name: str, rows: Sequence[CaseRow], *, scores: bool = False
) -> Iterator[str]:
    if rows:
        yield from _title(style, colour, name, rows, scores=scores)
        yield ""


def _title(
    style: ConsoleStyle, colour: str | None, name: str, rows: Sequence[CaseRow], *, scores: bool = False
) -> Iterator[str]:
    """`REGRESSIONS (2): a, b`; graded cases with their scores where nothing else follows."""
    shown = [f"{console_line(row.label)} {(scores and row.scores) or ''}".rstrip() for row in rows[:MAX_ROWS]]
    more = f" … and {len(rows) - MAX_ROWS} more" if len(rows) > MAX_ROWS else ""
    yield from style.wrap(f"{name} ({len(rows)}): {', '.join(shown)}{more}", colour=colour)


def _more(rows: Sequence[CaseRow]) -> Iterator[str]:
    if len(rows) > MAX_ROWS:
        yield f"  … and {len(rows) - MAX_ROWS} more"


def _label(row: CaseRow) -> str:
    return cut(console_line(row.label), MAX_ID)


def _seen(row: CaseRow) -> str:
    """What was seen of the case; what failed only where it does not stand below its line in the list of all cases."""
    listed = row.case is not None and row.case.error and row.status is not Status.NOT_RUN
    what = None if listed else row.what
    said = [console_line(row.why_words or row.seen, MAX_SEEN), *([console_line(what, MAX_WHAT)] if what else [])]
    return "; ".join(said)
