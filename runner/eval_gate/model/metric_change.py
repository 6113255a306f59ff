"""How the evaluators and tags of a run compare with the baseline, over the cases that both runs scored."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from eval_gate.model.base import Record

Share = Annotated[float, Meta(ge=0, le=1)]


class MetricKind(StrEnum):
    """What the cases of a row have in common."""

    EVALUATOR = "evaluator"
    """An evaluator of this name scored them, such as `style`, or a member of a composite, such as `policy / facts`. The
    scores are its own."""
    TAG = "tag"
    """They have this tag. The scores are those of the cases."""


class MetricChange(Record, kw_only=True):
    """Mean score and pass rate of one evaluator or tag, over the same cases in the baseline and in this run."""

    kind: MetricKind
    name: str
    cases: Annotated[int, Meta(ge=1)]
    """Number of cases that both runs scored with the same fingerprint."""
    baseline_score: Share
    current_score: Share
    baseline_pass_rate: Share | None = None
    """None if the evaluator only scores, and nothing tells which score passes."""
    current_pass_rate: Share | None = None
    difference: float
    """Mean over the cases of the current score minus the baseline score."""
    low: float | None = None
    """Lower end of the 95 % interval of the difference; None if the score of no case differs."""
    high: float | None = None
    p_value: Share
    """Chance of a difference of this size, in either direction, if nothing changed. Not adjusted for the other rows."""
    changed: bool = False
    """The difference is more than chance explains: adjusted for all rows (Holm), the chance is at most 5 %."""


class MetricChanges(Record, kw_only=True):
    """All evaluators and tags that were compared. They have no effect on the verdict."""

    rows: tuple[MetricChange, ...] = ()
    """Evaluators, then tags, each with the changed ones first, up to a limit."""
    tested: Annotated[int, Meta(ge=0)] = 0
    """Number of rows that were tested, including those beyond the limit."""
    changed: Annotated[int, Meta(ge=0)] = 0
    """Number of changed rows, including those beyond the limit."""
