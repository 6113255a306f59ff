"""Agent of an Agent Evals suite: a model in a conversation, with file tools in its own folder.

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
from eval_gate.sandbox.paths import SandboxError
from eval_gate.sandbox.sandbox import Sandbox
from eval_gate.sandbox.sandbox_setup import SandboxSetup
from eval_gate.sandbox.tools import build_tool_spec, run_tool
from eval_gate.struct import Struct, field, replace
from eval_gate.targets.base import Request, TargetError, TargetFault
from eval_gate.targets.deadline import collect_waits, pause_case_clock
from eval_gate.targets.model.model_client import ModelClient
from eval_gate.targets.model.settings import ModelSettings
from eval_gate.targets.model.target import ModelConversation, ModelTarget

MAX_CALLS: Final = 64
"""Maximum executed calls of one turn; further calls are refused."""
_TOO_MANY: Final = f"Error: no more than {MAX_CALLS} calls in one turn are carried out."
_MAX_NAME: Final = 80


class _SuiteFolder(Struct):
    """Folder of a suite, created on first use, and the lock for its turns."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    sandbox: Sandbox | None = None


class SuiteAgentTarget(ModelTarget):
    """Model target that also runs the agents of suites; other cases run as with any model.

    The cases of a suite share a folder and run one at a time, in order: suites write a file in one case and read it in
    the next. Each trial of a suite has its own folder, which `aclose` removes; or all share a folder of the caller,
    which stays.
    """

    def __init__(
        self,
        settings: ModelSettings,
        asker: ModelClient,
        system_prompt: str | None,
        tools: Sequence[ToolSpec],
        *,
        home: SandboxSetup | None = None,
    ) -> None:
        """Folders of agents are made as `home` says, when first needed."""
        super().__init__(settings, asker, system_prompt, tools)
        self._home = home or SandboxSetup()
        self._places: dict[tuple[str, int], _SuiteFolder] = {}

    async def aclose(self) -> None:
        """Give connections back, and remove all folders."""
        for place in self._places.values():
            if place.sandbox is not None:
                place.sandbox.close()
        self._places.clear()
        await super().aclose()

    async def respond(self, request: Request) -> Response:
        """Run turns of the agent until one calls no tool. Raises TargetError, also if no turns are left."""
        agent = request.agent
        if agent is None:
            return await super().respond(request)
        started = time.perf_counter()
        try:
            with collect_waits() as waits:
                async with self._hold_folder(request, agent) as sandbox:
                    talk = await self._lead_suite_agent(request, agent, sandbox)
                    files = sandbox.collect_entries(request.inspected_paths) if sandbox else None
        except (SandboxError, OSError) as error:
            what = error.strerror if isinstance(error, OSError) else str(error)
            raise TargetError(f"the agent's folder cannot be used: {what}", fault=TargetFault.NOT_SENT) from error
        duration_ms = (time.perf_counter() - started - sum(waits)) * 1000
        return replace(talk.build_response(duration_ms, stub_mode=False), files=files)

    @asynccontextmanager
    async def _hold_folder(self, request: Request, agent: SuiteAgent) -> AsyncIterator[Sandbox | None]:
        """Hold the folder of the suite and trial exclusively; None without tools and inspected files."""
        if not (agent.tools or request.inspected_paths):
            yield None
            return
        place = self._places.setdefault((request.eval_file, request.trial), _SuiteFolder())
        with pause_case_clock():  # the case before is not this case's latency
            await place.lock.acquire()
        try:
            if place.sandbox is None:
                place.sandbox = self._home.open_sandbox()
            yield place.sandbox
        finally:
            place.lock.release()

    async def _lead_suite_agent(
        self, request: Request, agent: SuiteAgent, sandbox: Sandbox | None
    ) -> ModelConversation:
        """Lead the conversation until a turn calls no tool."""
        system = [Message(role="system", content=agent.instructions)] if agent.instructions.strip() else []
        talk = ModelConversation([*system, *request.messages])
        tools = [build_tool_spec(name) for name in agent.tools]
        while talk.turns < agent.max_turns:
            asked = await self._asker.ask(talk.messages, tools, sample=request.trial)
            talk.add_turn(asked)
            calls = asked.turn.tool_calls
            if not calls:
                return talk
            done = [await _run_call(call, agent, sandbox) for call in calls[:MAX_CALLS]]
            done += [(replace(call, success=False), _TOO_MANY) for call in calls[MAX_CALLS:]]
            talk.record_results([call for call, _ in done], [output for _, output in done])
        raise TargetError(f"Max turns ({agent.max_turns}) exceeded", fault=TargetFault.REFUSED)


async def _run_call(call: ToolCall, agent: SuiteAgent, sandbox: Sandbox | None) -> tuple[ToolCall, str]:
    """Do what the model asked for; a refusal is its answer. Raises TargetError for a tool the agent does not have."""
    await asyncio.sleep(0)  # a case whose time is up ends here, between two tools and never within one
    name = next((name for name in agent.tools if name == call.name), None)
    if name is None or sandbox is None:
        what = f"Tool {call.name[:_MAX_NAME]} not found in agent {agent.name[:_MAX_NAME]}."
        raise TargetError(what, fault=TargetFault.REFUSED)
    started = time.perf_counter()
    try:
        answer, success = run_tool(name, call.params, sandbox), True
    except SandboxError as error:
        answer, success = f"Error: {error}", False
    took_ms = (time.perf_counter() - started) * 1000
    return replace(call, success=success, duration_ms=round(took_ms, 3)), answer
