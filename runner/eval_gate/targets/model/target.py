"""A model as a target: one request, a conversation with stubbed tools, or the agent of an Agent Evals suite.

The agent of a suite has file tools in its own folder (Agent Evals, Suite Field Notes; agent-evals behaviour 3.2). The
cases of a suite share the folder and run one at a time, in order: suites write a file in one case and read it in the
next. Each trial of a suite has a folder, which `aclose` removes; or all share a folder of the caller, which stays.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from msgspec import structs

from eval_gate.model.agent import SuiteAgent
from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Message, Response, ToolCall, ToolSpec
from eval_gate.model.setup import TargetIdentity
from eval_gate.model.usage import Usage, add_up
from eval_gate.sandbox.paths import SandboxError
from eval_gate.sandbox.sandbox import Sandbox
from eval_gate.sandbox.sandbox_setup import SandboxSetup
from eval_gate.sandbox.tools import build_tool_spec, run_tool
from eval_gate.struct import Struct, field, replace
from eval_gate.targets.base import DescribedTarget, PromptSetup, Request, TargetError, TargetFault
from eval_gate.targets.deadline import collect_waits, pause_case_clock
from eval_gate.targets.model.model_client import ModelClient, ModelReply
from eval_gate.targets.model.settings import ModelSettings
from eval_gate.text.javascript.strings import dump_compact_json

OPEN_OBJECT: dict[str, JsonValue] = {"type": "object", "additionalProperties": True}
"""Schema of a tool without described arguments."""
MAX_CALLS: Final = 64
"""Maximum executed calls of one turn; further calls are refused."""
_TOO_MANY: Final = f"Error: no more than {MAX_CALLS} calls in one turn are carried out."
_MAX_NAME: Final = 80


class _SuiteFolder(Struct):
    """Folder of a suite, created on first use, and the lock for its turns."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    sandbox: Sandbox | None = None


class ModelTarget(DescribedTarget[ModelSettings]):
    """Model with a system prompt and tools. Cases with `stubs` or a suite's agent become conversations."""

    takes_stubs = True
    conversation_problem = None
    remembers_turns = False

    def __init__(
        self,
        settings: ModelSettings,
        client: ModelClient,
        system_prompt: str | None,
        tools: Sequence[ToolSpec],
        *,
        home: SandboxSetup | None = None,
    ) -> None:
        """Create a target; folders of agents are made as `home` says, when first needed."""
        super().__init__(settings)
        self._client = client
        self._system = (Message(role="system", content=system_prompt),) if system_prompt else ()
        self._tools = tuple(tools)
        self.prompt_setup = PromptSetup(system_prompt or None, [structs.asdict(tool) for tool in tools])
        self._home = home or SandboxSetup()
        self._places: dict[tuple[str, int], _SuiteFolder] = {}

    @property
    def identity(self) -> TargetIdentity:
        """Provider and model; the address without credentials."""
        chat = self._client.chat
        return TargetIdentity(
            name=self._settings.name, provider=chat.provider, identity=f"{chat.provider}:{chat.model}", model=chat.model
        )

    @property
    def notices(self) -> tuple[str, ...]:
        """How the provider's rate limit was met, if it was."""
        return self._client.notices

    async def respond(self, request: Request) -> Response:
        """Take a turn, or turns until one calls no tool: with stubs at most `max_turns`. Raises TargetError."""
        if request.agent is not None:
            return await self._respond_as_suite_agent(request, request.agent)
        started = time.perf_counter()
        talk = ModelConversation([*self._system, *request.messages])
        with collect_waits() as waits:
            await self._lead_conversation(talk, request)
        duration_ms = (time.perf_counter() - started - sum(waits)) * 1000
        return talk.build_response(duration_ms, stub_mode=request.stubs is not None)

    async def _respond_as_suite_agent(self, request: Request, agent: SuiteAgent) -> Response:
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

    async def _lead_conversation(self, talk: ModelConversation, request: Request) -> None:
        """Lead the conversation until a turn calls no tool or the turns are used up: without stubs, one turn."""
        stubs = request.stubs
        turns = 1 if stubs is None else request.max_turns
        tools = self._tools if stubs is None else self._add_stubbed_tools(stubs)
        while talk.turns < turns:
            reply = await self._client.ask(talk.messages, tools, sample=request.trial)
            talk.add_turn(reply)
            if stubs is None or not reply.turn.tool_calls:
                return
            talk.respond_to_calls(reply.turn.tool_calls, stubs)

    async def aclose(self) -> None:
        """Give connections back, and remove all folders."""
        for place in self._places.values():
            if place.sandbox is not None:
                place.sandbox.close()
        self._places.clear()
        await self._client.aclose()

    def _add_stubbed_tools(self, stubs: Mapping[str, JsonValue]) -> tuple[ToolSpec, ...]:
        """Add the tools that only the stubs of the case define; these accept any arguments."""
        names = {tool.name for tool in self._tools}
        return (*self._tools, *(ToolSpec(name=name, parameters=OPEN_OBJECT) for name in stubs if name not in names))

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
            reply = await self._client.ask(talk.messages, tools, sample=request.trial)
            talk.add_turn(reply)
            calls = reply.turn.tool_calls
            if not calls:
                return talk
            results = [await _run_call(call, agent, sandbox) for call in calls[:MAX_CALLS]]
            results += [(replace(call, success=False), _TOO_MANY) for call in calls[MAX_CALLS:]]
            talk.record_results([call for call, _ in results], [output for _, output in results])
        raise TargetError(f"Max turns ({agent.max_turns}) exceeded", fault=TargetFault.REFUSED)


class ModelConversation(Struct):
    """State of a conversation with a model."""

    messages: list[Message]
    turns: int = 0
    text: str = ""
    calls: list[ToolCall] = field(default_factory=list)
    usages: list[Usage | None] = field(default_factory=list)
    costs: list[float | None] = field(default_factory=list)
    attempts: int = 0
    replayed: bool = True
    model: str | None = None
    """Model name from the provider, of the last turn that has one."""
    has_open_calls: bool = False
    earlier: int = 0
    """Number of messages before the model's own."""

    def __post_init__(self) -> None:
        self.earlier = len(self.messages)

    def add_turn(self, reply: ModelReply) -> None:
        """Add the next turn of the model, new or recorded."""
        turn = reply.turn
        self.turns += 1
        self.text = turn.text  # of the last turn, even if it is empty (tool-forge behaviour A-20)
        self.calls += turn.tool_calls
        self.has_open_calls = bool(turn.tool_calls)
        self.usages.append(turn.usage)
        self.costs.append(reply.cost_usd)
        self.attempts += reply.attempts
        self.replayed = self.replayed and reply.replayed
        self.model = turn.model or self.model
        self.messages.append(Message(role="assistant", content=turn.text, tool_calls=turn.tool_calls))

    def respond_to_calls(self, calls: Sequence[ToolCall], stubs: Mapping[str, JsonValue]) -> None:
        """Answer every call in the same turn; one without a stub with an error (tool-forge behaviour 1.4)."""
        results = [_find_stub(call, stubs) for call in calls]
        finished_calls = [replace(call, result=result) for call, result in zip(calls, results, strict=True)]
        self.record_results(finished_calls, [dump_compact_json(result) for result in results])

    def record_results(self, calls: Sequence[ToolCall], outputs: Sequence[str]) -> None:
        """Give the model the outputs of the last calls, and keep the calls with their results."""
        self.calls[-len(calls) :] = calls
        self.messages += map(_build_result_message, calls, outputs)

    def build_response(self, duration_ms: float, *, stub_mode: bool) -> Response:
        """Build one response from all turns; tokens and cost are None if they are unknown for one of the turns."""
        return Response(
            text=self.text,
            tool_calls=tuple(self.calls),
            # a sum of some turns would pass for the whole
            usage=None if None in self.usages else Usage.add_up(self.usages),
            cost_usd=None if None in self.costs else add_up(self.costs),
            duration_ms=duration_ms,
            attempts=max(self.attempts, 1),
            conversation=tuple(self.messages),
            new_messages=self._list_new_messages(),
            max_turns_reached=stub_mode and self.has_open_calls,
            replayed=self.replayed,
            model=self.model,
        )

    def _list_new_messages(self) -> tuple[Message, ...]:
        """List the model's own messages and the results of its calls.

        Providers refuse a conversation with a call that has no result, so without stubs it is that of a missing stub.
        """
        calls = self.messages[-1].tool_calls
        outputs = [dump_compact_json(_find_stub(call, {})) for call in calls]
        return (*self.messages[self.earlier :], *map(_build_result_message, calls, outputs))


def _find_stub(call: ToolCall, stubs: Mapping[str, JsonValue]) -> JsonValue:
    return stubs.get(call.name, {"error": f'no stub for "{call.name}"'})


def _build_result_message(call: ToolCall, output: str) -> Message:
    return Message(role="tool", name=call.name, content=output, tool_call_id=call.id)


async def _run_call(call: ToolCall, agent: SuiteAgent, sandbox: Sandbox | None) -> tuple[ToolCall, str]:
    """Run the tool of a call; a refusal is its output. Raises TargetError for a tool the agent does not have."""
    await asyncio.sleep(0)  # a case whose time is up ends here, between two tools and never within one
    name = next((name for name in agent.tools if name == call.name), None)
    if name is None or sandbox is None:
        what = f"Tool {call.name[:_MAX_NAME]} not found in agent {agent.name[:_MAX_NAME]}."
        raise TargetError(what, fault=TargetFault.REFUSED)
    started = time.perf_counter()
    try:
        output, success = run_tool(name, call.params, sandbox), True
    except SandboxError as error:
        output, success = f"Error: {error}", False
    took_ms = (time.perf_counter() - started) * 1000
    return replace(call, success=success, duration_ms=round(took_ms, 3)), output
