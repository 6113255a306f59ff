"""Reader for the AgentV 4 assertions that need no LLM judge.

Source: AgentV 4.42.4, its documentation of graders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args

from msgspec import convert

from eval_gate.formats.agentv import file_model as old
from eval_gate.formats.agentv.findings import AgentVFindings, Path
from eval_gate.formats.agentv.v4 import file_model
from eval_gate.model.base import JsonValue
from eval_gate.model.specs.agentv import (
    CallSequence,
    ExecutionMetrics,
    ExpectedCall,
    FieldAccuracy,
    FieldCheck,
    MetricLimit,
    SkillTrigger,
    TextAssertion,
    TextCheck,
)
from eval_gate.model.specs.evaluator import EvaluatorSpec, ToolTrajectory
from eval_gate.text.dotted_path import NOT_FOUND, find_by_path
from eval_gate.text.sources.validation_errors import describe_value

TEXT_ASSERTION_MODELS: Final[Mapping[str, type[old.AgentVEvaluator]]] = {
    **dict.fromkeys(("contains", "icontains", "starts-with", "ends-with", "equals"), file_model.OneTextAssertion),
    **dict.fromkeys(("contains-any", "contains-all", "icontains-any", "icontains-all"), file_model.TextListAssertion),
    "contains-number": file_model.NumberAssertion,
    "regex": file_model.RegexAssertion,
    "is-json": file_model.IsJsonAssertion,
}
ASSERTION_MODELS: Final[Mapping[str, type[old.AgentVEvaluator]]] = {
    **TEXT_ASSERTION_MODELS,
    "tool-trajectory": file_model.ToolTrajectoryAssertion,
    "skill-trigger": file_model.SkillTriggerAssertion,
    "execution-metrics": file_model.ExecutionMetricsAssertion,
    "latency": file_model.LatencyAssertion,
    "cost": file_model.CostAssertion,
    "token-usage": file_model.TokenUsageAssertion,
    "field-accuracy": file_model.FieldAccuracyAssertion,
}
_REGEX_FLAGS: Final = frozenset("dgimsuy")
_DEFAULT_FLOOR: Final = 0.8
"""Default minimum score of a required assertion."""


def compute_floor(entry: old.AgentVEvaluator) -> float | None:
    """Return the minimum score of an evaluator that the case requires, or None if it is not required."""
    if not entry.required:
        return None
    if entry.min_score is not None:
        return entry.min_score
    return _DEFAULT_FLOOR if entry.required is True else float(entry.required)


def read_common_fields(entry: old.AgentVEvaluator, name: str | None = None) -> dict[str, Any]:
    """Return the fields that every evaluator may have: label, weight, negation and minimum score."""
    return {"label": entry.name or name, "weight": entry.weight, "negate": entry.negate, "floor": compute_floor(entry)}


def read_comparison_value(
    entry: old.AgentVToolTrajectory | file_model.ToolTrajectoryAssertion, findings: AgentVFindings, path: Path
) -> JsonValue:
    """Return how the trajectory's mode compares tool calls; report a missing or empty value as a problem."""
    counts = entry.mode == "any_order"
    needed, other = ("minimums", "expected") if counts else ("expected", "minimums")
    value = old.as_raw_json(getattr(entry, needed))
    if not value:
        problem = "is missing" if value is None else "must not be empty"
        findings.add_problem(f"{problem}: {entry.mode} compares the calls with it", (*path, needed))
    elif getattr(entry, other) is not None:
        findings.add_unsupported(f"is ignored in the mode {entry.mode}", (*path, other))
    return value


class AssertionReader:
    """Read assertions of one eval file, and record what is wrong with them."""

    def __init__(self, findings: AgentVFindings) -> None:
        self._findings = findings

    def read(
        self, entry: old.AgentVEvaluator, kind: str, raw: JsonValue, path: Path, expected: JsonValue
    ) -> EvaluatorSpec | None:
        """Read an assertion that needs no LLM judge, or return None for any other.

        `kind` is its type in the newest spelling, and `expected` is the response that the case expects. None is also
        possible after reporting a problem.
        """
        common = read_common_fields(entry)
        match entry:
            case file_model.AssertionOnText():
                return self._read_text(entry, kind, common, path)
            case file_model.ToolTrajectoryAssertion():
                return self._read_trajectory(entry, common, path)
            case file_model.SkillTriggerAssertion():
                return SkillTrigger(skill=entry.skill, should_trigger=entry.should_trigger, **common)
            case file_model.AssertionOnMetrics():
                return self._read_metrics(entry, kind, common, path)
            case file_model.FieldAccuracyAssertion():
                return self._read_field_accuracy(entry, common, path, expected)
        return None

    def _read_text(
        self, entry: file_model.AssertionOnText, kind: str, common: Mapping[str, Any], path: Path
    ) -> EvaluatorSpec | None:
        value = getattr(entry, "value", ())
        values: Sequence[str] = (value,) if isinstance(value, str) else value
        flags = entry.flags if isinstance(entry, file_model.RegexAssertion) else ""
        if not _REGEX_FLAGS.issuperset(flags) or len(set(flags)) < len(flags):
            self._findings.add_problem(f'"{flags[:20]}" are not flags of a JavaScript pattern', (*path, "flags"))
            return None
        if kind == "regex":
            self._findings.lint_pattern(values[0], flags, (*path, "value"))
        label = common["label"] or _build_label(kind, values)
        assert kind in get_args(TextCheck)
        return convert({"type": kind, "values": values, "flags": flags, **common, "label": label}, TextAssertion)

    def _read_metrics(
        self, entry: file_model.AssertionOnMetrics, kind: str, common: Mapping[str, Any], path: Path
    ) -> EvaluatorSpec | None:
        values = ((of, getattr(entry, name)) for name, of in entry.metrics.items())
        limits = [MetricLimit(of=of, limit=limit) for of, limit in values if limit is not None]
        if not limits:
            self._findings.add_problem("sets no limit: nothing would be evaluated", path)
            return None
        in_parts = isinstance(entry, file_model.ExecutionMetricsAssertion)
        return convert({"type": kind, "limits": limits, "inParts": in_parts, **common}, ExecutionMetrics)

    def _read_trajectory(
        self, entry: file_model.ToolTrajectoryAssertion, common: Mapping[str, Any], path: Path
    ) -> EvaluatorSpec | None:
        value = read_comparison_value(entry, self._findings, path)
        if not value:
            return None
        if entry.mode == "any_order":
            return convert({"mode": "any_order", "minimums": entry.minimums, **common}, ToolTrajectory)
        expected = self._read_expected_calls(value, entry, (*path, "expected"))
        return convert({"mode": entry.mode, "expected": expected, **common}, CallSequence) if expected else None

    def _read_expected_calls(
        self, raw: JsonValue, entry: file_model.ToolTrajectoryAssertion, path: Path
    ) -> tuple[ExpectedCall, ...]:
        if not isinstance(raw, list):
            self._findings.add_problem(f"expected a list of calls, got {describe_value(raw)}", path)
            return ()
        steps = [
            self._findings.read_part(file_model.AgentV4ExpectedCall, one, (*path, index))
            for index, one in enumerate(raw)
        ]
        for index, step in enumerate(steps):
            if step is not None and step.max_duration_ms is not None and entry.mode in {"subset", "superset"}:
                message = f"is ignored in the mode {entry.mode}"
                self._findings.add_problem(message, (*path, index, "max_duration_ms"))
        return tuple(_build_expected_call(step, entry) for step in steps if step is not None)

    def _read_field_accuracy(
        self, entry: file_model.FieldAccuracyAssertion, common: Mapping[str, Any], path: Path, expected: JsonValue
    ) -> EvaluatorSpec | None:
        if expected is None:
            message = f'compares with the expected output, but the case "{self._findings.case}" has none that is JSON'
            self._findings.add_problem(message, path)
            return None
        if all(find_by_path(expected, one.path) is NOT_FOUND for one in entry.fields):
            whose = f'the expected output of the case "{self._findings.case}"'
            self._findings.add_problem(f"none of these fields is in {whose}: nothing would be evaluated", path)
            return None
        return convert(
            {
                "fields": [_build_field_check(one) for one in entry.fields],
                "expected": expected,
                "allOrNothing": entry.aggregation == "all_or_nothing",
                **common,
            },
            FieldAccuracy,
        )


def _build_expected_call(
    step: file_model.AgentV4ExpectedCall, entry: file_model.ToolTrajectoryAssertion
) -> ExpectedCall:
    """Build one step; its arguments are compared as it says, else as the trajectory says, else exactly."""
    match = step.args_match or entry.args_match or "exact"
    return ExpectedCall(
        tool=step.tool,
        args=step.args if isinstance(step.args, dict) else None,
        match=tuple(match) if isinstance(match, list) else match,
        max_duration_ms=step.max_duration_ms,
    )


def _build_field_check(entry: file_model.AssertedField) -> FieldCheck:
    formats = entry.formats or ()
    month_first = any(form.startswith(("MM/DD", "MM-DD")) for form in formats)
    day_first = any(form.startswith(("DD/MM", "DD-MM")) for form in formats)
    return FieldCheck(
        path=entry.path,
        match=entry.match,
        required=entry.required,
        weight=entry.weight,
        tolerance=entry.tolerance,
        relative=entry.relative,
        day_first=day_first if month_first != day_first else None,
    )


def _build_label(kind: str, values: Sequence[str]) -> str:
    """Build the label of an assertion without a name, as AgentV does."""
    if not values:
        return kind
    return f"{kind}-{len(values) if kind.endswith(('-any', '-all')) else values[0][:30]}"
