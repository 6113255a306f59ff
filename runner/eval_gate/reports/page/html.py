"""Render the self-contained HTML page, with the chart of recent runs.

Its strip shows the newest runs of the baseline's branch and this one, as a small picture and as a sentence.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
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
from eval_gate.struct import FrozenStruct

if TYPE_CHECKING:
    from jinja2 import Environment


MAX_PLAIN_CASES: Final = 50
"""Cases to look at that also stand on the page as plain HTML: for who has no script, and for paper."""
MAX_PLAIN_NAMES: Final = 100
"""Cases that are named there of every other group."""
CHART_HEIGHT: Final = 40
BAR_STEP: Final = 11
"""Width of one run with the space beside it."""
BAR_WIDTH: Final = 8
MIN_BAR_HEIGHT: Final = 3
"""Height of what is not nothing, and of a run in which nothing failed."""


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
            strip=build_history_chart(view),
            unmeasured_note=markdown_fragments.describe_unmeasured_runs(view, mark=str),
            older_note=markdown_fragments.describe_older_baseline(view, mark=str),
            named=MAX_PLAIN_NAMES,
        )
    )
    return replace_lone_surrogates(page_text)


@cache
def read_asset(name: str) -> str:
    """Read a file of this package, without surrounding blanks, for embedding in the page."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8").strip()


def _hash_asset(name: str) -> str:
    """How the page's policy names a script or style sheet of its own."""
    return "'sha256-" + base64.b64encode(hashlib.sha256(read_asset(name).encode()).digest()).decode() + "'"


@cache
def get_environment() -> Environment:
    """Return the cached template environment of a run's page."""
    from markupsafe import Markup

    filters = {"island": lambda data: Markup(encode_island(data)), "unbroken": lambda text: text.replace(" ", "\u00a0")}  # noqa: S704 (made safe by `encode_island`)
    made = build_environment(filters, html=True, folder="page")
    made.globals |= {"asset": lambda name: Markup(read_asset(name)), "digest": lambda name: Markup(_hash_asset(name))}  # noqa: S704 (our own files)
    made.globals |= {"anchor_of": build_anchor, "inert": Markup}
    return made


class HistoryBar(FrozenStruct):
    """Bar of the history chart: failed cases of one run, and above them those without a score."""

    x: int
    title: str
    failed: int
    errored: int
    """Heights."""
    is_current: bool = False


class HistoryChart(FrozenStruct):
    """History chart: one bar per run, the oldest first, and its caption."""

    bars: tuple[HistoryBar, ...]
    width: int
    caption: str
    height: int = CHART_HEIGHT
    bar_width: int = BAR_WIDTH


def build_history_chart(view: ReportView) -> HistoryChart | None:
    """Build the chart of recent runs and this one; return None if no earlier run is known."""
    history = view.comparison.recent_runs if view.comparison else ()
    if not history:
        return None
    summary = view.summary
    runs = [
        (one.failed, one.errored, f"{(one.sha or one.run_id)[:7]}, {one.timestamp[:10]}") for one in reversed(history)
    ]
    runs.append((summary.failed, summary.errored, "this run"))
    most = max(failed + errored for failed, errored, _ in runs)
    return HistoryChart(tuple(_iter_bars(runs, most)), len(runs) * BAR_STEP, _describe_history(view, runs))


def _iter_bars(runs: Sequence[tuple[int, int, str]], most: int) -> Iterator[HistoryBar]:
    for place, (failed, errored, name) in enumerate(runs):
        title = f"{name}: {_format_failures(failed, errored)}"
        yield HistoryBar(
            place * BAR_STEP,
            title,
            _scale_height(failed, most),
            _scale_height(errored, most),
            is_current=place == len(runs) - 1,
        )


def _scale_height(number: int, most: int) -> int:
    return max(MIN_BAR_HEIGHT, round(number / most * (CHART_HEIGHT - MIN_BAR_HEIGHT))) if number else 0


def _format_failures(failed: int, errored: int) -> str:
    """`3 fail, 1 without a score`."""
    broken = f", {errored} without a score" if errored else ""
    return f"{failed or 'none'} {'fails' if failed == 1 else 'fail'}{broken}"


def _describe_history(view: ReportView, runs: Sequence[tuple[int, int, str]]) -> str:
    place = format_place(view.context)
    *earlier, (failed, errored, _) = runs
    bad = [one + other for one, other, _ in earlier]
    low, high = min(bad), max(bad)
    many = len(earlier) > 1
    each = f"{low or 'no'}" if low == high else f"between {low} and {high}"
    newest = f", {bad[-1] or 'none'} in the newest" if low != high else ""
    runs_words = f"the newest {len(earlier)} runs" if many else "the newest run"
    before = f"In {runs_words} {place}, {each} {'case' if each == '1' else 'cases'} failed or had no score"
    return f"{before}{newest}. In this run {_format_failures(failed, errored)}."
