"""The newest runs of the baseline's branch and this one, as a small picture and as a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from eval_gate.reports.view.view import View
from eval_gate.reports.words.grounds import place_of
from eval_gate.struct import FrozenStruct

HEIGHT: Final = 40
STEP: Final = 11
"""Width of one run with the space beside it."""
WIDTH: Final = 8
LEAST: Final = 3
"""Height of what is not nothing, and of a run in which nothing failed."""


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
