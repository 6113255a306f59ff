"""All evaluators of a case, joined by the case's rule."""

from __future__ import annotations

from functools import lru_cache

from runner.evaluators.assertions import evaluate
from runner.evaluators.base import Evaluation, EvaluationContext, Judgement
from runner.model.case import EvaluatorSpec
from runner.model.result import EvaluatorResult


async def judge(context: EvaluationContext) -> Judgement:
    """In order, stopping at the first failure (tool-forge runner contract, "Assertion Execution").

    Raises EvaluatorError when an evaluator could not judge.
    """
    evaluations: list[tuple[EvaluatorSpec, Evaluation]] = []
    for spec in context.case.evaluators:
        evaluation = await evaluate(spec, context)
        evaluations.append((spec, evaluation))
        if not evaluation.passed:
            break
    failed = next((evaluation for _, evaluation in evaluations if not evaluation.passed), None)
    run = sum(evaluation.checks_run for _, evaluation in evaluations)
    skipped = sum(evaluation.checks_skipped for _, evaluation in evaluations)
    warnings = [warning for _, evaluation in evaluations for warning in evaluation.warnings]
    if run == 0:
        warnings.append("all assertions skipped" if skipped else "the case has no assertions")
    return Judgement(
        passed=failed is None,
        score=1.0 if failed is None else 0.0,
        error=failed.error if failed else None,
        assertions_run=run,
        assertions_skipped=skipped,
        skipped_tokens=tuple(token for _, evaluation in evaluations for token in evaluation.skipped_tokens),
        warnings=tuple(warnings),
        results=tuple(_result(spec, evaluation) for spec, evaluation in evaluations),
    )


def _result(spec: EvaluatorSpec, evaluation: Evaluation) -> EvaluatorResult:
    if evaluation.passed and not evaluation.hits and evaluation.reasoning is None:
        return _passed(spec.name, spec.type, spec.weight)
    return EvaluatorResult(
        name=spec.name,
        type=spec.type,
        score=evaluation.score,
        weight=spec.weight,
        hits=evaluation.hits,
        misses=evaluation.misses,
        reasoning=evaluation.reasoning,
    )


@lru_cache(maxsize=1_000)
def _passed(name: str, kind: str, weight: float) -> EvaluatorResult:
    """What most assertions of most cases say: one object for all of them."""
    return EvaluatorResult(name=name, type=kind, score=1.0, weight=weight)
