"""Pydantic models of an AgentV 4 eval file, where it differs from 1.6.

Source: AgentV 4.42.4, its schema of eval files and its documentation. Only declared fields are read;
`unsupported_features` has the error messages for the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final, Literal

from pydantic import AliasChoices, BeforeValidator, ConfigDict, Field, JsonValue, SkipValidation

from eval_gate.formats.agentv.file_model import (
    AgentVCheck,
    AgentVEvaluator,
    AgentVFileModel,
    AgentVMessage,
    CaseId,
    Count,
    Tags,
    Text,
    Weight,
)
from eval_gate.formats.document_reader import MessageText, NumberText
from eval_gate.model.limits import TURNS
from eval_gate.model.specs.agentv import Metric

CRITERIA: Final = ("criteria", "expected_outcome")
OUTPUT: Final = "expected_output"
ASSERTIONS: Final = ("assertions", "assert", "evaluators")
"""Names of the list of assertions in a case or file, by precedence."""

Texts = Annotated[list[Text], Field(min_length=1)]
Limit = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class AssertionOnText(AgentVEvaluator):
    """Base of the assertions about the text of the response."""

    type: str


class OneTextAssertion(AssertionOnText):
    """The response contains, starts with, ends with or equals a text."""

    value: Text


class NumberAssertion(AssertionOnText):
    """The response contains a number, date or code, in whichever way it is written: an addition to AgentV's format."""

    value: NumberText


class TextListAssertion(AssertionOnText):
    """The response contains any or all of these texts."""

    value: Texts


class RegexAssertion(AssertionOnText):
    """A JavaScript pattern matches somewhere in the response."""

    value: Text
    flags: str = ""


class IsJsonAssertion(AssertionOnText):
    """The response is JSON."""


class RubricsAssertion(AgentVEvaluator):
    """A model decides for each criterion whether the response meets it."""

    type: str
    criteria: SkipValidation[list[AgentVCheck | str]] = Field(validation_alias=AliasChoices("criteria", "rubrics"))
    judge_target: Text | None = Field(default=None, validation_alias="target")


class SkillTriggerAssertion(AgentVEvaluator):
    """The agent used a skill, or did not."""

    type: str
    skill: Text
    should_trigger: bool = True


class AssertionOnMetrics(AgentVEvaluator):
    """Base of the assertions that limit what an execution takes."""

    type: str
    metrics: ClassVar[Mapping[str, Metric]]
    """The metric that each field limits."""


class LatencyAssertion(AssertionOnMetrics):
    """Maximum milliseconds of the response."""

    metrics: ClassVar = {"threshold": "ms"}
    threshold: Limit


class CostAssertion(AssertionOnMetrics):
    """Maximum cost of the response, in dollars."""

    metrics: ClassVar = {"budget": "cost"}
    budget: Limit


class TokenUsageAssertion(AssertionOnMetrics):
    """Maximum tokens of the response."""

    metrics: ClassVar = {"max_input": "input_tokens", "max_output": "output_tokens", "max_total": "tokens"}
    max_total: Limit | None = Field(default=None, validation_alias=AliasChoices("max_total", "maxTotal"))
    max_input: Limit | None = Field(default=None, validation_alias=AliasChoices("max_input", "maxInput"))
    max_output: Limit | None = Field(default=None, validation_alias=AliasChoices("max_output", "maxOutput"))


class ExecutionMetricsAssertion(AssertionOnMetrics):
    """Limits of an execution; the score is the share that holds."""

    metrics: ClassVar = {
        "max_tool_calls": "tool_calls",
        "max_llm_calls": "model_calls",
        "max_tokens": "tokens",
        "max_cost_usd": "cost",
        "max_duration_ms": "ms",
    }
    max_tool_calls: Limit | None = Field(default=None, validation_alias=AliasChoices("max_tool_calls", "maxToolCalls"))
    max_llm_calls: Limit | None = Field(default=None, validation_alias=AliasChoices("max_llm_calls", "maxLlmCalls"))
    max_tokens: Limit | None = Field(default=None, validation_alias=AliasChoices("max_tokens", "maxTokens"))
    max_cost_usd: Limit | None = Field(default=None, validation_alias=AliasChoices("max_cost_usd", "maxCostUsd"))
    max_duration_ms: Limit | None = Field(
        default=None, validation_alias=AliasChoices("max_duration_ms", "maxDurationMs")
    )


class AssertedField(AgentVFileModel):
    """One field to compare."""

    path: Text
    match: Literal["exact", "numeric_tolerance", "date"]
    required: bool = True
    weight: Weight = 1.0
    tolerance: Limit = 0.0
    relative: bool = False
    formats: list[Text] | None = None


class FieldAccuracyAssertion(AgentVEvaluator):
    """Fields of a JSON response match those of the expected output."""

    type: str
    fields: Annotated[list[AssertedField], Field(min_length=1)]
    aggregation: Literal["weighted_average", "all_or_nothing"] = "weighted_average"


class AgentV4ExpectedCall(AgentVFileModel):
    """One expected call of a trajectory."""

    tool: Text
    args: dict[str, JsonValue] | Literal["any"] | None = None
    args_match: Literal["exact", "superset", "subset", "ignore"] | Texts | None = Field(
        default=None, validation_alias=AliasChoices("args_match", "argsMatch")
    )
    max_duration_ms: Limit | None = Field(
        default=None, validation_alias=AliasChoices("max_duration_ms", "maxDurationMs")
    )


class ToolTrajectoryAssertion(AgentVEvaluator):
    """Expected tool calls with their arguments."""

    type: str
    mode: Literal["any_order", "in_order", "exact", "subset", "superset"]
    minimums: dict[Text, Count] | None = None
    expected: SkipValidation[list[AgentV4ExpectedCall] | None] = None
    args_match: Literal["exact", "superset", "subset", "ignore"] | Texts | None = Field(
        default=None, validation_alias=AliasChoices("args_match", "argsMatch")
    )


class CodeGraderAssertion(AgentVEvaluator):
    """A command scores the response. Unknown keys are passed to it as its `config`."""

    type: str
    command: SkipValidation[str | list[str]] = Field(validation_alias=AliasChoices("command", "script"))
    cwd: Text | None = None
    config: dict[str, JsonValue] | None = None


class AgentV4ThresholdAggregator(AgentVFileModel):
    """Share of the members that pass."""

    type: Literal["threshold"]
    threshold: Annotated[float, Field(ge=0, le=1)]


Assertions = list[str | dict[str, JsonValue]] | None
"""Declared for editors only: each assertion is read by its `type`."""


class AgentV4Trials(AgentVFileModel):
    """Attempts of each execution of a case, and how their scores are combined; with `passes`, they are executions."""

    passes: Annotated[int, Field(ge=1, le=100)] | None = Field(
        default=None, description="Number of the `count` executions that have to pass. Without a `strategy`."
    )
    count: Annotated[int, Field(ge=1, le=100)]
    strategy: Literal["pass_at_k", "mean", "confidence_interval"] = "pass_at_k"
    cost_limit_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        default=None, validation_alias=AliasChoices("cost_limit_usd", "costLimitUsd")
    )


class AgentV4Execution(AgentVFileModel):
    """Target, assertions, and the score from which a case passes."""

    target: Text | None = None
    targets: SkipValidation[list[JsonValue] | None] = None
    assertions: SkipValidation[Assertions] = Field(default=None, validation_alias=AliasChoices(*ASSERTIONS))
    skip_defaults: bool = False
    threshold: Annotated[float, Field(gt=0, le=1)] | None = None
    workers: JsonValue = Field(default=None, description="Ignored: set the concurrency at the target.")
    cache: JsonValue = Field(default=None, description="Ignored: every execution calls the target again.")


class AgentV4SuiteExecution(AgentV4Execution):
    """The same for all cases of a file, and their attempts."""

    trials: AgentV4Trials | None = None


class AgentV4Hook(AgentVFileModel):
    """Program that runs before or after cases."""

    command: SkipValidation[str | list[str] | None] = Field(
        default=None, validation_alias=AliasChoices("command", "script")
    )
    timeout_ms: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    cwd: Text | None = None
    reset: JsonValue = None


class AgentV4Hooks(AgentVFileModel):
    """Programs that prepare a workspace and look after it."""

    enabled: bool | None = None
    before_all: SkipValidation[AgentV4Hook | None] = None
    before_each: SkipValidation[AgentV4Hook | None] = None
    after_each: SkipValidation[AgentV4Hook | None] = None
    after_all: SkipValidation[AgentV4Hook | None] = None


class AgentV4Workspace(AgentVFileModel):
    """Folder in which the target works."""

    template: Text | None = Field(default=None, description="Folder that is copied into a fresh workspace.")
    isolation: Literal["shared", "per_test"] | None = None
    hooks: SkipValidation[AgentV4Hooks | None] = None
    mode: Literal["pooled", "temp", "static"] | None = Field(
        default=None, description="Ignored: every workspace is a fresh folder."
    )


def _refuse_structure(value: JsonValue) -> JsonValue:
    if not isinstance(value, dict | list):
        return value
    raise ValueError("the input of a turn is text: AgentV sends the JSON of anything else, and reads no files")


class AgentV4Turn(AgentVFileModel):
    """One message of the user in a conversation, and what is expected of the response to it."""

    input: Annotated[MessageText, BeforeValidator(_refuse_structure)]
    expected_output: SkipValidation[str | dict[str, JsonValue] | list[AgentVMessage] | None] = None
    assertions: SkipValidation[Assertions] = Field(default=None, validation_alias=AliasChoices(*ASSERTIONS))


_TEXT_MESSAGES: Final[JsonValue] = {
    "type": ["string", "array"],
    "items": {"properties": {"content": {"type": ["string", "null"]}}},
}


class AgentV4Case(AgentVFileModel):
    """One case of an AgentV 4 eval file."""

    model_config = ConfigDict(
        json_schema_extra={
            "dependentRequired": {
                "mode": ["turns"],
                **{key: ["mode"] for key in ("turns", "aggregation", "on_turn_failure", "window_size")},
            },
            "dependentSchemas": {
                "mode": {"properties": {"input": _TEXT_MESSAGES, "input_files": False, "expected_output": False}}
            },
        }
    )

    id: CaseId
    criteria: Text | None = Field(default=None, validation_alias=AliasChoices(*CRITERIA))
    input: SkipValidation[str | dict[str, JsonValue] | list[AgentVMessage]]
    input_files: Texts | None = None
    expected_output: SkipValidation[str | dict[str, JsonValue] | list[AgentVMessage] | None] = None
    conversation_id: str | None = None
    execution: SkipValidation[AgentV4Execution | None] = None
    assertions: SkipValidation[Assertions] = Field(default=None, validation_alias=AliasChoices(*ASSERTIONS))
    rubrics: SkipValidation[list[AgentVCheck | str] | None] = None
    workspace: SkipValidation[str | AgentV4Workspace | None] = None
    metadata: dict[str, JsonValue] | None = None
    vars: dict[str, JsonValue] | None = None
    mode: Literal["conversation"] = Field(default="conversation", description="The case has several turns.")
    turns: SkipValidation[Annotated[list[AgentV4Turn], Field(min_length=1, max_length=TURNS)] | None] = Field(
        default=None, description="Messages of a conversation, each sent after the response to the one before."
    )
    aggregation: Literal["mean", "min", "max"] = Field(
        default="mean", description="How the scores of the turns and of the whole become one."
    )
    on_turn_failure: Literal["continue", "stop"] = Field(
        default="continue", description="Whether further turns are sent after one that fails."
    )
    window_size: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="Exchanges, the newest last, that each request repeats; by default all."
    )
    description: str | None = None
    tags: Tags | None = None
    draft: bool = Field(default=False, description="Not reviewed yet: a run leaves the case out and names it.")


class AgentV4Suite(AgentVFileModel):
    """An AgentV 4 eval file."""

    name: Text | None = None
    dataset: Text | None = None
    input: SkipValidation[JsonValue] = None
    input_files: Texts | None = None
    execution: SkipValidation[AgentV4SuiteExecution | None] = None
    target: Text | None = None
    assertions: SkipValidation[Assertions] = Field(default=None, validation_alias=AliasChoices(*ASSERTIONS))
    evaluator: str | None = None
    workspace: SkipValidation[str | AgentV4Workspace | None] = Field(
        default=None, description="Folder in which the target works, or the name of a file that describes it."
    )
    metadata: dict[str, JsonValue] | None = None
    tests: SkipValidation[str | list[AgentV4Case | str] | None] = Field(
        default=None,
        description="List of cases, which may contain file:// names, or the name of a file or folder with cases.",
    )
