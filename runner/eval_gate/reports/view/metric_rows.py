"""Evaluators and tags compared with the baseline, as reports show them."""

from __future__ import annotations

from functools import cached_property

from eval_gate.model.metric_change import MetricChange, MetricChanges, MetricKind
from eval_gate.reports.wording.metrics import (
    MARKS,
    describe_metric_marks,
    format_mean_scores,
    format_metric_difference,
    format_metric_title,
    format_pass_rates,
    get_direction,
)
from eval_gate.struct import FrozenStruct


class MetricRow(FrozenStruct):
    """One evaluator or tag with its numbers as text. `direction` is empty unless the row changed."""

    name: str
    is_tag: bool
    direction: str
    cases: int
    scores: str
    pass_rates: str
    difference: str

    @property
    def mark(self) -> str:
        """Sign of the direction, or an empty string."""
        return MARKS.get(self.direction, "")


class MetricReport(FrozenStruct, eq=False, dict=True):
    """All that reports say about evaluators and tags."""

    found: MetricChanges
    is_decisive: bool = False
    """Whether the gate failed and an evaluator fell, which may be why."""

    @cached_property
    def title(self) -> str:
        """`Evaluators and tags: 2 of 9 changed`."""
        return format_metric_title(self.found)

    @cached_property
    def rows(self) -> tuple[MetricRow, ...]:
        """Evaluators, then tags, each with the changed ones first."""
        return tuple(map(_build_row, self.found.rows))

    @property
    def note(self) -> str:
        """What the signs of rows say and what they do not, in sentences."""
        return describe_metric_marks(self.found, with_signs=True, is_decisive=self.is_decisive)

    @property
    def plain_note(self) -> str:
        """The same without signs, where words stand for them."""
        return describe_metric_marks(self.found, with_signs=False, is_decisive=self.is_decisive)

    def select_rows(self, limit: int) -> tuple[MetricRow, ...]:
        """Select at most `limit` rows: the changed ones first, and the selected ones in their order."""
        chosen = sorted(range(len(self.rows)), key=lambda at: (not self.rows[at].direction, at))[:limit]
        return tuple(self.rows[at] for at in sorted(chosen))


def _build_row(change: MetricChange) -> MetricRow:
    return MetricRow(
        name=change.name,
        is_tag=change.kind is MetricKind.TAG,
        direction=get_direction(change),
        cases=change.cases,
        scores=format_mean_scores(change),
        pass_rates=format_pass_rates(change),
        difference=format_metric_difference(change),
    )


def build_metric_report(changes: MetricChanges | None, *, failed: bool) -> MetricReport | None:
    """Build the report of evaluators and tags; None if nothing was compared. `failed` says whether the gate did."""
    if changes is None or not changes.rows:
        return None
    return MetricReport(changes, failed and any(get_direction(one) == "lower" for one in changes.rows))
