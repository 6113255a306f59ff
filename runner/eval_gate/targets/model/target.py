"""A model as a target: one request, or a conversation with stubbed tools."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from msgspec import structs

from eval_gate.model.base import JsonValue
from eval_gate.model.conversation import Message, Response, ToolCall, ToolSpec
from eval_gate.model.setup import TargetIdentity
from eval_gate.model.usage import Usage, add_up
from eval_gate.struct import Struct, field, replace
from eval_gate.targets.base import DescribedTarget, PromptSetup, Request
from eval_gate.targets.deadline import collect_waits
from eval_gate.targets.model.model_client import ModelClient, ModelReply
from eval_gate.targets.model.settings import ModelSettings
from eval_gate.text.javascript.strings import dump_compact_json

OPEN_OBJECT: dict[str, JsonValue] = {"type": "object", "additionalProperties": True}
"""Schema of a tool without described arguments."""


class ModelTarget(DescribedTarget[ModelSettings]):
    """Model with a system prompt and tools. Cases with `stubs` become conversations."""

    def __init__(
        self, settings: ModelSettings, asker: ModelClient, system_prompt: str | None, tools: Sequence[ToolSpec]
    ) -> None:
        super().__init__(settings)
        self._asker = asker
        self._system = (Message(role="system", content=system_prompt),) if system_prompt else ()
        self._tools = tuple(tools)

    @property
    def identity(self) -> TargetIdentity:
        """Provider and model; the address without credentials."""
        chat = self._asker.chat
        return TargetIdentity(
            name=self._settings.name, provider=chat.provider, identity=f"{chat.provider}:{chat.model}", model=chat.model
        )

    @property
    def prompt_setup(self) -> PromptSetup:
        """Its system prompt and its tools."""
        tools = [structs.asdict(tool) for tool in self._tools]
        return PromptSetup(str(self._system[0].content) if self._system else None, tools)

    @property
    def takes_stubs(self) -> bool:
        """Yes: the conversation is ours to lead."""
        return True

    @property
    def notices(self) -> tuple[str, ...]:
        """How the provider's rate limit was met, if it was."""
        return self._asker.notices

    async def respond(self, request: Request) -> Response:
        """One turn without stubs, else turns until one calls nothing or `max_turns` are used. Raises TargetError."""
        started = time.perf_counter()
        talk = ModelConversation([*self._system, *request.messages])
        with collect_waits() as waits:
            await self._lead_conversation(talk, request)
        duration_ms = (time.perf_counter() - started - sum(waits)) * 1000
        return talk.build_response(duration_ms, stub_mode=request.stubs is not None)

    async def _lead_conversation(self, talk: ModelConversation, request: Request) -> None:
        """Lead the conversation until a turn calls no tool or the turns are used up: without stubs, one turn."""
        stubs = request.stubs
        turns = 1 if stubs is None else request.max_turns
        tools = self._tools if stubs is None else self._add_stubbed_tools(stubs)
        while talk.turns < turns:
            asked = await self._asker.ask(talk.messages, tools, sample=request.trial)
            talk.add_turn(asked)
            if stubs is None or not asked.turn.tool_calls:
                return
            talk.respond_to_calls(asked.turn.tool_calls, stubs)

    async def aclose(self) -> None:
        """Give connections back."""
        await self._asker.aclose()

    def _add_stubbed_tools(self, stubs: Mapping[str, JsonValue]) -> tuple[ToolSpec, ...]:
        """Add the tools that only the stubs of the case define; these accept any arguments."""
        known = {tool.name for tool in self._tools}
        return (*self._tools, *(ToolSpec(name=name, parameters=OPEN_OBJECT) for name in stubs if name not in known))


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

    def add_turn(self, asked: ModelReply) -> None:
        """Add the next turn of the model, new or recorded."""
        turn = asked.turn
        self.turns += 1
        self.text = turn.text  # of the last turn, even if it is empty (tool-forge behaviour A-20)
        self.calls += turn.tool_calls
        self.has_open_calls = bool(turn.tool_calls)
        self.usages.append(turn.usage)
        self.costs.append(asked.cost_usd)
        self.attempts += asked.attempts
        self.replayed = self.replayed and asked.replayed
        self.model = turn.model or self.model
        self.messages.append(Message(role="assistant", content=turn.text, tool_calls=turn.tool_calls))

    def respond_to_calls(self, calls: Sequence[ToolCall], stubs: Mapping[str, JsonValue]) -> None:
        """Every call is answered in the same turn; one without a stub with an error (tool-forge behaviour 1.4)."""
        results = [stubs.get(call.name, {"error": f'no stub for "{call.name}"'}) for call in calls]
        done = [replace(call, result=result) for call, result in zip(calls, results, strict=True)]
        self.record_results(done, [dump_compact_json(result) for result in results])

    def record_results(self, done: Sequence[ToolCall], outputs: Sequence[str]) -> None:
        """Give the model the outputs of the last calls, and keep what became of the calls."""
        self.calls[-len(done) :] = done
        self.messages += [
            Message(role="tool", name=call.name, content=output, tool_call_id=call.id)
            for call, output in zip(done, outputs, strict=True)
        ]

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
            max_turns_reached=stub_mode and self.has_open_calls,
            replayed=self.replayed,
            model=self.model,
        )
