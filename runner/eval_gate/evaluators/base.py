"""Interfaces of the evaluators: context, scores, judges and errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import ClassVar, Protocol, TypeAlias

from eval_gate.evaluators.wording import truncate
from eval_gate.model.base import JsonValue
from eval_gate.model.case import EvalCase
from eval_gate.model.conversation import Message, Response
from eval_gate.model.execution import ErrorCause, ErrorKind, EvaluatorResult
from eval_gate.model.result import TraceSummary
from eval_gate.model.specs.evaluator import EvaluatorSpec
from eval_gate.model.usage import Usage
from eval_gate.process.captured_output import Mask
from eval_gate.process.environment import WithheldVariables
from eval_gate.struct import FrozenStruct, field, replace
from eval_gate.text.javascript.regex import PatternMatcher
from eval_gate.text.tokens import TokenData
from eval_gate.text.turns import format_content, format_transcript


class JudgeReply(FrozenStruct):
    """A reply of an LLM judge. `cost_usd` is None where it is not known."""

    text: str
    usage: Usage | None = None
    cost_usd: float | None = None
    model: str | None = None


class Judge(Protocol):
    """An LLM judge. Retries, caching and pacing are hidden behind it."""

    async def ask(self, system: str, user: str, schema: Mapping[str, JsonValue] | None = None) -> JudgeReply:
        """Send one request; if the provider supports it, the reply must have this JSON Schema.

        A reply may be of any other form all the same.
        Raises EvaluatorError when the judge cannot be reached or refuses: that is no bad grade.
        """
        ...


class WorkspaceState(FrozenStruct):
    """Workspace of an execution as evaluators see it: its folder, and what changed in it as a unified diff.

    `changes` is None if nothing changed, or if that is not known. `problem` then says why.
    """

    path: str
    changes: str | None = None
    problem: str | None = None


class EvaluationContext(FrozenStruct):
    """The inputs of an evaluator: case, response and what the run shares."""

    case: EvalCase
    response: Response
    tokens: TokenData
    patterns: PatternMatcher
    judge: Judge | None = None
    """The default judge, for evaluators that name none; None if none is configured."""
    judges: Mapping[str, Judge] = field(default_factory=dict)
    """Judges by target name, for evaluators with a `judge_target`."""
    environment: Mapping[str, str] = field(default_factory=dict)
    withheld_variables: WithheldVariables = field(default_factory=WithheldVariables)
    """Variables withheld from grader commands, to explain a failure by them."""
    mask: Mask | None = None
    """Mask for secrets in the output of grader commands."""
    workspace: WorkspaceState | None = None
    """The folder in which the target worked; None if the case has none."""
    history: tuple[Message, ...] = ()
    """Messages of the conversation, with the response; empty for a case with one request."""

    @property
    def transcript(self) -> str:
        """Messages of the conversation as text for LLM judges."""
        return format_transcript(self.history)

    @property
    def _scores_whole(self) -> bool:
        """Whether a whole conversation is scored, and not a turn, or a response without the messages before it."""
        return self.case.conversation is not None and bool(self.history)

    @property
    def judged_response(self) -> Response:
        """Response that LLM judges see: where they score a whole conversation, its text is the transcript."""
        return replace(self.response, text=self.transcript) if self._scores_whole else self.response

    @property
    def response_texts(self) -> tuple[str, ...]:
        """Texts of all responses that are scored: of a whole conversation, or the one."""
        if not self._scores_whole:
            return (self.response.text,)
        added = self.history[len(self.case.messages) :]
        return tuple(format_content(message.content) for message in added if message.role == "assistant")

    def get_changes(self, name: str) -> str | None:
        """Return what changed in the workspace, if there is one. Raises EvaluatorError if that is not known."""
        if self.workspace is None:
            return None
        if self.workspace.problem is not None:
            message = f"the changes in the workspace are not known: {self.workspace.problem}"
            raise EvaluatorError(message).add_prefix(truncate(name))
        return self.workspace.changes


class EvaluatorScore(FrozenStruct):
    """The score of one evaluator, with hits, misses and costs.

    `score` ranges from 0 to 1; for an assertion 1.0 passes and anything less fails. `error` is the failure in one
    bounded sentence, `<name>: <what>`. `checks_run` counts the individual values that were evaluated, including the
    failing one; `checks_skipped` those that could not be evaluated (tool-forge behaviour A-01).
    """

    score: float
    hits: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    error: str | None = None
    checks_run: int = 0
    checks_skipped: int = 0
    skipped_tokens: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    reasoning: str | None = None
    provider_request: dict[str, JsonValue] | None = None
    """Request to a judge: `systemPrompt`, `userPrompt`, and facts about its replies."""
    usage: Usage | None = None
    """Tokens of the judge, over all its replies."""
    cost_usd: float | None = None
    """Cost of the judge, where it is known."""
    vetoed: bool = False
    """Whether a required part is missing, which fails the case whatever the score."""
    zeroes_case: bool = False
    """Whether the score is below the required one, which makes the case score 0."""
    members: tuple[EvaluatorResult, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the score is full and nothing that is required is missing."""
        return self.score >= 1.0 and not self.vetoed


RunEvaluator: TypeAlias = Callable[[EvaluatorSpec, EvaluationContext], Awaitable[EvaluatorScore]]
EvaluatorFunction: TypeAlias = Callable[..., Awaitable[EvaluatorScore]]
"""Function of its own class of spec and the context; for a composite also of a `RunEvaluator`."""
EvaluatorTable: TypeAlias = Mapping[type[EvaluatorSpec], EvaluatorFunction]
"""Functions by class of spec: `type` is not enough, because two classes have `llm_judge`."""


class EvaluatorError(Exception):
    """An evaluator could not score, for example because a judge is unreachable: never a failed assertion.

    `hint` says what to do about it. `usage` and `cost_usd` are those of the judge up to the error.
    """

    error_kind: ClassVar = ErrorKind.EVALUATION_ERROR
    error_cause: ErrorCause = ErrorCause.EVALUATOR_FAILED

    def __init__(
        self, message: str, *, hint: str | None = None, usage: Usage | None = None, cost_usd: float | None = None
    ) -> None:
        super().__init__(message)
        self.hint = hint
        self.usage = usage
        self.cost_usd = cost_usd

    def add_prefix(self, name: str) -> EvaluatorError:
        """Return the same error with `name`, the evaluator in which it occurred, in front of the message."""
        return type(self)(f"{name}: {self}", hint=self.hint, usage=self.usage, cost_usd=self.cost_usd)


class UnreportedDataError(EvaluatorError):
    """The response lacks the data that an evaluator needs: an agent error, not an evaluation error."""

    error_kind: ClassVar = ErrorKind.AGENT_ERROR
    error_cause = ErrorCause.DATA_MISSING


class UnknownCallsError(EvaluatorError):
    """The target does not list its tool calls, and an evaluator needs them."""

    error_cause = ErrorCause.CALLS_UNKNOWN


class CaseScore(FrozenStruct):
    """The score of a case, joined from all its evaluators."""

    passed: bool
    score: float
    error: str | None = None
    assertions_run: int = 0
    assertions_skipped: int = 0
    skipped_tokens: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    results: tuple[EvaluatorResult, ...] = field(default=())
    trace_summary: TraceSummary | None = None
    judge_usage: Usage | None = None
    judge_cost_usd: float | None = None
