"""The assertions of today's AgentV, as data: those that no model judges, one class for each kind of question.

Source: AgentV 4.42.4 (its documentation of graders); which features are read stands in docs/agentv.md.
"""

from typing import Annotated, Literal

from msgspec import Meta

from eval_gate.model.base import Frozen, JsonValue
from eval_gate.model.specs.evaluator import NamedEvaluatorSpec
from eval_gate.model.specs.match_all_patterns import matches_every_text

TextQuestion = Literal[
    "contains",
    "contains-any",
    "contains-all",
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
    """The answer holds these texts, begins or ends with one, is one, or is JSON. `flags` belong to `regex`."""

    type: TextQuestion
    values: tuple[str, ...] = ()
    flags: str = ""

    @property
    def checks_nothing(self) -> bool:
        """Whether every text holds, begins or ends with the values: blanks around an end do not count."""
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
    """A tool call that is expected. `args` None compares no arguments; `match` is a mode, or the fields that count."""

    tool: str
    args: dict[str, JsonValue] | None = None
    match: ArgsMatch | tuple[str, ...] = "exact"
    max_duration_ms: float | None = None


class CallSequence(NamedEvaluatorSpec, kw_only=True):
    """Which tools were called, with which arguments; the score is the share of what is as expected."""

    type: Literal["tool_trajectory"] = "tool_trajectory"
    mode: Literal["in_order", "exact", "subset", "superset"]
    expected: Annotated[tuple[ExpectedCall, ...], Meta(min_length=1)]


class SkillTrigger(NamedEvaluatorSpec, kw_only=True):
    """The agent made use of this skill, or did not."""

    type: Literal["skill-trigger"] = "skill-trigger"
    skill: Annotated[str, Meta(min_length=1)]
    should_trigger: bool = True


class MetricLimit(Frozen, kw_only=True):
    """The most that one number of an execution may be."""

    of: Metric
    limit: Annotated[float, Meta(ge=0)]


class ExecutionMetrics(NamedEvaluatorSpec, kw_only=True):
    """Every limit is kept; `in_parts`: the score is the share of those that are, else all or nothing."""

    type: Literal["execution-metrics", "latency", "cost", "token-usage"]
    limits: Annotated[tuple[MetricLimit, ...], Meta(min_length=1)]
    in_parts: bool = False


class FieldCheck(Frozen, kw_only=True):
    """One field of an answer that is JSON, compared with the same field of the expected answer.

    `day_first` says how `03/04/2026` is read; None takes what the numbers allow, the month first where they allow both.
    """

    path: str
    match: Literal["exact", "numeric_tolerance", "date"]
    required: bool = True
    weight: Annotated[float, Meta(ge=0)] = 1.0
    tolerance: Annotated[float, Meta(ge=0)] = 0.0
    relative: bool = False
    day_first: bool | None = None


class FieldAccuracy(NamedEvaluatorSpec, kw_only=True):
    """The weighted share of the fields that are as expected, or all of them."""

    type: Literal["field-accuracy"] = "field-accuracy"
    fields: Annotated[tuple[FieldCheck, ...], Meta(min_length=1)]
    expected: JsonValue
    all_or_nothing: bool = False
