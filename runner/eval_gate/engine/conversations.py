"""Leads a conversation: sends its turns one after the other in one session, and begins again in a new one if needed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from itertools import chain
from typing import Final, NamedTuple, TypeVar

from eval_gate.engine.simulated_user import UserMove
from eval_gate.evaluators.base import CaseScore, EvaluatorError
from eval_gate.evaluators.json_fields import collect_fields
from eval_gate.model.base import JsonValue
from eval_gate.model.case import CaseTurn, ConversationSpec, EvalCase, SimulatedUser
from eval_gate.model.conversation import Message, Response
from eval_gate.model.execution import ErrorCause, UserEnd
from eval_gate.model.limits import MAX_RESPONSE_BYTES, RESPONSE_CALLS
from eval_gate.model.usage import Number, Usage, add_up
from eval_gate.struct import FrozenStruct, field, replace
from eval_gate.targets.base import Request, RetryPolicy, TargetError, TargetFault
from eval_gate.targets.conversation_session import ConversationSession
from eval_gate.text.escape import format_count

_Item = TypeVar("_Item")
_SHARED_SESSION: Final = "agent error: the agent returned the session id of another conversation"
_SHARED_HINT: Final = "let the agent return a new id for each conversation, and nothing else where its id is read"


class BudgetUsedError(Exception):
    """The cost limit of the run is reached between two turns: the execution has no result, only its cost."""

    def __init__(self, turn: int, cost_usd: float) -> None:
        super().__init__(f"the budget is used up before turn {turn}")
        self.turn = turn
        self.cost_usd = cost_usd


class FinishedTurn(NamedTuple):
    """A turn with its response; `score` is None if its evaluators have none."""

    message: str
    response: Response
    fields: Mapping[str, JsonValue]
    score: CaseScore | None = None


class ConversationServices(FrozenStruct):
    """What leading a conversation needs from the run and the target."""

    send: Callable[[Request], Awaitable[Response]]
    """Sends the request of one turn, within its time limit. Raises TargetError."""
    score_turn: Callable[[Response, CaseTurn, Sequence[Message]], Awaitable[CaseScore]]
    """Scores the response to a turn; the messages are those of the window, with the response. Raises EvaluatorError."""
    move_user: Callable[[SimulatedUser, Sequence[Message], int], Awaitable[UserMove]] | None = None
    """Asks the simulated user. Raises EvaluatorError."""
    retry_policy: RetryPolicy = field(default_factory=lambda: RetryPolicy(max_retries=0))
    """How often, and after which delay, the conversation is started again."""
    remembers_turns: bool = True
    """Whether the agent may remember earlier turns. If not, the target itself has retried all that can be."""
    can_continue: Callable[[float], bool] = lambda _usd: True
    """Whether the run can afford a further turn of an execution to which the target responded at this cost."""
    sessions: dict[str, ConversationSession] = field(default_factory=dict)
    """Sessions of all conversations with the target, by each id that they had."""


class LedConversation:
    """Conversation of one execution. An error belongs to the turn after `turns`, or to scoring the last of them."""

    def __init__(self, request: Request, case: EvalCase, services: ConversationServices) -> None:
        """`request` is that of the case, without a turn."""
        assert case.conversation is not None
        self._request, self._services = request, services
        self._spec: ConversationSpec = case.conversation
        self._keeps_body = case.keeps_body
        self._first = [(message,) for message in case.messages]
        self._exchanges: list[tuple[Message, ...]] = [*self._first]
        """Messages by their author, in order: a window counts a response with its tool calls as one."""
        self._number = 1
        """Number of the turn in progress."""
        self.turns: list[FinishedTurn] = []
        self.error: TargetError | EvaluatorError | None = None
        self.failed_message: str | None = None
        """The user's message without a response; None if the error is not in a request."""
        self.request_ms = 0.0
        """Duration of all requests, without the time of judges and of the simulated user."""
        self.user_end: UserEnd | None = None
        self.moves: list[UserMove] = []
        """All that the simulated user was asked for, in all sessions."""
        self.abandoned_turns: list[FinishedTurn] = []
        """Turns of sessions that were given up. They cost something, and count for nothing else."""
        self.restart_reasons: list[str] = []

    @property
    def history(self) -> tuple[Message, ...]:
        """All messages so far: those before the first turn, those of the user, and the responses."""
        return tuple(chain.from_iterable(self._exchanges))

    @property
    def failed_turn(self) -> int | None:
        """Turn of the error; None without one."""
        return None if self.error is None else self._number

    @property
    def unsent_turns(self) -> tuple[CaseTurn, ...]:
        """Turns of the script that were not begun."""
        return self._spec.turns[max(len(self.turns), self.failed_turn or 0) :]

    @property
    def response(self) -> Response:
        """Response that evaluators of the whole conversation see."""
        responses = [turn.response for turn in self.turns]
        return join_turns(responses) if responses else Response(text="", tool_calls_known=None)

    @property
    def target_costs(self) -> tuple[Usage | None, float | None]:
        """Usage and cost of the target in all sessions, each unknown if it is for one response."""
        responses = [turn.response for turn in self._sent_turns]
        return _add_up_usages([one.usage for one in responses]), _add_up_known([one.cost_usd for one in responses])

    @property
    def judge_costs(self) -> tuple[Usage | None, float | None]:
        """Usage and cost of the simulated user, and of the judges that scored turns."""
        scores = [turn.score for turn in self._sent_turns if turn.score is not None]
        usages = (*(move.usage for move in self.moves), *(score.judge_usage for score in scores))
        costs = (*(move.cost_usd for move in self.moves), *(score.judge_cost_usd for score in scores))
        return Usage.add_up(usages), add_up(costs)

    @property
    def first_failure(self) -> int | None:
        """Number of the first turn that failed; None if none did."""
        scores = enumerate((turn.score for turn in self.turns), start=1)
        return next((number for number, score in scores if score is not None and not score.passed), None)

    @property
    def lists_calls(self) -> bool:
        """Whether a response has a list of tool calls, even if it is empty."""
        return any(turn.response.tool_calls or turn.response.tool_calls_known for turn in self.turns)

    @property
    def attempts(self) -> int:
        """Number of requests, in all sessions."""
        finished = sum(turn.response.attempts for turn in self._sent_turns)
        return finished + len(self.restart_reasons) + (self.failed_message is not None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the conversation as a whole."""
        if not self.restart_reasons:
            return ()
        times = format_count(len(self.restart_reasons), "time")
        return (f"the conversation was started again {times}: {'; '.join(dict.fromkeys(self.restart_reasons))}",)

    @property
    def _sent_turns(self) -> tuple[FinishedTurn, ...]:
        return (*self.abandoned_turns, *self.turns)

    async def lead(self) -> None:
        """Lead the conversation to its end. Every try has a session of its own.

        Errors of the target, of evaluators and of the simulated user are kept in `error`. Raises BudgetUsedError if the
        budget of the run does not allow a further turn.
        """
        while isinstance(error := await self._run_session(), TargetError) and self._may_start_again(error):
            # without the target's own words, because warnings are stored as they are
            reason = f"HTTP {error.status}" if error.status is not None else error.cause.value.replace("_", " ")
            self.restart_reasons.append(f"turn {self._number}: {reason}")
            self.abandoned_turns += self.turns
            self.turns, self._exchanges, self.failed_message = [], [*self._first], None
            retry_policy = self._services.retry_policy
            await asyncio.sleep(retry_policy.compute_delay_s(len(self.restart_reasons), error.retry_after_s))
        self.error = error

    def _may_start_again(self, error: TargetError) -> bool:
        """Whether a new session may help: the agent may have processed the request, which must not be sent twice."""
        if not error.retryable or error.was_surely_not_processed or not self._services.remembers_turns:
            return False
        return len(self.restart_reasons) < self._services.retry_policy.max_retries

    async def _run_session(self) -> TargetError | EvaluatorError | None:
        """Send the turns in a new session until the last one, or until an error, which is returned."""
        try:
            async with aclosing(ConversationSession()) as session:
                await self._send_turns(session)
        except TargetError as error:
            if self.failed_message is None:  # what the session holds could not be closed
                self._number = len(self.turns)
            return error
        except EvaluatorError as error:
            return error
        return None

    async def _send_turns(self, session: ConversationSession) -> None:
        while (turn := await self._choose_next_turn()) is not None:
            self._check_budget()
            self.failed_message = turn.message
            self._exchanges.append((Message(role="user", content=turn.message),))
            request = replace(self._request, messages=self._list_window(), turn=self._number, open_session=session)
            started = time.perf_counter()
            try:
                response = await self._services.send(request)
            finally:
                self.request_ms += (time.perf_counter() - started) * 1000
            if self._services.sessions.setdefault(session.id, session) is not session:
                raise TargetError(_SHARED_SESSION, fault=TargetFault.MALFORMED, hint=_SHARED_HINT)
            _check_size([*(turn.response for turn in self.turns), response])
            self.failed_message = None
            fields = collect_fields(turn.evaluators, response, with_body=self._keeps_body)
            self.turns.append(FinishedTurn(turn.message, response, fields))
            self._exchanges.append(response.new_messages or (Message(role="assistant", content=response.text),))
            if response.dry_run:
                return
            score = await self._services.score_turn(response, turn, self._list_window())
            self.turns[-1] = self.turns[-1]._replace(score=score)
            if self._spec.stop_score is not None and score.score < self._spec.stop_score:
                return

    async def _choose_next_turn(self) -> CaseTurn | None:
        user, finished = self._spec.user, len(self.turns)
        self._number = finished + 1
        if user is None:
            return self._spec.turns[finished] if finished < len(self._spec.turns) else None
        if finished >= user.max_messages:
            self.user_end = "max_messages"
            return None
        if finished == 0 and user.first_message is not None:
            return CaseTurn(message=user.first_message)
        self._check_budget()
        assert self._services.move_user is not None
        move = await self._services.move_user(user, self.history, self._request.trial)
        self.moves.append(move)
        self.user_end = move.outcome
        return None if move.message is None else CaseTurn(message=move.message)

    def _check_budget(self) -> None:
        """Check that the run can afford a further turn; the first one was allowed with the execution."""
        sent = self._sent_turns
        usd = add_up((*(turn.response.cost_usd for turn in sent), self.judge_costs[1])) or 0.0
        if sent and not self._services.can_continue(usd):
            raise BudgetUsedError(self._number, usd)

    def _list_window(self) -> tuple[Message, ...]:
        """List the messages of a request: all, or system messages and the newest exchanges (AgentV, `window_size`)."""
        if self._spec.window is None:
            return self.history
        is_system = [exchange[0].role == "system" for exchange in self._exchanges]
        newest = [at for at, one in enumerate(is_system) if not one][-2 * self._spec.window :]
        return tuple(
            message
            for at, exchange in enumerate(self._exchanges)
            if is_system[at] or at in newest
            for message in exchange
        )


def _check_size(responses: Sequence[Response]) -> None:
    """Check that all responses together are no larger than one may be: all are kept to the end. Raises TargetError."""
    parts = (
        ("characters", sum(len(response.text) for response in responses), MAX_RESPONSE_BYTES),
        ("tool calls", sum(len(response.tool_calls) for response in responses), RESPONSE_CALLS),
    )
    for what, size, limit in parts:
        if size > limit:
            message = f"agent error: the responses of the conversation have more than {limit:,} {what}"
            raise TargetError(message, fault=TargetFault.MALFORMED, known_cause=ErrorCause.TOO_LARGE)


def join_turns(turns: Sequence[Response]) -> Response:
    """Join the responses of a conversation, at least one, into the response that evaluators of the whole see.

    It has the text of the last one, all calls in order, and sums, which are unknown if a part is. Calls are known if
    any response lists some; else they are only as well known as in the response that says the least.
    """
    last = turns[-1]
    calls = tuple(call for turn in turns for call in turn.tool_calls)
    unlisted = [turn for turn in turns if turn.tool_calls_known is not True]
    levels = {turn.tool_calls_known for turn in unlisted}
    return replace(
        last,
        tool_calls=calls,
        tool_calls_known=True if calls or not levels else (False if False in levels else None),
        tool_calls_location=next((turn.tool_calls_location for turn in unlisted if turn.tool_calls_location), ""),
        usage=_add_up_usages([turn.usage for turn in turns]),
        cost_usd=_add_up_known([turn.cost_usd for turn in turns]),
        duration_ms=sum(turn.duration_ms for turn in turns),
        attempts=sum(turn.attempts for turn in turns),
        trace_id=next((turn.trace_id for turn in reversed(turns) if turn.trace_id), None),
        conversation=(),
        new_messages=(),
        max_turns_reached=any(turn.max_turns_reached for turn in turns),
        replayed=all(turn.replayed for turn in turns),
        # of these alone, evaluators would miss the calls of a response without them
        messages=_join_lists([turn.messages for turn in turns]),
        trace=_join_lists([turn.trace for turn in turns]),
        warnings=tuple(dict.fromkeys(warning for turn in turns for warning in turn.warnings)),
    )


def _add_up_known(values: Sequence[Number | None]) -> Number | None:
    return None if None in values else add_up(values)


def _add_up_usages(usages: Sequence[Usage | None]) -> Usage | None:
    """Add up the tokens; a number is unknown if it is in one response."""
    parts = [usage or Usage() for usage in usages]
    inputs, outputs = [part.input_tokens for part in parts], [part.output_tokens for part in parts]
    whole = Usage(input_tokens=_add_up_known(inputs), output_tokens=_add_up_known(outputs))
    return None if whole == Usage() else whole


def _join_lists(lists: Sequence[tuple[_Item, ...] | None]) -> tuple[_Item, ...] | None:
    parts = [one for one in lists if one is not None]
    return tuple(chain.from_iterable(parts)) if len(parts) == len(lists) else None
