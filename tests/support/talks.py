"""Conversations: cases of several turns, and an agent that keeps sessions and has the faults that a test wants."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from eval_gate.model.case import CaseTurn, ConversationSpec, EvalCase
from eval_gate.model.conversation import Response
from eval_gate.model.specs.evaluator import EvaluatorSpec, ResponseContains
from eval_gate.targets.base import Request, RetryPolicy, TargetError, TargetFault
from eval_gate.targets.retry import LoadLimiter, respond_with_retries
from tests.support.cases import ScriptedTarget, make_case

NO_DELAY = RetryPolicy(max_retries=2, initial_delay_ms=0)


def make_turn(message: str, expected: str | None = "ok") -> CaseTurn:
    """A turn that expects this text in the response; None for one that is only sent."""
    return CaseTurn(message=message, evaluators=() if expected is None else (ResponseContains(values=(expected,)),))


def make_talk(
    case_id: str = "talk", *turns: CaseTurn, expect: Sequence[EvaluatorSpec] = (), messages=(), spec=None, **fields
) -> EvalCase:
    """A conversation of these turns, else of three that expect `ok`; `spec` are fields of its `ConversationSpec`."""
    turns = turns or tuple(make_turn(f"message {number}") for number in (1, 2, 3))
    every = (*(one for turn in turns for one in turn.evaluators), *expect)
    conversation = ConversationSpec(**({"turns": turns, "all_evaluators": every} | (spec or {})))
    return make_case(case_id, expect=expect, messages=messages, conversation=conversation, **fields)


UNREACHABLE = TargetError("connection refused", fault=TargetFault.UNREACHABLE, retryable=True)
BUSY = TargetError("HTTP 429 Too Many Requests", fault=TargetFault.REFUSED, status=429, retryable=True)
OVERLOADED = TargetError("HTTP 529", fault=TargetFault.REFUSED, status=529, retryable=True)
AWAY = TargetError("HTTP 503 Service Unavailable", fault=TargetFault.REFUSED, status=503, retryable=True)
CUT_OFF = TargetError("connection lost", fault=TargetFault.REFUSED, retryable=True)
BROKEN = TargetError("HTTP 500 Internal Server Error", fault=TargetFault.REFUSED, status=500)
LATE = TargetError("timeout", fault=TargetFault.LATE)
FAULTS = (UNREACHABLE, BUSY, OVERLOADED, AWAY, CUT_OFF, BROKEN, LATE)


def copy_error(error: TargetError) -> TargetError:
    """The same error anew, as each request has its own."""
    return TargetError(error.message, fault=error.fault, status=error.status, retryable=error.retryable)


class SessionTarget(ScriptedTarget):
    """An agent with sessions: it meets one fault of `faults` a request (None is none), and then has none.

    `taken_in` are the turns that it took in, by session, in order: also those whose response was lost.
    """

    conversation_problem = None
    retry_policy = NO_DELAY

    def __init__(self, faults: Iterator[TargetError | None] | Sequence[TargetError | None] = (), *, remembers=True):
        super().__init__(self._retry)
        self.remembers_turns = remembers
        self._faults = iter(faults)
        self._limiter = LoadLimiter(10)
        self.requests: list[Request] = []
        self.taken_in: defaultdict[str, list[int]] = defaultdict(list)

    async def _retry(self, request: Request) -> Response:
        async def call() -> Response:
            return await self._meet(request)

        return await respond_with_retries(
            call, self.retry_policy, self._limiter, only_unprocessed=request.turn > 0 and self.remembers_turns
        )

    async def _meet(self, request: Request) -> Response:
        fault = next(self._faults, None)
        self.requests.append(request)
        if fault is None or not fault.was_surely_not_processed:
            self.taken_in[request.session].append(request.turn)
        if fault is not None:
            raise copy_error(fault)
        return self.make_response(request)

    def make_response(self, request: Request) -> Response:
        """`ok`, with its turn and what came before it in the session."""
        return Response(text=f"ok {request.turn}: {request.message}", cost_usd=0.01, duration_ms=1.0)
