"""Assertions of Agent Evals suites about the answer: contains, matchesRegex, equals, jsonPath.

Source: Agent Evals, "Assertion Types"; agent-evals behaviour 3.3. An answer is a text. Where a suite expects something
else of it, it is read as JSON, which the assertion cannot hold without.
"""

from __future__ import annotations

from eval_gate.evaluators.agent_evals.outcome import NotJsonError, as_json, assertion_failed, assertion_passed
from eval_gate.evaluators.base import Evaluation, EvaluationContext
from eval_gate.evaluators.equality import deep_equal
from eval_gate.evaluators.wording import cut, double
from eval_gate.model.base import JsonValue
from eval_gate.model.specs.agent_evals import FileJsonPath, OutputContains, OutputEquals, OutputJsonPath, OutputMatches
from eval_gate.text.dotted_path import PathError, value_at
from eval_gate.text.javascript.regex import PatternError


async def contains(spec: OutputContains, context: EvaluationContext) -> Evaluation:
    """The value is in the answer; letters in lower case on both sides where case does not count."""
    text = context.response.text
    if is_in(spec.value, text, case_sensitive=spec.case_sensitive):
        return assertion_passed(spec, f"Output contains {double(spec.value)}", spec.value, text)
    return assertion_failed(spec, f"Output does not contain {double(spec.value)}", spec.value, text)


def is_in(value: str, text: str, *, case_sensitive: bool) -> bool:
    """Whether the value is in the text."""
    return value in text if case_sensitive else value.lower() in text.lower()


async def matches_regex(spec: OutputMatches, context: EvaluationContext) -> Evaluation:
    """The pattern finds something. One that is no pattern, or runs away, fails with the engine's words."""
    text, pattern = context.response.text, f"/{cut(spec.pattern)}/{cut(spec.flags, 20)}"
    try:
        found = await context.patterns.search(spec.pattern, text, spec.flags)
    except PatternError as error:
        return assertion_failed(spec, f"Invalid regex pattern: {error}", spec.pattern, text)
    if found:
        return assertion_passed(spec, f"Output matches pattern {pattern}", spec.pattern, text)
    return assertion_failed(spec, f"Output does not match pattern {pattern}", spec.pattern, text)


async def equals(spec: OutputEquals, context: EvaluationContext) -> Evaluation:
    """The answer is the expected text to the letter; any other value is compared with the answer read as JSON."""
    message = "Output does not equal expected value"
    answer: JsonValue = context.response.text
    if not isinstance(spec.expected, str):
        try:
            answer = as_json(context.response.text)
        except NotJsonError as error:
            return assertion_failed(spec, f"{message}: output is not JSON ({cut(str(error))})", spec.expected, answer)
    if deep_equal(answer, spec.expected):
        return assertion_passed(spec, "Output equals expected value", spec.expected, answer)
    return assertion_failed(spec, message, spec.expected, answer)


async def json_path(spec: OutputJsonPath, context: EvaluationContext) -> Evaluation:
    """The value at the path of the answer, read as JSON, is the expected one. What is missing equals nothing."""
    text, failing = context.response.text, f"Failed to evaluate path {cut(spec.path)}"
    try:
        answer = as_json(text)
    except NotJsonError as error:
        return assertion_failed(spec, f"{failing}: output is not JSON ({cut(str(error))})", spec.expected, text)
    return value_equals(spec, answer, spec.path, failing=failing)


def value_equals(spec: OutputJsonPath | FileJsonPath, document: JsonValue, path: str, *, failing: str) -> Evaluation:
    """Whether the value at `path` is the expected one. `failing` is said where the path leads nowhere."""
    try:
        value = value_at(document, path)
    except PathError as error:
        return assertion_failed(spec, f"{failing}: {error}", spec.expected, document)
    if deep_equal(value, spec.expected):
        return assertion_passed(spec, f"Value at {cut(path)} equals expected", spec.expected, value)
    return assertion_failed(spec, f"Value at {cut(path)} does not equal expected", spec.expected, value)
