"""An evaluator's answer as it is kept in the results."""

from __future__ import annotations

from functools import lru_cache

from eval_gate.evaluators.base import Evaluation
from eval_gate.model.execution import EvaluatorResult
from eval_gate.model.specs.evaluator import EvaluatorSpec


def result_of(spec: EvaluatorSpec, evaluation: Evaluation, weight: float) -> EvaluatorResult:
    """The record of one evaluator, with the weight that counted."""
    if evaluation.score == 1.0 and evaluation.passed and not _says_more(evaluation):
        return _passed(spec.name, spec.type, weight)
    return EvaluatorResult(
        name=spec.name,
        type=spec.type,
        score=evaluation.score,
        weight=weight,
        hits=evaluation.hits,
        misses=evaluation.misses,
        reasoning=evaluation.reasoning,
        evaluator_provider_request=evaluation.provider_request,
        evaluator_results=evaluation.members,
        vetoed=evaluation.vetoed,
    )


def _says_more(evaluation: Evaluation) -> bool:
    """Whether there is more to keep than that it passed, as with most assertions of most cases there is not."""
    said = evaluation.hits or evaluation.misses or evaluation.members
    return bool(said or evaluation.reasoning or evaluation.provider_request)


@lru_cache(maxsize=1_000)
def _passed(name: str, kind: str, weight: float) -> EvaluatorResult:
    """One object for all that only passed."""
    return EvaluatorResult(name=name, type=kind, score=1.0, weight=weight)
