"""Fields of an answer that is JSON are those of the expected answer: exactly, within a tolerance, or as the same day.

Source: AgentV 4.42.4, `field-accuracy`.
"""

from __future__ import annotations

import json
import math
import re
from datetime import date, datetime
from typing import Final

from eval_gate.evaluators.base import Evaluation, EvaluationContext
from eval_gate.evaluators.equality import deep_equal
from eval_gate.evaluators.weighing import weighted_mean
from eval_gate.evaluators.wording import MAX_VALUE, cut, items
from eval_gate.model.base import JsonValue
from eval_gate.model.specs.agentv import FieldAccuracy, FieldCheck
from eval_gate.text.apart import numbers_apart, values_apart
from eval_gate.text.dotted_path import NOWHERE, field_at
from eval_gate.text.foreign.json import ForeignJsonError, read_foreign

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NUMBER: Final = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
_NAMED: Final = re.compile(r"(\d{1,2})-([A-Za-z]{3,9})-(\d{4})")
_SLASHED: Final = re.compile(r"(\d{1,2})[/-](\d{1,2})[/-](\d{4})")
_FENCE: Final = re.compile(r"```json\n?|```")


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
