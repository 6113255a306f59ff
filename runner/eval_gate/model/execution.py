"""One execution of a case: status, response and evaluator results."""

from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from msgspec import Meta, field

from eval_gate.model.base import JsonValue, Record
from eval_gate.model.conversation import Message
from eval_gate.model.limits import TRACE_ADDRESS
from eval_gate.model.usage import Usage


class Status(StrEnum):
    """Status of a case or trial. Only `passed` and `failed` have a score."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    """No score, because the target or a judge failed."""
    SKIPPED = "skipped"
    """The case cannot be run; `error` has the reason."""
    NOT_RUN = "not_run"
    """The run ended before this case."""

    # what Python 3.11 has for it takes three times as long, and whatever is written asks it of every execution
    if not TYPE_CHECKING:
        value = property(attrgetter("_value_"))

    @property
    def is_scored(self) -> bool:
        """Whether the status is a result of the agent: passed or failed."""
        # called many times for every execution: a set, or members looked up in the class, would be slower
        return self is _PASSED or self is _FAILED


_PASSED, _FAILED = Status.PASSED, Status.FAILED


class ErrorKind(StrEnum):
    """Cause of an execution error. A failed case has none, because it has a score."""

    AGENT_ERROR = "agent_error"
    """The target returned an error such as HTTP 5xx, broke off, sent a malformed response, exited non-zero or timed
    out."""
    AGENT_UNREACHABLE = "agent_unreachable"
    """No connection, or the provider refuses requests: rate limit, quota or authentication."""
    EVALUATION_ERROR = "evaluation_error"
    """A judge or a simulated user gave no reply, a grader failed, tool calls are unknown, or Eval Gate has a defect."""


class ErrorCause(StrEnum):
    """What happened when a case got no score; `reports/wording/advice.py` has the advice for each."""

    NO_CONNECTION = "no_connection"
    """Nothing accepts connections at the address of the agent, or its health check fails."""
    AGENT_GONE = "agent_gone"
    """The agent accepted a connection before in this run, and does not any more."""
    HOST_NOT_FOUND = "host_not_found"
    PROXY_REFUSED = "proxy_refused"
    """The proxy of the environment accepted no connection, or let none through."""
    TLS_FAILED = "tls_failed"
    """No TLS connection, for example `https://` to a port that expects `http://`."""
    CONNECTION_LOST = "connection_lost"
    NOT_HTTP = "not_http"
    ACCESS_REFUSED = "access_refused"
    NOT_FOUND = "not_found"
    WRONG_METHOD = "wrong_method"
    WRONG_REQUEST = "wrong_request"
    """The target refuses the body: HTTP 400, 415 or 422."""
    MODEL_NOT_FOUND = "model_not_found"
    REDIRECTED = "redirected"
    RATE_LIMITED = "rate_limited"
    QUOTA_USED = "quota_used"
    WEB_PAGE = "web_page"
    EMPTY_RESPONSE = "empty_response"
    WRONG_SHAPE = "wrong_shape"
    """The response does not have the described structure."""
    TOO_LARGE = "too_large"
    TIMED_OUT = "timed_out"
    AGENT_FAILED = "agent_failed"
    """The target itself reports an error, such as HTTP 500."""
    PROGRAM_FAILED = "program_failed"
    """The program ended with another exit code than 0."""
    PROGRAM_NOT_STARTED = "program_not_started"
    """The program that is the target cannot be started, or is not ready."""
    PROVIDER_FAILED = "provider_failed"
    """The provider of a model reports an error of its own."""
    PROVIDER_UNREACHABLE = "provider_unreachable"
    NOT_SENT = "not_sent"
    """This run could not send the request, for example because of its settings, files or folders."""
    HOOK_FAILED = "hook_failed"
    """A command or request before or after cases failed."""
    EVALUATOR_FAILED = "evaluator_failed"
    """An LLM judge or a grader gave no score."""
    USER_FAILED = "user_failed"
    """The model that plays a simulated user gave no message."""
    CALLS_UNKNOWN = "calls_unknown"
    """The target does not list its tool calls, and the case checks them."""
    DATA_MISSING = "data_missing"
    """The response lacks data that an evaluator needs, such as its cost."""
    MODEL_CALL_MISSING = "model_call_missing"
    """A model call of the agent is not in the recording that is replayed, or the proxy does not report the calls."""
    INTERNAL_ERROR = "internal_error"
    """Eval Gate has a defect."""
    BUDGET_USED = "budget_used"
    """The budget of the run was used up before the case."""
    INTERRUPTED = "interrupted"


def format_error(error: str | None, hint: str | None) -> str:
    """Return an error with what to do about it in parentheses."""
    return f"{error or ''} ({hint})" if hint else error or ""


NO_TRACE: Final = "No trace available for evaluation"
"""Message of an AgentV evaluator if the response has no trace of tool calls (agentv evaluation spec)."""
CALLS_UNKNOWN = "tool calls are unknown"
"""Part of the error message of a case that checks tools if the target does not list its calls: an evaluation error."""


UNDECIDED_TYPE: Final = "score"
"""Type of an evaluator of another tool that has at most a number, and passes or fails nothing."""


class EvaluatorResult(Record, kw_only=True):
    """Result of one evaluator. The score of an assertion is 0 or 1."""

    name: str
    type: str
    score: float
    weight: float = 1.0
    hits: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    reasoning: str | None = None
    evaluator_provider_request: dict[str, Any] | None = None
    evaluator_results: tuple["EvaluatorResult", ...] = ()
    """Results of the members of a composite evaluator."""
    vetoed: bool = False
    """A required check failed: the case fails whatever its score and threshold."""


class StoredCall(Record, kw_only=True):
    """One stored tool call. `arguments` and `result` are as the target reported them; None if it did not."""

    name: str
    arguments: JsonValue = None
    result: JsonValue = None
    success: bool | None = None
    """None if the target does not report it."""
    duration_ms: float | None = None
    truncated_parts: tuple[Literal["arguments", "result"], ...] = ()
    """Parts that are truncated: only the beginning of their JSON text is stored, as a string."""


class TurnResult(Record, kw_only=True):
    """One turn of an executed conversation: the user's message, and the response to it."""

    message: str | None = None
    """None if messages are not stored, or another tool does not report it."""
    response: str | None = None
    response_length: Annotated[int, Meta(ge=0)] = 0
    response_truncated: bool = False
    calls: Annotated[int, Meta(ge=0)] = 0
    """Number of tool calls of this turn: that many of the case's `toolsCalled` and `toolCalls`, in order."""
    status: Status | None = None
    """Passed, failed, error or not run; None if nothing is expected of the turn, or another tool does not report it."""
    score: float | None = None
    error: str | None = None
    duration_ms: float = 0.0
    usage: Usage | None = None
    cost_usd: float | None = None
    fields: dict[str, JsonValue] = field(default_factory=dict)
    """As in `CaseDetails`: fields of this response that the turn checks."""


UserEnd: TypeAlias = Literal["reached", "given_up", "max_messages"]
"""Why a simulated user wrote no further message. The first two are its own claim, which passes and fails nothing."""


_LINK: Final = r"^https?://[A-Za-z0-9._:\[\]-]+([/?#][A-Za-z0-9._~:/?#@!$&*+,;=%-]*)?$"
"""A URL without a user, which nothing in Markdown or HTML can end early."""


class CaseDetails(Record, kw_only=True):
    """The contract's `details`. `response` is None if responses are not stored."""

    tools_called: tuple[str, ...] = ()
    response_length: int = 0
    skipped_tokens: tuple[str, ...] = ()
    response: str | None = None
    response_truncated: bool = False
    conversation: tuple[Message, ...] = ()
    """All messages of a conversation that Eval Gate had with a model, if responses are stored."""
    max_turns_reached: bool = False
    replayed: bool = False
    """The response is from a recording: no request was sent, and no cost incurred."""
    model: str | None = None
    """Model that the response names, on one line. It may be more precise than the requested model."""
    trace: Annotated[str, Meta(max_length=TRACE_ADDRESS, pattern=r"^[\x21-\x7e]+$")] | None = None
    """Id or address of the execution's trace, as the agent reports it or as it was sent."""
    trace_url: Annotated[str, Meta(pattern=_LINK)] | None = None
    """Link to the trace; None where `traceUrl` allows none."""
    tool_calls: tuple[StoredCall, ...] = ()
    """Tool calls with arguments and results, in call order, if responses are stored."""
    fields: dict[str, JsonValue] = field(default_factory=dict)
    """Values of the fields of the agent's JSON that the case checks, by path, if responses are stored. In executions
    for drafts, `WHOLE_BODY` is the only path."""
    first_token_ms: float | None = None
    """Milliseconds to the first piece of text of a streamed response."""
    turns: tuple[TurnResult, ...] = ()
    """Turns of a conversation, in order; `response` is that of the last one. Empty for a case with one request."""
    user_end: UserEnd | None = None
    """Why the simulated user ended the conversation; None without one."""
    dropped_counts: dict[str, int] = field(default_factory=dict)
    """Numbers of dropped items because of limits: `toolCalls`, `messages`, and `characters` of the response."""


NO_DETAILS: Final = CaseDetails()
"""Details of a case without any: one shared object, which pydantic would create anew for each case."""


class Trial(Record, kw_only=True):
    """One execution of a case. Details of the decisive execution are stored with the case instead."""

    status: Status
    score: float
    duration_ms: float
    error: str | None = None
    error_kind: ErrorKind | None = None
    """Cause of an execution error; None otherwise."""
    error_cause: ErrorCause | None = None
    """What happened, for an execution error of a run that Eval Gate made; None otherwise."""
    error_hint: str | None = None
    """What to do about the error, as half a sentence, if it says more than its cause."""
    http_status: int | None = None
    """HTTP status of the response, for an execution error whose response has one."""
    timed_out: bool = False
    """The target did not respond in time, which counts as an agent error."""
    failed_turn: Annotated[int, Meta(ge=1)] | None = None
    """First turn of the conversation that failed or had an error, counted from 1; None if none did."""
    vetoed: bool = False
    """A required check failed, so that no score is sufficient."""
    decisive: bool = False
    """The case's details and evaluator results are from this execution."""
    repeats_first_failure: bool = False
    """A failed re-run whose response and calls are byte-identical to the first failure, as far as they are stored."""
    same_as_current: bool = False
    """For the base agent: response and calls are byte-identical to an execution of this run, as far as they are
    stored."""
    details: CaseDetails | None = None
    """Details of an execution that is not decisive; None if not stored."""
    evaluator_results: tuple[EvaluatorResult, ...] = ()
    """Evaluator results of this execution, if `details` are stored."""


class BaselineResult(Record, kw_only=True):
    """Stored baseline result of a changed case, so that one file can show both sides."""

    status: Status
    score: float = 0.0
    duration_ms: float = 0.0
    error: str | None = None
    details: CaseDetails = field(default_factory=lambda: NO_DETAILS)
    evaluator_results: tuple[EvaluatorResult, ...] = ()
    failed_turn: Annotated[int, Meta(ge=1)] | None = None
    """First turn of the conversation that failed or had an error, counted from 1; None if none did."""
    executions: tuple[Status, ...] = ()
    """Status of each trial, if the case has several."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    expectation: tuple[str, ...] = ()
    """Lines of the baseline's expectation that are others now."""
