"""The AgentV eval file as it is written: one declaration for reading, for error messages and for editors.

Source: agentv behaviour 1.1 to 1.6 and 6. Every field has the spec's name first, then the names that later versions
gave it. Lists of parts are declared for editors only (`SkipValidation`): each part is read by itself, so that a mistake
in one hides none in another.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, cast

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, SkipValidation

from eval_gate.formats.agentv.recognising import NAMES

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

Free = SkipValidation[JsonValue]
"""Anything at all. The text it was read from has only what JSON has: to look at each of its parts again takes seconds
where somebody means harm."""
Role = Literal["system", "user", "assistant", "tool"]
Text = Annotated[str, Field(min_length=1)]
CaseId = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(gt=0, le=1)]


class Wire(BaseModel):
    """Strict: a text is no list and no number. Unknown keys are kept, to be warned about with the nearest name."""

    model_config = ConfigDict(frozen=True, strict=True, extra="allow", defer_build=True)


def raw(part: object) -> JsonValue:
    """A part that was declared and not yet read: what stands in the file."""
    return cast("JsonValue", part)


class Part(Wire):
    """One part of a message: a text, or the path of a file."""

    type: Literal["text", "file"]
    value: str = Field(description="The text, or the path of a file near the eval file.")


class Call(Wire):
    """A tool call that is expected."""

    tool: Text
    input: Free = None
    output: Free = None
    id: str | None = None
    timestamp: str | None = None


class Message(Wire):
    """One message: a text, a list of parts, or an object that is sent as JSON."""

    role: Role
    content: SkipValidation[str | list[Part] | dict[str, JsonValue] | None] = None
    tool_calls: SkipValidation[list[Call] | None] = Field(
        default=None, validation_alias=AliasChoices("tool_calls", "toolCalls"), description="For expected messages."
    )
    name: str | None = None


class Check(Wire):
    """One thing that a judge calls satisfied or not."""

    id: CaseId | None = None
    description: Text = Field(validation_alias=AliasChoices("description", *OUTCOME))
    weight: Weight = 1.0
    required: bool = Field(default=True, description="The evaluator fails when it is not satisfied.")


class Evaluator(Wire):
    """What every kind of evaluator has."""

    name: Text | None = None
    weight: Weight = Field(default=1.0, description="What its score counts in the mean; 0 is recorded and not counted.")
    negate: bool = Field(default=False, description="Its score is turned round: what it finds must not be there.")
    required: bool | Share = Field(default=False, description="The case scores 0 when it does not reach min_score.")
    min_score: Share | None = Field(default=None, description="What a required evaluator has to reach; 0.8 by default.")


class LlmJudge(Evaluator):
    """A model grades the answer."""

    type: Literal["llm_judge", "llm-judge", "llm-grader", "llm-rubric"]
    prompt: Text | None = Field(
        default=None, description="An own prompt: a file near the eval file, or the text itself."
    )
    rubrics: SkipValidation[list[Check | str] | None] = None
    include_trace: bool = Field(default=False, validation_alias=AliasChoices("include_trace", "includeTrace"))
    judge_target: Text | None = Field(
        default=None, validation_alias=AliasChoices("judge_target", "judgeTarget", "target")
    )
    model: Free = Field(default=None, description="Not used: name a target in judge_target.")


class CodeJudge(Evaluator):
    """A command grades the answer: JSON on stdin, a score on stdout."""

    type: Literal["code_judge", "code-judge", "script"]
    script: SkipValidation[str | list[str]] = Field(
        validation_alias=AliasChoices(*COMMAND), description="A shell line, or a program and its arguments."
    )
    cwd: Text | None = Field(default=None, description="Relative to the eval file; the eval file's folder by default.")
    timeout_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        default=None, validation_alias=AliasChoices("timeout_seconds", "timeoutSeconds")
    )


class ExpectedCall(Wire):
    """One step of a trajectory. Arguments may be given and are not compared."""

    tool: Text
    args: Free = None


class ToolTrajectory(Evaluator):
    """Which tools were called."""

    type: Literal["tool_trajectory", "tool-trajectory"]
    mode: Literal["any_order", "in_order", "exact"]
    minimums: dict[Text, Count] | None = Field(default=None, description="Calls of each tool at least; for any_order.")
    expected: SkipValidation[list[ExpectedCall] | None] = Field(
        default=None, description="The calls in their order; for in_order and exact."
    )


class WeightedAverage(Wire):
    """The members' weighted mean, weights by name."""

    type: Literal["weighted_average"]
    weights: dict[str, Weight] = Field(default_factory=dict)


class CodeAggregator(Wire):
    """A command makes one score of the members' results."""

    type: Literal["code_judge", "code-judge", "script", "code-grader"]
    path: SkipValidation[str | list[str]] = Field(
        validation_alias=AliasChoices(*AGGREGATOR_COMMAND),
        description="A shell line, or a program and its arguments.",
    )
    cwd: Text | None = None


class JudgeAggregator(Wire):
    """A model makes one score of the members' results."""

    type: Literal["llm_judge", "llm-judge", "llm-grader", "llm-rubric"]
    prompt: Text | None = Field(default=None, description="A file or the text itself, with {{EVALUATOR_RESULTS_JSON}}.")
    judge_target: Text | None = Field(
        default=None, validation_alias=AliasChoices("judge_target", "judgeTarget", "target")
    )
    model: Free = None


Aggregator = WeightedAverage | CodeAggregator | JudgeAggregator


class Composite(Evaluator):
    """Several evaluators that count as one."""

    type: Literal["composite"]
    evaluators: SkipValidation[list[AnyEvaluator] | None] = Field(
        default=None, validation_alias=AliasChoices(*EVALUATORS)
    )
    aggregator: SkipValidation[Aggregator | None] = None


AnyEvaluator = LlmJudge | CodeJudge | ToolTrajectory | Composite


class Execution(Wire):
    """Who is asked, and who judges."""

    target: Text | None = None
    evaluators: SkipValidation[list[AnyEvaluator] | None] = Field(
        default=None, validation_alias=AliasChoices(*EVALUATORS)
    )


def _listed(value: object) -> object:
    """One text as a list of one."""
    return [value] if isinstance(value, str) else value


Tags = Annotated[list[Text], BeforeValidator(_listed, json_schema_input_type=str | list[Text])]


class Case(Wire):
    """One case."""

    id: CaseId
    expected_outcome: Text = Field(
        validation_alias=AliasChoices(*OUTCOME), description="What a good answer achieves; the judge's yardstick."
    )
    input_messages: SkipValidation[str | list[Message]] = Field(
        validation_alias=AliasChoices(*INPUT), description="The conversation put to the target, or one text."
    )
    expected_messages: SkipValidation[str | list[Message] | None] = Field(
        default=None,
        validation_alias=AliasChoices(*EXPECTED),
        description="A good answer; the last message is the reference.",
    )
    conversation_id: str | None = None
    execution: SkipValidation[Execution | None] = None
    evaluators: SkipValidation[list[AnyEvaluator] | None] = Field(
        default=None, validation_alias=AliasChoices(*EVALUATORS)
    )
    rubrics: SkipValidation[list[Check | str] | None] = Field(
        default=None, description="Checks for a judge, put first."
    )
    description: str | None = None
    tags: Tags | None = None
    note: Free = Field(default=None, description="For people; not read.")


class Suite(Wire):
    """An AgentV eval file."""

    schema_marker: Free = Field(default=None, validation_alias="$schema")
    description: Free = Field(default=None, description="For people; not read.")
    dataset: Text | None = Field(default=None, description="The name in results; the file's name by default.")
    execution: SkipValidation[Execution | None] = None
    target: Text | None = Field(default=None, description="The older form of execution.target.")
    evaluator: str | None = Field(default=None, description="The kind of the default evaluator: llm_judge.")
    cases: SkipValidation[list[Case]] = Field(default_factory=list, validation_alias=AliasChoices(*NAMES), min_length=1)


Composite.model_rebuild()
