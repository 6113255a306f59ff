"""Rules for scores: what a score passes, and which row it decides."""

from __future__ import annotations

import pytest

from eval_gate.config.score_rule import parse_score_rule
from eval_gate.external_results.result_rows import ResultRow, RowPlace, RowScore
from eval_gate.external_results.score_rules import ScoreRules
from eval_gate.model.execution import ErrorKind, Status

PASSED, FAILED, ERROR = Status.PASSED, Status.FAILED, Status.ERROR


@pytest.mark.parametrize(
    ("scores", "rules", "status"),
    [
        ((RowScore("x", 1.0), RowScore("y", None)), ScoreRules(pass_score=0.7), ERROR),
        ((RowScore("x", 0.2), RowScore("y", 1.0)), ScoreRules(pass_score=0.7), FAILED),
        ((RowScore("x", None, decides=False), RowScore("y", 1.0, True)), ScoreRules(), PASSED),
        ((RowScore("x", None, decides=False), RowScore("y", 1.0, True)), ScoreRules((parse_score_rule("x>1"),)), ERROR),
    ],
)
def test_apply_rules__score_that_decides_is_missing__is_an_evaluation_error(scores, rules, status) -> None:
    row = rules.apply_rules(ResultRow("s", "a", None, RowPlace("r"), scores))
    assert row.status is status
    assert (row.error_kind is ErrorKind.EVALUATION_ERROR) is (status is ERROR)
