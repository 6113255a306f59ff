"""Page of a branch over time, and its badge: one HTML file, an SVG image, and JSON for badge services."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import json

from eval_gate import __version__
from eval_gate.analysis.drift.branch_drift import find_drift
from eval_gate.analysis.drift.drift_report import iter_console_lines
from eval_gate.analysis.trend.branch_trend import TrendRun, find_trend
from eval_gate.files.writing import write_atomically
from eval_gate.model.comparison import Outcome
from eval_gate.reports.context import ReportContext
from eval_gate.reports.template_engine import build_environment
from eval_gate.reports.wording.numbers import format_money, format_percent, format_seconds
from eval_gate.results.history import History, HistoryRun
from eval_gate.text.escape import to_one_line

TREND_FOLDER: Final = "trend"
TREND_FILES: Final = ("trend.html", "badge.svg", "badge.json")
GOOD_RATE: Final = 0.9
_GREEN, _AMBER, _RED, _GRAY = "#1a7f37", "#9a6700", "#cf222e", "#59636e"


class Dot(NamedTuple):
    """One run in a chart, from 0 to 100 from the left and from the top; `y` is None without a value."""

    x: float
    y: float | None
    run: TrendRun
    value: str


class Chart(NamedTuple):
    """One chart with the values at its bottom and top, and a dot for each run."""

    title: str
    low: str
    high: str
    dots: tuple[Dot, ...]


def build_charts(runs: Sequence[TrendRun]) -> tuple[Chart, ...]:
    """Build the charts of pass rate, cost and time; one that no run has a value for is left out."""
    figures = [one.run.figures for one in runs]
    rates = [one.pass_rate for one in runs]
    lowest = min((rate for rate in rates if rate is not None), default=0.0)
    floor = min(math.floor(lowest * 10 + 1e-9) / 10, 0.9)
    charts = (
        _build_chart("Pass rate", runs, rates, format_percent, (floor, 1.0)),
        _build_chart("Cost of all cases", runs, [one.cost_usd if one else None for one in figures], format_money),
        _build_chart("Median time", runs, [one.latency_ms if one else None for one in figures], format_seconds),
    )
    return tuple(one for one in charts if any(dot.y is not None for dot in one.dots))


def _build_chart(
    title: str,
    runs: Sequence[TrendRun],
    values: Sequence[float | None],
    form: Callable[[float], str],
    span: tuple[float, float] | None = None,
) -> Chart:
    low, high = span or (0.0, max((value for value in values if value is not None), default=0.0))
    dots = tuple(
        Dot(
            x=round(100 * at / (len(runs) - 1), 2) if len(runs) > 1 else 50.0,
            y=None if value is None else round(100 * (high - value) / ((high - low) or 1.0), 2),
            run=run,
            value="–" if value is None else form(value),
        )
        for at, (run, value) in enumerate(zip(runs, values, strict=True))
    )
    return Chart(title, form(low), form(high), dots)


def build_badge(newest: TrendRun, decided: HistoryRun, context: ReportContext) -> dict[str, str | int]:
    """Build the data of the badge, in the schema of shields.io's endpoint badge.

    `decided` is the newest run of all cases, also an incomplete one: if its gate did not pass, the badge is red or gray
    whatever passes. Otherwise the pass rate decides: green from `GOOD_RATE`, amber below.
    """
    outcome = decided.figures.outcome if decided.figures else None
    rate, message, color = newest.pass_rate, "no results", _GRAY
    if rate is not None:
        percent = min(max(round(rate * 100), int(rate > 0)), 100 if rate == 1 else 99)
        message, color = f"{percent} % passing", _GREEN if rate >= GOOD_RATE else _AMBER
    if outcome is not Outcome.PASSED:
        message = f"{message}, gate {outcome.value}" if outcome else message
        color = _RED if outcome is Outcome.FAILED else _GRAY
    label = to_one_line(context.name or "evals", 40)
    return {"schemaVersion": 1, "label": label, "message": message, "color": color}


def write_trend(folder: Path, history: History, pass_score: float, context: ReportContext) -> tuple[Path, ...]:
    """Write page, badge and badge data into a folder, and return the files. Raises GateError.

    Nothing is written if the history has no complete run of all cases.
    """
    trend = find_trend(history, pass_score)
    if trend is None:
        return ()
    decided = next(one for one in history.runs if not one.partial)
    badge, charts = build_badge(trend.runs[-1], decided, context), build_charts(trend.runs)
    drift = list(iter_console_lines(find_drift(history, pass_score)))
    engine = build_environment({}, html=True)
    page, image = (engine.get_template(f"{name}.j2") for name in TREND_FILES[:2])
    texts = (
        page.render(trend=trend, charts=charts, drift=drift, context=context, version=__version__),
        image.render(badge=badge),
        json.format(json.encode(badge), indent=2).decode() + "\n",
    )
    files = tuple(folder / name for name in TREND_FILES)
    for file, text in zip(files, texts, strict=True):
        write_atomically(file, text)
    return files
