"""What is kept of an evaluator's answer."""

import pytest

from eval_gate.evaluators.base import Evaluation
from eval_gate.evaluators.evaluate import result_of
from eval_gate.evaluators.wording import items
from eval_gate.model.execution import EvaluatorResult
from eval_gate.model.specs.evaluator import ResponseContains

SPEC = ResponseContains(values=("ok",))
MEMBER = EvaluatorResult(name="m", type="tool_trajectory", score=1.0, weight=1.0)


@pytest.mark.parametrize(
    "said",
    [
        Evaluation(score=1.0),
        Evaluation(score=0.8),
        Evaluation(score=0.0, error="no"),
        Evaluation(score=1.0, error="required and missing", vetoed=True),
        Evaluation(score=1.0, members=(MEMBER,)),
        Evaluation(score=1.0, hits=("found",)),
        Evaluation(score=1.0, misses=("but",)),
        Evaluation(score=1.0, reasoning="because"),
        Evaluation(score=1.0, provider_request={"model": "m"}),
    ],
    ids=["passed", "in part", "failed", "full but failed", "members", "hits", "misses", "reasoning", "request"],
)
def test_result_of__answer__keeps_all_that_it_says(said) -> None:
    found = result_of(SPEC, said, 2.0)
    assert (found.name, found.type, found.weight, found.score) == (SPEC.name, SPEC.type, 2.0, said.score)
    assert (found.hits, found.misses, found.reasoning) == (said.hits, said.misses, said.reasoning)
    assert found.vetoed is said.vetoed
    assert (found.evaluator_results, found.evaluator_provider_request) == (said.members, said.provider_request)


@pytest.mark.parametrize(("count", "kept"), [(2, ("0", "1")), (3, ("0", "1", "2")), (4, ("0", "1", "… and more"))])
def test_items__so_many__are_kept_whole_up_to_the_limit(count, kept) -> None:
    assert items((str(number) for number in range(count)), 3) == kept
