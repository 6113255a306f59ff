"""One self-contained page: nothing is loaded from elsewhere, and nothing runs on it but the scripts that it names."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final

from eval_gate.reports import phrases
from eval_gate.reports.links import anchor_of
from eval_gate.reports.page.data import PageData
from eval_gate.reports.page.foreign_text import island, without_lone
from eval_gate.reports.page.strip import strip_of
from eval_gate.reports.templating import environment
from eval_gate.reports.view.view import View

if TYPE_CHECKING:
    from jinja2 import Environment

PLAIN: Final = 50
"""Cases to look at that also stand on the page as plain HTML: for who has no script, and for paper."""
PLAIN_ROWS: Final = 100
"""Cases that are named there of every other group."""


def render_html(view: View) -> str:
    """The page."""
    page = PageData(view)
    page_text = (
        engine()
        .get_template("page.html.j2")
        .render(
            view=view,
            summary=view.summary,
            context=view.context,
            page=page,
            looked_at=page.groups[0].rows[:PLAIN] if page.groups and page.groups[0].tone != "pass" else (),
            strip=strip_of(view),
            unmeasured_note=phrases.unmeasured_words(view, mark=str),
            older_note=phrases.older_baseline(view, mark=str),
            named=PLAIN_ROWS,
        )
    )
    return without_lone(page_text)


@cache
def asset(name: str) -> str:
    """A file of this room as it stands on the page."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8").strip()


def _digest(name: str) -> str:
    """How the page's policy names a script or style sheet of its own."""
    return "'sha256-" + base64.b64encode(hashlib.sha256(asset(name).encode()).digest()).decode() + "'"


@cache
def engine() -> Environment:
    """What renders the page of a run."""
    from markupsafe import Markup

    filters = {"island": lambda data: Markup(island(data)), "unbroken": lambda text: text.replace(" ", "\u00a0")}  # noqa: S704 (made safe by `island`)
    made = environment(filters, html=True, folder="page")
    made.globals |= {"asset": lambda name: Markup(asset(name)), "digest": lambda name: Markup(_digest(name))}  # noqa: S704 (our own files)
    made.globals |= {"anchor_of": anchor_of, "inert": Markup}
    return made
