"""What an execution cost in calls, tokens, money and time stays within limits.

Source: AgentV 4.42.4, `execution-metrics`, `latency`, `cost`, `token-usage`. What the target does not report is not
within a limit: a number that nobody knows passes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from eval_gate.evaluators.base import Evaluation, EvaluationContext, SilentTargetError
from eval_gate.evaluators.trace import made_calls
from eval_gate.evaluators.wording import cut
from eval_gate.model.conversation import Response
from eval_gate.model.specs.agentv import ExecutionMetrics, Metric, MetricLimit
from eval_gate.model.usage import total
from eval_gate.text.apart import numbers_apart

Number = float | int | None


def _calls(response: Response) -> Number:
    calls = made_calls(response)
    return None if calls is None else len(calls)


def _model_calls(response: Response) -> Number:
    """Messages of the assistant: each is the answer to one request of a model. A bare text tells nothing of that."""
    if response.messages:
        return sum(message.role == "assistant" for message in response.messages)
    if response.conversation:
        return sum(message.role == "assistant" for message in response.conversation)
    return None


def _tokens(response: Response) -> Number:
    usage = response.usage
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    return total((usage.input_tokens, usage.output_tokens))


_METRICS: Final[Mapping[Metric, tuple[str, str, Callable[[Response], Number]]]] = {
    "tool_calls": ("tool calls", "", _calls),
    "model_calls": ("requests to models", "", _model_calls),
    "tokens": ("tokens", "", _tokens),
    "input_tokens": ("input tokens", "", lambda response: response.usage.input_tokens if response.usage else None),
    "output_tokens": ("output tokens", "", lambda response: response.usage.output_tokens if response.usage else None),
    "cost": ("cost", " USD", lambda response: response.cost_usd),
    "ms": ("duration", " ms", lambda response: response.duration_ms),
}


async def execution_metrics(spec: ExecutionMetrics, context: EvaluationContext) -> Evaluation:
    """The share of limits that are kept, or 1 where all are.

    Raises SilentTargetError for a number that is not reported where the score is turned round: that would be a pass.
    """
    lines = [_line(limit, context.response) for limit in spec.limits]
    if spec.negate and any(known is None for _, known in lines):
        unknown = next(said for said, known in lines if known is None)
        raise SilentTargetError(f"{cut(spec.name)}: {unknown}")
    hits = tuple(said for said, kept in lines if kept)
    misses = tuple(said for said, kept in lines if not kept)
    score = len(hits) / len(lines) if spec.in_parts else float(not misses)
    error = f"{cut(spec.name)}: {misses[0]}" if misses else None
    return Evaluation(score=score, hits=hits, misses=misses, error=error, checks_run=1)


def _line(limit: MetricLimit, response: Response) -> tuple[str, bool | None]:
    """What is said of one limit, and whether it is kept; None where nobody knows."""
    what, unit, read = _METRICS[limit.of]
    value = read(response)
    if value is None:
        return f"{what}: not reported by the target (at most {limit.limit:g}{unit})", None
    shown, most = numbers_apart(value, limit.limit)
    return f"{what}: {shown}{unit} (at most {most}{unit})", value <= limit.limit
