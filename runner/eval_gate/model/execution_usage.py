"""Time, tokens and cost of one execution of a case, for all that compares or shows them.

Those of a `CaseResult` are sums: two re-runs make them three times those of a baseline without re-runs.
"""

from __future__ import annotations

from statistics import median
from typing import Final

from eval_gate.model.execution import ErrorCause, Trial
from eval_gate.model.result import CaseResult
from eval_gate.model.usage import Usage
from eval_gate.struct import FrozenStruct

_CAUSES_AFTER_RESPONSE: Final = {ErrorCause.EVALUATOR_FAILED, ErrorCause.CALLS_UNKNOWN, ErrorCause.DATA_MISSING}


class ExecutionUsage(FrozenStruct):
    """Time, tokens and cost of one execution; None if unknown."""

    duration_ms: float
    usage: Usage | None
    cost_usd: float | None
    judge_cost_usd: float | None


def measure_execution(case: CaseResult) -> ExecutionUsage:
    """Measure one execution of a case.

    The time is the median of the first executions, because a re-run may be answered from a cache. Of tokens and costs
    only sums are stored, so they are means over the executions with a response, preparatory ones included.
    """
    usage = case.usage
    if len(case.trials) <= 1 and not case.preparatory_executions:  # nearly every case
        return ExecutionUsage(case.duration_ms, usage, case.cost_usd, case.judge_cost_usd)
    executions = sum([_has_response(trial) for trial in case.trials]) or len(case.trials) or 1
    number = executions + case.preparatory_executions
    first = case.trials[: max(len(case.trials) - case.reruns, 0)]
    scored = ([one for one in trials if one.status.is_scored] for trials in (first, case.trials))
    return ExecutionUsage(
        median([one.duration_ms for one in next(filter(None, scored), first or (case,))]),
        usage
        and Usage(input_tokens=_share(usage.input_tokens, number), output_tokens=_share(usage.output_tokens, number)),
        None if case.cost_usd is None else case.cost_usd / number,
        None if case.judge_cost_usd is None else case.judge_cost_usd / number,
    )


def _has_response(trial: Trial) -> bool:
    """Whether the target responded, and so used tokens, even if the response could not be scored."""
    is_later_turn = (trial.failed_turn or 1) > 1
    return trial.status.is_scored or is_later_turn or trial.error_cause in _CAUSES_AFTER_RESPONSE


def _share(tokens: int | None, executions: int) -> int | None:
    return None if tokens is None else round(tokens / executions)
