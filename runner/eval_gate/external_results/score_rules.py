"""Pass rules for scores without a verdict: one threshold for all, or one per scorer."""

from __future__ import annotations

from eval_gate.config.score_rule import ScoreRule
from eval_gate.errors import GateError
from eval_gate.external_results.result_rows import MAX_ROUNDING_ERROR, ResultRow, RowScore
from eval_gate.model.execution import ErrorKind, Status
from eval_gate.struct import Struct, field


class ScoreRules(Struct):
    """All pass rules. `pass_score` is the threshold of a case's score when nothing else decides."""

    scores: tuple[ScoreRule, ...] = ()
    pass_score: float | None = None
    off_scale: int = 0
    """Results so far whose score is outside of 0 to 1, so that `pass_score` says nothing about them."""
    _used: set[str] = field(default_factory=set)

    def apply_rules(self, row: ResultRow) -> ResultRow:
        """Return the row with the status that the rules give it.

        Rules for scorers override the tool's own verdict. For a scorer without a rule, its own verdict counts. Raises
        GateError `missing-score-rule` if nothing says from which score on the row passes.
        """
        if row.status is Status.SKIPPED:
            return row
        ruled = {rule.name: rule for rule in self.scores}
        if row.status and row.status is not Status.ERROR and not ruled:
            return self._mark_graded(row)
        scores = tuple(self._apply_rule(one, ruled.get(one.name)) for one in row.scores)
        if row.status is Status.ERROR:
            # another scorer may have broken: one that says no says enough
            fails = any(one.name in ruled and one.passed is False for one in scores)
            is_of_scorer = row.error_kind is ErrorKind.EVALUATION_ERROR
            return row._replace(status=Status.FAILED, error=None, scores=scores) if fails and is_of_scorer else row
        touched = any(one.name in ruled for one in row.scores)
        if row.status is not None and not touched:
            return self._mark_graded(row)
        judged = self._classify_row(row._replace(scores=scores), touched=touched)
        if judged.status is Status.PASSED and row.contradiction and not touched:
            return _mark_unscored(judged, f"its score passes, but the tool also reports {row.contradiction}")
        return judged

    def _apply_rule(self, score: RowScore, rule: ScoreRule | None) -> RowScore:
        """Return the score with the verdict of its rule, and without one if there is no value."""
        if rule is None:
            return score
        self._used.add(rule.name)
        if score.value is None:
            return score._replace(passed=None, decides=True)
        reason = score.reason or f"{score.name} is {score.value}"
        return score._replace(passed=rule.is_met(score.value), reason=f"{reason} (rule: {rule})")

    def _classify_row(self, row: ResultRow, *, touched: bool) -> ResultRow:
        open_ = [score for score in row.scores if score.passed is None and score.decides]
        decided = [score.passed for score in row.scores if score.passed is not None]
        if decided and not open_:
            return row._replace(status=_to_status(all(decided)))
        if any(score.passed is False for score in row.scores):
            return row._replace(status=Status.FAILED)
        if (touched or row.score is None) and (lost := next((one for one in open_ if one.value is None), None)):
            return _mark_unscored(row, f"{lost.name} gave no score{f': {lost.reason}' if lost.reason else ''}")
        if touched and row.status is not None:
            return row
        if row.threshold is not None and row.score is not None:
            return row._replace(status=_to_status(row.score >= row.threshold))
        values = [row.score] if row.score is not None else [one.value for one in open_ if one.value is not None]
        value = min(values, default=None)
        if self.pass_score is not None and value is not None:
            # a grade: the gate itself says what is enough, on both sides of a comparison
            if not _is_grade(value):
                return _mark_unscored(row, f"the score {str(value)[:30]} is outside of the scale (0 to 1)")
            return row._replace(status=_to_status(value >= 1.0), score=value, is_graded=True)
        name = next((score.name for score in (*open_, *row.scores)), "score")
        raise GateError(
            "missing-score-rule",
            f'no rule says from which value the score "{name[:80]}" passes',
            f"--score '{name[:80]}>=0.7' for this scorer, or --pass-score 0.7 for all",
            problems=[row.place.build_problem(f'"{row.id[:100]}" has scores but no verdict')],
        )

    def _mark_graded(self, row: ResultRow) -> ResultRow:
        """Mark a row as graded if the pass score may accept less; a score of another scale is not a grade."""
        if self.pass_score is None or row.score is None:
            return row
        if not _is_grade(row.score):
            self.off_scale += 1
            return row
        return row._replace(is_graded=True)

    def list_unused_rules(self) -> list[str]:
        """List the rules for scorers that no result has: most likely misspelt."""
        return [str(rule) for rule in self.scores if rule.name not in self._used]


def _mark_unscored(row: ResultRow, why: str) -> ResultRow:
    return row._replace(status=Status.ERROR, error=why, error_kind=ErrorKind.EVALUATION_ERROR)


def _is_grade(score: float) -> bool:
    """Whether a score is on the scale of 0 to 1, but for what rounding adds."""
    return -MAX_ROUNDING_ERROR <= score <= 1 + MAX_ROUNDING_ERROR


def _to_status(holds: bool) -> Status:  # noqa: FBT001 (what it is about is its only argument)
    return Status.PASSED if holds else Status.FAILED
