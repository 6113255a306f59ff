"""The one shape every eval format becomes before the engine sees it."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import Field, SerializeAsAny

from runner.model.base import Frozen, JsonValue
from runner.model.conversation import Message


class Tier(StrEnum):
    """What a suite is for (tool-forge contract)."""

    GOLDEN = "golden"
    LABELED = "labeled"
    REGRESSION = "regression"
    RUBRIC = "rubric"
    PERTURBATION = "perturbation"


class Aggregation(StrEnum):
    """How the evaluators' answers become one: a yes/no and a score."""

    FIRST_FAILURE = "first_failure"
    """In order, stop at the first failure; score 1 or 0 (tool-forge)."""


class Location(Frozen):
    """Where something stands in a file. `file` is POSIX style as given by the user, `line` counts from 1."""

    file: str
    line: int


class EvaluatorSpec(Frozen):
    """What is to be judged, as data. `runner.evaluators` knows how.

    `type` is the name people read in results and messages; for tool-forge it is the assertion's key.
    """

    type: str
    weight: float = 1.0

    @property
    def name(self) -> str:
        """The name in results."""
        return self.type


class ToolsCalled(EvaluatorSpec):
    """Exactly these tool names in this order, repeats included."""

    type: Literal["toolsCalled"] = "toolsCalled"
    names: tuple[str, ...]


class ToolsAcceptable(EvaluatorSpec):
    """The set of called names equals one of these sets; `NONE` (or an empty set) means no tool at all."""

    NONE: ClassVar[str] = "__none__"
    type: Literal["toolsAcceptable"] = "toolsAcceptable"
    sets: tuple[tuple[str, ...], ...]


class ToolsNotCalled(EvaluatorSpec):
    """None of these names was called."""

    type: Literal["toolsNotCalled"] = "toolsNotCalled"
    names: tuple[str, ...]


class ParamCheck(Frozen):
    """One parameter of the first call of one tool. `value` may hold tokens; it is absent for `exists`/`notExists`."""

    tool: str
    param_name: str
    assertion: Literal["equals", "contains", "oneOf", "exists", "notExists", "matches"]
    value: JsonValue = None


class ToolParams(EvaluatorSpec):
    """Every check holds."""

    type: Literal["toolParams"] = "toolParams"
    checks: tuple[ParamCheck, ...]


class NoToolErrors(EvaluatorSpec):
    """No called tool failed; what that means depends on how the case is run (contract, section 3)."""

    type: Literal["noToolErrors"] = "noToolErrors"


class ResponseNonEmpty(EvaluatorSpec):
    """The text is not blank."""

    type: Literal["responseNonEmpty"] = "responseNonEmpty"


class ResponseContains(EvaluatorSpec):
    """Every value is in the text, case-sensitive. Values may hold tokens."""

    type: Literal["responseContains"] = "responseContains"
    values: tuple[str, ...]


class ResponseContainsAny(EvaluatorSpec):
    """Of every group at least one member is in the text, case-sensitive. Members may hold tokens."""

    type: Literal["responseContainsAny"] = "responseContainsAny"
    groups: tuple[tuple[str, ...], ...]


class ResponseNotContains(EvaluatorSpec):
    """No value is in the text, case-sensitive. Values may hold tokens."""

    type: Literal["responseNotContains"] = "responseNotContains"
    values: tuple[str, ...]


class ResponseMatches(EvaluatorSpec):
    """Every ECMAScript pattern finds something in the text (`new RegExp(pattern)`, no flags)."""

    type: Literal["responseMatches"] = "responseMatches"
    patterns: tuple[str, ...]


class MaxLatency(EvaluatorSpec):
    """The wall clock, measured by us, stays within the limit (milliseconds)."""

    type: Literal["maxLatencyMs"] = "maxLatencyMs"
    limit_ms: float


class MaxTokens(EvaluatorSpec):
    """The response is at most this many tokens long."""

    type: Literal["maxTokens"] = "maxTokens"
    limit: int


class LlmJudge(EvaluatorSpec):
    """A model grades the answer from 0 to 1 (AgentV); 1 passes.

    `label` is the evaluator's own name. `prompt` is the text of an own template, already read from its file; None takes
    ours. `reference_answer` None means the case has none. The messages are what own templates may show, as JSON.
    """

    type: Literal["llm_judge"] = "llm_judge"
    label: str | None = None
    expected_outcome: str
    question: str
    reference_answer: str | None = None
    input_messages: JsonValue = None
    expected_messages: JsonValue = None
    prompt: str | None = None
    include_trace: bool = False
    judge_target: str | None = None
    """The target that grades; None takes the run's."""

    @property
    def name(self) -> str:
        """The evaluator's own name, where it has one."""
        return self.label or self.type


class RubricDimension(Frozen):
    """One thing a rubric looks at. `max_score` 1 is yes or no; `criteria` says what each score means."""

    name: str = Field(min_length=1)
    max_score: float = Field(gt=0, allow_inf_nan=False)
    criteria: str

    @property
    def binary(self) -> bool:
        """Whether this is yes or no."""
        return self.max_score == 1


class Rubric(EvaluatorSpec):
    """A model grades several dimensions of the answer at once (tool-forge, RubricEvalCase).

    `reference_data` is the truth the answer is compared with; None means there is none. A binary dimension needs its
    full score, a graded one at least the share `pass_at` of it: 0.6 takes 2 of 3, 3 of 4 and 3 of 5.
    """

    type: Literal["rubric"] = "rubric"
    dimensions: tuple[RubricDimension, ...] = Field(min_length=1)
    question: str
    reference_data: JsonValue = None
    pass_at: float = Field(0.6, ge=0, le=1)


class EvalCase(Frozen):
    """One test: messages to send, evaluators in order, and how their answers are joined.

    `skip_reason` set means the case cannot be run as things are: it is reported as `skipped`, never as a pass.
    `stubs` None means none were given; an empty mapping is stub mode (presence decides).
    `fingerprint` is the SHA-256 of what is asked and expected: equal fingerprints may be compared.
    """

    id: str
    description: str = ""
    messages: tuple[Message, ...]
    evaluators: tuple[SerializeAsAny[EvaluatorSpec], ...] = ()
    aggregation: Aggregation = Aggregation.FIRST_FAILURE
    difficulty: str | None = None
    tags: tuple[str, ...] = ()
    stubs: dict[str, JsonValue] | None = None
    max_turns: int = 5
    timeout_ms: int | None = None
    skip_reason: str | None = None
    location: Location
    fingerprint: str
    warnings: tuple[str, ...] = ()


class SuiteMetadata(Frozen):
    """What the eval file says it was generated for. A missing fact is None and its check is not done."""

    tool_version: str | None = None
    description_hash: str | None = None
    registry_size: int | None = None


class EvalSuite(Frozen):
    """One eval file. `file_hash` is the SHA-256 of its bytes, first 12 hex digits.

    `metadata` None means the file carries none: staleness is not checked.
    `warnings` hold sentences for people about the file as a whole and about its cases.
    """

    file: str
    format: Literal["tool-forge", "agentv", "agent-evals"]
    tool_name: str
    tier: Tier | None
    metadata: SuiteMetadata | None = None
    file_hash: str
    cases: tuple[EvalCase, ...]
    warnings: tuple[str, ...] = ()
