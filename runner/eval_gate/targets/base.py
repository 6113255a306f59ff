"""Protocol of a target, defaults shared by all kinds of targets, and `TargetError`."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

from msgspec import Meta

from eval_gate.model.agent import SuiteAgent
from eval_gate.model.base import Frozen, JsonValue
from eval_gate.model.case import CaseBrief
from eval_gate.model.conversation import Message, Response
from eval_gate.model.execution import ErrorCause, ErrorKind
from eval_gate.model.setup import TargetIdentity
from eval_gate.struct import FrozenStruct
from eval_gate.targets.conversation_session import ConversationSession
from eval_gate.targets.settings import TargetSettings
from eval_gate.text.javascript.strings import as_text

Settings = TypeVar("Settings", bound=TargetSettings)


Origin: TypeAlias = tuple[str, Mapping[str, str]]
"""Scheme, host and port of an HTTP target, and the headers of its requests, names in lower case, with secrets."""


class Request(FrozenStruct):
    """One case for a target. `trial` counts from 0; `eval_file` is relative to the root of the run `run_id`.

    `stubs` is None if the case has no stubs; an empty mapping enables stub mode, because only its presence counts.
    `max_turns` applies to stub mode. `brief` is set if the case's format has more than messages, `agent` if it
    describes the agent.
    """

    case_id: str
    messages: tuple[Message, ...]
    trial: int = 0
    stubs: Mapping[str, JsonValue] | None = None
    max_turns: int = 5
    eval_file: str = ""
    brief: CaseBrief | None = None
    agent: SuiteAgent | None = None
    run_id: str = ""
    inspected_paths: tuple[str, ...] = ()
    """Paths in the agent's folder that assertions inspect."""
    workspace: Path | None = None
    """Folder in which a program is to work on this case; None where the target's settings name one."""
    rerun: int = 0
    """Number of the re-run, from 1; 0 for a first execution or a trial."""
    turn: int = 0
    """Number of the turn in a conversation, from 1; 0 for a case with one request."""
    open_session: ConversationSession | None = None
    """Session of the conversation; None for a case with one request."""
    execution_id: str = ""
    """32 hex digits, random for each execution and the same in its turns and retries; empty outside of a run."""

    @property
    def session(self) -> str | None:
        """Id of the conversation's session; None for a case with one request."""
        return self.open_session.id if self.open_session is not None else None

    @property
    def message(self) -> str:
        """The last message as text: the whole prompt of an agent without conversations."""
        return as_text(self.messages[-1].content)


ACCESS_REFUSED_STATUSES: Final = frozenset({401, 402, 403, 407, 429, 529})
"""HTTP statuses that refuse access: authentication, credit or rate limit (529: Anthropic is overloaded)."""


OVERLOAD_STATUSES: Final = frozenset({429, 503, 529})
"""HTTP statuses of a target that gets more requests than it takes."""


class TargetFault(StrEnum):
    """Kind of a target's failure, as far as it determines what happens next."""

    UNREACHABLE = "unreachable"
    """No connection: the next case is likely to fail too."""
    REFUSED = "refused"
    """The target returned an error or ended early."""
    MALFORMED = "malformed"
    """The response does not have the expected structure."""
    LATE = "late"
    """No response within the time limit."""
    NOT_SENT = "not-sent"
    """This run caused the failure itself, for example by its settings, files or folders."""


_CAUSES: Final = {
    TargetFault.UNREACHABLE: ErrorCause.NO_CONNECTION,
    TargetFault.REFUSED: ErrorCause.AGENT_FAILED,
    TargetFault.MALFORMED: ErrorCause.WRONG_SHAPE,
    TargetFault.LATE: ErrorCause.TIMED_OUT,
    TargetFault.NOT_SENT: ErrorCause.NOT_SENT,
}
"""Cause of a failure by its fault, if nothing more is known."""
_CAUSES_BY_STATUS: Final = {
    **dict.fromkeys((400, 415, 422), ErrorCause.WRONG_REQUEST),
    **dict.fromkeys((401, 403, 407), ErrorCause.ACCESS_REFUSED),
    402: ErrorCause.QUOTA_USED,
    404: ErrorCause.NOT_FOUND,
    405: ErrorCause.WRONG_METHOD,
    **dict.fromkeys((429, 529), ErrorCause.RATE_LIMITED),
}


@dataclass(eq=False, repr=False)
class TargetError(Exception):
    """Failure of a target to respond. `message` quotes the target, is bounded and contains no secret.

    `known_cause` is what happened, if it is more than the status or the fault tells. `hint` says what to do about it.
    `retry_after_s` is the delay that the target requested, in seconds. `status` is the HTTP status of the response, and
    `trace_id` the id or address of its trace, if it has one.
    """

    message: str
    _: KW_ONLY
    fault: TargetFault
    retryable: bool = False
    status: int | None = None
    retry_after_s: float | None = None
    hint: str | None = None
    known_cause: ErrorCause | None = None
    trace_id: str | None = None

    @property
    def cause(self) -> ErrorCause:
        """What happened."""
        status = self.status or 0
        by_status = ErrorCause.REDIRECTED if 300 <= status <= 399 else _CAUSES_BY_STATUS.get(status)
        return self.known_cause or by_status or _CAUSES[self.fault]

    def mask_secrets(self, redact: Callable[[str], str]) -> None:
        """Mask the secrets in the message and the hint."""
        self.message = redact(self.message)
        self.args = (self.message,)
        self.hint = redact(self.hint) if self.hint else self.hint
        self.trace_id = redact(self.trace_id) if self.trace_id else self.trace_id

    @property
    def error_kind(self) -> ErrorKind:
        """Error kind of the failure, the same for every target.

        An HTTP status outside `ACCESS_REFUSED_STATUSES` is an agent error, such as 5xx, 400, 404 or 422: the target
        was reached, and a change can break which requests it accepts.
        """
        match self.fault:
            case TargetFault.NOT_SENT:
                return ErrorKind.EVALUATION_ERROR
            case TargetFault.UNREACHABLE:
                return ErrorKind.AGENT_UNREACHABLE
            case _:
                return ErrorKind.AGENT_UNREACHABLE if self.status in ACCESS_REFUSED_STATUSES else ErrorKind.AGENT_ERROR

    @property
    def was_surely_not_processed(self) -> bool:
        """Whether the target cannot have taken the request in: no connection, or too many requests."""
        return self.fault is TargetFault.UNREACHABLE or self.status in {429, 529}

    @property
    def timed_out(self) -> bool:
        """Whether the target exceeded a time limit, and no other cause is known."""
        return self.fault is TargetFault.LATE


def names_missing_model(body: object, model: object) -> bool:
    """Whether the JSON body of an HTTP 404 is about the requested model: it has OpenAI's code, or names the model."""
    if not isinstance(body, dict):
        return False
    error = body.get("error")
    details = error if isinstance(error, dict) else body
    return details.get("code") == "model_not_found" or (
        isinstance(model, str) and model != "" and any(model in text for text in _iter_texts(body))
    )


def _iter_texts(value: object) -> Iterator[str]:
    """Yield the texts of an error's body, which is an object of texts, or has such an object as `error` or `detail`."""
    for part in value.values() if isinstance(value, dict) else ():
        yield from (part,) if isinstance(part, str) else _iter_texts(part)


class RetryPolicy(Frozen, kw_only=True):
    """Exponential delays with jitter, in milliseconds. A longer `Retry-After` takes precedence, up to the cap."""

    max_retries: Annotated[int, Meta(ge=0, le=20)] = 2
    initial_delay_ms: Annotated[float, Meta(ge=0)] = 250
    max_delay_ms: Annotated[float, Meta(ge=0)] = 60_000
    backoff_factor: Annotated[float, Meta(ge=1)] = 2
    retryable_status_codes: frozenset[int] = frozenset({429, 502, 503, 504})

    def compute_delay_s(self, failures: int, retry_after_s: float | None = None) -> float:
        """Seconds before the next try after these failures; a quarter more or less, and never above the cap."""
        exponential = self.initial_delay_ms * self.backoff_factor ** min(failures - 1, 64)
        jittered = exponential * random.uniform(0.75, 1.25)  # noqa: S311 (spreads load, guards nothing)
        return min(max(jittered, (retry_after_s or 0.0) * 1000), self.max_delay_ms) / 1000


class Target(Protocol):
    """A system that responds to messages, with defaults for its subclasses.

    The engine and `retry` handle time, retries and concurrency.
    """

    workers: int | None = None
    """Number of concurrent cases in the target's own description; None without one."""
    timeout_ms: float | None = None
    """The target's own time limit of a case or turn, which precedes the run's; None without one."""
    takes_stubs: bool = False
    """Whether tool calls can get a case's stubs as results: those of a model can, those of an agent cannot."""
    workspace_problem: str | None = None
    """Why it cannot run cases that have a workspace, as the rest of a sentence; None where it can."""
    conversation_problem: str | None = "it has no way to go on with a conversation"
    """Why it cannot run cases with several turns, as the rest of a sentence; None where it can."""
    origin: Origin | None = None
    """Where requests of hooks with a path alone go; None if it has no address."""
    remembers_turns: bool = True
    """Whether the agent itself may remember earlier turns, so that a request it took in cannot be sent again; False if
    every request repeats the whole conversation."""
    sends_traceparent: bool = False
    """Whether requests carry `Request.execution_id` as the id of the execution's trace."""
    retry_policy: RetryPolicy = RetryPolicy(max_retries=0)
    """How often, and after which delay, a conversation is started again after a retryable error; the target retries
    single requests itself."""

    @property
    def identity(self) -> TargetIdentity:
        """What this is, for results: without credentials and query."""
        ...

    @property
    def notices(self) -> tuple[str, ...]:
        """What happened during requests and is worth a line in the result, such as a rate limit that was met."""
        return ()

    async def respond(self, request: Request) -> Response:
        """Answer one case. Raises TargetError and nothing else; may be cancelled at any time."""
        ...

    async def check_health(self) -> None:
        """Raise TargetError if the target is known to be unable to respond; do nothing if that is unknown."""
        ...

    async def aclose(self) -> None:
        """Give back connections and processes."""
        ...


class PromptSetup(FrozenStruct):
    """System prompt and tools that a model gets in addition to a case, as JSON."""

    system_prompt: str | None = None
    tools: Sequence[JsonValue] = ()


class DescribedTarget(Target, Generic[Settings]):
    """Base class of the kinds of targets, which have settings."""

    prompt_setup: PromptSetup | None = None
    """System prompt and tools that a model gets with every case; None if there are none or they are unknown."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.workers = settings.workers

    async def check_health(self) -> None:
        """Do nothing: only a request shows whether it can respond."""

    async def aclose(self) -> None:
        """Do nothing: it holds no connections and no processes."""

    @property
    def identity(self) -> TargetIdentity:
        """What results call it: its provider and its name."""
        name, provider = self._settings.name, self._settings.provider
        return TargetIdentity(name=name, provider=provider, identity=f"{provider}:{name}")


@runtime_checkable
class BatchTarget(Target, Protocol):
    """A target that can respond to many cases in one call."""

    batches: bool
    """Whether its description has `provider_batching`."""

    async def respond_batch(self, requests: Sequence[Request]) -> Mapping[str, Response]:
        """Return the responses by case id, without those that are missing. Raises TargetError if the whole call fails.

        The ids of the requests are different, and their eval file is the same.
        """
        ...
