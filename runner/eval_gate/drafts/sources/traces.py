"""Read observations from OpenTelemetry traces of agents.

The span of an agent with the model calls and tools below it is one execution of the user's last message. Model calls
without an agent's span are divided at each message of a user, and joined where one continues another.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from eval_gate.drafts.observation import ObservationSet
from eval_gate.drafts.sources.collection import ObservationCollector
from eval_gate.drafts.sources.otlp import SpanKey, TraceSpan, measure_ms, read_spans
from eval_gate.drafts.sources.source_file import build_source_error, read_source
from eval_gate.drafts.sources.source_messages import (
    PromptError,
    SessionMessages,
    SourceCall,
    SourceMessage,
    UserPrompt,
    build_prompt,
    decode_json,
    find_last_prompt,
    find_prompt,
)
from eval_gate.drafts.sources.span_messages import (
    SpanKind,
    SpanMessages,
    find_kind,
    iter_tool_definitions,
    read_messages,
    read_tool,
)
from eval_gate.errors import Problem
from eval_gate.model.base import JsonValue
from eval_gate.model.case import Location
from eval_gate.model.conversation import Response, ToolCall, ToolSpec
from eval_gate.model.limits import CALL_NAME, MCP_TOOLS, RESPONSE_CALLS
from eval_gate.struct import Struct, field, replace

_CONVERSATIONS: Final = ("gen_ai.conversation.id", "session.id")
_FINAL_RESULT: Final = "final_result"
_RESPONSE_MODELS: Final = ("gen_ai.response.model", "llm.model_name")
_NO_CONTENT: Final = "no message of a user; tell the instrumentation to capture the content of messages"
_NO_SPANS: Final = (
    "has no span of an agent, a model or a tool (gen_ai.operation.name, openinference.span.kind, ai.operationId)"
)


def read_traces(path: Path) -> ObservationSet:
    """Read a file of OTLP JSON, in which the last message of a user is the question. Raises GateError.

    Where a trace has that message only, the earlier ones are those of traces with the same `gen_ai.conversation.id`.
    What has no question is left out, and a note counts it.
    """
    source = read_source(path)
    spans, notes = read_spans(source)
    collector = ObservationCollector("agent run")
    for note in notes:
        collector.add_note(note)
    turns = sorted(_iter_turns(spans), key=lambda turn: turn.start_ns)
    if not turns:
        raise build_source_error([Problem(_NO_SPANS, source.shown_as)])
    sessions = SessionMessages()
    for turn in _join_turns(turns):
        _collect_turn(turn, collector, sessions, source.shown_as)
    if collector.is_empty:
        raise build_source_error([Problem(reason, place) for reason, place in collector.reasons])
    return collector.build(_read_tools(spans.values()))


class _Turn(Struct):
    """Spans of one execution: that of the agent, if any, its model calls and tools in order of their start."""

    agent: TraceSpan | None
    models: list[tuple[TraceSpan, SpanMessages]] = field(default_factory=list)
    tools: list[TraceSpan] = field(default_factory=list)

    @property
    def spans(self) -> list[TraceSpan]:
        """All spans, that of the agent first."""
        return [*([self.agent] if self.agent else []), *(span for span, _ in self.models), *self.tools]

    @property
    def start_ns(self) -> int:
        return min(span.start_ns for span in self.spans)

    @property
    def conversation(self) -> str:
        """Id of the conversation, or an empty text."""
        return next((text for span in self.spans for key in _CONVERSATIONS if (text := span.get_text(key))), "")

    @property
    def first_input(self) -> tuple[SourceMessage, ...]:
        """Messages that the first model call was given."""
        return next((messages.input for _, messages in self.models if messages.input), ())


class _Above(NamedTuple):
    """The agents above a span: the topmost one, their number, and whether a tool is between."""

    topmost: SpanKey | None = None
    depth: int = 0
    in_tool: bool = False

    def enter(self, span: TraceSpan) -> _Above:
        """Return the agents above the spans below this one."""
        kind = find_kind(span)
        if kind is SpanKind.STEP and (self.topmost is None or self.in_tool):
            is_run = any(one.is_prompt for one in read_messages(span, kind).input)
            kind = SpanKind.AGENT if is_run else kind
        if kind is SpanKind.AGENT:
            return _Above(self.topmost or span.key, self.depth + 1)
        return self._replace(in_tool=True) if kind is SpanKind.TOOL else self


class _Member(NamedTuple):
    """Model call or tool of an agent, which is its `own` if no other agent is in between, or of none."""

    span: TraceSpan
    kind: SpanKind
    own: bool


def _iter_turns(spans: Mapping[SpanKey, TraceSpan]) -> Iterator[_Turn]:
    agents: dict[SpanKey, TraceSpan] = {}
    groups: dict[SpanKey, list[_Member]] = {}
    places: dict[SpanKey, _Above] = {}
    for span in spans.values():
        above, kind = _find_agents(span, spans, places), find_kind(span)
        if above.enter(span).depth > above.depth:
            if above.topmost is None:
                agents[span.key] = span
                groups.setdefault(span.key, [])
        elif kind in (SpanKind.MODEL, SpanKind.TOOL):
            members = groups.setdefault(above.topmost or (span.key[0], ""), [])
            members.append(_Member(span, kind, own=above.depth <= 1))
    for key, members in groups.items():
        yield from _divide_members(agents.get(key), members)


def _find_agents(span: TraceSpan, spans: Mapping[SpanKey, TraceSpan], places: dict[SpanKey, _Above]) -> _Above:
    """Find the agents above a span. Spans that are their own ancestors have none."""
    chain: list[TraceSpan] = []
    above = span.parent
    ancestors = {span.key}
    while above is not None and above in spans and above not in ancestors and above not in places:
        ancestors.add(above)
        chain.append(spans[above])
        above = spans[above].parent
    place = places.get(above, _Above()) if above is not None and above not in ancestors else _Above()
    for one in reversed(chain):
        place = places[one.key] = place.enter(one)
    return place


def _divide_members(agent: TraceSpan | None, members: Sequence[_Member]) -> Iterator[_Turn]:
    """Divide spans at each message of a user, but no agent's span: the agent may write to the model as a user."""
    # if an agent only starts other agents, their members count
    calls_models = any(one.own and one.kind is SpanKind.MODEL for one in members)
    ordered = sorted(members, key=lambda one: (one.span.start_ns, not one.own))
    read = [(one.span, one.kind, read_messages(one.span, one.kind)) for one in ordered if one.own or not calls_models]
    outer = {span.parent for span, kind, part in read if kind is SpanKind.MODEL and (part.input or part.output)}
    turn = _Turn(agent)
    for span, kind, messages in read:
        if kind is SpanKind.TOOL:
            turn.tools.append(span)
        elif span.key not in outer:  # a model call around another one is the same call
            if turn.models and agent is None and _begins_turn(messages):
                yield turn
                turn = _Turn(None)
            turn.models.append((span, messages))
    if turn.spans:
        yield turn


def _begins_turn(messages: SpanMessages) -> bool:
    return bool(messages.input) and messages.input[-1].is_prompt


def _join_turns(turns: Iterable[_Turn]) -> list[_Turn]:
    """Join model calls without an agent's span with those they continue: each may be a trace of its own."""
    joined: list[_Turn] = []
    waiting: dict[tuple[tuple[str, str], ...], _Turn] = {}
    for turn in turns:
        inputs = turn.first_input
        key = tuple((one.role, one.text) for one in inputs[: find_last_prompt(inputs) + 1])
        earlier = waiting.get(key) if turn.agent is None and inputs and not _begins_turn(turn.models[0][1]) else None
        if earlier is None:
            joined.append(turn)
            if key and turn.agent is None:
                waiting[key] = turn
        else:
            earlier.models += turn.models
            earlier.tools += turn.tools
    return joined


def _collect_turn(turn: _Turn, collector: ObservationCollector, sessions: SessionMessages, shown_as: str) -> None:
    """Collect one turn, and remember it for the later ones of its conversation."""
    first = turn.spans[0]
    place = f"{shown_as}:{first.line} span {first.key[1][:40]}"
    own = read_messages(turn.agent, SpanKind.AGENT) if turn.agent else SpanMessages()
    try:
        prompt = sessions.complete_prompt(turn.conversation, _find_turn_prompt(turn, own))
    except PromptError as error:
        collector.leave_out(str(error), place, error.detail)
        return
    response = _build_response(turn, own)
    failed = turn.agent.error if turn.agent else None
    if failed is None and not response.text.strip() and not response.tool_calls:
        failed = next((span.error for span, _ in turn.models if span.error), "the trace has no response")
    collector.add_execution(prompt, response if failed is None else failed, Location(file=shown_as, line=first.line))
    sessions.add_exchange(turn.conversation, prompt, prompt.text, response.text if failed is None else None)


def _find_turn_prompt(turn: _Turn, own: SpanMessages) -> UserPrompt:
    """Find the question of a turn: the agent's if it has one, with the earlier messages that a model was given."""
    first = turn.first_input
    if turn.agent is None and not turn.models:
        raise PromptError("a tool call without the span of an agent or a model")
    if not own.input and not first:
        unread = next((one.unread for one in (own, *(one for _, one in turn.models)) if one.unread), "")
        if unread:
            return build_prompt(unread)  # the error names its structure
    if not own.input or (own.is_whole and first):
        return find_prompt(first, _NO_CONTENT)
    prompt = find_prompt(own.input, _NO_CONTENT)
    is_same = any(one.is_prompt and one.text == prompt.text for one in first)
    return find_prompt(first) if is_same and not prompt.earlier_messages else prompt


def _build_response(turn: _Turn, own: SpanMessages) -> Response:
    """Build the response of a turn: the agent's last text, and every tool call on the way."""
    outputs = [one.output for _, one in turn.models if one.output]
    texts = (
        one.text
        for messages in (own.output, *reversed(outputs))
        for one in reversed(messages)
        if one.role == "assistant" and one.text.strip()
    )
    text = next(texts, "") or (turn.agent.get_text(_FINAL_RESULT) if turn.agent else "")
    listed = [call for messages in outputs or [own.output] for one in messages for call in one.calls]
    messages = (one for part in (*(one for _, one in turn.models), own) for one in (*part.input, *part.output))
    results = {key: value for one in messages for key, value in one.results if key}
    models = (span.get_text(key) for span, _ in reversed(turn.models) for key in _RESPONSE_MODELS)
    return Response(
        text=text,
        tool_calls=tuple(_merge_calls(listed, results, [*map(read_tool, turn.tools)]))[:RESPONSE_CALLS],
        tool_calls_known=True,
        duration_ms=measure_ms(turn.start_ns, max(span.end_ns for span in turn.spans)),
        model=next(filter(None, models), None),
    )


def _merge_calls(
    listed: Sequence[SourceCall], results: Mapping[str, JsonValue], tools: Sequence[ToolCall]
) -> Iterator[ToolCall]:
    """Merge the calls in messages, each once, with those of spans, by id, otherwise by name and order."""
    ids = {call.id for call in listed}.intersection(tool.id for tool in tools if tool.id)
    waiting: dict[str, deque[int]] = defaultdict(deque)
    for at, tool in enumerate(tools):
        waiting[tool.id if tool.id in ids else tool.name].append(at)
    ids_seen, merged = set[str](), set[int]()
    for call in listed:
        if call.id and call.id in ids_seen:
            continue
        ids_seen.add(call.id)
        params = call.arguments if isinstance(call.arguments, dict) else {}
        new_call = ToolCall(name=call.name, params=params, result=results.get(call.id), id=call.id or None)
        places = waiting[call.id if call.id in ids else call.name]
        if places:
            merged.add(at := places.popleft())
            tool = tools[at]
            result = new_call.result if tool.result is None else tool.result
            new_call = replace(tool, name=new_call.name, params=params or tool.params, result=result, id=new_call.id)
        yield new_call
    yield from (tool for at, tool in enumerate(tools) if at not in merged and tool.name and len(tool.name) <= CALL_NAME)


def _read_tools(spans: Iterable[TraceSpan]) -> tuple[ToolSpec, ...]:
    """Read the definitions of tools that agents and models were given, each once."""
    tools: dict[str, ToolSpec] = {}
    for span in spans:
        for entry in iter_tool_definitions(span):
            tool = _parse_tool(entry)
            if tool is not None and len(tools) < MCP_TOOLS:
                tools.setdefault(tool.name, tool)
    return tuple(tools.values())


def _parse_tool(entry: JsonValue) -> ToolSpec | None:
    """Parse the definition of a tool. Return None if it has no name."""
    inner = entry
    for key in ("tool", "json_schema", "function"):
        member = decode_json(inner.get(key)) if isinstance(inner, dict) else None
        inner = member if isinstance(member, dict) else inner
    if not isinstance(inner, dict):
        return None
    name, description = inner.get("name"), inner.get("description")
    parameters = next((inner[key] for key in ("parameters", "inputSchema", "input_schema") if key in inner), None)
    if not isinstance(name, str) or not name or len(name) > CALL_NAME:
        return None
    return ToolSpec(
        name=name,
        description=description if isinstance(description, str) else "",
        parameters=parameters if isinstance(parameters, dict) else None,
    )
