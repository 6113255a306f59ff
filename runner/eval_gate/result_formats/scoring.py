"""From where on a score passes, where the tool itself does not say: one score for all, or one for each scorer."""

from __future__ import annotations

from typing import Final

from eval_gate.config.score_rule import ScoreRule
from eval_gate.errors import GateError
from eval_gate.model.execution import Blame, Status
from eval_gate.result_formats.rows import ResultRow, RowScore
from eval_gate.struct import Struct, field

ROUNDING: Final = 1e-6
"""By so much a grade may be beyond 0 or 1: what is computed is rounded."""


class ScoreRules(Struct):
    """All rules. `pass_score` is what a score of the whole case has to reach where nobody else says."""

    scores: tuple[ScoreRule, ...] = ()
    pass_score: float | None = None
    off_scale: int = 0
    """Results so far whose score is outside of 0 to 1, so that `pass_score` says nothing about them."""
    _used: set[str] = field(default_factory=set)

    def judged(self, row: ResultRow) -> ResultRow:
        """The row with a status. Raises GateError `results-need-rule` where nobody says from where on a score passes.

        Rules for scorers win over the tool's own verdict; of the scorers that have none its own opinion counts.
        """
        if row.status is Status.ERROR or row.status is Status.SKIPPED:
            return row
        ruled = {rule.name: rule for rule in self.scores}
        if row.status and not ruled:
            return self._graded(row)
        scores = tuple(self._score(one, ruled.get(one.name)) for one in row.scores)
        touched = any(one.name in ruled for one in row.scores)
        if row.status is not None and not touched:
            return self._graded(row)
        return self._concluded(row._replace(scores=scores), touched=touched)

    def _score(self, score: RowScore, rule: ScoreRule | None) -> RowScore:
        if rule is None:
            return score
        self._used.add(rule.name)
        said = score.reason or f"{score.name} is {score.value if score.value is not None else 'missing'}"
        return score._replace(passed=rule.holds(score.value), reason=f"{said} (rule: {rule})")

    def _concluded(self, row: ResultRow, *, touched: bool) -> ResultRow:
        open_ = [score for score in row.scores if score.passed is None]
        if row.scores and not open_:
            return row._replace(status=_passing(all(score.passed for score in row.scores)))
        if any(score.passed is False for score in row.scores):
            return row._replace(status=Status.FAILED)
        if touched and row.status is not None:
            return row
        if row.threshold is not None and row.score is not None:
            return row._replace(status=_passing(row.score >= row.threshold))
        value = row.score if row.score is not None else min((one.value or 0.0 for one in open_), default=None)
        if self.pass_score is not None and value is not None:
            # a grade: the gate itself says what is enough, on both sides of a comparison
            if not _is_grade(value):
                why = f"the score {str(value)[:30]} is outside of the scale, which is 0 to 1"
                return row._replace(status=Status.ERROR, error=why, blame=Blame.OURS)
            return row._replace(status=_passing(value >= 1.0), score=value, graded=True)
        named = open_[0].name if open_ else "score"
        raise GateError(
            "results-need-rule",
            f'nobody says from where on the score "{named[:80]}" passes',
            f"--score '{named[:80]}>=0.7' for this scorer, or --pass-score 0.7 for all",
            problems=[row.place.problem(f'"{row.id[:100]}" has scores and no verdict')],
        )

    def _graded(self, row: ResultRow) -> ResultRow:
        """What the tool has judged, and whether the gate's pass score may say that less is enough.

        A score of another scale is no grade: there the tool's own verdict stands.
        """
        if self.pass_score is None or row.score is None:
            return row
        if not _is_grade(row.score):
            self.off_scale += 1
            return row
        return row._replace(graded=True)

    def unused(self) -> list[str]:
        """Rules for scorers that no result has: most likely misspelt."""
        return [str(rule) for rule in self.scores if rule.name not in self._used]


def _is_grade(score: float) -> bool:
    """Whether a score is on the scale of 0 to 1, but for what rounding adds."""
    return -ROUNDING <= score <= 1 + ROUNDING


def _passing(holds: bool) -> Status:  # noqa: FBT001 (what it is about is its only argument)
    return Status.PASSED if holds else Status.FAILED
