"""Description of what a case expects, one short line per check.

Values are shown as they are compared: with tokens replaced if they can be resolved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, Final, NamedTuple, TypeAlias

from eval_gate.evaluators.conversation import format_expected
from eval_gate.evaluators.wording import (
    MAX_MEMBERS,
    format_alternatives,
    format_steps,
    format_times,
    quote_one_line,
    truncate,
)
from eval_gate.model.base import JsonValue
from eval_gate.model.case import EvalCase
from eval_gate.model.limits import STORED_CHECK, STORED_CHECKS
from eval_gate.model.specs import agent_evals as suite
from eval_gate.model.specs import evaluator as specs
from eval_gate.model.specs.agentv import (
    CallSequence,
    ExecutionMetrics,
    FieldAccuracy,
    SkillTrigger,
    TextAssertion,
)
from eval_gate.struct import replace
from eval_gate.text.dotted_path import NOT_FOUND, find_by_path
from eval_gate.text.javascript.strings import dump_compact_json, format_js_number
from eval_gate.text.tokens import TokenData, format_token_value, resolve_tokens

SpecDescriber: TypeAlias = Callable[[Any, TokenData], Iterable[str]]
"""Function of its own class of spec and the token data that yields the lines."""
INDENT: Final = "  "


class Expectation(NamedTuple):
    """Lines that describe what a case expects; `is_truncated` when some were cut or left out."""

    lines: tuple[str, ...]
    is_truncated: bool


def describe_expectation(case: EvalCase, tokens: TokenData) -> Expectation:
    """Describe in a limited number of lines: expected outcome, reference answer, then every check in order."""
    candidates = tuple(islice(_iter_lines(case, tokens), STORED_CHECKS + 1))
    lines = tuple(
        truncate(" ".join(line[: 2 * STORED_CHECK].splitlines()), STORED_CHECK) for line in candidates[:STORED_CHECKS]
    )
    more = len(candidates) > len(lines) or any(len(line) > STORED_CHECK for line in candidates)
    return Expectation(lines, more)


def describe_evaluator(spec: specs.EvaluatorSpec, tokens: TokenData) -> Iterator[str]:
    """Yield the lines that describe one evaluator. Raises LookupError for a class that has no description."""
    lines = _DESCRIBERS.get(type(spec))
    if lines is None:
        raise LookupError(f"no words for an evaluator {type(spec).__name__}")
    notes = ["does not count"] if spec.weight == 0 else []
    if isinstance(spec, specs.NamedEvaluatorSpec):
        notes = [*([spec.name] if spec.label else []), *notes]
        notes += ["must not be true"] if spec.negate else []
        notes += [f"required: at least {format_js_number(spec.floor)}"] if spec.floor is not None else []
    for number, line in enumerate(lines(spec, tokens)):
        note = f" ({', '.join(notes)})" if notes and number == 0 else ""
        yield f"{line[:-1]}{note}:" if line.endswith(":") else f"{line}{note}"


def _iter_lines(case: EvalCase, tokens: TokenData) -> Iterator[str]:
    brief = case.brief
    if brief is not None and brief.expected_outcome:
        yield f"expected outcome: {_to_one_line(brief.expected_outcome)}"
    if brief is not None and brief.reference_answer:
        yield f"reference answer: {_to_one_line(brief.reference_answer)}"
    yield from _iter_turn_lines(case, tokens)
    for spec in case.evaluators:
        yield from describe_evaluator(spec, tokens)
    if case.pass_score is not None:
        yield f"passes from a score of {format_js_number(case.pass_score)}"
    if case.attempt_rule is not None:
        yield f"{case.attempt_rule.strategy.value} of up to {case.attempt_rule.count} attempts"


def _iter_turn_lines(case: EvalCase, tokens: TokenData) -> Iterator[str]:
    """Yield what is expected of each turn, then the heading of what is expected of the whole."""
    turns = () if case.conversation is None else case.conversation.turns
    for number, turn in enumerate(turns, 1):
        reference = format_expected(turn.expected_messages)
        if turn.evaluators or reference:
            yield f"turn {number}:"
        if reference:
            yield f"{INDENT}reference answer: {_to_one_line(reference)}"
        for line in chain.from_iterable(describe_evaluator(spec, tokens) for spec in turn.evaluators):
            yield f"{INDENT}{line}"
    if case.evaluators and any(turn.evaluators for turn in turns):
        yield "whole conversation:"


def _to_one_line(text: str) -> str:
    """Join the lines of a text, at most a few times the limit of a line, so that its truncation stays visible."""
    return " ".join(text[: 4 * STORED_CHECK].split()) + ("…" if len(text) > 4 * STORED_CHECK else "")


def _format_resolved_text(text: str, tokens: TokenData) -> str:
    """Quote a text as it is compared, with its tokens resolved if they can be."""
    resolved = resolve_tokens(text, tokens).text
    return quote_one_line(text if resolved is None else resolved)


def _format_value(value: JsonValue, tokens: TokenData) -> str:
    return (
        _format_resolved_text(value, tokens)
        if isinstance(value, str)
        else truncate(format_token_value(value), STORED_CHECK)
    )


def _format_command(command: str | tuple[str, ...]) -> str:
    return truncate(command if isinstance(command, str) else " ".join(command), 120)


def _describe_tools_acceptable(spec: specs.ToolsAcceptable, _: TokenData) -> Iterator[str]:
    sets = (() if spec.NONE in one else one for one in spec.sets)
    yield "calls " + ", or ".join(" and ".join(one) if one else "no tool" for one in islice(sets, MAX_MEMBERS))


def _describe_tool_params(spec: specs.ToolParams, tokens: TokenData) -> Iterator[str]:
    for check in spec.checks:
        yield f"calls {check.tool} {_describe_value(check, check.param_name, tokens)}"


def _describe_value(check: specs.ValueCheck, name: str, tokens: TokenData) -> str:
    match check.assertion:
        case "exists":
            return f"with {name}"
        case "notExists":
            return f"without {name}"
        case "equals":
            return f"with {name} = {_format_value(check.value, tokens)}"
        case "contains":
            return f"with {name} containing {_format_value(check.value, tokens)}"
        case "oneOf":
            values = check.value if isinstance(check.value, list) else [check.value]
            return f"with {name} one of {format_alternatives(_format_value(value, tokens) for value in values)}"
        case "matches":
            return f"with {name} matching /{format_token_value(check.value)}/"


def _describe_rubric(spec: specs.Rubric, tokens: TokenData) -> Iterator[str]:
    yield "an LLM judge grades by this rubric:"
    for one in spec.dimensions:
        least = "yes" if one.binary else f"at least {format_js_number(round(spec.pass_at * one.max_score, 6))}"
        of = "" if one.binary else f" of {format_js_number(one.max_score)}"
        yield f"{INDENT}{one.name}: {least}{of}: {_to_one_line(one.criteria)}"
    if spec.reference_data is not None:
        yield f"{INDENT}reference: {_format_value(spec.reference_data, tokens)}"


def _describe_rubric_judge(spec: specs.RubricJudge, _: TokenData) -> Iterator[str]:
    yield "an LLM judge finds each of these satisfied:"
    for check in spec.checks:
        yield f"{INDENT}{check.id}: {_to_one_line(check.description)}{'' if check.required else ' (not required)'}"


def _describe_trajectory(spec: specs.ToolTrajectory, _: TokenData) -> Iterator[str]:
    match spec.mode:
        case "any_order":
            for name, least in spec.minimums.items():
                yield f"calls {name} at least {format_times(least)}"
        case "in_order":
            yield f"calls {format_steps(spec.expected)}; other calls may come between"
        case "exact":
            yield f"calls only {format_steps(spec.expected)}"


def _describe_composite(spec: specs.Composite, tokens: TokenData) -> Iterator[str]:
    weights: Mapping[str, float] = {}
    match spec.aggregator:
        case specs.WeightedAverage(weights=weights):
            yield "the weighted mean of these is full:"
        case specs.ThresholdAggregator():
            yield "each of these passes:"
        case specs.CodeAggregator(command=command):
            yield f"{_format_command(command)} gives these the full score:"
        case specs.JudgeAggregator():
            yield "an LLM judge gives these the full score:"
    for member in spec.members:
        # the composite's line shows the weight of a member
        weighed = replace(member, weight=weights.get(member.name, 1.0))
        yield from (f"{INDENT}{line}" for line in describe_evaluator(weighed, tokens))


def _describe_contained_text(value: str, *, case_sensitive: bool) -> str:
    return f"contains {quote_one_line(value)}{'' if case_sensitive else ', in upper or lower case'}"


def _describe_text_assertion(spec: TextAssertion, _: TokenData) -> Iterator[str]:
    values = format_alternatives(quote_one_line(value) for value in spec.values)
    yield _TEXT_PATTERNS[spec.type].format(values) + (f" (flags {spec.flags})" if spec.flags else "")


_TEXT_PATTERNS: Final[Mapping[str, str]] = {
    "contains": "response contains {}",
    "contains-any": "response contains one of {}",
    "contains-all": "response contains all of {}",
    "contains-number": "response contains the number {}",
    "icontains": "response contains {}, in upper or lower case",
    "icontains-any": "response contains one of {}, in upper or lower case",
    "icontains-all": "response contains all of {}, in upper or lower case",
    "starts-with": "response starts with {}",
    "ends-with": "response ends with {}",
    "regex": "response matches the pattern {}",
    "equals": "response is {}",
    "is-json": "response is JSON",
}


def _describe_call_sequence(spec: CallSequence, _: TokenData) -> Iterator[str]:
    calls = [f"{one.tool}({'' if one.args is None else dump_compact_json(one.args)})" for one in spec.expected]
    match spec.mode:
        case "in_order":
            yield f"calls {format_steps(calls)}; other calls may come between"
        case "exact":
            yield f"calls only {format_steps(calls)}"
        case "superset":
            yield f"calls all of {format_alternatives(calls)}"
        case "subset":
            yield f"calls none but {format_alternatives(calls)}"


_METRIC_UNITS: Final[Mapping[str, str]] = {
    "tool_calls": "tool calls",
    "model_calls": "model requests",
    "tokens": "tokens",
    "input_tokens": "input tokens",
    "output_tokens": "output tokens",
    "cost": "USD",
    "ms": "ms",
}


def _describe_field_accuracy(spec: FieldAccuracy, _: TokenData) -> Iterator[str]:
    for check in spec.fields:
        expected = find_by_path(spec.expected, check.path)
        value = "" if expected is NOT_FOUND else f" {dump_compact_json(expected)}"
        yield f"response has{value} at {check.path}"


_DESCRIBERS: Final[Mapping[type[specs.EvaluatorSpec], SpecDescriber]] = {
    specs.ToolsCalled: lambda spec, _: [f"calls only {format_steps(spec.names)}" if spec.names else "calls no tool"],
    specs.ToolsCalledAnyOrder: lambda spec, _: [
        f"calls only {', '.join(islice(spec.names, MAX_MEMBERS))}, in any order" if spec.names else "calls no tool"
    ],
    specs.ToolsAcceptable: _describe_tools_acceptable,
    specs.ToolsNotCalled: lambda spec, _: (f"does not call {name}" for name in spec.names),
    specs.ToolParams: _describe_tool_params,
    specs.NoToolErrors: lambda _, __: ["no tool call fails"],
    specs.ResponseNonEmpty: lambda _, __: ["response is not empty"],
    specs.ResponseContains: lambda spec, tokens: (
        f"response contains {_format_resolved_text(value, tokens)}" for value in spec.values
    ),
    specs.ResponseContainsAny: lambda spec, tokens: (
        f"response contains one of {format_alternatives(_format_resolved_text(one, tokens) for one in group)}"
        for group in spec.groups
    ),
    specs.ResponseContainsNumber: lambda spec, _: (
        f"response contains the number {quote_one_line(value)}" for value in spec.values
    ),
    specs.ResponseNotContains: lambda spec, tokens: (
        f"response does not contain {_format_resolved_text(one, tokens)}" for one in spec.values
    ),
    specs.ResponseMatches: lambda spec, _: (f"response matches /{pattern}/" for pattern in spec.patterns),
    specs.ResponseFields: lambda spec, tokens: (
        f"response {_describe_value(check, check.path, tokens)}" for check in spec.checks
    ),
    specs.MaxLatency: lambda spec, _: [f"at most {spec.limit_ms:,.10g} ms"],
    specs.MaxTokens: lambda spec, _: [f"at most {spec.limit:,} tokens"],
    specs.Rubric: _describe_rubric,
    specs.LlmJudge: lambda spec, _: [
        f"an LLM judge gives the full score{' with its own prompt' if spec.prompt is not None else ''}"
    ],
    specs.RubricJudge: _describe_rubric_judge,
    specs.CodeJudge: lambda spec, _: [f"{_format_command(spec.command)} gives the full score"],
    specs.ToolTrajectory: _describe_trajectory,
    specs.CodeGrader: lambda spec, _: [f"{_format_command(spec.command)} gives the full score"],
    specs.Composite: _describe_composite,
    TextAssertion: _describe_text_assertion,
    CallSequence: _describe_call_sequence,
    SkillTrigger: lambda spec, _: [
        f"{'uses' if spec.should_trigger else 'does not use'} the skill {quote_one_line(spec.skill)}"
    ],
    ExecutionMetrics: lambda spec, _: (
        f"at most {format_js_number(limit.limit)} {_METRIC_UNITS[limit.of]}" for limit in spec.limits
    ),
    FieldAccuracy: _describe_field_accuracy,
    suite.OutputContains: lambda spec, _: [
        f"response {_describe_contained_text(spec.value, case_sensitive=spec.case_sensitive)}"
    ],
    suite.OutputMatches: lambda spec, _: [f"response matches /{spec.pattern}/{spec.flags}"],
    suite.OutputEquals: lambda spec, _: [f"response is {dump_compact_json(spec.expected)}"],
    suite.OutputJsonPath: lambda spec, _: [f"response has {dump_compact_json(spec.expected)} at {spec.path}"],
    suite.FileExists: lambda spec, _: [f"{spec.path} exists"],
    suite.FileNotExists: lambda spec, _: [f"{spec.path} does not exist"],
    suite.FileContains: lambda spec, _: [
        f"{spec.path} {_describe_contained_text(spec.value, case_sensitive=spec.case_sensitive)}"
    ],
    suite.FileJsonPath: lambda spec, _: [f"{spec.path} has {dump_compact_json(spec.expected)} at {spec.json_path}"],
}
