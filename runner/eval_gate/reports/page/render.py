"""One self-contained page: nothing is loaded from elsewhere, and nothing runs on it but the scripts that it names.

Its strip shows the newest runs of the baseline's branch and this one, as a small picture and as a sentence.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final

from eval_gate.reports import phrases
from eval_gate.reports.links import anchor_of
from eval_gate.reports.page.cuts import island, without_lone
from eval_gate.reports.page.data import PageData
from eval_gate.reports.templating import environment
from eval_gate.reports.view.view import View
from eval_gate.reports.words.grounds import place_of
from eval_gate.struct import FrozenStruct

if TYPE_CHECKING:
    from jinja2 import Environment


PLAIN: Final = 50
"""Cases to look at that also stand on the page as plain HTML: for who has no script, and for paper."""
PLAIN_ROWS: Final = 100
"""Cases that are named there of every other group."""
HEIGHT: Final = 40
STEP: Final = 11
"""Width of one run with the space beside it."""
WIDTH: Final = 8
LEAST: Final = 3
"""Height of what is not nothing, and of a run in which nothing failed."""


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


class Bar(FrozenStruct):
    """One run, drawn upwards: what failed, above it what could not be judged."""

    x: int
    title: str
    failed: int
    errored: int
    """Heights."""
    here: bool = False


class Strip(FrozenStruct):
    """The picture, the oldest run at the left, and what it says."""

    bars: tuple[Bar, ...]
    width: int
    words: str
    height: int = HEIGHT
    bar: int = WIDTH


def strip_of(view: View) -> Strip | None:
    """The strip; None where no earlier run is known."""
    history = view.comparison.history if view.comparison else ()
    if not history:
        return None
    summary = view.summary
    runs = [
        (one.failed, one.errored, f"{(one.sha or one.run_id)[:7]}, {one.timestamp[:10]}") for one in reversed(history)
    ]
    runs.append((summary.failed, summary.errored, "this run"))
    most = max(failed + errored for failed, errored, _ in runs)
    return Strip(tuple(_bars(runs, most)), len(runs) * STEP, _words(view, runs))


def _bars(runs: Sequence[tuple[int, int, str]], most: int) -> Iterator[Bar]:
    for place, (failed, errored, name) in enumerate(runs):
        title = f"{name}: {_failing(failed, errored)}"
        yield Bar(place * STEP, title, _high(failed, most), _high(errored, most), here=place == len(runs) - 1)


def _high(number: int, most: int) -> int:
    return max(LEAST, round(number / most * (HEIGHT - LEAST))) if number else 0


def _failing(failed: int, errored: int) -> str:
    """`3 fail, 1 could not be judged`."""
    broken = f", {errored} could not be judged" if errored else ""
    return f"{failed or 'none'} {'fails' if failed == 1 else 'fail'}{broken}"


def _words(view: View, runs: Sequence[tuple[int, int, str]]) -> str:
    place = place_of(view.context)
    *earlier, (failed, errored, _) = runs
    bad = [one + other for one, other, _ in earlier]
    low, high = min(bad), max(bad)
    many = len(earlier) > 1
    each = f"{low or 'no'}" if low == high else f"between {low} and {high}"
    newest = f", {bad[-1] or 'none'} in the newest" if low != high else ""
    runs_words = f"the newest {len(earlier)} runs" if many else "the newest run"
    before = f"In {runs_words} {place}, {each} {'case' if each == '1' else 'cases'} failed or could not be judged"
    return f"{before}{newest}. Here {_failing(failed, errored)}."
