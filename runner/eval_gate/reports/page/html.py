"""Render the self-contained HTML page."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final

from eval_gate.reports import markdown_fragments
from eval_gate.reports.links import build_anchor
from eval_gate.reports.page.data import PageData
from eval_gate.reports.page.truncation import encode_island, replace_lone_surrogates
from eval_gate.reports.template_engine import build_environment
from eval_gate.reports.view.report_view import ReportView
from eval_gate.reports.wording.grounds import format_place

if TYPE_CHECKING:
    from jinja2 import Environment


MAX_PLAIN_CASES: Final = 50
"""Cases that are also on the page as plain HTML, for readers without scripts and for paper."""
MAX_PLAIN_NAMES: Final = 100
"""Cases of every other group that plain HTML names."""


def render_html(view: ReportView) -> str:
    """Render the self-contained HTML page of a run."""
    page = PageData(view)
    page_text = (
        get_environment()
        .get_template("page.html.j2")
        .render(
            view=view,
            summary=view.summary,
            context=view.context,
            page=page,
            looked_at=page.groups[0].rows[:MAX_PLAIN_CASES] if page.groups and page.groups[0].tone != "pass" else (),
            recent_runs=describe_recent_runs(view),
            unmeasured_note=markdown_fragments.describe_unmeasured_runs(view, mark=str),
            older_note=markdown_fragments.describe_older_baseline(view, mark=str),
            max_names=MAX_PLAIN_NAMES,
        )
    )
    return replace_lone_surrogates(page_text)


@cache
def read_asset(name: str) -> str:
    """Read a file of this package, without surrounding blanks, for embedding in the page."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8").strip()


def _hash_asset(name: str) -> str:
    """Hash a script or style sheet for the content security policy of the page."""
    return "'sha256-" + base64.b64encode(hashlib.sha256(read_asset(name).encode()).digest()).decode() + "'"


@cache
def get_environment() -> Environment:
    """Return the cached template environment of a run's page."""
    from markupsafe import Markup

    filters = {"island": lambda data: Markup(encode_island(data))}  # noqa: S704 (made safe by `encode_island`)
    engine = build_environment(filters, html=True, folder="page")
    engine.globals |= {"asset": lambda name: Markup(read_asset(name)), "digest": lambda name: Markup(_hash_asset(name))}  # noqa: S704 (the package's files)
    engine.globals |= {"anchor_of": build_anchor, "inert": Markup}
    return engine


def describe_recent_runs(view: ReportView) -> str | None:
    """Describe how many cases failed in the newest runs of the baseline's branch; return None if none is known."""
    bad = [one.failed + one.errored for one in view.comparison.recent_runs] if view.comparison else []
    if not bad:
        return None
    low, high = min(bad), max(bad)
    each = f"{low or 'no'}" if low == high else f"between {low} and {high}"
    newest = f", {bad[0] or 'none'} in the newest" if low != high else ""
    runs = f"the newest {len(bad)} runs" if len(bad) > 1 else "the newest run"
    cases = "case" if each == "1" else "cases"
    return f"In {runs} {format_place(view.context)}, {each} {cases} failed or had no score{newest}."
