"""Time, tokens and cost of one execution of a case."""

from __future__ import annotations

import pytest

from eval_gate.model.execution import ErrorCause, Status, Trial
from eval_gate.model.execution_usage import measure_execution
from eval_gate.model.usage import Usage
from eval_gate.struct import replace
from tests.support.results import make_result


@pytest.mark.parametrize(
    ("cause", "turn", "tokens"),
    [
        (ErrorCause.EVALUATOR_FAILED, None, 100),
        (ErrorCause.CALLS_UNKNOWN, None, 100),
        (ErrorCause.DATA_MISSING, None, 100),
        (ErrorCause.NO_CONNECTION, None, 150),
        (ErrorCause.AGENT_FAILED, None, 150),
        (ErrorCause.USER_FAILED, 1, 150),
        (ErrorCause.USER_FAILED, 2, 100),
        (None, None, 150),
    ],
)
def test_measure_execution__one_without_a_score__counts_if_the_agent_responded(cause, turn, tokens) -> None:
    scored = Trial(status=Status.PASSED, score=1.0, duration_ms=10)
    broken = Trial(status=Status.ERROR, score=0.0, duration_ms=10, error_cause=cause, failed_turn=turn)
    case = replace(
        make_result("a"), trials=(scored, scored, broken), usage=Usage(input_tokens=300, output_tokens=30), cost_usd=0.3
    )
    found = measure_execution(case)
    assert found.usage == Usage(input_tokens=tokens, output_tokens=tokens // 10)
    assert found.cost_usd == pytest.approx(tokens / 1000)
