"""One execution of one case: how it ended, what was answered, and what the evaluators made of that."""

from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import field

from eval_gate.model.base import JsonValue, Record
from eval_gate.model.conversation import Message


class Status(StrEnum):
    """What became of a case or a trial. Only `passed` and `failed` are judgements."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    """Could not be judged: the target or a judge broke."""
    SKIPPED = "skipped"
    """Cannot be run as things are; the reason is in `error`."""
    NOT_RUN = "not_run"
    """Was to be run, but the run ended before."""

    # what Python 3.11 has for it takes three times as long, and whatever is written asks it of every execution
    if not TYPE_CHECKING:
        value = property(attrgetter("_value_"))

    @property
    def is_scored(self) -> bool:
        """Whether this says anything about the agent."""
        # asked of every execution many times: a set costs more, and so does to ask the class for its members
        return self is _PASSED or self is _FAILED


_PASSED, _FAILED = Status.PASSED, Status.FAILED


class ErrorKind(StrEnum):
    """Whose fault an execution error is (CONTRACTS, section 1). A failed case has none: it was answered, and wrong."""

    AGENT_ERROR = "agent_error"
    """The target answered 5xx, broke off, is malformed, exited non-zero, or took too long."""
    AGENT_UNREACHABLE = "agent_unreachable"
    """No connection, or a provider that refuses: rate limit, quota, authentication."""
    EVALUATION_ERROR = "evaluation_error"
    """A judge without a verdict, a grader that broke, tool calls that are unknown, or a defect of this program."""


NO_TRACE: Final = "No trace available for evaluation"
"""What an evaluator of AgentV misses where an answer does not say which tools were called (agentv evaluation spec)."""
CALLS_UNKNOWN = "which tools were called is unknown"
"""In the error of a case that checks tools, where the target does not list its calls: an evaluation error."""


class EvaluatorResult(Record, kw_only=True):
    """What one evaluator said. For an assertion the score is 0 or 1."""

    name: str
    type: str
    score: float
    weight: float = 1.0
    hits: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    reasoning: str | None = None
    evaluator_provider_request: dict[str, Any] | None = None
    evaluator_results: tuple["EvaluatorResult", ...] = ()
    """What the members said, where it is made of several."""
    vetoed: bool = False
    """Something that is required is missing: the case fails whatever its score is, and no threshold accepts it."""


class StoredCall(Record, kw_only=True):
    """One tool call as the record keeps it. `arguments` and `result` are what the target reported; None for nothing."""

    name: str
    arguments: JsonValue = None
    result: JsonValue = None
    success: bool | None = None
    """None where the target does not say."""
    duration_ms: float | None = None
    truncated_parts: tuple[Literal["arguments", "result"], ...] = ()
    """Of these parts only the beginning of their JSON text is kept, as a text."""


class CaseDetails(Record, kw_only=True):
    """The contract's `details`. `response` is absent when responses are not stored."""

    tools_called: tuple[str, ...] = ()
    response_length: int = 0
    skipped_tokens: tuple[str, ...] = ()
    response: str | None = None
    response_truncated: bool = False
    conversation: tuple[Message, ...] = ()
    """The whole exchange with a model, where we led it and responses are stored."""
    max_turns_reached: bool = False
    replayed: bool = False
    """Answered from a recording: nothing was asked and nothing spent."""
    model: str | None = None
    """The model that the answer says it is from, which may be more precise than what was asked for, on one line."""
    tool_calls: tuple[StoredCall, ...] = ()
    """The calls with arguments and results, in call order, where answers are stored."""
    first_token_ms: float | None = None
    """Milliseconds until the first piece of text was there, where the answer came in pieces."""
    dropped_counts: dict[str, int] = field(default_factory=dict)
    """What was too much to keep: `toolCalls`, `messages`, `characters` of the answer, by how many."""


NO_DETAILS: Final = CaseDetails()
"""Of cases of which no more is known: one object for all of them, which pydantic would make anew for each."""


class Trial(Record, kw_only=True):
    """One execution of one case. What it says at length is kept once: of the decisive one with its case."""

    status: Status
    score: float
    duration_ms: float
    error: str | None = None
    error_kind: ErrorKind | None = None
    """Of an execution error; None for everything else, and where an older version did not say."""
    timed_out: bool = False
    """The target gave no answer in time; then it is to blame, as one that has crashed."""
    vetoed: bool = False
    """Something that is required is missing, so that no score is good enough."""
    decisive: bool = False
    """The case's own details and evaluator results are of this execution."""
    repeats_first_failure: bool = False
    """A re-run that failed with the answer and calls of the first failure, byte for byte as far as they are kept."""
    same_as_current: bool = False
    """Of the base branch's agent: its answer and calls are those of an execution here, byte for byte as far as they are
    kept."""
    details: CaseDetails | None = None
    """What was answered, of an execution that is not the decisive one; None where it is not kept."""
    evaluator_results: tuple[EvaluatorResult, ...] = ()
    """What the evaluators said of it, where `details` are kept."""


class BaselineResult(Record, kw_only=True):
    """What the baseline's record keeps of a case that is not as it was: enough to show both sides by one file."""

    status: Status
    score: float = 0.0
    duration_ms: float = 0.0
    error: str | None = None
    details: CaseDetails = field(default_factory=lambda: NO_DETAILS)
    evaluator_results: tuple[EvaluatorResult, ...] = ()
    executions: tuple[Status, ...] = ()
    """How each trial ended, where there was more than one."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
