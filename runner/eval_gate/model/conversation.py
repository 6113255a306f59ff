"""Messages sent to a target, and its response with tool calls and trace.

A target reports messages with tool calls, or the older trace of events (agentv evaluation spec, "Output Message Format"
and "Trace Data Model"). All fields but the required ones are optional. The arguments of a call can be any JSON value,
not only a mapping.
"""

from typing import Literal

from msgspec import field

from eval_gate.model.base import Frozen, JsonValue
from eval_gate.model.usage import Usage


class ToolCall(Frozen, kw_only=True):
    """One tool call as the target reported it, in call order.

    `success` is None if the target does not report it. `params` are the arguments from the model.
    """

    name: str
    params: dict[str, JsonValue] = field(default_factory=dict)
    success: bool | None = None
    duration_ms: float | None = None
    result: JsonValue = None
    """Result of the tool as the target reported it; None if it reported none."""
    id: str | None = None
    """The provider's id of the call, which its result refers to."""


class ToolSpec(Frozen, kw_only=True):
    """Tool definition for a model. `parameters` is the JSON Schema of an object; None allows any arguments."""

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
    """For a tool message: id of the call that it answers."""


class OutputCall(Frozen, kw_only=True):
    """One tool call in a message. `timestamp` is ISO 8601, as given."""

    tool: str
    input: JsonValue = None
    output: JsonValue = None
    id: str | None = None
    timestamp: str | None = None
    duration_ms: float | None = None


class OutputMessage(Frozen, kw_only=True):
    """One message that the target reports. `role` is the target's own term; `content` is None if missing."""

    role: str
    name: str | None = None
    content: JsonValue = None
    tool_calls: tuple[OutputCall, ...] = ()
    timestamp: str | None = None
    metadata: dict[str, JsonValue] | None = None


EventType = Literal["model_step", "tool_call", "tool_result", "message", "error"]


class TraceEvent(Frozen, kw_only=True):
    """One event of a trace. Deprecated: `OutputMessage` holds the same data and more."""

    type: EventType
    timestamp: str | None = None
    id: str | None = None
    name: str | None = None
    input: JsonValue = None
    output: JsonValue = None
    text: str | None = None
    metadata: dict[str, JsonValue] | None = None


class FileEntry(Frozen, kw_only=True):
    """One entry of the folder that an agent left; `path` is relative to it (POSIX, spelled as on disk).

    `text` is the content of a file. It is None if it cannot be read; `problem` then says why. The kind `other` is
    neither file nor folder (a link, pipe or device), or a file with a second name elsewhere. It is never read.
    """

    path: str
    kind: Literal["file", "folder", "other"]
    text: str | None = None
    problem: str | None = None
    unchanged: bool = False
    """The entry is unchanged since the folder was created."""


class Response(Frozen, kw_only=True):
    """Response of a target to one case.

    `duration_ms` is the wall time from sending the message to the complete response, measured by Eval Gate (tool-forge
    contract, "Latency measurement definition"). `attempts` is the number of attempts, including the last one.
    """

    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    cost_usd: float | None = None
    duration_ms: float = 0.0
    first_token_ms: float | None = None
    """Milliseconds to the first piece of text of a streamed response."""
    attempts: int = 1
    conversation: tuple[Message, ...] = ()
    """All messages of a conversation that Eval Gate had with a model, turn by turn."""
    new_messages: tuple[Message, ...] = ()
    """Messages with which the next turn of a conversation repeats this response, such as calls of a model with their
    results. Empty: one message with `text`."""
    session_id: str | None = None
    """Session in which the agent goes on with the conversation, as it reports it; None if it reports none."""
    trace_id: str | None = None
    """Id or address of the trace of the response, as the agent reports it; None if it reports none."""
    max_turns_reached: bool = False
    """The conversation ended at the case's `maxTurns`, instead of with a turn without tool calls."""
    replayed: bool = False
    """The response is from a recording: no request was sent, and no cost incurred."""
    body: JsonValue = None
    """The JSON in which the target responded; None if it responded in another form."""
    model: str | None = None
    """Name of the model that responded, as its operator reports it; None if not reported."""
    messages: tuple[OutputMessage, ...] | None = None
    """Messages that the target reports; None if it reports none. If present, `tool_calls` come from them."""
    trace: tuple[TraceEvent, ...] | None = None
    """Trace events that the target reports; None if it reports none."""
    tool_calls_known: bool | None = True
    """Whether an empty `tool_calls` means that no tool was called. None: the expected list is missing, which means no
    calls only if other responses of the run have a list. False: the target cannot report calls, such as a command that
    prints plain text."""
    tool_calls_location: str = ""
    """Where the missing list of tool calls was expected, for messages."""
    dry_run: bool = False
    """No request was sent: everything else was done, and the response has nothing to score."""
    files: tuple[FileEntry, ...] | None = None
    """Files in the agent's folder at the end; for a persistent folder, only those that assertions name. None if the
    target has no folder of Eval Gate."""
    warnings: tuple[str, ...] = ()
    """Warnings about this response, such as that it was truncated."""
