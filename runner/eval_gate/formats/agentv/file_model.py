"""Pydantic models of an AgentV 1.6 eval file, for reading, error messages and the JSON Schema.

Source: agentv behaviour 1.1 to 1.6 and 6. The first name of each field is that of the specification, followed by those
of later versions. Lists of parts are declared for editors only (`SkipValidation`): each part is read separately, so
that a mistake in one hides none in another.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, cast

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, SkipValidation

from eval_gate.formats.agentv.detection import CASE_LIST_NAMES

OUTCOME: Final = ("expected_outcome", "outcome", "criteria")
INPUT: Final = ("input_messages", "input")
EXPECTED: Final = ("expected_messages", "expected_output")
EVALUATORS: Final = ("evaluators", "assertions", "assert")
LLM_JUDGE: Final = ("llm_judge", "llm-judge", "llm-grader", "llm-rubric")
CODE_JUDGE: Final = ("code_judge", "code-judge", "script")
CODE_GRADER: Final = "code-grader"
TOOL_TRAJECTORY: Final = ("tool_trajectory", "tool-trajectory")
COMMAND: Final = ("script", "command")
AGGREGATOR_COMMAND: Final = ("path", *COMMAND)

AnyJson = SkipValidation[JsonValue]
"""Any JSON value. It is not validated again: it was parsed from JSON or YAML, and validating each part again takes
seconds for a malicious file."""
Role = Literal["system", "user", "assistant", "tool"]
Text = Annotated[str, Field(min_length=1)]
CaseId = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(gt=0, le=1)]


class AgentVFileModel(BaseModel):
    """Strict base model: a string is neither a list nor a number. Unknown keys are kept, for warnings."""

    model_config = ConfigDict(frozen=True, strict=True, extra="allow", defer_build=True)


def as_raw_json(part: object) -> JsonValue:
    """Return a part that the model only declares, as the raw JSON of the file."""
    return cast("JsonValue", part)


class AgentVPart(AgentVFileModel):
    """One part of a message: text, or the path of a file."""

    type: Literal["text", "file"]
    value: str = Field(description="Text, or the path of a file near the eval file.")


class AgentVCall(AgentVFileModel):
    """An expected tool call."""

    tool: Text
    input: AnyJson = None
    output: AnyJson = None
    id: str | None = None
    timestamp: str | None = None


class AgentVMessage(AgentVFileModel):
    """One message: text, a list of parts, or an object that is sent as JSON."""

    role: Role
    content: SkipValidation[str | list[AgentVPart] | dict[str, JsonValue] | None] = None
    tool_calls: SkipValidation[list[AgentVCall] | None] = Field(
        default=None,
        validation_alias=AliasChoices("tool_calls", "toolCalls"),
        description="Expected tool calls, in expected messages.",
    )
    name: str | None = None


class AgentVCheck(AgentVFileModel):
    """One check that a judge decides."""

    id: CaseId | None = None
    description: Text = Field(validation_alias=AliasChoices("description", *OUTCOME))
    weight: Weight = 1.0
    required: bool = Field(default=True, description="Whether the evaluator fails if the check is not satisfied.")


class AgentVEvaluator(AgentVFileModel):
    """Fields of all evaluators."""

    name: Text | None = None
    weight: Weight = Field(
        default=1.0, description="Weight of its score in the mean; a score with weight 0 is stored but does not count."
    )
    negate: bool = Field(default=False, description="Inverts the score: what it finds must not be in the response.")
    required: bool | Share = Field(
        default=False,
        description="With true, the case scores 0 if the evaluator scores below min_score; a number is that minimum.",
    )
    min_score: Share | None = Field(default=None, description="Minimum score of a required evaluator; 0.8 by default.")


class AgentVLlmJudge(AgentVEvaluator):
    """A model scores the response."""

    type: Literal["llm_judge", "llm-judge", "llm-grader", "llm-rubric"]
    prompt: Text | None = Field(
        default=None, description="Custom prompt: a file near the eval file, or the text itself."
    )
    rubrics: SkipValidation[list[AgentVCheck | str] | None] = None
    include_trace: bool = Field(default=False, validation_alias=AliasChoices("include_trace", "includeTrace"))
    judge_target: Text | None = Field(
        default=None, validation_alias=AliasChoices("judge_target", "judgeTarget", "target")
    )
    model: AnyJson = Field(default=None, description="Ignored: name a target in judge_target.")


class AgentVCodeJudge(AgentVEvaluator):
    """A command scores the response: JSON on stdin, a score on stdout."""

    type: Literal["code_judge", "code-judge", "script"]
    script: SkipValidation[str | list[str]] = Field(
        validation_alias=AliasChoices(*COMMAND), description="A shell line, or a program and its arguments."
    )
    cwd: Text | None = Field(
        default=None, description="Folder of the command, relative to the eval file; by default the eval file's folder."
    )
    timeout_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        default=None, validation_alias=AliasChoices("timeout_seconds", "timeoutSeconds")
    )


class AgentVExpectedCall(AgentVFileModel):
    """One expected call of a trajectory. Arguments are allowed but not compared."""

    tool: Text
    args: AnyJson = None


class AgentVToolTrajectory(AgentVEvaluator):
    """Expected tool calls."""

    type: Literal["tool_trajectory", "tool-trajectory"]
    mode: Literal["any_order", "in_order", "exact"]
    minimums: dict[Text, Count] | None = Field(default=None, description="Minimum calls of each tool; for any_order.")
    expected: SkipValidation[list[AgentVExpectedCall] | None] = Field(
        default=None, description="Expected calls in order; for in_order and exact."
    )


class AgentVWeightedAverage(AgentVFileModel):
    """Weighted mean of the members' scores, with weights by name."""

    type: Literal["weighted_average"]
    weights: dict[str, Weight] = Field(default_factory=dict)


class AgentVCodeAggregator(AgentVFileModel):
    """A command combines the members' results into one score."""

    type: Literal["code_judge", "code-judge", "script", "code-grader"]
    path: SkipValidation[str | list[str]] = Field(
        validation_alias=AliasChoices(*AGGREGATOR_COMMAND),
        description="A shell line, or a program and its arguments.",
    )
    cwd: Text | None = None


class AgentVJudgeAggregator(AgentVFileModel):
    """A model combines the members' results into one score."""

    type: Literal["llm_judge", "llm-judge", "llm-grader", "llm-rubric"]
    prompt: Text | None = Field(
        default=None, description="Prompt with {{EVALUATOR_RESULTS_JSON}}: a file, or the text itself."
    )
    judge_target: Text | None = Field(
        default=None, validation_alias=AliasChoices("judge_target", "judgeTarget", "target")
    )
    model: AnyJson = None


Aggregator = AgentVWeightedAverage | AgentVCodeAggregator | AgentVJudgeAggregator


class AgentVComposite(AgentVEvaluator):
    """Several evaluators combined into one."""

    type: Literal["composite"]
    evaluators: SkipValidation[list[AnyEvaluator] | None] = Field(
        default=None, validation_alias=AliasChoices(*EVALUATORS)
    )
    aggregator: SkipValidation[Aggregator | None] = None


AnyEvaluator = AgentVLlmJudge | AgentVCodeJudge | AgentVToolTrajectory | AgentVComposite


class AgentVExecution(AgentVFileModel):
    """Target and evaluators."""

    target: Text | None = None
    evaluators: SkipValidation[list[AnyEvaluator] | None] = Field(
        default=None, validation_alias=AliasChoices(*EVALUATORS)
    )


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


Tags = Annotated[list[Text], BeforeValidator(_as_list, json_schema_input_type=str | list[Text])]


class AgentVCase(AgentVFileModel):
    """One case of an AgentV eval file."""

    id: CaseId
    expected_outcome: Text = Field(
        validation_alias=AliasChoices(*OUTCOME), description="What a good response achieves; the criteria of the judge."
    )
    input_messages: SkipValidation[str | list[AgentVMessage]] = Field(
        validation_alias=AliasChoices(*INPUT), description="The conversation sent to the target, or one text."
    )
    expected_messages: SkipValidation[str | list[AgentVMessage] | None] = Field(
        default=None,
        validation_alias=AliasChoices(*EXPECTED),
        description="A good response; the last message is the reference.",
    )
    conversation_id: str | None = None
    execution: SkipValidation[AgentVExecution | None] = None
    evaluators: SkipValidation[list[AnyEvaluator] | None] = Field(
        default=None, validation_alias=AliasChoices(*EVALUATORS)
    )
    rubrics: SkipValidation[list[AgentVCheck | str] | None] = Field(
        default=None, description="Checks for a judge, placed first."
    )
    description: str | None = None
    tags: Tags | None = None
    draft: bool = Field(default=False, description="Not reviewed yet: a run leaves the case out and names it.")
    note: AnyJson = Field(default=None, description="For people; ignored.")


class AgentVSuite(AgentVFileModel):
    """An AgentV eval file."""

    schema_marker: AnyJson = Field(default=None, validation_alias="$schema")
    description: AnyJson = Field(default=None, description="For people; ignored.")
    dataset: Text | None = Field(default=None, description="Name in results; the file's name by default.")
    execution: SkipValidation[AgentVExecution | None] = None
    target: Text | None = Field(default=None, description="Older form of execution.target.")
    evaluator: str | None = Field(default=None, description="Kind of the default evaluator: llm_judge.")
    cases: SkipValidation[list[AgentVCase]] = Field(
        default_factory=list, validation_alias=AliasChoices(*CASE_LIST_NAMES), min_length=1
    )


AgentVComposite.model_rebuild()
