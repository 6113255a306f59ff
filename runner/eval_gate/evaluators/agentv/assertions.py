"""Evaluators for the deterministic AgentV 4 assertions: texts, JSON fields and metric limits.

Source: AgentV 4.42.4, "Deterministic graders", `field-accuracy`, `execution-metrics`, `latency`, `cost`, `token-usage`.
Blanks around response and value do not count for `equals`, `starts-with` and `ends-with`. A number that the target does
not report is not within a limit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Final

from eval_gate.evaluators.base import EvaluationContext, EvaluatorScore, UnreportedDataError
from eval_gate.evaluators.json_fields import find_mismatch, format_value
from eval_gate.evaluators.trace import list_calls
from eval_gate.evaluators.weighted_mean import compute_weighted_mean
from eval_gate.evaluators.wording import (
    describe_missing_number,
    double_quote,
    format_names,
    limit_items,
    truncate,
)
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Response
from eval_gate.model.specs.agentv import ExecutionMetrics, FieldAccuracy, FieldCheck, Metric, MetricLimit, TextAssertion
from eval_gate.model.usage import add_up
from eval_gate.struct import replace
from eval_gate.text.distinct_values import format_distinct_numbers
from eval_gate.text.dotted_path import NOT_FOUND, find_by_path
from eval_gate.text.number_search import has_number
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, is_json, parse_untrusted_json
from eval_gate.text.untrusted.surrogates import to_well_formed

_JS_WHITESPACE: Final = (
    "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""Characters that `trim` removes in JavaScript."""
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NUMBER: Final = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
_NAMED_MONTH_DATE: Final = re.compile(r"(\d{1,2})-([A-Za-z]{3,9})-(\d{4})")
_NUMERIC_DATE: Final = re.compile(r"(\d{1,2})[/-](\d{1,2})[/-](\d{4})")
_FENCE: Final = re.compile(r"```json\n?|```")
Number = float | int | None


async def evaluate_text_assertion(spec: TextAssertion, context: EvaluationContext) -> EvaluatorScore:
    """Score 1 if the assertion holds for the response, else 0. Raises PatternError."""
    text = context.response.text
    if spec.type == "regex":
        return _build_score(
            spec,
            await context.patterns.search(spec.values[0], text, spec.flags),
            f"matches /{truncate(spec.values[0])}/{truncate(spec.flags, 20)}",
        )
    if spec.type == "contains-number":
        return _evaluate_number(spec, text)
    if spec.type == "is-json":
        return _build_score(spec, is_json(text), "is JSON")
    if spec.type in _COMPARISONS:
        compare, words = _COMPARISONS[spec.type]
        value = spec.values[0].strip(_JS_WHITESPACE)
        return _build_score(spec, compare(text.strip(_JS_WHITESPACE), value), f"{words} {double_quote(value)}")
    return _evaluate_contains(spec, text)


_COMPARISONS: Final[Mapping[str, tuple[Callable[[str, str], bool], str]]] = {
    "starts-with": (str.startswith, "starts with"),
    "ends-with": (str.endswith, "ends with"),
    "equals": (str.__eq__, "equals"),
}


def _evaluate_contains(spec: TextAssertion, text: str) -> EvaluatorScore:
    """Check for one value, any or all; types that begin with `i` ignore case."""
    loose = spec.type.startswith("i")
    text = text.lower() if loose else text
    matches = [value for value in spec.values if (value.lower() if loose else value) in text]
    if spec.type.endswith("-any"):
        what = f"contains any of {format_names(spec.values)}"
        return _build_score(spec, bool(matches), f"contains {double_quote(matches[0])}" if matches else what)
    absent = [value for value in spec.values if value not in matches]
    single = spec.values[0] if len(spec.values) == 1 else None
    if single is not None:
        return _build_score(spec, not absent, f"contains {double_quote(single)}")
    return _build_score(spec, not absent, f"contains all of {format_names(absent or spec.values)}")


def _evaluate_number(spec: TextAssertion, text: str) -> EvaluatorScore:
    score = _build_score(spec, has_number(text, spec.values[0]), f"contains the number {truncate(spec.values[0])}")
    if score.passed:
        return score
    sentence = to_well_formed(describe_missing_number(spec.values[0], text))
    return replace(score, misses=(sentence,), error=f"{to_well_formed(truncate(spec.name))}: {sentence}")


def _build_score(spec: TextAssertion, holds: object, what: str) -> EvaluatorScore:
    if holds:
        return EvaluatorScore(score=1.0, hits=(to_well_formed(f"Output {what}"),), checks_run=1)
    sentence = to_well_formed(f"Not true of the output: {what}")
    return EvaluatorScore(
        score=0.0, misses=(sentence,), error=to_well_formed(f"{truncate(spec.name)}: {sentence}"), checks_run=1
    )


async def evaluate_field_accuracy(spec: FieldAccuracy, context: EvaluationContext) -> EvaluatorScore:
    """Score the weighted share of fields as expected; in all-or-nothing mode 1 if all are, else 0."""
    document = _extract_json(context.response.text)
    if not isinstance(document, dict):
        message = "the response contains no JSON object"
        return EvaluatorScore(score=0.0, misses=(message,), error=f"{truncate(spec.name)}: {message}", checks_run=1)
    hits: list[str] = []
    misses: list[str] = []
    weighed: list[tuple[float, float]] = []
    for check in spec.fields:
        expected, actual = find_by_path(spec.expected, check.path), find_by_path(document, check.path)
        if expected is NOT_FOUND:
            hits.append(f"{truncate(check.path)}: no value is expected")
            weighed.append((check.weight, 1.0))
            continue
        if actual is NOT_FOUND and not check.required:
            hits.append(f"{truncate(check.path)}: missing, but not required")
            continue
        problem = "missing" if actual is NOT_FOUND else _find_mismatch(check, actual, expected)
        weighed.append((check.weight, float(problem is None)))
        (misses if problem else hits).append(f"{truncate(check.path)}{f': {problem}' if problem else ''}")
    score = float(not misses) if spec.all_or_nothing else compute_weighted_mean(weighed)
    error = f"{truncate(spec.name)}: {misses[0]}" if misses else None
    if error is None and score < 1:
        error = f"{truncate(spec.name)}: every field with a weight is missing"
    return EvaluatorScore(score=score, hits=limit_items(hits), misses=limit_items(misses), error=error, checks_run=1)


def _extract_json(text: str) -> JsonValue:
    """Parse the JSON object in the response, from its first brace to its last; text around it is ignored."""
    bare = _FENCE.sub("", text)
    start, end = bare.find("{"), bare.rfind("}")
    try:
        return parse_untrusted_json(bare[start : end + 1])
    except UntrustedJsonError:
        return None


def _find_mismatch(check: FieldCheck, actual: JsonValue, expected: JsonValue) -> str | None:
    """Describe how the two values differ; None if they match."""
    match check.match:
        case "exact":
            return find_mismatch(actual, [expected])
        case "numeric_tolerance":
            return _find_number_mismatch(check, _parse_number(actual), _parse_number(expected))
        case "date":
            days = _parse_date(actual, check), _parse_date(expected, check)
            if None in days:
                return f"{format_value(actual if days[0] is None else expected)} is not a date"
            return None if days[0] == days[1] else f"is {format_value(actual)}, expected {format_value(expected)}"


def _find_number_mismatch(check: FieldCheck, actual: float | None, expected: float | None) -> str | None:
    if actual is None or expected is None:
        return "is not a number"
    difference = abs(actual - expected)
    if check.relative and expected:
        difference /= abs(expected)
    is_within = difference <= check.tolerance
    is_now, shall_be = format_distinct_numbers(actual, expected)
    return None if is_within else f"is {is_now}, expected {shall_be} (tolerance {check.tolerance:g})"


def _parse_number(value: object) -> float | None:
    """Parse a number, or the finite number that a text begins with; a boolean is none."""
    if isinstance(value, str):
        match = _NUMBER.match(value)
        value = float(match[1]) if match else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def _parse_date(value: object, check: FieldCheck) -> date | None:
    text = value.strip() if isinstance(value, str) else ""
    try:
        return datetime.fromisoformat(text).date()
    except ValueError:
        pass
    try:
        if month_date := _NAMED_MONTH_DATE.fullmatch(text):
            return date(int(month_date[3]), _MONTHS.index(month_date[2][:3].lower()) + 1, int(month_date[1]))
        if numeric_date := _NUMERIC_DATE.fullmatch(text):
            first, second, year = int(numeric_date[1]), int(numeric_date[2]), int(numeric_date[3])
            swapped = first > 12 if check.day_first is None else check.day_first
            return date(year, second, first) if swapped else date(year, first, second)
    except ValueError:
        return None
    return None


def _count_calls(response: Response) -> Number:
    calls = list_calls(response)
    return None if calls is None else len(calls)


def _count_model_calls(response: Response) -> Number:
    """Count the assistant's messages, each of one model request; unknown for a bare text."""
    if response.messages:
        return sum(message.role == "assistant" for message in response.messages)
    if response.conversation:
        return sum(message.role == "assistant" for message in response.conversation)
    return None


def _count_tokens(response: Response) -> Number:
    usage = response.usage
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    return add_up((usage.input_tokens, usage.output_tokens))


_METRICS: Final[Mapping[Metric, tuple[str, str, Callable[[Response], Number]]]] = {
    "tool_calls": ("tool calls", "", _count_calls),
    "model_calls": ("model requests", "", _count_model_calls),
    "tokens": ("tokens", "", _count_tokens),
    "input_tokens": ("input tokens", "", lambda response: response.usage.input_tokens if response.usage else None),
    "output_tokens": ("output tokens", "", lambda response: response.usage.output_tokens if response.usage else None),
    "cost": ("cost", " USD", lambda response: response.cost_usd),
    "ms": ("duration", " ms", lambda response: response.duration_ms),
}


async def evaluate_execution_metrics(spec: ExecutionMetrics, context: EvaluationContext) -> EvaluatorScore:
    """Score the share of the limits that the response keeps.

    Unless the evaluator scores in parts, the score is 1 if every limit is kept, else 0. Raises UnreportedDataError
    if the score is negated and the target does not report a number: the missing number would count as a pass.
    """
    lines = [_check_limit(limit, context.response) for limit in spec.limits]
    if spec.negate and any(is_met is None for _, is_met in lines):
        unknown = next(line for line, is_met in lines if is_met is None)
        raise UnreportedDataError(f"{truncate(spec.name)}: {unknown}")
    hits = tuple(line for line, is_met in lines if is_met)
    misses = tuple(line for line, is_met in lines if not is_met)
    score = len(hits) / len(lines) if spec.in_parts else float(not misses)
    error = f"{truncate(spec.name)}: {misses[0]}" if misses else None
    return EvaluatorScore(score=score, hits=hits, misses=misses, error=error, checks_run=1)


def _check_limit(limit: MetricLimit, response: Response) -> tuple[str, bool | None]:
    """Describe one limit, and return whether the response keeps it, or None if the target reports no number."""
    what, unit, read = _METRICS[limit.of]
    value = read(response)
    if value is None:
        return f"{what}: not reported by the target (at most {limit.limit:g}{unit})", None
    number, most = format_distinct_numbers(value, limit.limit)
    return f"{what}: {number}{unit} (at most {most}{unit})", value <= limit.limit
