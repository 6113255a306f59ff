"""Score of a case from its evaluators, by the suite's aggregation rule."""

from __future__ import annotations

from collections.abc import Sequence

from eval_gate.evaluators.base import CaseScore, EvaluationContext, EvaluatorError, EvaluatorScore
from eval_gate.evaluators.dispatch import build_evaluator_result, run_evaluator, run_evaluators
from eval_gate.evaluators.trace import summarize_trace
from eval_gate.evaluators.weighted_mean import compute_weighted_mean, is_below_full, reaches_pass_score
from eval_gate.evaluators.wording import format_score, truncate
from eval_gate.model.case import Aggregation
from eval_gate.model.specs.evaluator import EvaluatorSpec
from eval_gate.model.usage import Usage, add_up
from eval_gate.struct import replace

MAX_ERROR = 500
"""Characters of the sentence that says why a case failed."""


async def score_case(context: EvaluationContext) -> CaseScore:
    """Score the response by the case's evaluators and rule. Raises EvaluatorError if an evaluator has no score."""
    score = await score_evaluators(context)
    weighted = context.case.aggregation is Aggregation.WEIGHTED_MEAN
    return score if score.assertions_run or weighted else warn_nothing_checked(score)


async def score_evaluators(context: EvaluationContext) -> CaseScore:
    """Score as `score_case`, without a warning if nothing is checked: part of a case may check nothing."""
    match context.case.aggregation:
        case Aggregation.FIRST_FAILURE:
            return await _score_until_failure(context)
        case Aggregation.WEIGHTED_MEAN:
            return await _score_weighted(context)
        case Aggregation.ALL:
            return await _score_all(context)


async def _score_until_failure(context: EvaluationContext) -> CaseScore:
    """Run in order, up to the first failure (tool-forge runner contract, "Assertion Execution")."""
    evaluations: list[EvaluatorScore] = []
    failed, score, run = None, 1.0, 0
    for spec in context.case.evaluators:
        result = await run_evaluator(spec, context)
        evaluations.append(result)
        run += result.checks_run
        if not result.passed:
            failed, score = result, result.score
            break
        score = min(score, result.score)  # an assertion's score is 1 or 0; a rubric may pass with less than 1
    return _build_case_score(
        context, evaluations, score, failed.error if failed else None, passed=failed is None, assertions_run=run
    )


def warn_nothing_checked(joined: CaseScore) -> CaseScore:
    """Add the warning that no check supports this score."""
    if joined.assertions_skipped:
        idle = "all assertions skipped"
    elif joined.results:
        idle = "nothing is checked: the assertions pass with every response"
    else:
        idle = "the case has no assertions"
    return replace(joined, warnings=(*joined.warnings, idle))


async def _score_all(context: EvaluationContext) -> CaseScore:
    """Run all, which must all pass (Agent Evals); the score is the share that passes."""
    specs = context.case.evaluators
    evaluations = [await run_evaluator(spec, context) for spec in specs]
    failed = [result for result in evaluations if not result.passed]
    score = (len(specs) - len(failed)) / len(specs) if specs else 1.0
    return _build_case_score(context, evaluations, score, failed[0].error if failed else None, passed=not failed)


async def _score_weighted(context: EvaluationContext) -> CaseScore:
    """Score the weighted mean of all evaluators; without a pass score, only 1 passes (AgentV, "Score Aggregation")."""
    specs = context.case.evaluators
    if not specs:
        raise EvaluatorError("the case has no evaluators")
    evaluations = await run_evaluators(specs, context, run_evaluator)
    score = compute_weighted_mean((spec.weight, one.score) for spec, one in zip(specs, evaluations, strict=True))
    if any(one.zeroes_case for one in evaluations):
        score = 0.0
    error = _find_shortfall(specs, evaluations)
    vetoed = any(one.vetoed and spec.weight > 0 for spec, one in zip(specs, evaluations, strict=True))
    if reaches_pass_score(score, context.case.pass_score) and not vetoed:
        error = None
    joined = _build_case_score(context, evaluations, score, error and truncate(error, MAX_ERROR), passed=error is None)
    return replace(joined, trace_summary=summarize_trace(context.response))


def _build_case_score(
    context: EvaluationContext,
    evaluations: Sequence[EvaluatorScore],
    score: float,
    error: str | None,
    *,
    passed: bool,
    assertions_run: int | None = None,
) -> CaseScore:
    # lists are faster than generators for the few evaluators of most cases
    specs = context.case.evaluators
    return CaseScore(
        passed=passed,
        score=score,
        error=error,
        assertions_run=sum([not spec.checks_nothing for spec in specs]) if assertions_run is None else assertions_run,
        assertions_skipped=sum([one.checks_skipped for one in evaluations]),
        skipped_tokens=tuple([token for one in evaluations for token in one.skipped_tokens]),
        warnings=tuple([warning for one in evaluations for warning in one.warnings]),
        results=tuple(
            [build_evaluator_result(spec, one, spec.weight) for spec, one in zip(specs, evaluations, strict=False)]
        ),
        judge_usage=Usage.add_up([one.usage for one in evaluations]),
        judge_cost_usd=add_up([one.cost_usd for one in evaluations]),
    )


def _find_shortfall(specs: Sequence[EvaluatorSpec], evaluations: Sequence[EvaluatorScore]) -> str | None:
    """Find the error of the first counting evaluator below the full score, or say that all have weight 0."""
    counted = [(spec, one) for spec, one in zip(specs, evaluations, strict=True) if spec.weight > 0 or one.zeroes_case]
    if not counted:
        return "every evaluator has weight 0, so there is no score"
    for spec, one in counted:
        if is_below_full(one):
            return one.error or f"{truncate(spec.name)}: score {format_score(one.score)}"
    return None
