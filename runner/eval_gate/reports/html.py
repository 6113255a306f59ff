"""One self-contained page: no script, nothing loaded from elsewhere, everything escaped by the template engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Final

from eval_gate.model.execution import Status
from eval_gate.model.result import SuiteResult
from eval_gate.reports import phrases
from eval_gate.reports.templating import environment
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.view.tables import SuiteRow
from eval_gate.reports.view.view import View

if TYPE_CHECKING:
    from jinja2 import Environment

MAX_CASES_WITH_ALL_ANSWERS: Final = 1_000
"""Cases above which the answers of passing ones are left out: a page of 200 MB opens nowhere."""


@dataclass(frozen=True, slots=True)
class CaseSection:
    """One case of the page. `number` counts from 1 over all suites and makes the anchor."""

    number: int
    row: CaseRow
    answer: str | None
    """The answer as far as the page shows it."""


@dataclass(frozen=True, slots=True)
class SuiteSection:
    """One suite of the page."""

    row: SuiteRow
    suite: SuiteResult
    cases: tuple[CaseSection, ...]


def render_html(view: View) -> str:
    """The page."""
    sections = tuple(_sections(view))
    numbers = {part.row.key: part.number for section in sections for part in section.cases}
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            view=view,
            summary=view.summary,
            context=view.context,
            sections=sections,
            numbers=numbers,
            unmeasured_note=phrases.unmeasured(view, mark=str),
            answers_left_out=view.summary.total_cases > MAX_CASES_WITH_ALL_ANSWERS,
        )
    )


def _sections(view: View) -> Iterator[SuiteSection]:
    everything, numbers = view.summary.total_cases <= MAX_CASES_WITH_ALL_ANSWERS, count(1)
    for suite, row, cases in view.by_suite:
        shown = (
            CaseSection(next(numbers), one, one.answer if everything or one.status is not Status.PASSED else None)
            for one in cases
        )
        yield SuiteSection(row, suite, tuple(shown))


@cache
def _environment() -> Environment:
    return environment({}, html=True)
