"""Specifications of evaluators, one class for each kind. `eval_gate.evaluators` executes them."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field
from pydantic import Field, SerializeAsAny

from eval_gate.model.base import Frozen, JsonValue
from eval_gate.model.specs.match_all_patterns import matches_every_text


class EvaluatorSpec(Frozen, kw_only=True):
    """Specification of one evaluator. `eval_gate.evaluators` executes it.

    `type` is the name in results and messages; for tool-forge it is the key of the assertion.
    """

    type: str
    weight: Annotated[float, Meta(ge=0)] = 1.0

    @property
    def name(self) -> str:
        """The name in results."""
        return self.type

    @property
    def checks_nothing(self) -> bool:
        """Whether the evaluator passes for every possible response."""
        return False


class ToolsCalled(EvaluatorSpec, kw_only=True):
    """Exactly these tools are called in this order, including repeats."""

    type: Literal["toolsCalled"] = "toolsCalled"
    names: tuple[str, ...]


class ToolsCalledAnyOrder(EvaluatorSpec, kw_only=True):
    """Exactly these tools are called, each as often as listed, in any order (for parallel calls)."""

    type: Literal["toolsCalledAnyOrder"] = "toolsCalledAnyOrder"
    names: tuple[str, ...]


class ToolsAcceptable(EvaluatorSpec, kw_only=True):
    """The set of called tools equals one of these sets. `NONE` (or an empty set) means no tool at all."""

    NONE: ClassVar[str] = "__none__"
    type: Literal["toolsAcceptable"] = "toolsAcceptable"
    sets: tuple[tuple[str, ...], ...]


class ToolsNotCalled(EvaluatorSpec, kw_only=True):
    """None of these tools is called."""

    type: Literal["toolsNotCalled"] = "toolsNotCalled"
    names: tuple[str, ...]

    @property
    def checks_nothing(self) -> bool:
        """Whether no name is forbidden."""
        return not self.names


ValueOperator = Literal["equals", "contains", "oneOf", "exists", "notExists", "matches"]


class ValueCheck(Frozen, kw_only=True):
    """Check of one value. `value` may contain tokens; it has no meaning for `exists` and `notExists`."""

    assertion: ValueOperator
    value: JsonValue = None


class ParamCheck(ValueCheck, kw_only=True):
    """Check of one parameter in the first call of one tool."""

    tool: str
    param_name: str


class ToolParams(EvaluatorSpec, kw_only=True):
    """All checks of parameters pass."""

    type: Literal["toolParams"] = "toolParams"
    checks: tuple[ParamCheck, ...]

    @property
    def checks_nothing(self) -> bool:
        """Whether there is no check."""
        return not self.checks


class FieldValueCheck(ValueCheck, kw_only=True):
    """Check of one field of the agent's JSON (`text.dotted_path`)."""

    path: str


class ResponseFields(EvaluatorSpec, kw_only=True):
    """All fields of the agent's JSON are as expected."""

    type: Literal["fields"] = "fields"
    checks: Annotated[tuple[FieldValueCheck, ...], Meta(min_length=1)]


class NoToolErrors(EvaluatorSpec, kw_only=True):
    """No called tool failed. What counts as a failure depends on how the case is run (contract, section 3)."""

    type: Literal["noToolErrors"] = "noToolErrors"


class ResponseNonEmpty(EvaluatorSpec, kw_only=True):
    """The response is not blank."""

    type: Literal["responseNonEmpty"] = "responseNonEmpty"


class ResponseContains(EvaluatorSpec, kw_only=True):
    """The response contains every value, case-sensitive. Values may contain tokens."""

    type: Literal["responseContains"] = "responseContains"
    values: tuple[str, ...]

    @property
    def checks_nothing(self) -> bool:
        """Whether every value is empty, so that every text contains it."""
        return not any(self.values)


class ResponseContainsAny(EvaluatorSpec, kw_only=True):
    """The response contains at least one member of every group, case-sensitive. Members may contain tokens."""

    type: Literal["responseContainsAny"] = "responseContainsAny"
    groups: tuple[tuple[str, ...], ...]

    @property
    def checks_nothing(self) -> bool:
        """Whether each group is empty, or has the empty text in it, which every text contains."""
        return not any(group and all(group) for group in self.groups)


class ResponseContainsNumber(EvaluatorSpec, kw_only=True):
    """The response contains every number, date or code, in whichever way it is written (`text.number_search`)."""

    type: Literal["responseContainsNumber"] = "responseContainsNumber"
    values: tuple[str, ...]

    @property
    def checks_nothing(self) -> bool:
        """Whether there is no value."""
        return not self.values


class ResponseNotContains(EvaluatorSpec, kw_only=True):
    """The response contains none of the values, case-sensitive. Values may contain tokens."""

    type: Literal["responseNotContains"] = "responseNotContains"
    values: tuple[str, ...]

    @property
    def checks_nothing(self) -> bool:
        """Whether no value is forbidden."""
        return not self.values


class ResponseMatches(EvaluatorSpec, kw_only=True):
    """Every ECMAScript pattern matches somewhere in the response (`new RegExp(pattern)`, no flags)."""

    type: Literal["responseMatches"] = "responseMatches"
    patterns: tuple[str, ...]

    @property
    def checks_nothing(self) -> bool:
        """Whether every pattern finds something in every text."""
        return all(matches_every_text(pattern) for pattern in self.patterns)


class MaxLatency(EvaluatorSpec, kw_only=True):
    """The wall time, measured by Eval Gate, is within the limit (milliseconds)."""

    type: Literal["maxLatencyMs"] = "maxLatencyMs"
    limit_ms: float


class MaxTokens(EvaluatorSpec, kw_only=True):
    """The response has at most this many tokens."""

    type: Literal["maxTokens"] = "maxTokens"
    limit: int


class NamedEvaluatorSpec(EvaluatorSpec, kw_only=True):
    """Evaluator that can have its own name, because a case can have several of one type.

    `negate` inverts its score: what it finds must not be in the response. `floor` is its minimum score; below it the
    whole case scores 0.
    """

    label: str | None = None
    negate: bool = False
    floor: Annotated[float, Meta(gt=0, le=1)] | None = None

    @property
    def name(self) -> str:
        """The evaluator's own name, or else its type."""
        return self.label or self.type


class LlmJudge(NamedEvaluatorSpec, kw_only=True):
    """A model scores the response from 0 to 1 (AgentV); 1 passes. Its input comes from the case's `brief`.

    `prompt` is the text of a custom template, already read from its file; None uses the built-in one.
    """

    type: Literal["llm_judge"] = "llm_judge"
    prompt: str | None = None
    include_trace: bool = False
    judge_target: str | None = None
    """Target of the judge; None uses the run's."""


class RubricCheck(Frozen, kw_only=True):
    """One check of a rubric, satisfied or not. If `required`, the case fails when it is not satisfied."""

    id: Annotated[str, Meta(min_length=1)]
    description: str
    weight: Annotated[float, Meta(ge=0)] = 1.0
    required: bool = True


class RubricJudge(NamedEvaluatorSpec, kw_only=True):
    """A model decides for each check whether the response satisfies it; the score is the weighted share.

    This is `rubrics` of AgentV.
    """

    type: Literal["llm_judge"] = "llm_judge"
    checks: Annotated[tuple[RubricCheck, ...], Meta(min_length=1)]
    judge_target: str | None = None


class CodeJudge(NamedEvaluatorSpec, kw_only=True):
    """A command scores: JSON about case and response on stdin, a score on stdout (AgentV).

    `command` is one shell line, or a program with its arguments. `cwd` is absolute.
    """

    type: Literal["code_judge"] = "code_judge"
    command: str | tuple[str, ...]
    cwd: str
    timeout_seconds: float | None = None


class CodeGrader(CodeJudge, kw_only=True):
    """A command scores in the protocol of current AgentV: other names on stdin, and more output formats.

    `config` holds the keys of the evaluator that are otherwise unknown.
    """

    type: Literal["code_judge"] = "code_judge"
    config: dict[str, JsonValue] | None = None


class ToolTrajectory(NamedEvaluatorSpec, kw_only=True):
    """Expected tools and their order (AgentV).

    `minimums` apply to `any_order`, `expected` to the other modes. The one that applies must not be empty.
    """

    type: Literal["tool_trajectory"] = "tool_trajectory"
    mode: Literal["any_order", "in_order", "exact"]
    minimums: dict[str, int] = field(default_factory=dict)
    expected: tuple[str, ...] = ()

    @property
    def checks_nothing(self) -> bool:
        """Whether no call is required: each tool is to be called at least 0 times."""
        return self.mode == "any_order" and not self.negate and not any(self.minimums.values())


class WeightedAverage(Frozen, kw_only=True):
    """Weighted mean of the members' scores; the default weight is 1."""

    type: Literal["weighted_average"] = "weighted_average"
    weights: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = field(default_factory=dict)


class ThresholdAggregator(Frozen, kw_only=True):
    """Share of the members that pass, each with a score of 0.8 or more.

    As a member of another composite, the composite passes if the share is at least `threshold`.
    """

    type: Literal["threshold"] = "threshold"
    threshold: Annotated[float, Meta(ge=0, le=1)]


class CodeAggregator(Frozen, kw_only=True):
    """A command combines the members' results into one score. `cwd` is absolute."""

    type: Literal["code_judge"] = "code_judge"
    command: str | tuple[str, ...]
    cwd: str


class JudgeAggregator(Frozen, kw_only=True):
    """A model combines the members' results into one score. `prompt` None uses the built-in prompt."""

    type: Literal["llm_judge"] = "llm_judge"
    prompt: str | None = None
    judge_target: str | None = None


class Composite(NamedEvaluatorSpec, kw_only=True):
    """Several evaluators combined into one (AgentV)."""

    type: Literal["composite"] = "composite"
    members: Annotated[tuple[SerializeAsAny[EvaluatorSpec], ...], Meta(min_length=1)]
    aggregator: WeightedAverage | ThresholdAggregator | CodeAggregator | JudgeAggregator = WeightedAverage()

    @property
    def checks_nothing(self) -> bool:
        """Whether no member checks anything, and no command or model calculates the score."""
        counted = isinstance(self.aggregator, WeightedAverage | ThresholdAggregator) and not self.negate
        return counted and all(member.checks_nothing for member in self.members)


class RubricDimension(Frozen, kw_only=True):
    """One dimension of a rubric. `max_score` 1 means yes or no; `criteria` describes each score."""

    name: Annotated[str, Meta(min_length=1)]
    max_score: Annotated[float, Meta(gt=0)]
    criteria: str

    @property
    def binary(self) -> bool:
        """Whether this is yes or no."""
        return self.max_score == 1


class Rubric(EvaluatorSpec, kw_only=True):
    """A model scores several dimensions of the response at once (tool-forge, RubricEvalCase).

    `reference_data` is compared with the response; None means none. A binary dimension needs its full score, a graded
    one at least the share `pass_at` of it: with 0.6, 2 of 3, 3 of 4 and 3 of 5 pass.
    """

    type: Literal["rubric"] = "rubric"
    dimensions: Annotated[tuple[RubricDimension, ...], Meta(min_length=1)]
    question: str
    reference_data: JsonValue = None
    pass_at: Annotated[float, Meta(ge=0, le=1)] = 0.6
