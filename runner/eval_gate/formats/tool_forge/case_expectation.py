"""Evaluators of a tool-forge `expect`, and the canonical JSON that fingerprints are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from eval_gate.formats.tool_forge.file_model import Expect, ToolForgeCase
from eval_gate.model.base import JsonValue, as_fields
from eval_gate.model.specs import evaluator as specs
from eval_gate.text.digest import dump_sorted_json


class CaseExpectation(NamedTuple):
    """Expectation of a case, as data, and as JSON that is equal for all notations."""

    evaluators: tuple[specs.EvaluatorSpec, ...]
    canonical_json: str
    checks_nothing: bool
    turns: tuple[tuple[specs.EvaluatorSpec, ...], ...] = ()
    """Evaluators of each turn of a conversation, whose `evaluators` are about the whole."""

    @classmethod
    def from_case(cls, case: ToolForgeCase) -> CaseExpectation:
        """Build the expectation of a case; its canonical JSON has neither rubric questions nor checks of nothing."""
        evaluators = (*_build_evaluators(case.expect), *_iter_rubrics(case))
        checks = _list_checks(evaluators)
        if case.input is not None:
            return cls(evaluators, dump_sorted_json(checks), not checks)
        turns = tuple(_build_evaluators(turn.expect) for turn in case.turns or ())
        by_turn: list[JsonValue] = [*map(_list_checks, turns), checks]
        return cls(evaluators, dump_sorted_json(by_turn), not any(by_turn), turns)


def _list_checks(evaluators: Iterable[specs.EvaluatorSpec]) -> list[JsonValue]:
    return [
        {name: value for name, value in as_fields(one).items() if name != "question"}
        for one in evaluators
        if not one.checks_nothing
    ]


def _iter_rubrics(case: ToolForgeCase) -> Iterable[specs.EvaluatorSpec]:
    """Yield the case's rubric, which follows its assertions and is scored only if these pass."""
    if case.rubric:
        yield specs.Rubric(
            dimensions=tuple(
                specs.RubricDimension(name=one.dimension, max_score=float(one.max_score), criteria=one.criteria)
                for one in case.rubric
            ),
            question=case.question,
            reference_data=case.reference_data,
        )


@lru_cache(maxsize=4_096)
def _intern_spec(spec: specs.EvaluatorSpec) -> specs.EvaluatorSpec:
    """Return one object for all cases that expect the same: assertions take most of a case's memory."""
    return spec


_ASSERTIONS: Final[Mapping[str, Callable[[Any], specs.EvaluatorSpec]]] = {
    "tools_called": lambda names: specs.ToolsCalled(names=tuple(names)),
    "tools_called_any_order": lambda names: specs.ToolsCalledAnyOrder(names=tuple(names)),
    "tools_acceptable": lambda sets: specs.ToolsAcceptable(sets=tuple(map(tuple, sets))),
    "tools_not_called": lambda names: specs.ToolsNotCalled(names=tuple(names)),
    "tool_params": lambda checks: specs.ToolParams(
        checks=tuple(
            specs.ParamCheck(tool=one.tool, param_name=one.param_name, assertion=one.assertion, value=one.value)
            for one in checks
        )
    ),
    "no_tool_errors": lambda _: specs.NoToolErrors(),
    "response_non_empty": lambda _: specs.ResponseNonEmpty(),
    "response_contains": lambda values: specs.ResponseContains(values=tuple(values)),
    "response_contains_any": lambda groups: specs.ResponseContainsAny(groups=tuple(map(tuple, groups))),
    "response_contains_number": lambda values: specs.ResponseContainsNumber(values=tuple(values)),
    "response_not_contains": lambda values: specs.ResponseNotContains(values=tuple(values)),
    "patterns": lambda patterns: specs.ResponseMatches(patterns=patterns),
    "fields": lambda values: specs.ResponseFields(checks=tuple(_build_field_check(*one) for one in values.items())),
    "max_latency_ms": lambda limit: specs.MaxLatency(limit_ms=float(limit)),
    "max_tokens": lambda limit: specs.MaxTokens(limit=limit),
}
"""The assertion of each key of an expectation, in the order of the contract ("Assertion Execution")."""


def _build_field_check(path: str, value: JsonValue) -> specs.FieldValueCheck:
    """Build the check of a field: its value is a literal, or an object with an operator."""
    operator: Any
    operator, operand = next(iter(value.items())) if isinstance(value, dict) else ("equals", value)
    return specs.FieldValueCheck(path=path, assertion=operator, value=operand)


def _build_evaluators(expect: Expect | None) -> tuple[specs.EvaluatorSpec, ...]:
    return tuple(_iter_evaluators(expect)) if expect is not None else ()


def _iter_evaluators(expect: Expect) -> Iterable[specs.EvaluatorSpec]:
    """Yield the assertion of each key that is present, even of `[]`."""
    for name, build in _ASSERTIONS.items():
        value = getattr(expect, name)
        if value is not None and value is not False:
            # values of parameters and fields may be anything, which has no hash
            yield build(value) if name in {"tool_params", "fields"} else _intern_spec(build(value))
