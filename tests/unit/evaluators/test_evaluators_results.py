"""What is kept of an evaluator's answer."""

import pytest

from eval_gate.evaluators.base import EvaluatorScore
from eval_gate.evaluators.dispatch import build_evaluator_result
from eval_gate.evaluators.wording import limit_items
from eval_gate.model.execution import EvaluatorResult
from eval_gate.model.specs.evaluator import ResponseContains

SPEC = ResponseContains(values=("ok",))
MEMBER = EvaluatorResult(name="m", type="tool_trajectory", score=1.0, weight=1.0)


@pytest.mark.parametrize(
    "said",
    [
        EvaluatorScore(score=1.0),
        EvaluatorScore(score=0.8),
        EvaluatorScore(score=0.0, error="no"),
        EvaluatorScore(score=1.0, error="required and missing", vetoed=True),
        EvaluatorScore(score=1.0, members=(MEMBER,)),
        EvaluatorScore(score=1.0, hits=("found",)),
        EvaluatorScore(score=1.0, misses=("but",)),
        EvaluatorScore(score=1.0, reasoning="because"),
        EvaluatorScore(score=1.0, provider_request={"model": "m"}),
    ],
    ids=["passed", "in part", "failed", "full but failed", "members", "hits", "misses", "reasoning", "request"],
)
def test_result_of__answer__keeps_all_that_it_says(said) -> None:
    found = build_evaluator_result(SPEC, said, 2.0)
    assert (found.name, found.type, found.weight, found.score) == (SPEC.name, SPEC.type, 2.0, said.score)
    assert (found.hits, found.misses, found.reasoning) == (said.hits, said.misses, said.reasoning)
    assert found.vetoed is said.vetoed
    assert (found.evaluator_results, found.evaluator_provider_request) == (said.members, said.provider_request)


@pytest.mark.parametrize(("count", "kept"), [(2, ("0", "1")), (3, ("0", "1", "2")), (4, ("0", "1", "… and more"))])
def test_items__so_many__are_kept_whole_up_to_the_limit(count, kept) -> None:
    assert limit_items((str(number) for number in range(count)), 3) == kept
