"""Assertions of today's AgentV that no model judges, from the file to what is asked.

Source: AgentV 4.42.4, its documentation of graders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args

from msgspec import convert

from eval_gate.formats.agentv import wire as old
from eval_gate.formats.agentv.findings import AgentVFindings, Path
from eval_gate.formats.agentv.today import wire
from eval_gate.model.base import JsonValue
from eval_gate.model.specs.agentv import (
    CallSequence,
    ExecutionMetrics,
    ExpectedCall,
    FieldAccuracy,
    FieldCheck,
    Metric,
    MetricLimit,
    SkillTrigger,
    TextAssertion,
    TextQuestion,
)
from eval_gate.model.specs.evaluator import EvaluatorSpec, ToolTrajectory
from eval_gate.text.dotted_path import NOWHERE, field_at
from eval_gate.text.sources.shape import kind_of

TEXT_KINDS: Final[Mapping[str, type[old.Evaluator]]] = {
    **dict.fromkeys(("contains", "icontains", "starts-with", "ends-with", "equals"), wire.OneText),
    **dict.fromkeys(("contains-any", "contains-all", "icontains-any", "icontains-all"), wire.SeveralTexts),
    "regex": wire.Regex,
    "is-json": wire.IsJson,
}
KINDS: Final[Mapping[str, type[old.Evaluator]]] = {
    **TEXT_KINDS,
    "tool-trajectory": wire.ToolTrajectory,
    "skill-trigger": wire.SkillTrigger,
    "execution-metrics": wire.ExecutionMetrics,
    "latency": wire.Latency,
    "cost": wire.Cost,
    "token-usage": wire.TokenUsage,
    "field-accuracy": wire.FieldAccuracy,
}
_FLAGS: Final = frozenset("dgimsuy")
_DEFAULT_FLOOR: Final = 0.8
"""What a required assertion has to reach where it does not say."""


def floor_of(found: old.Evaluator) -> float | None:
    """The least that the score has to be, where the case needs this evaluator."""
    if not found.required:
        return None
    if found.min_score is not None:
        return found.min_score
    return _DEFAULT_FLOOR if found.required is True else float(found.required)


def said_of(found: old.Evaluator, name: str | None = None) -> dict[str, Any]:
    """What every evaluator may say: its name, what it counts, and what its score is held to."""
    return {"label": found.name or name, "weight": found.weight, "negate": found.negate, "floor": floor_of(found)}


def compared_with(found: old.ToolTrajectory | wire.ToolTrajectory, findings: AgentVFindings, path: Path) -> JsonValue:
    """What the calls are compared with in this mode; nothing after saying what is wrong."""
    counts = found.mode == "any_order"
    needed, other = ("minimums", "expected") if counts else ("expected", "minimums")
    value = old.raw(getattr(found, needed))
    if not value:
        said = "is missing" if value is None else "must not be empty"
        findings.problem(f"{said}: {found.mode} compares the calls with it", (*path, needed))
    elif getattr(found, other) is not None:
        findings.unread(f"is not read in the mode {found.mode}", (*path, other))
    return value


class AssertionReader:
    """Reads assertions of one eval file, and says what is wrong with them."""

    def __init__(self, findings: AgentVFindings) -> None:
        self._findings = findings

    def read(
        self, found: old.Evaluator, kind: str, raw: JsonValue, path: Path, expected: JsonValue
    ) -> EvaluatorSpec | None:
        """What is asked. `kind` is its type in the newest spelling, `expected` the answer that the case expects."""
        said = said_of(found)
        match found:
            case wire.OneText() | wire.SeveralTexts() | wire.Regex() | wire.IsJson():
                return self._text(found, kind, said, path)
            case wire.ToolTrajectory():
                return self._trajectory(found, said, path)
            case wire.SkillTrigger():
                return SkillTrigger(skill=found.skill, should_trigger=found.should_trigger, **said)
            case wire.Latency() | wire.Cost() | wire.TokenUsage() | wire.ExecutionMetrics():
                return self._metrics(found, kind, said, path)
            case wire.FieldAccuracy():
                return self._fields(found, said, path, expected)
        return None

    def _text(
        self,
        found: wire.OneText | wire.SeveralTexts | wire.Regex | wire.IsJson,
        kind: str,
        said: Mapping[str, Any],
        path: Path,
    ) -> EvaluatorSpec | None:
        match found:
            case wire.IsJson():
                values: Sequence[str] = ()
            case wire.SeveralTexts():
                values = found.value
            case _:
                values = (found.value,)
        flags = found.flags if isinstance(found, wire.Regex) else ""
        if not _FLAGS.issuperset(flags) or len(set(flags)) < len(flags):
            self._findings.problem(f'"{flags[:20]}" are no flags of a JavaScript pattern', (*path, "flags"))
            return None
        label = said["label"] or _name(kind, values)
        assert kind in get_args(TextQuestion)
        return convert({"type": kind, "values": values, "flags": flags, **said, "label": label}, TextAssertion)

    def _metrics(
        self,
        found: wire.Latency | wire.Cost | wire.TokenUsage | wire.ExecutionMetrics,
        kind: str,
        said: Mapping[str, Any],
        path: Path,
    ) -> EvaluatorSpec | None:
        limits = [MetricLimit(of=of, limit=limit) for of, limit in _limits(found) if limit is not None]
        if not limits:
            self._findings.problem("sets no limit: nothing would be judged", path)
            return None
        in_parts = isinstance(found, wire.ExecutionMetrics)
        return convert({"type": kind, "limits": limits, "inParts": in_parts, **said}, ExecutionMetrics)

    def _trajectory(self, found: wire.ToolTrajectory, said: Mapping[str, Any], path: Path) -> EvaluatorSpec | None:
        value = compared_with(found, self._findings, path)
        if not value:
            return None
        if found.mode == "any_order":
            return convert({"mode": "any_order", "minimums": found.minimums, **said}, ToolTrajectory)
        expected = self._expected(value, found, (*path, "expected"))
        return convert({"mode": found.mode, "expected": expected, **said}, CallSequence) if expected else None

    def _expected(self, raw: JsonValue, found: wire.ToolTrajectory, path: Path) -> tuple[ExpectedCall, ...]:
        if not isinstance(raw, list):
            self._findings.problem(f"expected a list of calls, got {kind_of(raw)}", path)
            return ()
        steps = [self._findings.read(wire.ExpectedCall, one, (*path, index)) for index, one in enumerate(raw)]
        for index, step in enumerate(steps):
            if step is not None and step.max_duration_ms is not None and found.mode in {"subset", "superset"}:
                message = f"is not read in the mode {found.mode}"
                self._findings.problem(message, (*path, index, "max_duration_ms"))
        return tuple(_call(step, found) for step in steps if step is not None)

    def _fields(
        self, found: wire.FieldAccuracy, said: Mapping[str, Any], path: Path, expected: JsonValue
    ) -> EvaluatorSpec | None:
        if expected is None:
            message = f'compares with the expected output, and the case "{self._findings.case}" has none that is JSON'
            self._findings.problem(message, path)
            return None
        if all(field_at(expected, one.path) is NOWHERE for one in found.fields):
            whose = f'the expected output of the case "{self._findings.case}"'
            self._findings.problem(f"none of these fields is in {whose}: nothing would be judged", path)
            return None
        return convert(
            {
                "fields": [_field(one) for one in found.fields],
                "expected": expected,
                "allOrNothing": found.aggregation == "all_or_nothing",
                **said,
            },
            FieldAccuracy,
        )


def _limits(
    found: wire.Latency | wire.Cost | wire.TokenUsage | wire.ExecutionMetrics,
) -> tuple[tuple[Metric, float | None], ...]:
    match found:
        case wire.Latency():
            return (("ms", found.threshold),)
        case wire.Cost():
            return (("cost", found.budget),)
        case wire.TokenUsage():
            return (
                ("input_tokens", found.max_input),
                ("output_tokens", found.max_output),
                ("tokens", found.max_total),
            )
        case wire.ExecutionMetrics():
            return (
                ("tool_calls", found.max_tool_calls),
                ("model_calls", found.max_llm_calls),
                ("tokens", found.max_tokens),
                ("cost", found.max_cost_usd),
                ("ms", found.max_duration_ms),
            )


def _call(step: wire.ExpectedCall, found: wire.ToolTrajectory) -> ExpectedCall:
    """One step; how its arguments are compared it says itself, else the whole, else they are the same."""
    match = step.args_match or found.args_match or "exact"
    return ExpectedCall(
        tool=step.tool,
        args=step.args if isinstance(step.args, dict) else None,
        match=tuple(match) if isinstance(match, list) else match,
        max_duration_ms=step.max_duration_ms,
    )


def _field(found: wire.FieldOfAnswer) -> FieldCheck:
    formats = found.formats or ()
    month_first = any(form.startswith(("MM/DD", "MM-DD")) for form in formats)
    day_first = any(form.startswith(("DD/MM", "DD-MM")) for form in formats)
    return FieldCheck(
        path=found.path,
        match=found.match,
        required=found.required,
        weight=found.weight,
        tolerance=found.tolerance,
        relative=found.relative,
        day_first=day_first if month_first != day_first else None,
    )


def _name(kind: str, values: Sequence[str]) -> str:
    """What an assertion without a name is called: AgentV's own words for it."""
    if not values:
        return kind
    return f"{kind}-{len(values) if kind.endswith(('-any', '-all')) else values[0][:30]}"
