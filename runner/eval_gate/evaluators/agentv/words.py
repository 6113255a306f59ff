"""What the assertions of today's AgentV ask for, in words for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from eval_gate.evaluators.wording import either, in_order, quoted
from eval_gate.model.specs.agentv import (
    CallSequence,
    ExecutionMetrics,
    FieldAccuracy,
    SkillTrigger,
    TextAssertion,
)
from eval_gate.model.specs.evaluator import EvaluatorSpec
from eval_gate.text.dotted_path import NOWHERE, field_at
from eval_gate.text.javascript.strings import compact_json, js_number
from eval_gate.text.tokens import TokenData


def _answer_text(spec: TextAssertion, _: TokenData) -> Iterator[str]:
    values = either(quoted(value) for value in spec.values)
    yield _TEXTS[spec.type].format(values) + (f" (flags {spec.flags})" if spec.flags else "")


_TEXTS: Final[Mapping[str, str]] = {
    "contains": "answer contains {}",
    "contains-any": "answer contains one of {}",
    "contains-all": "answer contains all of {}",
    "icontains": "answer contains {}, in upper or lower case",
    "icontains-any": "answer contains one of {}, in upper or lower case",
    "icontains-all": "answer contains all of {}, in upper or lower case",
    "starts-with": "answer starts with {}",
    "ends-with": "answer ends with {}",
    "regex": "answer matches the pattern {}",
    "equals": "answer is {}",
    "is-json": "answer is JSON",
}


def _call_sequence(spec: CallSequence, _: TokenData) -> Iterator[str]:
    calls = [f"{one.tool}({'' if one.args is None else compact_json(one.args)})" for one in spec.expected]
    match spec.mode:
        case "in_order":
            yield f"calls {in_order(calls)}; others may come between"
        case "exact":
            yield f"calls only {in_order(calls)}"
        case "superset":
            yield f"calls all of {either(calls)}"
        case "subset":
            yield f"calls none but {either(calls)}"


def _skill(spec: SkillTrigger, _: TokenData) -> Iterator[str]:
    yield f"{'uses' if spec.should_trigger else 'does not use'} the skill {quoted(spec.skill)}"


def _metrics(spec: ExecutionMetrics, _: TokenData) -> Iterator[str]:
    return (f"at most {js_number(limit.limit)} {_METRICS[limit.of]}" for limit in spec.limits)


_METRICS: Final[Mapping[str, str]] = {
    "tool_calls": "tool calls",
    "model_calls": "requests to models",
    "tokens": "tokens",
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "cost": "USD",
    "ms": "ms",
}


def _field_accuracy(spec: FieldAccuracy, _: TokenData) -> Iterator[str]:
    for check in spec.fields:
        expected = field_at(spec.expected, check.path)
        wanted = "" if expected is NOWHERE else f" {compact_json(expected)}"
        yield f"answer has{wanted} at {check.path}"


WORDS: Final[Mapping[type[EvaluatorSpec], Callable[[Any, TokenData], Iterable[str]]]] = {
    TextAssertion: _answer_text,
    CallSequence: _call_sequence,
    SkillTrigger: _skill,
    ExecutionMetrics: _metrics,
    FieldAccuracy: _field_accuracy,
}
"""The lines of each class."""
