"""What is to be judged, as data, one class for every kind of evaluator. `eval_gate.evaluators` knows how."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field
from pydantic import Field, SerializeAsAny

from eval_gate.model.base import Frozen, JsonValue
from eval_gate.model.specs.match_all_patterns import matches_every_text


class EvaluatorSpec(Frozen, kw_only=True):
    """What is to be judged, as data. `eval_gate.evaluators` knows how.

    `type` is the name people read in results and messages; for tool-forge it is the assertion's key.
    """

    type: str
    weight: Annotated[float, Meta(ge=0)] = 1.0

    @property
    def name(self) -> str:
        """The name in results."""
        return self.type

    @property
    def checks_nothing(self) -> bool:
        """Whether it holds for every response there may be, so that whoever reads its result learns nothing."""
        return False


class ToolsCalled(EvaluatorSpec, kw_only=True):
    """Exactly these tool names in this order, repeats included."""

    type: Literal["toolsCalled"] = "toolsCalled"
    names: tuple[str, ...]


class ToolsCalledAnyOrder(EvaluatorSpec, kw_only=True):
    """Exactly these tool names, each as often as it is named, in any order: for models that call in parallel."""

    type: Literal["toolsCalledAnyOrder"] = "toolsCalledAnyOrder"
    names: tuple[str, ...]


class ToolsAcceptable(EvaluatorSpec, kw_only=True):
    """The set of called names equals one of these sets; `NONE` (or an empty set) means no tool at all."""

    NONE: ClassVar[str] = "__none__"
    type: Literal["toolsAcceptable"] = "toolsAcceptable"
    sets: tuple[tuple[str, ...], ...]


class ToolsNotCalled(EvaluatorSpec, kw_only=True):
    """None of these names was called."""

    type: Literal["toolsNotCalled"] = "toolsNotCalled"
    names: tuple[str, ...]

    @property
    def checks_nothing(self) -> bool:
        """Whether no name is forbidden."""
        return not self.names


class ParamCheck(Frozen, kw_only=True):
    """One parameter of the first call of one tool. `value` may hold tokens; it is absent for `exists`/`notExists`."""

    tool: str
    param_name: str
    assertion: Literal["equals", "contains", "oneOf", "exists", "notExists", "matches"]
    value: JsonValue = None


class ToolParams(EvaluatorSpec, kw_only=True):
    """Every check holds."""

    type: Literal["toolParams"] = "toolParams"
    checks: tuple[ParamCheck, ...]

    @property
    def checks_nothing(self) -> bool:
        """Whether there is no check."""
        return not self.checks


class NoToolErrors(EvaluatorSpec, kw_only=True):
    """No called tool failed; what that means depends on how the case is run (contract, section 3)."""

    type: Literal["noToolErrors"] = "noToolErrors"


class ResponseNonEmpty(EvaluatorSpec, kw_only=True):
    """The text is not blank."""

    type: Literal["responseNonEmpty"] = "responseNonEmpty"


class ResponseContains(EvaluatorSpec, kw_only=True):
    """Every value is in the text, case-sensitive. Values may hold tokens."""

    type: Literal["responseContains"] = "responseContains"
    values: tuple[str, ...]

    @property
    def checks_nothing(self) -> bool:
        """Whether there is no value but the empty one, which every text contains."""
        return not any(self.values)


class ResponseContainsAny(EvaluatorSpec, kw_only=True):
    """Of every group at least one member is in the text, case-sensitive. Members may hold tokens."""

    type: Literal["responseContainsAny"] = "responseContainsAny"
    groups: tuple[tuple[str, ...], ...]

    @property
    def checks_nothing(self) -> bool:
        """Whether each group is empty, or has the empty text in it, which every text contains."""
        return not any(group and all(group) for group in self.groups)


class ResponseNotContains(EvaluatorSpec, kw_only=True):
    """No value is in the text, case-sensitive. Values may hold tokens."""

    type: Literal["responseNotContains"] = "responseNotContains"
    values: tuple[str, ...]

    @property
    def checks_nothing(self) -> bool:
        """Whether no value is forbidden."""
        return not self.values


class ResponseMatches(EvaluatorSpec, kw_only=True):
    """Every ECMAScript pattern finds something in the text (`new RegExp(pattern)`, no flags)."""

    type: Literal["responseMatches"] = "responseMatches"
    patterns: tuple[str, ...]

    @property
    def checks_nothing(self) -> bool:
        """Whether every pattern finds something in every text."""
        return all(matches_every_text(pattern) for pattern in self.patterns)


class MaxLatency(EvaluatorSpec, kw_only=True):
    """The wall clock, measured by us, stays within the limit (milliseconds)."""

    type: Literal["maxLatencyMs"] = "maxLatencyMs"
    limit_ms: float


class MaxTokens(EvaluatorSpec, kw_only=True):
    """The response is at most this many tokens long."""

    type: Literal["maxTokens"] = "maxTokens"
    limit: int


class NamedEvaluatorSpec(EvaluatorSpec, kw_only=True):
    """An evaluator that may have a name of its own: one case may have several of a type.

    `negate` turns its score round: what it finds must not be there. `floor` is the least that its score has to be;
    below it the whole case scores 0.
    """

    label: str | None = None
    negate: bool = False
    floor: Annotated[float, Meta(gt=0, le=1)] | None = None

    @property
    def name(self) -> str:
        """The evaluator's own name, where it has one."""
        return self.label or self.type


class LlmJudge(NamedEvaluatorSpec, kw_only=True):
    """A model grades the answer from 0 to 1 (AgentV); 1 passes. What it is shown stands in the case's `brief`.

    `prompt` is the text of an own template, already read from its file; None takes ours.
    """

    type: Literal["llm_judge"] = "llm_judge"
    prompt: str | None = None
    include_trace: bool = False
    judge_target: str | None = None
    """The target that grades; None takes the run's."""


class RubricCheck(Frozen, kw_only=True):
    """One thing that is satisfied or not. `required`: the case fails when it is not, whatever the others say."""

    id: Annotated[str, Meta(min_length=1)]
    description: str
    weight: Annotated[float, Meta(ge=0)] = 1.0
    required: bool = True


class RubricJudge(NamedEvaluatorSpec, kw_only=True):
    """A model says of every check whether the answer satisfies it (AgentV, `rubrics`); score is the weighted share."""

    type: Literal["llm_judge"] = "llm_judge"
    checks: Annotated[tuple[RubricCheck, ...], Meta(min_length=1)]
    judge_target: str | None = None


class CodeJudge(NamedEvaluatorSpec, kw_only=True):
    """A command grades: JSON about case and answer on stdin, a score on stdout (AgentV).

    `command` is one shell line, or a program with its arguments. `cwd` is absolute.
    """

    type: Literal["code_judge"] = "code_judge"
    command: str | tuple[str, ...]
    cwd: str
    timeout_seconds: float | None = None


class CodeGrader(CodeJudge, kw_only=True):
    """A command grades as today's AgentV asks it: with other names on stdin, and more ways to answer.

    `config` is what stands at the evaluator beside all that is known.
    """

    type: Literal["code_judge"] = "code_judge"
    config: dict[str, JsonValue] | None = None


class ToolTrajectory(NamedEvaluatorSpec, kw_only=True):
    """Which tools were called, and in which order (AgentV).

    `minimums` belong to `any_order`, `expected` to the other modes. The one that belongs to the mode must not be empty.
    """

    type: Literal["tool_trajectory"] = "tool_trajectory"
    mode: Literal["any_order", "in_order", "exact"]
    minimums: dict[str, int] = field(default_factory=dict)
    expected: tuple[str, ...] = ()

    @property
    def checks_nothing(self) -> bool:
        """Whether no call is asked for: each tool is to be called at least 0 times."""
        return self.mode == "any_order" and not self.negate and not any(self.minimums.values())


class WeightedAverage(Frozen, kw_only=True):
    """The members' weighted mean; a member without a weight of its own here counts 1."""

    type: Literal["weighted_average"] = "weighted_average"
    weights: dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = field(default_factory=dict)


class ThresholdAggregator(Frozen, kw_only=True):
    """The share of the members that pass, each at 0.8 of its score or more.

    As a member of another such whole, the whole itself passes when the share is `threshold` or more.
    """

    type: Literal["threshold"] = "threshold"
    threshold: Annotated[float, Meta(ge=0, le=1)]


class CodeAggregator(Frozen, kw_only=True):
    """A command makes one score of the members' results. `cwd` is absolute."""

    type: Literal["code_judge"] = "code_judge"
    command: str | tuple[str, ...]
    cwd: str


class JudgeAggregator(Frozen, kw_only=True):
    """A model makes one score of the members' results. `prompt` None takes ours."""

    type: Literal["llm_judge"] = "llm_judge"
    prompt: str | None = None
    judge_target: str | None = None


class Composite(NamedEvaluatorSpec, kw_only=True):
    """Several evaluators that count as one (AgentV)."""

    type: Literal["composite"] = "composite"
    members: Annotated[tuple[SerializeAsAny[EvaluatorSpec], ...], Meta(min_length=1)]
    aggregator: WeightedAverage | ThresholdAggregator | CodeAggregator | JudgeAggregator = WeightedAverage()

    @property
    def checks_nothing(self) -> bool:
        """Whether none of its members checks anything, and nobody else makes its score."""
        counted = isinstance(self.aggregator, WeightedAverage | ThresholdAggregator) and not self.negate
        return counted and all(member.checks_nothing for member in self.members)


class RubricDimension(Frozen, kw_only=True):
    """One thing a rubric looks at. `max_score` 1 is yes or no; `criteria` says what each score means."""

    name: Annotated[str, Meta(min_length=1)]
    max_score: Annotated[float, Meta(gt=0)]
    criteria: str

    @property
    def binary(self) -> bool:
        """Whether this is yes or no."""
        return self.max_score == 1


class Rubric(EvaluatorSpec, kw_only=True):
    """A model grades several dimensions of the answer at once (tool-forge, RubricEvalCase).

    `reference_data` is the truth the answer is compared with; None means there is none. A binary dimension needs its
    full score, a graded one at least the share `pass_at` of it: 0.6 takes 2 of 3, 3 of 4 and 3 of 5.
    """

    type: Literal["rubric"] = "rubric"
    dimensions: Annotated[tuple[RubricDimension, ...], Meta(min_length=1)]
    question: str
    reference_data: JsonValue = None
    pass_at: Annotated[float, Meta(ge=0, le=1)] = 0.6
