"""One self-contained page: no script, nothing loaded from elsewhere, everything escaped by the template engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Final

from eval_gate.model.result import Status, SuiteResult
from eval_gate.reports import phrases
from eval_gate.reports.view.rows import CaseRow
from eval_gate.reports.view.tables import SuiteRow
from eval_gate.reports.view.view import View
from eval_gate.reports.words import numbers as wording
from eval_gate.text.escape import one_line
from eval_gate.text.inert import visible

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


def _shown(value: object) -> object:
    """What is placed on the page: nothing in it turns or hides what stands beside it."""
    return visible(value) if type(value) is str else value


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("eval_gate.reports"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
        finalize=_shown,
    )
    environment.filters["percent"] = wording.percent
    environment.filters["signed"] = wording.signed
    environment.filters["seconds"] = wording.seconds
    environment.filters["money"] = wording.money
    environment.filters["score"] = wording.score
    environment.filters["line"] = one_line
    environment.globals["count"] = wording.count
    return environment
