"""One self-contained page: no script, nothing loaded from elsewhere, everything escaped by the template engine."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from runner.reports import wording
from runner.reports.view import View
from runner.text.escape import one_line

if TYPE_CHECKING:
    from jinja2 import Environment


def render_html(view: View) -> str:
    """The page."""
    return (
        _environment()
        .get_template("report.html.j2")
        .render(view=view, summary=view.summary, context=view.context, suites=zip_suites(view))
    )


def zip_suites(view: View) -> list[tuple[object, object]]:
    """Each suite's row beside its result."""
    return list(zip(view.suites, view.run.suites, strict=True))


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("runner.reports"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
    )
    environment.filters["percent"] = wording.percent
    environment.filters["signed"] = wording.signed
    environment.filters["line"] = one_line
    environment.globals["count"] = wording.count
    return environment
