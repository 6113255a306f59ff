"""Pydantic models of an AgentV 4 eval file, where it differs from 1.6.

Source: AgentV 4.42.4, its schema of eval files and its documentation. What is declared here is read; of what is not,
`refusals` says in which words it is refused.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import AliasChoices, Field, JsonValue, SkipValidation

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

CRITERIA: Final = ("criteria", "expected_outcome")
OUTPUT: Final = ("expected_output",)
ASSERTIONS: Final = ("assertions", "assert", "evaluators")
"""Names of the list of assertions in a case or file, the one that counts first."""

Texts = Annotated[list[Text], Field(min_length=1)]
Limit = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class OneTextAssertion(AgentVEvaluator):
    """The answer holds a text, begins or ends with it, or is it."""

    type: str
    value: Text


class TextListAssertion(AgentVEvaluator):
    """The answer holds any or all of these texts."""

    type: str
    value: Texts


class RegexAssertion(AgentVEvaluator):
    """A JavaScript pattern finds something in the answer."""

    type: str
    value: Text
    flags: str = ""


class IsJsonAssertion(AgentVEvaluator):
    """The answer is JSON."""

    type: str


class RubricsAssertion(AgentVEvaluator):
    """A model says of every criterion whether the answer meets it."""

    type: str
    criteria: SkipValidation[list[AgentVCheck | str]] = Field(validation_alias=AliasChoices("criteria", "rubrics"))
    judge_target: Text | None = Field(default=None, validation_alias="target")


class SkillTriggerAssertion(AgentVEvaluator):
    """The agent made use of a skill, or did not."""

    type: str
    skill: Text
    should_trigger: bool = True


class LatencyAssertion(AgentVEvaluator):
    """The answer came within so many milliseconds."""

    type: str
    threshold: Limit


class CostAssertion(AgentVEvaluator):
    """The answer cost at most so many dollars."""

    type: str
    budget: Limit


class TokenUsageAssertion(AgentVEvaluator):
    """The answer took at most so many tokens."""

    type: str
    max_total: Limit | None = Field(default=None, validation_alias=AliasChoices("max_total", "maxTotal"))
    max_input: Limit | None = Field(default=None, validation_alias=AliasChoices("max_input", "maxInput"))
    max_output: Limit | None = Field(default=None, validation_alias=AliasChoices("max_output", "maxOutput"))


class ExecutionMetricsAssertion(AgentVEvaluator):
    """Limits of an execution; the score is the share that is kept."""

    type: str
    max_tool_calls: Limit | None = Field(default=None, validation_alias=AliasChoices("max_tool_calls", "maxToolCalls"))
    max_llm_calls: Limit | None = Field(default=None, validation_alias=AliasChoices("max_llm_calls", "maxLlmCalls"))
    max_tokens: Limit | None = Field(default=None, validation_alias=AliasChoices("max_tokens", "maxTokens"))
    max_cost_usd: Limit | None = Field(default=None, validation_alias=AliasChoices("max_cost_usd", "maxCostUsd"))
    max_duration_ms: Limit | None = Field(
        default=None, validation_alias=AliasChoices("max_duration_ms", "maxDurationMs")
    )


class AssertedField(AgentVFileModel):
    """One field that is compared."""

    path: Text
    match: Literal["exact", "numeric_tolerance", "date"]
    required: bool = True
    weight: Weight = 1.0
    tolerance: Limit = 0.0
    relative: bool = False
    formats: list[Text] | None = None


class FieldAccuracyAssertion(AgentVEvaluator):
    """Fields of an answer that is JSON are those of the expected output."""

    type: str
    fields: Annotated[list[AssertedField], Field(min_length=1)]
    aggregation: Literal["weighted_average", "all_or_nothing"] = "weighted_average"


class AgentV4ExpectedCall(AgentVFileModel):
    """One step of a trajectory."""

    tool: Text
    args: dict[str, JsonValue] | Literal["any"] | None = None
    args_match: Literal["exact", "superset", "subset", "ignore"] | Texts | None = Field(
        default=None, validation_alias=AliasChoices("args_match", "argsMatch")
    )
    max_duration_ms: Limit | None = Field(
        default=None, validation_alias=AliasChoices("max_duration_ms", "maxDurationMs")
    )


class ToolTrajectoryAssertion(AgentVEvaluator):
    """Which tools were called, with which arguments."""

    type: str
    mode: Literal["any_order", "in_order", "exact", "subset", "superset"]
    minimums: dict[Text, Count] | None = None
    expected: SkipValidation[list[AgentV4ExpectedCall] | None] = None
    args_match: Literal["exact", "superset", "subset", "ignore"] | Texts | None = Field(
        default=None, validation_alias=AliasChoices("args_match", "argsMatch")
    )


class CodeGraderAssertion(AgentVEvaluator):
    """A command grades. Keys that are not known are put before it as its `config`."""

    type: str
    command: SkipValidation[str | list[str]] = Field(validation_alias=AliasChoices("command", "script"))
    cwd: Text | None = None
    config: dict[str, JsonValue] | None = None


class AgentV4ThresholdAggregator(AgentVFileModel):
    """The share of the members that pass."""

    type: Literal["threshold"]
    threshold: Annotated[float, Field(ge=0, le=1)]


Assertions = list[str | dict[str, JsonValue]] | None
"""Declared for editors: each is read by its `type`."""


class AgentV4Execution(AgentVFileModel):
    """Who is asked, and how often."""

    target: Text | None = None
    targets: SkipValidation[list[JsonValue] | None] = None
    assertions: SkipValidation[Assertions] = Field(default=None, validation_alias=AliasChoices(*ASSERTIONS))
    skip_defaults: bool = False
    workers: JsonValue = Field(default=None, description="Not used: what is asked at once is set at the target.")
    cache: JsonValue = Field(default=None, description="Not used: every execution asks anew.")


class AgentV4Case(AgentVFileModel):
    """One case."""

    id: CaseId
    criteria: Text | None = Field(default=None, validation_alias=AliasChoices(*CRITERIA))
    input: SkipValidation[str | dict[str, JsonValue] | list[AgentVMessage]]
    input_files: Texts | None = None
    expected_output: SkipValidation[str | dict[str, JsonValue] | list[AgentVMessage] | None] = None
    conversation_id: str | None = None
    execution: SkipValidation[AgentV4Execution | None] = None
    assertions: SkipValidation[Assertions] = Field(default=None, validation_alias=AliasChoices(*ASSERTIONS))
    rubrics: SkipValidation[list[AgentVCheck | str] | None] = None
    metadata: dict[str, JsonValue] | None = None
    vars: dict[str, JsonValue] | None = None
    description: str | None = None
    tags: Tags | None = None


class AgentV4Suite(AgentVFileModel):
    """An eval file of today."""

    name: Text | None = None
    dataset: Text | None = None
    input: SkipValidation[JsonValue] = None
    input_files: Texts | None = None
    execution: SkipValidation[AgentV4Execution | None] = None
    target: Text | None = None
    assertions: SkipValidation[Assertions] = Field(default=None, validation_alias=AliasChoices(*ASSERTIONS))
    evaluator: str | None = None
    metadata: dict[str, JsonValue] | None = None
    tests: SkipValidation[str | list[AgentV4Case | str] | None] = Field(
        default=None, description="The cases; the name of a file or folder with them, or file:// names in the list."
    )
