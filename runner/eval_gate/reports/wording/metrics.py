"""Wording for evaluators and tags that are compared with the baseline."""

from __future__ import annotations

from typing import Final

from eval_gate.model.metric_change import MetricChange, MetricChanges
from eval_gate.reports.wording.behaviour import NO_EFFECT
from eval_gate.reports.wording.numbers import MINUS, format_percent, format_score

MAX_METRIC_NAME: Final = 60
MARKS: Final = {"lower": "⚠️", "higher": "✅"}
"""Sign of a row that changed, by its direction."""
TITLE: Final = "Evaluators and tags"


def format_metric_title(changes: MetricChanges) -> str:
    """Return `Evaluators and tags: 2 of 9 changed`, or no numbers if none did: nobody knows that nothing changed."""
    return f"{TITLE}: {changes.changed} of {changes.tested} changed" if changes.changed else TITLE


def get_direction(change: MetricChange) -> str:
    """`lower` or `higher` for a row that changed, else an empty string."""
    if not change.changed:
        return ""
    return "lower" if change.difference < 0 else "higher"


def describe_metric_marks(changes: MetricChanges, *, with_signs: bool, is_decisive: bool) -> str:
    """Describe what the marks of rows say and what they do not, in sentences; without marks, why there are none.

    The test is named where words stand for the signs: on the page, which has room for it. What fell and may have
    failed the gate (`is_decisive`) is not said to have no effect on the verdict.
    """
    test = ", at 5 % for all rows together (sign-flip test of the cases that both runs scored, Holm)"
    test = "" if with_signs else test
    lower, higher = (f"{sign} {word}" for word, sign in MARKS.items()) if with_signs else ("Lower", "higher")
    marks = (
        f"{lower} or {higher}: by more than chance explains{test}. Re-runs do not count. A row without a mark can"
        if changes.changed
        else f"No row is marked: none differs by more than chance explains{test}. Re-runs do not count. A row can"
    )
    return f"{marks} still have changed.{'' if is_decisive else f' {NO_EFFECT}'}"


def format_mean_scores(change: MetricChange) -> str:
    """`0.90 → 0.72`, or `0.90` if both look the same."""
    return _join_sides(format_score(change.baseline_score), format_score(change.current_score))


def format_pass_rates(change: MetricChange) -> str:
    """`95.0 % → 80.0 %`; a dash if nobody knows which score passes."""
    return _join_sides(format_percent(change.baseline_pass_rate), format_percent(change.current_pass_rate))


def format_metric_difference(change: MetricChange) -> str:
    """`−0.18 (−0.25 to −0.10)`: the difference of the mean scores and its interval; `none` if no case differs."""
    if change.low is None or change.high is None:
        return "none"
    digits = 3 if 0 < abs(change.difference) < 0.005 else 2
    shown, low, high = (_format_signed(one, digits) for one in (change.difference, change.low, change.high))
    return f"{shown} ({low} to {high})"


def _join_sides(baseline: str, current: str) -> str:
    return baseline if baseline == current else f"{baseline} → {current}"


def _format_signed(value: float, digits: int) -> str:
    rounded = round(value, digits)
    return f"{MINUS if rounded < 0 else '+' if rounded > 0 else ''}{abs(rounded):.{digits}f}"
