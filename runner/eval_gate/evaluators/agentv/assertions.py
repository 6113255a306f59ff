"""What AgentV 4 checks without a model or a command: texts, fields of JSON, and limits of what an execution cost.

Source: AgentV 4.42.4, "Deterministic graders", `field-accuracy`, `execution-metrics`, `latency`, `cost`, `token-usage`.
Blanks around answer and value do not count for `equals`, `starts-with` and `ends-with`. What the target does not report
is not within a limit: a number that nobody knows passes nothing.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Final

from eval_gate.evaluators.base import Evaluation, EvaluationContext, EvaluatorError, SilentTargetError
from eval_gate.evaluators.equality import deep_equal
from eval_gate.evaluators.trace import made_calls
from eval_gate.evaluators.weighing import weighted_mean
from eval_gate.evaluators.wording import MAX_VALUE, cut, double, items, names
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Response
from eval_gate.model.specs.agentv import ExecutionMetrics, FieldAccuracy, FieldCheck, Metric, MetricLimit, TextAssertion
from eval_gate.model.usage import total
from eval_gate.text.apart import numbers_apart, values_apart
from eval_gate.text.dotted_path import NOWHERE, field_at
from eval_gate.text.foreign.json import ForeignJsonError, is_json, read_foreign
from eval_gate.text.foreign.well_formed import well_formed
from eval_gate.text.javascript.regex import PatternError

_BLANKS: Final = (
    "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
"""What `trim` takes away in JavaScript."""
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NUMBER: Final = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
_NAMED: Final = re.compile(r"(\d{1,2})-([A-Za-z]{3,9})-(\d{4})")
_SLASHED: Final = re.compile(r"(\d{1,2})[/-](\d{1,2})[/-](\d{4})")
_FENCE: Final = re.compile(r"```json\n?|```")
Number = float | int | None


async def text_assertion(spec: TextAssertion, context: EvaluationContext) -> Evaluation:
    """1 where the answer is as it is asked for, else 0. Raises EvaluatorError for a pattern that is none."""
    text = context.response.text
    if spec.type == "regex":
        return _said(spec, await _matches(spec, context), f"matches /{cut(spec.values[0])}/{cut(spec.flags, 20)}")
    if spec.type == "is-json":
        return _said(spec, is_json(text), "is JSON")
    if spec.type in {"starts-with", "ends-with", "equals"}:
        return _edge(spec, text.strip(_BLANKS), spec.values[0].strip(_BLANKS))
    return _contains(spec, text)


def _edge(spec: TextAssertion, text: str, value: str) -> Evaluation:
    match spec.type:
        case "starts-with":
            return _said(spec, text.startswith(value), f"starts with {double(value)}")
        case "ends-with":
            return _said(spec, text.endswith(value), f"ends with {double(value)}")
        case _:
            return _said(spec, text == value, f"equals {double(value)}")


def _contains(spec: TextAssertion, text: str) -> Evaluation:
    """One value, any of them, or all; in lower case on both sides for those that begin with `i`."""
    loose = spec.type.startswith("i")
    text = text.lower() if loose else text
    there = [value for value in spec.values if (value.lower() if loose else value) in text]
    if spec.type.endswith("-any"):
        what = f"contains any of {names(spec.values)}"
        return _said(spec, bool(there), f"contains {double(there[0])}" if there else what)
    missing = [value for value in spec.values if value not in there]
    shown = spec.values[0] if len(spec.values) == 1 else None
    if shown is not None:
        return _said(spec, not missing, f"contains {double(shown)}")
    return _said(spec, not missing, f"contains all of {names(missing or spec.values)}")


async def _matches(spec: TextAssertion, context: EvaluationContext) -> bool:
    try:
        return await context.patterns.search(spec.values[0], context.response.text, spec.flags)
    except PatternError as error:
        # no score of 0: turned round that would be a pass
        raise EvaluatorError(f"{cut(spec.name)}: {error}") from error


def _said(spec: TextAssertion, holds: object, what: str) -> Evaluation:
    if holds:
        return Evaluation(score=1.0, hits=(well_formed(f"Output {what}"),), checks_run=1)
    sentence = well_formed(f"Output does not hold: {what}")
    return Evaluation(score=0.0, misses=(sentence,), error=well_formed(f"{cut(spec.name)}: {sentence}"), checks_run=1)


async def field_accuracy(spec: FieldAccuracy, context: EvaluationContext) -> Evaluation:
    """The weighted share of the fields that are as expected, or 1 where all are."""
    answer = _json_in(context.response.text)
    if not isinstance(answer, dict):
        said = "the answer holds no JSON object"
        return Evaluation(score=0.0, misses=(said,), error=f"{cut(spec.name)}: {said}", checks_run=1)
    hits: list[str] = []
    misses: list[str] = []
    weighed: list[tuple[float, float]] = []
    for check in spec.fields:
        expected, given = field_at(spec.expected, check.path), field_at(answer, check.path)
        if expected is NOWHERE:
            hits.append(f"{cut(check.path)}: nothing is expected")
            weighed.append((check.weight, 1.0))
            continue
        if given is NOWHERE and not check.required:
            hits.append(f"{cut(check.path)}: not there, and not required")
            continue
        problem = "not there" if given is NOWHERE else _problem(check, given, expected)
        weighed.append((check.weight, float(problem is None)))
        (misses if problem else hits).append(f"{cut(check.path)}{f': {problem}' if problem else ''}")
    score = float(not misses) if spec.all_or_nothing else weighted_mean(weighed)
    error = f"{cut(spec.name)}: {misses[0]}" if misses else None
    if error is None and score < 1:
        error = f"{cut(spec.name)}: no field of any weight is there"
    return Evaluation(score=score, hits=items(hits), misses=items(misses), error=error, checks_run=1)


def _json_in(text: str) -> JsonValue:
    """The object in the answer, from its first brace to its last, whatever stands around it."""
    bare = _FENCE.sub("", text)
    start, end = bare.find("{"), bare.rfind("}")
    try:
        return read_foreign(bare[start : end + 1])
    except ForeignJsonError:
        return None


def _problem(check: FieldCheck, given: JsonValue, expected: JsonValue) -> str | None:
    """In which way the two are not the same; None where they are."""
    match check.match:
        case "exact":
            if deep_equal(given, expected):
                return None
            is_now, wanted = values_apart(given, expected, _shown, MAX_VALUE)
            return f"is {is_now}, expected {wanted}"
        case "numeric_tolerance":
            return _number_problem(check, _number(given), _number(expected))
        case "date":
            days = _day(given, check), _day(expected, check)
            if None in days:
                return f"{_shown(given if days[0] is None else expected)} is no date"
            return None if days[0] == days[1] else f"is {_shown(given)}, expected {_shown(expected)}"


def _number_problem(check: FieldCheck, given: float | None, expected: float | None) -> str | None:
    if given is None or expected is None:
        return "is no number"
    difference = abs(given - expected)
    if check.relative and expected:
        difference /= abs(expected)
    kept = difference <= check.tolerance
    is_now, wanted = numbers_apart(given, expected)
    return None if kept else f"is {is_now}, expected {wanted} (tolerance {check.tolerance:g})"


def _number(value: object) -> float | None:
    """A number, or the one that a text begins with."""
    if isinstance(value, str):
        found = _NUMBER.match(value)
        value = float(found[1]) if found else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def _day(value: object, check: FieldCheck) -> date | None:
    text = value.strip() if isinstance(value, str) else ""
    try:
        return datetime.fromisoformat(text).date()
    except ValueError:
        pass
    try:
        if named := _NAMED.fullmatch(text):
            return date(int(named[3]), _MONTHS.index(named[2][:3].lower()) + 1, int(named[1]))
        if slashed := _SLASHED.fullmatch(text):
            first, second, year = int(slashed[1]), int(slashed[2]), int(slashed[3])
            swapped = first > 12 if check.day_first is None else check.day_first
            return date(year, second, first) if swapped else date(year, first, second)
    except ValueError:
        return None
    return None


def _shown(value: object) -> str:
    return cut(json.dumps(value, ensure_ascii=False))


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
