"""How one evaluator is asked, and what its score is held to.

Each dialect has a table of functions by class of spec, loaded when it is needed: most runs need one dialect, and what
asks judges or starts commands takes its time to load.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final

from eval_gate.evaluators.base import ByClass, Evaluation, EvaluationContext, EvaluatorError, Grader
from eval_gate.evaluators.wording import cut, score_text
from eval_gate.model.specs.evaluator import Composite, EvaluatorSpec, NamedEvaluatorSpec
from eval_gate.struct import replace
from eval_gate.text.apart import beside_limit
from eval_gate.text.javascript.regex import PatternWorkerError

DIALECTS: Final = ("tool_forge", "agent_evals", "agentv")
"""Folders of this room whose `table` has a `TABLE`. Asked in this order: the quickest to load is first."""


async def evaluate(spec: EvaluatorSpec, context: EvaluationContext) -> Evaluation:
    """Judge by one evaluator. Raises EvaluatorError when it could not be judged: never a failed assertion."""
    grader = _grader(type(spec))
    try:
        if isinstance(spec, Composite):  # asks its members in turn
            return _held_to(spec, await grader(spec, context, evaluate))
        return _held_to(spec, await grader(spec, context))
    except PatternWorkerError as error:
        raise EvaluatorError(f"{spec.type}: {error}") from error


@cache
def _grader(kind: type[EvaluatorSpec]) -> Grader:
    for dialect in DIALECTS:
        table: ByClass = import_module(f"eval_gate.evaluators.{dialect}.table").TABLE
        if kind in table:
            return table[kind]
    raise LookupError(f"no dialect has an evaluator {kind.__name__}")


def _held_to(spec: EvaluatorSpec, evaluation: Evaluation) -> Evaluation:
    """The evaluation as it counts: it may be turned round, and a case may need it to reach a floor.

    Source: AgentV 4.42.4, `negate`, `required` and `min_score` of an assertion.
    """
    if not isinstance(spec, NamedEvaluatorSpec):
        return evaluation
    if spec.negate:
        evaluation = _negated(spec, evaluation)
    if spec.floor is not None and evaluation.score < spec.floor:
        score, floor = beside_limit(evaluation.score, spec.floor, 2)
        said = evaluation.error or f"{cut(spec.name)}: score {score}"
        needed = f"{said} (required: at least {floor})"
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
