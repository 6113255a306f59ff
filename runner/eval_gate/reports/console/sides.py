"""A regression in three lines of a terminal: what was wanted, what the baseline answered, and what is answered here."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Final

from eval_gate.model.execution import CaseDetails, Status
from eval_gate.model.result import CaseResult
from eval_gate.reports.console.style import ConsoleStyle
from eval_gate.reports.view.rows import CaseRow
from eval_gate.text.escape import console_line

MOST_NAMED: Final = 5
_FEW_CHECKS: Final = 2
"""More checks than these do not say what went wrong: the failure does."""
_AROUND: Final = 12
"""Characters that are left of what two answers begin with alike."""
_INDENT: Final = " " * 4
_BEHIND: Final = len("baseline") + 2


def sides(row: CaseRow, style: ConsoleStyle) -> Iterator[str]:
    """At most a line for each of the three, and none for what is not known."""
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
    return " · ".join([*said, *([f'"{answer}"'] if answer else [])])


def _called(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return (
        f"called {', '.join(console_line(name, 60) for name in names[:MOST_NAMED])}{more}"
        if names
        else "called nothing"
    )


def _text(details: CaseDetails) -> str:
    return console_line(details.response or "")


def _apart(one: str, other: str) -> tuple[str, str]:
    """Both texts without most of what they begin with alike, where that is long enough to hide the difference."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    if same <= 2 * _AROUND or not one or not other:
        return one, other
    return f"…{one[same - _AROUND :]}", f"…{other[same - _AROUND :]}"
