"""Run the evaluators of a case, apply their requirements and build their results.

Each dialect has a table of functions by class of spec, loaded on first use: most runs need one dialect, and the modules
for judges and commands load slowly.

All evaluators of a case run, whatever their scores. LLM judges run concurrently. The others run one after another,
because each may start a program, and a case must not start as many programs at once as it has evaluators.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib import import_module
from typing import Final

from eval_gate.evaluators.base import (
    EvaluationContext,
    EvaluatorError,
    EvaluatorFunction,
    EvaluatorScore,
    EvaluatorTable,
    RunEvaluator,
)
from eval_gate.evaluators.wording import format_score, truncate
from eval_gate.model.execution import EvaluatorResult
from eval_gate.model.specs.evaluator import Composite, EvaluatorSpec, LlmJudge, NamedEvaluatorSpec, Rubric, RubricJudge
from eval_gate.struct import replace
from eval_gate.text.distinct_values import format_value_and_limit
from eval_gate.text.javascript.regex import PatternError, PatternWorkerError
from eval_gate.text.untrusted.surrogates import to_well_formed

DIALECTS: Final = ("tool_forge", "agent_evals", "agentv")
"""Folders of this package whose `table` has a `TABLE`, searched in this order: the quickest to load is first."""
_JUDGE_SPECS: tuple[type[EvaluatorSpec], ...] = (LlmJudge, RubricJudge, Rubric)


async def run_evaluator(spec: EvaluatorSpec, context: EvaluationContext) -> EvaluatorScore:
    """Score by one evaluator. Raises EvaluatorError if there is no score: that is never a failed assertion.

    A pattern that cannot be compiled or searched fails its assertion, also one that is negated.
    """
    grader = _get_evaluator(type(spec))
    try:
        if isinstance(spec, Composite):  # runs its members
            score = await grader(spec, context, run_evaluator)
        else:
            score = await grader(spec, context)
    except PatternError as error:
        message = to_well_formed(f"{truncate(spec.name)}: {error}")
        return _apply_floor(spec, EvaluatorScore(score=0.0, misses=(message,), error=message, checks_run=1))
    except PatternWorkerError as error:
        raise EvaluatorError(f"{spec.type}: {error}") from error
    return _apply_floor(spec, _negate(spec, score) if isinstance(spec, NamedEvaluatorSpec) and spec.negate else score)


async def run_evaluators(
    specs: Sequence[EvaluatorSpec], context: EvaluationContext, evaluate: RunEvaluator
) -> list[EvaluatorScore]:
    """Score by each, in order. Raises the first EvaluatorError, after the others have ended."""
    turns = asyncio.Lock()

    async def one(spec: EvaluatorSpec) -> EvaluatorScore:
        if isinstance(spec, _JUDGE_SPECS):
            return await evaluate(spec, context)
        async with turns:
            return await evaluate(spec, context)

    if len(specs) == 1:
        return [await evaluate(specs[0], context)]
    tasks = [asyncio.ensure_future(one(spec)) for spec in specs]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@cache
def _get_evaluator(kind: type[EvaluatorSpec]) -> EvaluatorFunction:
    for dialect in DIALECTS:
        table: EvaluatorTable = import_module(f"eval_gate.evaluators.{dialect}.table").TABLE
        if kind in table:
            return table[kind]
    raise LookupError(f"no dialect has an evaluator {kind.__name__}")


def _apply_floor(spec: EvaluatorSpec, evaluation: EvaluatorScore) -> EvaluatorScore:
    """Turn a score below the minimum into a veto and a case score of 0 (AgentV 4.42.4, `required` and `min_score`)."""
    if isinstance(spec, NamedEvaluatorSpec) and spec.floor is not None and evaluation.score < spec.floor:
        score, floor = format_value_and_limit(evaluation.score, spec.floor, 2)
        reason = evaluation.error or f"{truncate(spec.name)}: score {score}"
        needed = f"{reason} (required: at least {floor})"
        return replace(evaluation, error=needed, vetoed=True, zeroes_case=True)
    return evaluation


def _negate(spec: NamedEvaluatorSpec, evaluation: EvaluatorScore) -> EvaluatorScore:
    """Negate a score: invert the value and exchange hits and misses (AgentV 4.42.4, `negate`)."""
    score = 1 - evaluation.score
    error = None
    if score < 1:
        evidence = evaluation.hits[0] if evaluation.hits else f"score {format_score(evaluation.score)}"
        error = f"{truncate(spec.name)}: must not be true: {truncate(evidence, 200)}"
    return replace(
        evaluation,
        score=score,
        hits=evaluation.misses,
        misses=evaluation.hits,
        error=error,
        vetoed=False,
        zeroes_case=False,
    )


def build_evaluator_result(spec: EvaluatorSpec, evaluation: EvaluatorScore, weight: float) -> EvaluatorResult:
    """Build the stored result of one evaluator, with the weight that was used."""
    if evaluation.score == 1.0 and evaluation.passed and not _has_details(evaluation):
        return _build_passed_result(spec.name, spec.type, weight)
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


def _has_details(evaluation: EvaluatorScore) -> bool:
    """Whether the result has details; most assertions of most cases only pass."""
    lines = evaluation.hits or evaluation.misses or evaluation.members
    return bool(lines or evaluation.reasoning or evaluation.provider_request)


@lru_cache(maxsize=1_000)
def _build_passed_result(name: str, kind: str, weight: float) -> EvaluatorResult:
    """Return one object for all results without details."""
    return EvaluatorResult(name=name, type=kind, score=1.0, weight=weight)
