"""What is said to a target and what comes back: its answer, its calls, and what it reports of its own work.

A target reports messages with tool calls, or the older trace of events (agentv evaluation spec, "Output Message Format"
and "Trace Data Model"). Every field but the required ones may be missing; tools are called with any JSON value, not
only with mappings.
"""

from typing import Literal

from msgspec import field

from eval_gate.model.base import Frozen, JsonValue
from eval_gate.model.usage import Usage


class ToolCall(Frozen, kw_only=True):
    """One call of a tool, as the target reported it, in call order.

    `success` is None when the target does not say. `params` are the arguments the model passed.
    """

    name: str
    params: dict[str, JsonValue] = field(default_factory=dict)
    success: bool | None = None
    duration_ms: float | None = None
    result: JsonValue = None
    """What the tool gave back, as the target reported it; None where it does not say."""
    id: str | None = None
    """The provider's own name for this call, by which its result is given back."""


class ToolSpec(Frozen, kw_only=True):
    """A tool as a model is told of it. `parameters` is a JSON Schema of an object; None takes any arguments."""

    name: str
    description: str = ""
    parameters: dict[str, JsonValue] | None = None


class Message(Frozen, kw_only=True):
    """One message of a conversation."""

    role: Literal["system", "user", "assistant", "tool"]
    content: JsonValue = ""
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    """Of a tool's message: the call it answers."""


class OutputCall(Frozen, kw_only=True):
    """One tool call within a message. `timestamp` is ISO 8601 as it was given."""

    tool: str
    input: JsonValue = None
    output: JsonValue = None
    id: str | None = None
    timestamp: str | None = None
    duration_ms: float | None = None


class OutputMessage(Frozen, kw_only=True):
    """One message of the target's own exchange. `role` is the target's word; `content` None is a message without."""

    role: str
    name: str | None = None
    content: JsonValue = None
    tool_calls: tuple[OutputCall, ...] = ()
    timestamp: str | None = None
    metadata: dict[str, JsonValue] | None = None


EventType = Literal["model_step", "tool_call", "tool_result", "message", "error"]


class TraceEvent(Frozen, kw_only=True):
    """One event of a trace. Deprecated: `OutputMessage` says the same and more."""

    type: EventType
    timestamp: str | None = None
    id: str | None = None
    name: str | None = None
    input: JsonValue = None
    output: JsonValue = None
    text: str | None = None
    metadata: dict[str, JsonValue] | None = None


class FileEntry(Frozen, kw_only=True):
    """One entry below the folder that an agent left. `path` is relative to it, POSIX style, spelled as it is on disk.

    `text` is what a file holds, None where it cannot be had; then `problem` says why. `other` is what is neither file
    nor folder (a link, a pipe, a device) or a file that has a second name elsewhere: it is never looked into.
    """

    path: str
    kind: Literal["file", "folder", "other"]
    text: str | None = None
    problem: str | None = None
    unchanged: bool = False
    """It is as it was when the folder was made."""


class Response(Frozen, kw_only=True):
    """What a target gave back for one case.

    `duration_ms` is the wall clock from sending the message to the complete response, measured by us
    (tool-forge contract, "Latency measurement definition"). `attempts` counts tries, the last one included.
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    cost_usd: float | None = None
    duration_ms: float = 0.0
    first_token_ms: float | None = None
    """Until the first piece of text was there, where the answer is streamed."""
    attempts: int = 1
    conversation: tuple[Message, ...] = ()
    """The whole exchange with a model, turn by turn, where we led it ourselves."""
    max_turns_reached: bool = False
    """The exchange ended at the case's `maxTurns`, not with a turn without calls."""
    replayed: bool = False
    """Answered from a recording: nothing was asked and nothing spent."""
    model: str | None = None
    """The model that gave the answer, as whoever runs it names it there; None where it does not say."""
    messages: tuple[OutputMessage, ...] | None = None
    """Messages as the target reports them; None where it reports none. Then `tool_calls` are theirs."""
    trace: tuple[TraceEvent, ...] | None = None
    """Events as the target reports them; None where it reports none."""
    tool_calls_known: bool | None = True
    """Whether an empty `tool_calls` means that no tool was called. None: a list was promised and is not there, which
    means none only where other answers of the run have one. False: it has no way to say, as a command that prints a
    bare text."""
    tool_calls_location: str = ""
    """Where the list that is not there was looked for, in words for people."""
    dry_run: bool = False
    """Nobody was asked: everything but that was done, and there is nothing to judge."""
    files: tuple[FileEntry, ...] | None = None
    """What the agent's folder held when it was done, or of a folder that stays what assertions name; None where the
    target works in no folder of ours."""
    warnings: tuple[str, ...] = ()
    """Sentences for people about this answer, such as that it was cut."""
