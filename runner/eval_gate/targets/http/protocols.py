"""Presets of HTTP agent protocols: each is a row of settings that a user could write instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from eval_gate.config.preset import PresetName
from eval_gate.model.base import JsonValue

PresetRow = Mapping[str, JsonValue]

_TEXT_PARTS: Final[JsonValue] = [{"type": "text", "text": "{{content}}"}]
_LANGGRAPH: Final[PresetRow] = {
    "requestTemplate": {"assistant_id": "agent", "input": {"messages": "{{conversation}}"}},
    "responsePath": "messages[?type=ai|AIMessageChunk][-1].content",
    "modelPath": "messages[?type=ai|AIMessageChunk][-1].response_metadata.model_name",
    "toolCallsPath": "messages[?type=ai|AIMessageChunk].tool_calls[]",
    "argsField": "args",
    "toolResults": {
        "path": "messages[?type=tool]",
        "idField": "tool_call_id",
        "resultField": "content",
        "successField": "status",
    },
    "failure": ["__error__.message", {"event": "error", "path": "message"}],
}
_LANGGRAPH_EVENTS: Final[dict[str, JsonValue]] = {
    "text": {"event": "messages", "where": "[0].type=AIMessageChunk|ai", "path": "[0].content"},
    "fullResponse": {"event": "values"},
}
_THREAD_REQUEST: Final[dict[str, JsonValue]] = {
    "assistant_id": "agent",
    "if_not_exists": "create",
    "input": {"messages": [{"role": "user", "content": "{{message}}"}]},
}
_LANGSERVE: Final[PresetRow] = {
    "requestTemplate": {"input": "{{prompt}}"},
    "responsePath": ["output.content", "output"],
    "modelPath": "output.response_metadata.model_name",
    "toolCallsPath": "output.tool_calls",
    "argsField": "args",
}
_A2A_PARTS: Final = ("parts", "artifacts[].parts[]", "status.message.parts")
_A2A_1_PARTS: Final = ("message.parts", "task.artifacts[].parts[]", "task.status.message.parts", *_A2A_PARTS)
_FAILED: Final = "TASK_STATE_FAILED|TASK_STATE_REJECTED|TASK_STATE_CANCELED"

_A2A_IDS: Final = {"messageId": "{{uuid}}", "contextId": "{{session}}", "taskId": "{{task}}"}


def _build_call(method: str, params: JsonValue) -> JsonValue:
    """Build a request of JSON-RPC."""
    return {"jsonrpc": "2.0", "id": "{{uuid}}", "method": method, "params": params}


def _list_places(name: str, *parents: str) -> list[JsonValue]:
    """List rules for a member that a response may have at one of several places, or not at all."""
    return [{"where": f"{parent}.{name}", "path": f"{parent}.{name}"} for parent in parents]


PRESETS: Final[Mapping[PresetName, PresetRow]] = {
    PresetName.EVAL_GATE: {},
    PresetName.TOOL_FORGE_SIDECAR: {"responsePath": "message", "argsField": "args"},
    PresetName.OPENAI_CHAT: {
        "requestTemplate": {"messages": "{{conversation}}"},
        "responsePath": "choices[0].message.content",
        "modelPath": "model",
        "toolCallsPath": "choices[0].message.tool_calls",
        "noToolCallsPath": "choices[0].message",
        "nameField": "function.name",
        "argsField": "function.arguments",
        "failure": "error.message",
    },
    PresetName.OPENAI_RESPONSES: {
        "requestTemplate": {"input": "{{conversation}}"},
        "responsePath": "output[?type=message].content[?type=output_text]",
        "modelPath": "model",
        "toolCallsPath": "output[?type=function_call|mcp_call]",
        "argsField": "arguments",
        "idField": "call_id",
        "errorField": "error",
        "resultField": "output",
        "failure": ["error.message", {"where": "status=failed|cancelled"}],
    },
    PresetName.LANGGRAPH: _LANGGRAPH,
    PresetName.LANGGRAPH_THREAD: {**_LANGGRAPH, "requestTemplate": _THREAD_REQUEST, "toolCallsScope": "conversation"},
    PresetName.LANGSERVE: _LANGSERVE,
    PresetName.A2A: {
        "headers": {"A2A-Version": "1.0"},
        "requestTemplate": _build_call(
            "SendMessage", {"message": {"role": "ROLE_USER", **_A2A_IDS, "parts": [{"text": "{{prompt}}"}]}}
        ),
        "sessionPath": _list_places("contextId", "result.message", "result.task", "result"),
        "taskPath": [
            {"where": f"{place}.status.state=TASK_STATE_INPUT_REQUIRED|TASK_STATE_AUTH_REQUIRED", "path": f"{place}.id"}
            for place in ("result.task", "result")
        ],
        "responsePath": [f"result.{path}" for path in _A2A_1_PARTS],
        "failure": [
            "error.message",
            {"where": f"result.task.status.state={_FAILED}", "path": "result.task.status.message.parts[0].text"},
            {"where": f"result.status.state={_FAILED}", "path": "result.status.message.parts[0].text"},
        ],
        "poll": {
            "idPath": "result.task.id",
            "statusPath": ["result.task.status.state", "result.status.state"],
            "done": ["TASK_STATE_COMPLETED", "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED"],
            "requestTemplate": _build_call("GetTask", {"id": "{{id}}"}),
        },
    },
    PresetName.A2A_0_3: {
        "requestTemplate": _build_call(
            "message/send",
            {
                "message": {
                    "kind": "message",
                    "role": "user",
                    **_A2A_IDS,
                    "parts": [{"kind": "text", "text": "{{prompt}}"}],
                }
            },
        ),
        "sessionPath": _list_places("contextId", "result"),
        "taskPath": {"where": "result.status.state=input-required|auth-required", "path": "result.id"},
        "responsePath": [f"result.{path}" for path in _A2A_PARTS],
        "poll": {
            "idPath": "result.id",
            "statusPath": "result.status.state",
            "done": ["completed", "input-required", "auth-required"],
            "requestTemplate": _build_call("tasks/get", {"id": "{{id}}"}),
        },
        "failure": [
            "error.message",
            {"where": "result.status.state=failed|rejected|canceled", "path": "result.status.message.parts[0].text"},
        ],
    },
    PresetName.AG_UI: {
        "requestTemplate": {
            "threadId": "{{session}}",
            "runId": "{{uuid}}",
            "messages": "{{conversation}}",
            "state": {},
            "tools": [],
            "context": [],
            "forwardedProps": {},
        },
        "messageTemplate": {"id": "m{{index}}", "role": "{{role}}", "content": "{{content}}"},
        "responseFormat": "sse",
        "events": {
            "text": {"where": "type=TEXT_MESSAGE_CONTENT|TEXT_MESSAGE_CHUNK", "path": "delta", "id": "messageId"},
            "toolCall": {"where": "type=TOOL_CALL_START|TOOL_CALL_ARGS|TOOL_CALL_CHUNK|TOOL_CALL_RESULT"},
            "done": {"where": "type=RUN_FINISHED"},
        },
        "idField": "toolCallId",
        "nameField": "toolCallName",
        "argsField": "delta",
        "resultField": "content",
        "noToolCallsPath": "type",
        "failure": {"where": "type=RUN_ERROR", "path": "message"},
    },
    PresetName.VERCEL_AI: {
        "requestTemplate": {"id": "{{session}}", "trigger": "submit-message", "messages": "{{conversation}}"},
        "messageTemplate": {"id": "m{{index}}", "role": "{{role}}", "parts": _TEXT_PARTS},
        "responseFormat": "sse",
        "events": {
            "text": {"where": "type=text-delta", "path": "delta", "id": "id"},
            "toolCall": {"where": "type=tool-input-available|tool-input-error|tool-output-available|tool-output-error"},
            "done": {"where": "type=finish|abort"},
        },
        "idField": "toolCallId",
        "nameField": "toolName",
        "argsField": "input",
        "resultField": "output",
        "errorField": "errorText",
        "noToolCallsPath": "type",
        "failure": {"where": "type=error", "path": "errorText"},
    },
    PresetName.OLLAMA: {
        "requestTemplate": {"messages": "{{conversation}}", "stream": False},
        "responsePath": "message.content",
        "modelPath": "model",
        "toolCallsPath": "message.tool_calls",
        "noToolCallsPath": "message",
        "nameField": "function.name",
        "argsField": "function.arguments",
        "failure": "error",
    },
}
STREAMED_PRESETS: Final[Mapping[tuple[PresetName, str], PresetRow]] = {
    (PresetName.OPENAI_CHAT, "sse"): {
        "requestTemplate": {
            "messages": "{{conversation}}",
            "stream": True,
            "stream_options": {"include_usage": True},
        },
        "events": {"text": "choices[0].delta.content", "toolCall": "choices[0].delta.tool_calls[]"},
        "idField": "index",
        "noToolCallsPath": "choices[0].delta",
    },
    (PresetName.OPENAI_RESPONSES, "sse"): {
        "requestTemplate": {"input": "{{conversation}}", "stream": True},
        "events": {
            "text": {"where": "type=response.output_text.delta", "path": "delta"},
            "fullResponse": {"where": "type=response.completed|response.incomplete", "path": "response"},
            "done": {"where": "type=response.completed|response.incomplete"},
        },
        "failure": [
            {"where": "type=response.failed", "path": "response.error.message"},
            {"where": "type=error", "path": "message"},
        ],
    },
    (PresetName.LANGGRAPH, "sse"): {
        "requestTemplate": {
            "assistant_id": "agent",
            "input": {"messages": "{{conversation}}"},
            "stream_mode": ["values", "messages-tuple"],
        },
        "events": _LANGGRAPH_EVENTS,
    },
    (PresetName.LANGGRAPH_THREAD, "sse"): {
        "requestTemplate": {**_THREAD_REQUEST, "stream_mode": ["values", "messages-tuple"]},
        "events": _LANGGRAPH_EVENTS,
    },
    (PresetName.LANGSERVE, "sse"): {
        "events": {
            "text": [{"event": "data", "path": "content"}, {"event": "data"}],
            "toolCall": [
                {"event": "data", "path": "tool_call_chunks[]"},
                {"event": "data", "path": "tool_calls[]"},
            ],
            "done": {"event": "end"},
        },
        "idField": ["index", "id"],
        "failure": {"event": "error", "path": "message"},
    },
    (PresetName.OLLAMA, "ndjson"): {
        "requestTemplate": {"messages": "{{conversation}}", "stream": True},
        "events": {"text": "message.content", "toolCall": "message.tool_calls[]", "done": {"where": "done=true"}},
    },
}
"""Settings that differ for the streaming variant of a preset, by the `responseFormat` that selects it."""
_CALL_LIST_SETTINGS: Final = ("noToolCallsPath", "toolResults")
"""Settings of a preset that apply only to its own list of calls."""
_BODYLESS_METHODS: Final = ("GET", "DELETE")


def apply_preset(values: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Complete the settings with those of their preset.

    Settings that are given take precedence over the preset.
    """
    preset = values.get("agentProtocol", PresetName.EVAL_GATE)
    name = next((one for one in PresetName if one == preset), None)
    if name is None:  # the validation of the values reports it
        return values
    row = {**PRESETS[name], **STREAMED_PRESETS.get((name, str(values.get("responseFormat"))), {})}
    if values.get("form") is not None or str(values.get("method", "")).strip().upper() in _BODYLESS_METHODS:
        row.pop("requestTemplate", None)
    if "requestTemplate" in values or "requestTemplate" not in row:
        row.pop("taskPath", None)
    if {"requestTemplate", "sessionHeader", "sessionCookie"} & values.keys() or "requestTemplate" not in row:
        row.pop("sessionPath", None)
    if "toolCallsPath" in values:
        for key in _CALL_LIST_SETTINGS:
            row.pop(key, None)
    headers, own = row.get("headers"), values.get("headers")
    both = {"headers": {**headers, **own}} if isinstance(headers, dict) and isinstance(own, dict) else {}
    return {**row, **values, **both}
