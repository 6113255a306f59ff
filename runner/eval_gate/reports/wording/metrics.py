"""Evaluators and tags compared with the baseline, as reports show them."""

from __future__ import annotations

from functools import cached_property
from typing import Final

from eval_gate.model.metric_change import MetricChange, MetricChanges, MetricKind
from eval_gate.reports.wording.numbers import MINUS, format_percent, format_score
from eval_gate.struct import FrozenStruct

MAX_METRIC_NAME: Final = 60
_MARKS: Final = {"lower": "⚠️", "higher": "✅"}
"""Sign of a row that changed, by its direction."""
NO_EFFECT: Final = "This has no effect on the verdict."


class MetricRow(FrozenStruct):
    """One evaluator or tag with its numbers as text. `direction` is `lower`, `higher`, or empty unless it changed."""

    name: str
    is_tag: bool
    direction: str
    cases: int
    scores: str
    """`0.90 → 0.72`, or `0.90` if both look the same."""
    pass_rates: str
    """`95.0 % → 80.0 %`; a dash if it is unknown which score passes."""
    difference: str
    """`−0.18 (−0.25 to −0.10)`: the difference of the mean scores and its interval; `none` if no case differs."""

    @property
    def mark(self) -> str:
        """Sign of the direction, or an empty string."""
        return _MARKS.get(self.direction, "")


class MetricReport(FrozenStruct, eq=False, dict=True):
    """Texts and rows about evaluators and tags."""

    changes: MetricChanges
    failed: bool = False

    @property
    def title(self) -> str:
        """`Evaluators and tags: 2 of 9 changed`; no numbers without a detected change."""
        changed = f": {self.changes.changed} of {self.changes.tested} changed" if self.changes.changed else ""
        return f"Evaluators and tags{changed}"

    @cached_property
    def rows(self) -> tuple[MetricRow, ...]:
        """Evaluators, then tags, each with the changed ones first."""
        return tuple(map(_build_row, self.changes.rows))

    @property
    def note(self) -> str:
        """Meaning of the signs of rows, in sentences."""
        return self._describe_marks(*(f"{sign} {word}" for word, sign in _MARKS.items()), test="")

    @property
    def plain_note(self) -> str:
        """The same with words in place of signs, and with the name of the test."""
        test = ", at 5 % for all rows together (sign-flip test of the cases that both runs scored, Holm)"
        return self._describe_marks("Lower", "higher", test=test)

    def _describe_marks(self, lower: str, higher: str, *, test: str) -> str:
        marks = (
            f"{lower} or {higher}: by more than chance explains{test}. Re-runs do not count. A row without a mark can"
            if self.changes.changed
            else f"No row is marked: none differs by more than chance explains{test}. Re-runs do not count. A row can"
        )
        # a lower metric may have failed the gate
        is_decisive = self.failed and any(row.direction == "lower" for row in self.rows)
        return f"{marks} still have changed.{'' if is_decisive else f' {NO_EFFECT}'}"

    def select_rows(self, limit: int) -> tuple[MetricRow, ...]:
        """Select at most `limit` rows: the changed ones first, and the selected ones in their order."""
        chosen = sorted(range(len(self.rows)), key=lambda at: (not self.rows[at].direction, at))[:limit]
        return tuple(self.rows[at] for at in sorted(chosen))


def _build_row(change: MetricChange) -> MetricRow:
    difference, digits = "none", 3 if 0 < abs(change.difference) < 0.005 else 2
    if change.low is not None and change.high is not None:
        value, low, high = (_format_signed(one, digits) for one in (change.difference, change.low, change.high))
        difference = f"{value} ({low} to {high})"
    return MetricRow(
        name=change.name,
        is_tag=change.kind is MetricKind.TAG,
        direction=("lower" if change.difference < 0 else "higher") if change.changed else "",
        cases=change.cases,
        scores=" → ".join(dict.fromkeys(map(format_score, (change.baseline_score, change.current_score)))),
        pass_rates=" → ".join(
            dict.fromkeys(map(format_percent, (change.baseline_pass_rate, change.current_pass_rate)))
        ),
        difference=difference,
    )


def _format_signed(value: float, digits: int) -> str:
    rounded = round(value, digits)
    return f"{MINUS if rounded < 0 else '+' if rounded > 0 else ''}{abs(rounded):.{digits}f}"
