"""The agent of an Agent Evals suite: a model led through turns, whose file tools really work, in a folder for it.

Source: Agent Evals, Suite Field Notes; agent-evals behaviour 3.2.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from eval_gate.model.agent import SuiteAgent
from eval_gate.model.conversation import Message, Response, ToolCall, ToolSpec
from eval_gate.sandbox.folder import Sandbox
from eval_gate.sandbox.home import Home
from eval_gate.sandbox.paths import SandboxError
from eval_gate.sandbox.tools import run_tool, spec_of
from eval_gate.struct import FrozenStruct, Struct, field, replace
from eval_gate.targets.base import Request, TargetError, TargetFault
from eval_gate.targets.deadline import collect_waits, not_counted
from eval_gate.targets.model.asker import Asker
from eval_gate.targets.model.settings import ModelSettings
from eval_gate.targets.model.target import ModelConversation, ModelTarget

MAX_CALLS: Final = 64
"""Calls of one turn that are carried out; the others are answered with a refusal."""
_SHOWN: Final = 80


class _Place(Struct):
    """A folder, once somebody has needed it, and whose turn it is in it."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    sandbox: Sandbox | None = None


class FileAgentTarget(ModelTarget):
    """A model target that also answers for agents of suites; cases without one are asked as of any model.

    The cases of a suite share a folder and are asked one at a time, in the order they come: suites write a file in one
    case and read it in the next. Each trial of a suite has a folder of its own, and all are gone with `aclose`; or all
    work in one that is somebody's, and stays.
    """

    def __init__(
        self,
        settings: ModelSettings,
        asker: Asker,
        system_prompt: str | None,
        tools: Sequence[ToolSpec],
        *,
        home: Home | None = None,
    ) -> None:
        """Folders of agents are made as `home` says, when first needed."""
        super().__init__(settings, asker, system_prompt, tools)
        self._home = home or Home()
        self._places: dict[tuple[str, int], _Place] = {}

    async def aclose(self) -> None:
        """Give connections back, and remove all folders."""
        for place in self._places.values():
            if place.sandbox is not None:
                place.sandbox.close()
        self._places.clear()
        await super().aclose()

    async def respond(self, request: Request) -> Response:
        """Turns until one calls nothing. Raises TargetError, also when the agent's turns are used up before."""
        agent = request.agent
        if agent is None:
            return await super().respond(request)
        started = time.perf_counter()
        try:
            with collect_waits() as waits:
                async with self._folder(request, agent) as sandbox:
                    talk = await self._led(request, agent, sandbox)
                    files = sandbox.look(request.looked_at) if sandbox else None
        except (SandboxError, OSError) as error:
            what = error.strerror if isinstance(error, OSError) else str(error)
            raise TargetError(f"the agent's folder cannot be used: {what}", fault=TargetFault.NOT_ASKED) from error
        duration_ms = (time.perf_counter() - started - sum(waits)) * 1000
        return replace(talk.response(duration_ms, stub_mode=False), files=files)

    @asynccontextmanager
    async def _folder(self, request: Request, agent: SuiteAgent) -> AsyncIterator[Sandbox | None]:
        """The folder of the suite and trial, to be alone in; None where nobody works in it and nobody looks at it."""
        if not (agent.tools or request.looked_at):
            yield None
            return
        place = self._places.setdefault((request.eval_file, request.trial), _Place())
        with not_counted():  # the case before is not this case's latency
            await place.turn.acquire()
        try:
            if place.sandbox is None:
                place.sandbox = self._home.opened()
            yield place.sandbox
        finally:
            place.turn.release()

    async def _led(self, request: Request, agent: SuiteAgent, sandbox: Sandbox | None) -> ModelConversation:
        """The conversation, to the turn that calls nothing."""
        system = [Message(role="system", content=agent.instructions)] if agent.instructions.strip() else []
        talk = ModelConversation([*system, *request.messages])
        tools = [spec_of(name) for name in agent.tools]
        while talk.turns < agent.max_turns:
            asked = await self._asker.ask(talk.messages, tools, sample=request.trial)
            talk.add(asked)
            calls = asked.turn.tool_calls
            if not calls:
                return talk
            done = [await _carried_out(call, agent, sandbox) for call in calls[:MAX_CALLS]]
            _tell(talk, [*done, *(_refused(call) for call in calls[MAX_CALLS:])])
        raise TargetError(f"Max turns ({agent.max_turns}) exceeded", fault=TargetFault.REFUSED)


class _Done(FrozenStruct):
    """A call and what came of it."""

    call: ToolCall
    answer: str


async def _carried_out(call: ToolCall, agent: SuiteAgent, sandbox: Sandbox | None) -> _Done:
    """Do what the model asked for; a refusal is its answer. Raises TargetError for a tool the agent does not have."""
    await asyncio.sleep(0)  # a case whose time is up ends here, between two tools and never within one
    name = next((name for name in agent.tools if name == call.name), None)
    if name is None or sandbox is None:
        what = f"Tool {call.name[:_SHOWN]} not found in agent {agent.name[:_SHOWN]}."
        raise TargetError(what, fault=TargetFault.REFUSED)
    started = time.perf_counter()
    try:
        answer, success = run_tool(name, call.params, sandbox), True
    except SandboxError as error:
        answer, success = f"Error: {error}", False
    took_ms = (time.perf_counter() - started) * 1000
    return _Done(replace(call, success=success, duration_ms=round(took_ms, 3)), answer)


def _refused(call: ToolCall) -> _Done:
    answer = f"Error: no more than {MAX_CALLS} calls in one turn are carried out."
    return _Done(replace(call, success=False), answer)


def _tell(talk: ModelConversation, done: Sequence[_Done]) -> None:
    """Give the model its answers, and keep what became of the calls."""
    talk.calls[-len(done) :] = [one.call for one in done]
    talk.messages += [
        Message(role="tool", name=one.call.name, content=one.answer, tool_call_id=one.call.id) for one in done
    ]
