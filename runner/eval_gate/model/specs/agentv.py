"""Specifications of current AgentV assertions that need no LLM judge, one class for each kind.

Source: AgentV 4.42.4 (its documentation of graders); `contains-number` is an addition to its format. docs/agentv.md
lists the supported features.
"""

from typing import Annotated, Literal

from msgspec import Meta

from eval_gate.model.base import Frozen, JsonValue
from eval_gate.model.specs.evaluator import NamedEvaluatorSpec
from eval_gate.model.specs.match_all_patterns import matches_every_text

TextCheck = Literal[
    "contains",
    "contains-any",
    "contains-all",
    "contains-number",
    "icontains",
    "icontains-any",
    "icontains-all",
    "starts-with",
    "ends-with",
    "regex",
    "equals",
    "is-json",
]
ArgsMatch = Literal["exact", "superset", "subset", "ignore"]
Metric = Literal["tool_calls", "model_calls", "tokens", "input_tokens", "output_tokens", "cost", "ms"]


class TextAssertion(NamedEvaluatorSpec, kw_only=True):
    """The response contains these texts, starts or ends with one, equals one, matches one, or is JSON.

    `flags` apply to `regex`.
    """

    type: TextCheck
    values: tuple[str, ...] = ()
    flags: str = ""

    @property
    def checks_nothing(self) -> bool:
        """Whether every text contains, starts with or ends with the values: blanks at the ends do not count."""
        if self.negate:
            return False
        match self.type:
            case "regex":
                return matches_every_text(self.values[0], self.flags)
            case "starts-with" | "ends-with":
                return not self.values[0].strip(" \t\n\r")
            case _:
                return False


class ExpectedCall(Frozen, kw_only=True):
    """An expected tool call. With `args` None no arguments are compared; `match` is a mode or the compared fields."""

    tool: str
    args: dict[str, JsonValue] | None = None
    match: ArgsMatch | tuple[str, ...] = "exact"
    max_duration_ms: float | None = None


class CallSequence(NamedEvaluatorSpec, kw_only=True):
    """Expected tool calls with their arguments; the score is the share that matches."""

    type: Literal["tool_trajectory"] = "tool_trajectory"
    mode: Literal["in_order", "exact", "subset", "superset"]
    expected: Annotated[tuple[ExpectedCall, ...], Meta(min_length=1)]


class SkillTrigger(NamedEvaluatorSpec, kw_only=True):
    """The agent used this skill, or did not."""

    type: Literal["skill-trigger"] = "skill-trigger"
    skill: Annotated[str, Meta(min_length=1)]
    should_trigger: bool = True


class MetricLimit(Frozen, kw_only=True):
    """Maximum of one metric of an execution."""

    of: Metric
    limit: Annotated[float, Meta(ge=0)]


class ExecutionMetrics(NamedEvaluatorSpec, kw_only=True):
    """All limits hold. With `in_parts`, the score is the share of limits that hold; otherwise 0 or 1."""

    type: Literal["execution-metrics", "latency", "cost", "token-usage"]
    limits: Annotated[tuple[MetricLimit, ...], Meta(min_length=1)]
    in_parts: bool = False


class FieldCheck(Frozen, kw_only=True):
    """One field of a JSON response, compared with the same field of the expected response.

    `day_first` decides how to read `03/04/2026`. With None the numbers decide, and the month comes first if both
    readings are possible.
    """

    path: str
    match: Literal["exact", "numeric_tolerance", "date"]
    required: bool = True
    weight: Annotated[float, Meta(ge=0)] = 1.0
    tolerance: Annotated[float, Meta(ge=0)] = 0.0
    relative: bool = False
    day_first: bool | None = None


class FieldAccuracy(NamedEvaluatorSpec, kw_only=True):
    """Weighted share of the fields that match, or 1 only if all match."""

    type: Literal["field-accuracy"] = "field-accuracy"
    fields: Annotated[tuple[FieldCheck, ...], Meta(min_length=1)]
    expected: JsonValue
    all_or_nothing: bool = False
