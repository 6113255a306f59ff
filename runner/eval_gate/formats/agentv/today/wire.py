"""The eval file of today's AgentV as it is written, where it differs from the one of 1.6.

Source: AgentV 4.42.4, its schema of eval files and its documentation. What is declared here is read; of what is not,
`refusals` says in which words it is refused.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import AliasChoices, Field, JsonValue, SkipValidation

from eval_gate.formats.agentv.wire import CaseId, Check, Count, Evaluator, Message, Tags, Text, Weight, Wire

CRITERIA: Final = ("criteria", "expected_outcome")
OUTPUT: Final = ("expected_output",)
ASSERTIONS: Final = ("assertions", "assert", "evaluators")
"""Names of the list of assertions in a case or file, the one that counts first."""

Texts = Annotated[list[Text], Field(min_length=1)]
Limit = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class OneText(Evaluator):
    """The answer holds a text, begins or ends with it, or is it."""

    type: str
    value: Text


class SeveralTexts(Evaluator):
    """The answer holds any or all of these texts."""

    type: str
    value: Texts


class Regex(Evaluator):
    """A JavaScript pattern finds something in the answer."""

    type: str
    value: Text
    flags: str = ""


class IsJson(Evaluator):
    """The answer is JSON."""

    type: str


class Rubrics(Evaluator):
    """A model says of every criterion whether the answer meets it."""

    type: str
    criteria: SkipValidation[list[Check | str]] = Field(validation_alias=AliasChoices("criteria", "rubrics"))
    judge_target: Text | None = Field(default=None, validation_alias="target")


class SkillTrigger(Evaluator):
    """The agent made use of a skill, or did not."""

    type: str
    skill: Text
    should_trigger: bool = True


class Latency(Evaluator):
    """The answer came within so many milliseconds."""

    type: str
    threshold: Limit


class Cost(Evaluator):
    """The answer cost at most so many dollars."""

    type: str
    budget: Limit


class TokenUsage(Evaluator):
    """The answer took at most so many tokens."""

    type: str
    max_total: Limit | None = Field(default=None, validation_alias=AliasChoices("max_total", "maxTotal"))
    max_input: Limit | None = Field(default=None, validation_alias=AliasChoices("max_input", "maxInput"))
    max_output: Limit | None = Field(default=None, validation_alias=AliasChoices("max_output", "maxOutput"))


class ExecutionMetrics(Evaluator):
    """Limits of an execution; the score is the share that is kept."""

    type: str
    max_tool_calls: Limit | None = Field(default=None, validation_alias=AliasChoices("max_tool_calls", "maxToolCalls"))
    max_llm_calls: Limit | None = Field(default=None, validation_alias=AliasChoices("max_llm_calls", "maxLlmCalls"))
    max_tokens: Limit | None = Field(default=None, validation_alias=AliasChoices("max_tokens", "maxTokens"))
    max_cost_usd: Limit | None = Field(default=None, validation_alias=AliasChoices("max_cost_usd", "maxCostUsd"))
    max_duration_ms: Limit | None = Field(
        default=None, validation_alias=AliasChoices("max_duration_ms", "maxDurationMs")
    )


class FieldOfAnswer(Wire):
    """One field that is compared."""

    path: Text
    match: Literal["exact", "numeric_tolerance", "date"]
    required: bool = True
    weight: Weight = 1.0
    tolerance: Limit = 0.0
    relative: bool = False
    formats: list[Text] | None = None


class FieldAccuracy(Evaluator):
    """Fields of an answer that is JSON are those of the expected output."""

    type: str
    fields: Annotated[list[FieldOfAnswer], Field(min_length=1)]
    aggregation: Literal["weighted_average", "all_or_nothing"] = "weighted_average"


class ExpectedCall(Wire):
    """One step of a trajectory."""

    tool: Text
    args: dict[str, JsonValue] | Literal["any"] | None = None
    args_match: Literal["exact", "superset", "subset", "ignore"] | Texts | None = Field(
        default=None, validation_alias=AliasChoices("args_match", "argsMatch")
    )
    max_duration_ms: Limit | None = Field(
        default=None, validation_alias=AliasChoices("max_duration_ms", "maxDurationMs")
    )


class ToolTrajectory(Evaluator):
    """Which tools were called, with which arguments."""

    type: str
    mode: Literal["any_order", "in_order", "exact", "subset", "superset"]
    minimums: dict[Text, Count] | None = None
    expected: SkipValidation[list[ExpectedCall] | None] = None
    args_match: Literal["exact", "superset", "subset", "ignore"] | Texts | None = Field(
        default=None, validation_alias=AliasChoices("args_match", "argsMatch")
    )


class CodeGrader(Evaluator):
    """A command grades. Keys that are not known are put before it as its `config`."""

    type: str
    command: SkipValidation[str | list[str]] = Field(validation_alias=AliasChoices("command", "script"))
    cwd: Text | None = None
    config: dict[str, JsonValue] | None = None


class Threshold(Wire):
    """The share of the members that pass."""

    type: Literal["threshold"]
    threshold: Annotated[float, Field(ge=0, le=1)]


Assertions = list[str | dict[str, JsonValue]] | None
"""Declared for editors: each is read by its `type`."""


class Execution(Wire):
    """Who is asked, and how often."""

    target: Text | None = None
    targets: SkipValidation[list[JsonValue] | None] = None
    assertions: SkipValidation[Assertions] = Field(default=None, validation_alias=AliasChoices(*ASSERTIONS))
    skip_defaults: bool = False
    workers: JsonValue = Field(default=None, description="Not used: what is asked at once is set at the target.")
    cache: JsonValue = Field(default=None, description="Not used: every execution asks anew.")


class Case(Wire):
    """One case."""

    id: CaseId
    criteria: Text | None = Field(default=None, validation_alias=AliasChoices(*CRITERIA))
    input: SkipValidation[str | dict[str, JsonValue] | list[Message]]
    input_files: Texts | None = None
    expected_output: SkipValidation[str | dict[str, JsonValue] | list[Message] | None] = None
    conversation_id: str | None = None
    execution: SkipValidation[Execution | None] = None
    assertions: SkipValidation[Assertions] = Field(default=None, validation_alias=AliasChoices(*ASSERTIONS))
    rubrics: SkipValidation[list[Check | str] | None] = None
    metadata: dict[str, JsonValue] | None = None
    vars: dict[str, JsonValue] | None = None
    description: str | None = None
    tags: Tags | None = None


class Suite(Wire):
    """An eval file of today."""

    name: Text | None = None
    dataset: Text | None = None
    input: SkipValidation[JsonValue] = None
    input_files: Texts | None = None
    execution: SkipValidation[Execution | None] = None
    target: Text | None = None
    assertions: SkipValidation[Assertions] = Field(default=None, validation_alias=AliasChoices(*ASSERTIONS))
    evaluator: str | None = None
    metadata: dict[str, JsonValue] | None = None
    tests: SkipValidation[str | list[Case | str] | None] = Field(
        default=None, description="The cases; the name of a file or folder with them, or file:// names in the list."
    )
