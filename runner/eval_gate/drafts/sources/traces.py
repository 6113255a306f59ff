"""Read observations from OpenTelemetry traces with the GenAI conventions.

An agent's span (`invoke_agent`) with the model calls (`chat`) and tools (`execute_tool`) below it is one execution of
the user's last message. Traces without agent spans are divided at each model call that begins with a message of a user.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from eval_gate.drafts.observation import ObservationSet
from eval_gate.drafts.sources.collection import ObservationCollector
from eval_gate.drafts.sources.genai_messages import (
    SpanMessages,
    TracedCall,
    TracedMessage,
    decode_json,
    read_messages,
)
from eval_gate.drafts.sources.otlp import SpanKey, TraceSpan, read_spans
from eval_gate.drafts.sources.source_file import build_source_error, read_source
from eval_gate.drafts.sources.user_prompt import PromptError, UserPrompt, build_prompt
from eval_gate.errors import Problem
from eval_gate.model.base import JsonValue
from eval_gate.model.case import Location
from eval_gate.model.conversation import Message, Response, ToolCall, ToolSpec
from eval_gate.model.limits import ANSWER_CALLS, CALL_NAME, MAX_DURATION_MS, MCP_TOOLS
from eval_gate.struct import Struct, field, replace

_AGENT_OPERATIONS: Final = frozenset({"invoke_agent", "invoke_workflow"})
_MODEL_OPERATIONS: Final = frozenset({"chat", "generate_content", "text_completion"})
_MODEL_ATTRIBUTES: Final = ("gen_ai.prompt", "gen_ai.completion", "gen_ai.request.")
_TOOL_OPERATION: Final = "execute_tool"
_OPERATION: Final = "gen_ai.operation.name"
_CONVERSATION: Final = "gen_ai.conversation.id"
_TOOL_NAME: Final = "gen_ai.tool.name"
_CALL_ID: Final = "gen_ai.tool.call.id"
_ARGUMENT_KEYS: Final = ("gen_ai.tool.call.arguments", "tool_arguments")
_RESULT_KEYS: Final = ("gen_ai.tool.call.result", "tool_response")
_FINAL_RESULT: Final = "final_result"
_RESPONSE_MODEL: Final = "gen_ai.response.model"
_NO_CONTENT: Final = "no message of a user; tell the instrumentation to capture the content of messages"
_NO_SPANS: Final = "has no span with the GenAI conventions (gen_ai.operation.name: invoke_agent, chat, execute_tool)"


def read_traces(path: Path) -> ObservationSet:
    """Read a file of OTLP JSON.

    The last message of a user is the question, and the messages before it are the conversation so far. Where a trace
    has the last message only, the earlier ones are those of traces with the same `gen_ai.conversation.id`. What has no
    question is left out and counted in the notes.

    Raises GateError `invalid-draft-source`.
    """
    source = read_source(path)
    content = read_spans(source)
    collector = ObservationCollector("agent run")
    for note in content.notes:
        collector.add_note(note)
    turns = sorted(_iter_turns(content.spans), key=lambda turn: turn.start_ns)
    if not turns:
        raise build_source_error([Problem(_NO_SPANS, source.shown)])
    conversations: dict[str, list[Message]] = {}
    for turn in turns:
        _collect_turn(turn, collector, conversations, source.shown)
    if collector.is_empty:
        raise build_source_error([Problem(reason, place) for reason, place in collector.reasons])
    return collector.build(_read_tools(content.spans.values()))


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
        """Start of the first span."""
        return min(span.start_ns for span in self.spans)

    @property
    def conversation(self) -> str:
        """Id of the conversation, or an empty text."""
        return next((found for span in self.spans if (found := span.get_text(_CONVERSATION))), "")


class _AgentsAbove(NamedTuple):
    """Agents that a span is below of: the topmost one, and how many."""

    topmost: SpanKey | None
    depth: int


_NO_AGENTS: Final = _AgentsAbove(None, 0)


class _SpanGroup(Struct):
    """Spans of one topmost agent, or of a trace without agents."""

    agent: TraceSpan | None = None
    own: list[TraceSpan] = field(default_factory=list)
    """Model calls and tools with no other agent in between."""
    nested: list[TraceSpan] = field(default_factory=list)
    """Model calls and tools of agents below."""

    @property
    def members(self) -> list[TraceSpan]:
        """The spans of the agent itself; of one that only starts other agents, those of the other agents."""
        calls_models = any(_get_operation(span) in _MODEL_OPERATIONS for span in self.own)
        found = self.own if calls_models else [*self.own, *self.nested]
        return sorted(found, key=lambda span: span.start_ns)


def _get_operation(span: TraceSpan) -> str:
    """Return the operation of a span, also of one that does not name it; otherwise an empty text."""
    given = span.get_text(_OPERATION)
    if given:
        return given
    if span.get_text(_TOOL_NAME):
        return _TOOL_OPERATION
    return "chat" if any(name.startswith(_MODEL_ATTRIBUTES) for name in span.attributes) else ""


def _iter_turns(spans: Mapping[SpanKey, TraceSpan]) -> Iterator[_Turn]:
    groups: dict[SpanKey, _SpanGroup] = {}
    known: dict[SpanKey, _AgentsAbove] = {}
    for span in spans.values():
        operation = _get_operation(span)
        if operation not in (*_AGENT_OPERATIONS, *_MODEL_OPERATIONS, _TOOL_OPERATION):
            continue
        above = _find_agents(span, spans, known)
        if operation in _AGENT_OPERATIONS:
            if above.topmost is None:
                groups.setdefault(span.key, _SpanGroup()).agent = span
            continue
        group = groups.setdefault(above.topmost or (span.key[0], ""), _SpanGroup())
        (group.own if above.depth <= 1 else group.nested).append(span)
    for group in groups.values():
        yield from _divide_group(group)


def _find_agents(
    span: TraceSpan, spans: Mapping[SpanKey, TraceSpan], known: dict[SpanKey, _AgentsAbove]
) -> _AgentsAbove:
    """Find the agents above a span. Spans that are their own ancestors have none."""
    chain: list[TraceSpan] = []
    above = span.parent
    seen = {span.key}
    while above is not None and above in spans and above not in seen and above not in known:
        seen.add(above)
        chain.append(spans[above])
        above = spans[above].parent
    found = known.get(above, _NO_AGENTS) if above is not None and above not in seen else _NO_AGENTS
    for one in reversed(chain):
        if _get_operation(one) in _AGENT_OPERATIONS:
            found = _AgentsAbove(found.topmost or one.key, found.depth + 1)
        known[one.key] = found
    return found


def _divide_group(group: _SpanGroup) -> Iterator[_Turn]:
    """Divide spans at each message of a user, but no agent's span: the agent may write to the model as a user."""
    turn = _Turn(group.agent)
    for span in group.members:
        if _get_operation(span) == _TOOL_OPERATION:
            turn.tools.append(span)
            continue
        messages = read_messages(span)
        begins = bool(messages.input) and messages.input[-1].is_prompt
        if begins and turn.models and group.agent is None:
            yield turn
            turn = _Turn(None)
        turn.models.append((span, messages))
    if turn.spans:
        yield turn


def _collect_turn(
    turn: _Turn, collector: ObservationCollector, conversations: dict[str, list[Message]], shown_as: str
) -> None:
    """Collect one turn, and remember it for the later ones of its conversation."""
    first = turn.spans[0]
    location = Location(file=shown_as, line=first.line)
    place = f"{shown_as}:{first.line} span {first.key[1][:40]}"
    own = read_messages(turn.agent) if turn.agent else SpanMessages()
    first_input = next((one.input for _, one in turn.models if one.input), ())
    given = first_input if own.is_whole and first_input else own.input or first_input
    try:
        prompt = _find_prompt(given)
        before = conversations.get(turn.conversation, [])
        if not prompt.earlier_messages and turn.conversation and before:
            prompt = build_prompt(prompt.text, tuple(before))
    except PromptError as error:
        collector.leave_out(str(error), place)
        return
    response = _build_response(turn, own)
    failed = turn.agent.error if turn.agent else None
    if failed is None and not response.text.strip() and not response.tool_calls:
        failed = next((span.error for span, _ in turn.models if span.error), "the trace has no response")
    if failed is not None:
        collector.add_error(prompt, failed, location)
        return
    collector.add_response(prompt, response, location)
    if turn.conversation:
        known = prompt.earlier_messages or ()
        replies = (Message(role="assistant", content=response.text),) if response.text.strip() else ()
        conversations[turn.conversation] = [*known, Message(role="user", content=prompt.text), *replies]


def _find_prompt(given: Sequence[TracedMessage]) -> UserPrompt:
    """Find the question in the messages that a model or an agent was given. Raises PromptError."""
    last = max((at for at, one in enumerate(given) if one.is_prompt), default=None)
    if last is None:
        raise PromptError(_NO_CONTENT)
    earlier = tuple(
        Message(role=one.role, content=one.text)
        for one in given[:last]
        if one.role in ("user", "assistant") and one.text.strip()
    )
    return build_prompt(given[last].text, earlier)


def _build_response(turn: _Turn, own: SpanMessages) -> Response:
    """Build the response of a turn: the agent's last text, and every tool call on the way."""
    outputs = [one.output for _, one in turn.models if one.output]
    said = (_find_last_text(one) for one in (own.output, *reversed(outputs)))
    text = next(filter(None, said), "") or (turn.agent.get_text(_FINAL_RESULT) if turn.agent else "")
    listed = [call for messages in outputs or [own.output] for one in messages for call in one.calls]
    results = _collect_results([*(one for _, one in turn.models), own])
    first, last = turn.start_ns, max(span.end_ns for span in turn.spans)
    models = (span.get_text(_RESPONSE_MODEL) for span, _ in reversed(turn.models))
    return Response(
        text=text,
        tool_calls=tuple(_merge_calls(listed, results, turn.tools))[:ANSWER_CALLS],
        tool_calls_known=True,
        duration_ms=_measure_ms(first, last),
        model=next(filter(None, models), None),
    )


def _find_last_text(messages: Sequence[TracedMessage]) -> str:
    return next((one.text for one in reversed(messages) if one.role == "assistant" and one.text.strip()), "")


def _collect_results(found: Iterable[SpanMessages]) -> dict[str, JsonValue]:
    """Collect the results of tools by the id of their call."""
    return {
        key: value
        for messages in found
        for one in (*messages.input, *messages.output)
        for key, value in one.results
        if key
    }


def _merge_calls(
    listed: Sequence[TracedCall], results: Mapping[str, JsonValue], tools: Sequence[TraceSpan]
) -> Iterator[ToolCall]:
    """Merge the calls in messages, each once, with the spans of tools, by id, otherwise by name and order."""
    spans = _ToolSpans(tools)
    seen = set[str]()
    for call in listed:
        if call.id and call.id in seen:
            continue
        seen.add(call.id)
        span = spans.take(call)
        made = ToolCall(
            name=call.name, params=_to_params(call.arguments), result=results.get(call.id), id=call.id or None
        )
        yield made if span is None else _add_span(made, span)
    for span in spans.list_left():
        name = span.get_text(_TOOL_NAME)
        if name and len(name) <= CALL_NAME:
            yield _add_span(ToolCall(name=name, id=span.get_text(_CALL_ID) or None), span)


class _ToolSpans:
    """Spans of tools, each of which belongs to one call at most."""

    def __init__(self, spans: Sequence[TraceSpan]) -> None:
        self._spans = spans
        self._taken = set[SpanKey]()
        self._by_id = {key: span for span in spans if (key := span.get_text(_CALL_ID))}
        self._by_name: dict[str, deque[TraceSpan]] = defaultdict(deque)
        for span in spans:
            self._by_name[span.get_text(_TOOL_NAME)].append(span)

    def take(self, call: TracedCall) -> TraceSpan | None:
        """Take the span of a call: by its id, otherwise the first one of its name; None if there is none."""
        span = self._by_id.pop(call.id, None) if call.id else None
        named = self._by_name.get(call.name)
        while span is None and named:
            first = named.popleft()
            if first.key not in self._taken and not (call.id and first.get_text(_CALL_ID)):
                span = first
        if span is not None:
            self._taken.add(span.key)
        return span

    def list_left(self) -> list[TraceSpan]:
        """List the spans that belong to no call."""
        return [span for span in self._spans if span.key not in self._taken]


def _add_span(call: ToolCall, span: TraceSpan) -> ToolCall:
    """Add what the span of a tool says: arguments, result, success and duration."""
    arguments = next((decode_json(span.attributes[key]) for key in _ARGUMENT_KEYS if key in span.attributes), None)
    result = next((decode_json(span.attributes[key]) for key in _RESULT_KEYS if key in span.attributes), None)
    return replace(
        call,
        params=call.params or _to_params(arguments),
        result=call.result if result is None else result,
        success=span.error is None,
        duration_ms=_measure_ms(span.start_ns, span.end_ns),
    )


def _to_params(arguments: JsonValue) -> dict[str, JsonValue]:
    return arguments if isinstance(arguments, dict) else {}


def _measure_ms(start_ns: int, end_ns: int) -> float:
    return min(max(end_ns - start_ns, 0) / 1e6, MAX_DURATION_MS)


def _read_tools(spans: Iterable[TraceSpan]) -> tuple[ToolSpec, ...]:
    """Read the definitions of tools that agents and models were given, each once."""
    found: dict[str, ToolSpec] = {}
    texts = set[str]()
    for span in spans:
        given = span.attributes.get("gen_ai.tool.definitions")
        if isinstance(given, str):
            if given in texts:
                continue
            texts.add(given)
        listed = decode_json(given)
        for entry in listed if isinstance(listed, list) else ():
            tool = _parse_tool(entry)
            if tool is not None and len(found) < MCP_TOOLS:
                found.setdefault(tool.name, tool)
    return tuple(found.values())


def _parse_tool(entry: JsonValue) -> ToolSpec | None:
    """Parse the definition of a tool. Return None if it has no name."""
    if not isinstance(entry, dict):
        return None
    function = entry.get("function")
    inner = function if isinstance(function, dict) else entry
    name, description, parameters = inner.get("name"), inner.get("description"), inner.get("parameters")
    if not isinstance(name, str) or not name or len(name) > CALL_NAME:
        return None
    return ToolSpec(
        name=name,
        description=description if isinstance(description, str) else "",
        parameters=parameters if isinstance(parameters, dict) else None,
    )
