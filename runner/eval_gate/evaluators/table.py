"""How one evaluator is asked: each dialect has a table of functions by class of spec, loaded when it is needed.

Most runs need one dialect, and what asks judges or starts commands takes its time to load.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Final

from eval_gate.evaluators.base import ByClass, Evaluation, EvaluationContext, EvaluatorError, Grader
from eval_gate.evaluators.holding import held_to
from eval_gate.model.specs.evaluator import Composite, EvaluatorSpec
from eval_gate.text.javascript.regex import PatternWorkerError

DIALECTS: Final = ("tool_forge", "agent_evals", "agentv")
"""Folders of this room whose `table` has a `TABLE`. Asked in this order: the quickest to load is first."""


async def evaluate(spec: EvaluatorSpec, context: EvaluationContext) -> Evaluation:
    """Judge by one evaluator. Raises EvaluatorError when it could not be judged: never a failed assertion."""
    grader = _grader(type(spec))
    try:
        if isinstance(spec, Composite):  # asks its members in turn
            return held_to(spec, await grader(spec, context, evaluate))
        return held_to(spec, await grader(spec, context))
    except PatternWorkerError as error:
        raise EvaluatorError(f"{spec.type}: {error}") from error


@cache
def _grader(kind: type[EvaluatorSpec]) -> Grader:
    for dialect in DIALECTS:
        table: ByClass = import_module(f"eval_gate.evaluators.{dialect}.table").TABLE
        if kind in table:
            return table[kind]
    raise LookupError(f"no dialect has an evaluator {kind.__name__}")
