"""What an evaluator's score is held to: it may be turned round, and a case may need it to reach a floor.

Source: AgentV 4.42.4, `negate`, `required` and `min_score` of an assertion.
"""

from __future__ import annotations

from dataclasses import replace

from eval_gate.evaluators.base import Evaluation
from eval_gate.evaluators.wording import cut, score_text
from eval_gate.model.specs.evaluator import EvaluatorSpec, NamedEvaluatorSpec


def held_to(spec: EvaluatorSpec, evaluation: Evaluation) -> Evaluation:
    """The evaluation as it counts."""
    if not isinstance(spec, NamedEvaluatorSpec):
        return evaluation
    if spec.negate:
        evaluation = _negated(spec, evaluation)
    if spec.floor is not None and evaluation.score < spec.floor:
        said = evaluation.error or f"{cut(spec.name)}: score {score_text(evaluation.score)}"
        needed = f"{said} (required: at least {spec.floor:g})"
        return replace(evaluation, error=needed, vetoed=True, zeroes=True)
    return evaluation


def _negated(spec: NamedEvaluatorSpec, evaluation: Evaluation) -> Evaluation:
    """What was found is missed, and what was missed is found."""
    score = 1 - evaluation.score
    error = None
    if score < 1:
        found = evaluation.hits[0] if evaluation.hits else f"score {score_text(evaluation.score)}"
        error = f"{cut(spec.name)}: must not hold: {cut(found, 200)}"
    return replace(
        evaluation, score=score, hits=evaluation.misses, misses=evaluation.hits, error=error, vetoed=False, zeroes=False
    )
