"""Factories for cases, suites, targets and plans: everything has a default, a test names what it is about."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from eval_gate.config.settings import RunLimits
from eval_gate.engine.run_plan import RunPlan
from eval_gate.model.case import EvalCase, EvalSuite, Location, Tier
from eval_gate.model.conversation import Message, Response
from eval_gate.model.setup import TargetIdentity
from eval_gate.model.specs.evaluator import EvaluatorSpec, ResponseContains
from eval_gate.struct import replace
from eval_gate.targets.base import Request, RetryPolicy, Target
from eval_gate.text.tokens import TokenData

EVAL_FILE = "evals/weather.golden.json"


def make_case(case_id: str = "gs-weather-001", *, expect: Sequence[EvaluatorSpec] | None = None, **fields) -> EvalCase:
    """A case that expects `ok` in the answer."""
    values = {
        "suite": EVAL_FILE,
        "description": f"about {case_id}",
        "messages": (Message(role="user", content=f"ask {case_id}"),),
        "evaluators": tuple(expect) if expect is not None else (ResponseContains(values=("ok",)),),
        "location": Location(file=EVAL_FILE, line=1),
        "fingerprint": f"fingerprint of {case_id}",
    }
    return EvalCase(id=case_id, **(values | fields))


def make_suite(*cases: EvalCase, **fields) -> EvalSuite:
    """A golden suite of these cases, which then stand in its file."""
    values = {
        "file": EVAL_FILE,
        "format": "tool-forge",
        "tool_name": "weather",
        "tier": Tier.GOLDEN,
        "file_hash": "0123456789ab",
    }
    values |= fields
    mine = tuple(replace(case, suite=values["file"]) for case in cases or (make_case(),))
    return EvalSuite(cases=mine, **values)


Answer = Callable[[Request], Awaitable[Response]]


class ScriptedTarget:
    """A target that answers by a function, and remembers what it was asked."""

    def __init__(self, answer: Answer | None = None, healthy: Callable[[], None] = lambda: None) -> None:
        self._answer = answer or self._ok
        self._healthy = healthy
        self.asked: list[str] = []
        self.in_flight = 0
        self.most_in_flight = 0

    takes_stubs = False
    workspace_problem = None
    conversation_problem = None
    remembers_turns = True
    sends_traceparent = False
    origin = None
    retry_policy = RetryPolicy(max_retries=0)
    timeout_ms = None
    notices: tuple[str, ...] = ()

    @staticmethod
    async def _ok(request: Request) -> Response:
        await asyncio.sleep(0)
        return Response(text="ok", duration_ms=1.0)

    @property
    def identity(self) -> TargetIdentity:
        return TargetIdentity(name="scripted", provider="http", identity="http://agent.test/chat")

    @property
    def workers(self) -> None:
        return None

    async def respond(self, request: Request) -> Response:
        self.asked.append(request.case_id)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await self._answer(request)
        finally:
            self.in_flight -= 1

    async def check_health(self) -> None:
        self._healthy()

    async def aclose(self) -> None:
        """Nothing to give back."""


def make_plan(*suites: EvalSuite, target: Target | None = None, **fields) -> RunPlan:
    """A plan over these suites, one trial, one at a time."""
    values = {
        "run_id": "11111111-2222-4333-8444-555555555555",
        "timestamp": "2026-11-21T10:00:00Z",
        "limits": RunLimits(),
        "tokens": TokenData(seed=None, snapshot=None),
    }
    return RunPlan(suites=suites or (make_suite(),), target=target or ScriptedTarget(), **(values | fields))


class Watching:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.total = self.done = 0
        self.records = []

    def on_start(self, plan: RunPlan, total: int, done: int) -> None:
        self.total, self.done = total, done

    def on_trial(self, record) -> None:
        self.records.append(record)

    def on_wait(self, said: str) -> None:
        self.waited = said
