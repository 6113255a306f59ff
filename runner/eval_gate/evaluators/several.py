"""Several evaluators of one answer: all of them run, whatever the others say.

Those that ask a judge wait for it side by side. The others take turns: each of them may start a program, and a case
must not start as many programs at once as it has evaluators.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from eval_gate.evaluators.base import Evaluate, Evaluation, EvaluationContext
from eval_gate.model.specs.evaluator import EvaluatorSpec, LlmJudge, Rubric, RubricJudge

_ASKING: tuple[type[EvaluatorSpec], ...] = (LlmJudge, RubricJudge, Rubric)


async def evaluate_all(
    specs: Sequence[EvaluatorSpec], context: EvaluationContext, evaluate: Evaluate
) -> list[Evaluation]:
    """One answer of each, in their order.

    Raises EvaluatorError as soon as one could not judge; by then the others have ended too, and nothing goes on.
    """
    turns = asyncio.Lock()

    async def one(spec: EvaluatorSpec) -> Evaluation:
        if isinstance(spec, _ASKING):
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
