"""What a target reports of its own work: messages with tool calls, or the older trace of events.

Source: agentv evaluation spec, "Output Message Format" and "Trace Data Model". Every field but the required ones may be
missing; tools are called with any JSON value, not only with mappings.
"""

from __future__ import annotations

from typing import Literal

from eval_gate.model.base import Frozen, JsonValue


class OutputCall(Frozen):
    """One tool call within a message. `timestamp` is ISO 8601 as it was given."""

    tool: str
    input: JsonValue = None
    output: JsonValue = None
    id: str | None = None
    timestamp: str | None = None


class OutputMessage(Frozen):
    """One message of the target's own exchange. `role` is the target's word; `content` None is a message without."""

    role: str
    name: str | None = None
    content: JsonValue = None
    tool_calls: tuple[OutputCall, ...] = ()
    timestamp: str | None = None
    metadata: dict[str, JsonValue] | None = None


class TraceEvent(Frozen):
    """One event of a trace. Deprecated: `OutputMessage` says the same and more."""

    type: Literal["model_step", "tool_call", "tool_result", "message", "error"]
    timestamp: str | None = None
    id: str | None = None
    name: str | None = None
    input: JsonValue = None
    output: JsonValue = None
    text: str | None = None
    metadata: dict[str, JsonValue] | None = None
