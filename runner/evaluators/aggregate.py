"""All evaluators of a case, joined by the case's rule."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from runner.evaluators.assertions import evaluate
from runner.evaluators.base import Evaluation, EvaluationContext, Judgement
from runner.model.conversation import Usage
from runner.model.evaluator import EvaluatorSpec
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
        # an assertion's score is 1 or 0; a rubric may pass with less than all of it
        score=failed.score if failed else min((evaluation.score for _, evaluation in evaluations), default=1.0),
        error=failed.error if failed else None,
        assertions_run=run,
        assertions_skipped=skipped,
        skipped_tokens=tuple(token for _, evaluation in evaluations for token in evaluation.skipped_tokens),
        warnings=tuple(warnings),
        results=tuple(_result(spec, evaluation) for spec, evaluation in evaluations),
        judge_usage=_sum_usage([evaluation.usage for _, evaluation in evaluations]),
        judge_cost_usd=_sum_cost([evaluation.cost_usd for _, evaluation in evaluations]),
    )


def _sum_usage(usages: Sequence[Usage | None]) -> Usage | None:
    """Tokens of all judges that were asked; None when none was, or none says."""
    known = [usage for usage in usages if usage is not None]
    if not known:
        return None
    return Usage(
        input_tokens=_sum([usage.input_tokens for usage in known]),
        output_tokens=_sum([usage.output_tokens for usage in known]),
    )


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _sum_cost(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known else None


def _result(spec: EvaluatorSpec, evaluation: Evaluation) -> EvaluatorResult:
    if evaluation.passed and not evaluation.hits and evaluation.reasoning is None and not evaluation.provider_request:
        return _passed(spec.name, spec.type, spec.weight)
    return EvaluatorResult(
        name=spec.name,
        type=spec.type,
        score=evaluation.score,
        weight=spec.weight,
        hits=evaluation.hits,
        misses=evaluation.misses,
        reasoning=evaluation.reasoning,
        evaluator_provider_request=evaluation.provider_request,
    )


@lru_cache(maxsize=1_000)
def _passed(name: str, kind: str, weight: float) -> EvaluatorResult:
    """What most assertions of most cases say: one object for all of them."""
    return EvaluatorResult(name=name, type=kind, score=1.0, weight=weight)
