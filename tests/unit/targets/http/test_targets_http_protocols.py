"""Each preset with the bytes that a real server of its kind was recorded to send, over a real connection.

`tests/agents` holds the same against the servers themselves.
"""

from __future__ import annotations

import asyncio
import json

import pytest

from eval_gate.model.conversation import Message, Response
from eval_gate.targets.base import Request, TargetError, TargetFault
from eval_gate.targets.http.protocols import PRESETS, STREAMED_PRESETS
from eval_gate.targets.http.settings import HttpSettings
from eval_gate.targets.http.target import HttpTarget
from eval_gate.text.redaction import Redactor
from tests.support.agents import Exchange, agent

ANSWER = "It is 22 degrees in Rome."
SSE = "text/event-stream"


def sse(*events: object, name: str = "") -> str:
    head = f"event: {name}\n" if name else ""
    return "".join(f"{head}data: {one if isinstance(one, str) else json.dumps(one)}\n\n" for one in events)


def message(kind: str, content: object, **more: object) -> dict:
    return {"type": kind, "content": content, "additional_kwargs": {}, "response_metadata": {}, "id": "x"} | more


LC_CALL = {"name": "get_weather", "args": {"city": "Rome"}, "id": "call-1", "type": "tool_call"}
THREAD = [
    message("human", "weather?"),
    message("ai", "", tool_calls=[LC_CALL]),
    message("tool", "22 degrees", tool_call_id="call-1", status="success", name="get_weather"),
    message("ai", ANSWER, tool_calls=[]),
]
OPENAI_CALL = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}}
RESPONSES = {
    "id": "resp-1",
    "object": "response",
    "status": "completed",
    "error": None,
    "output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {
            "type": "function_call",
            "call_id": "call_1",
            "name": "get_weather",
            "arguments": '{"city": "Rome"}',
            "status": "completed",
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": ANSWER, "annotations": []}],
        },
    ],
    "usage": {"input_tokens": 3, "output_tokens": 4},
}


def chunk(**delta: object) -> dict:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def ag_ui(kind: str, **more: object) -> dict:
    return {"type": kind, "timestamp": 1795374937812} | more


CASES = {
    "openai-chat": (
        {},
        {
            "choices": [{"message": {"role": "assistant", "content": ANSWER, "tool_calls": [OPENAI_CALL]}}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 4},
        },
    ),
    "openai-chat sse": (
        {"responseFormat": "sse"},
        sse(
            chunk(role="assistant", content=""),
            chunk(content="It is 22 degrees in "),
            chunk(content="Rome."),
            chunk(tool_calls=[{"index": 0, "id": "call_1", "function": {"name": "get_weather", "arguments": ""}}]),
            chunk(tool_calls=[{"index": 0, "function": {"arguments": '{"city": '}}]),
            chunk(tool_calls=[{"index": 0, "function": {"arguments": '"Rome"}'}}]),
            chunk(),
            {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
            "[DONE]",
        ),
    ),
    "openai-responses": ({}, RESPONSES),
    "openai-responses sse": (
        {"responseFormat": "sse"},
        sse({"type": "response.created", "response": {"status": "in_progress", "output": []}}, name="response.created")
        + sse({"type": "response.output_text.delta", "delta": "It is"}, name="response.output_text.delta")
        + sse({"type": "response.completed", "response": RESPONSES}, name="response.completed"),
    ),
    "langgraph": ({}, {"messages": THREAD}),
    "langgraph sse": (
        {"responseFormat": "sse"},
        sse({"run_id": "1", "attempt": 1}, name="metadata")
        + sse({"messages": THREAD[:1]}, name="values")
        + sse([THREAD[1], {"graph_id": "agent"}], [THREAD[2], {}], name="messages")
        + sse([message("AIMessageChunk", "It is"), {}], name="messages")
        + sse({"messages": THREAD}, name="values"),
    ),
    "langserve": ({}, {"output": message("ai", ANSWER, tool_calls=[LC_CALL]), "metadata": {"run_id": "1"}}),
    "langserve sse": (
        {"responseFormat": "sse"},
        sse({"run_id": "1"}, name="metadata")
        + sse(
            message("AIMessageChunk", "It is 22 ", tool_call_chunks=[{"name": "get_weather", "args": "", "index": 0}]),
            message(
                "AIMessageChunk",
                "degrees in Rome.",
                tool_call_chunks=[{"name": None, "args": '{"city": "Rome"}', "id": None, "index": 0}],
            ),
            name="data",
        )
        + "event: end\n\n",
    ),
    "ag-ui": (
        {},
        sse(
            ag_ui("RUN_STARTED", threadId="t", runId="r"),
            ag_ui("TOOL_CALL_START", toolCallId="c1", toolCallName="get_weather"),
            ag_ui("TOOL_CALL_ARGS", toolCallId="c1", delta='{"city"'),
            ag_ui("TOOL_CALL_ARGS", toolCallId="c1", delta=': "Rome"}'),
            ag_ui("TOOL_CALL_END", toolCallId="c1"),
            ag_ui("TOOL_CALL_RESULT", toolCallId="c1", messageId="m1", content="22 degrees", role="tool"),
            ag_ui("TEXT_MESSAGE_START", messageId="m2", role="assistant"),
            ag_ui("TEXT_MESSAGE_CONTENT", messageId="m2", delta="It is 22 degrees "),
            ag_ui("TEXT_MESSAGE_CONTENT", messageId="m2", delta="in Rome."),
            ag_ui("TEXT_MESSAGE_END", messageId="m2"),
            ag_ui("RUN_FINISHED", threadId="t", runId="r"),
        ),
    ),
    "vercel-ai": (
        {},
        sse(
            {"type": "start"},
            {"type": "start-step"},
            {"type": "tool-input-start", "toolCallId": "c1", "toolName": "get_weather"},
            {"type": "tool-input-delta", "toolCallId": "c1", "inputTextDelta": '{"city"'},
            {
                "type": "tool-input-available",
                "toolCallId": "c1",
                "toolName": "get_weather",
                "input": {"city": "Rome"},
            },
            {"type": "tool-output-available", "toolCallId": "c1", "output": "22 degrees"},
            {"type": "finish-step"},
            {"type": "text-start", "id": "t1"},
            {"type": "text-delta", "id": "t1", "delta": "It is 22 degrees "},
            {"type": "text-delta", "id": "t1", "delta": "in Rome."},
            {"type": "text-end", "id": "t1"},
            {"type": "finish"},
            "[DONE]",
        ),
    ),
    "ollama": (
        {},
        {
            "message": {
                "content": ANSWER,
                "tool_calls": [{"function": {"name": "get_weather", "arguments": {"city": "Rome"}}}],
            },
            "done": True,
        },
    ),
    "ollama ndjson": (
        {"responseFormat": "ndjson"},
        "".join(
            json.dumps(one) + "\n"
            for one in (
                {"message": {"content": "It is 22 degrees in "}, "done": False},
                {"message": {"content": "Rome."}, "done": False},
                {
                    "message": {
                        "content": "",
                        "tool_calls": [{"function": {"name": "get_weather", "arguments": {"city": "Rome"}}}],
                    }
                },
                {"message": {"content": ""}, "done": True},
            )
        ),
    ),
    "tool-forge-sidecar": (
        {"nameField": "toolName"},
        {"message": ANSWER, "toolCalls": [{"toolName": "get_weather", "args": {"city": "Rome"}}]},
    ),
}
CASES |= {name.replace("graph", "graph-thread"): CASES[name] for name in ("langgraph", "langgraph sse")}
WITHOUT_CALLS = {
    "a2a": {"result": {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": ANSWER}]}}},
    "a2a task": {
        "result": {
            "task": {
                "id": "1",
                "status": {"state": "TASK_STATE_COMPLETED", "message": {"parts": [{"text": "done"}]}},
                "artifacts": [{"parts": [{"text": "It is 22 "}]}, {"parts": [{"text": "degrees in Rome."}]}],
            }
        }
    },
    "a2a asks back": {
        "result": {
            "task": {
                "status": {"state": "TASK_STATE_INPUT_REQUIRED", "message": {"parts": [{"text": ANSWER}]}},
            }
        }
    },
    "a2a-0.3": {"result": {"kind": "message", "role": "agent", "parts": [{"kind": "text", "text": ANSWER}]}},
    "a2a-0.3 task": {
        "result": {
            "kind": "task",
            "status": {"state": "completed"},
            "artifacts": [{"parts": [{"kind": "text", "text": ANSWER}]}],
        }
    },
    "langserve text": {"output": ANSWER, "metadata": {}},
}


def ask(body: dict | str, **settings: object) -> tuple[Response, Exchange]:
    """The answer of an agent that sends this, and what it was asked."""

    async def handler(exchange: Exchange) -> None:
        if isinstance(body, dict):
            exchange.answer(body)
        else:
            exchange.answer(body.encode(), Content_Type=SSE if "data: " in body else "application/x-ndjson")

    async def main(url: str) -> Response:
        described = HttpSettings.model_validate({"name": "a", "url": url} | settings)
        target = HttpTarget(described, redact=Redactor(), concurrency=1)
        try:
            return await target.respond(Request("gs-1", (Message(role="user", content="weather?"),), run_id="r"))
        finally:
            await target.aclose()

    with agent(handler) as running:
        return asyncio.run(main(running.url)), running.requests[0]


@pytest.mark.contract("endpoint.presets")
@pytest.mark.parametrize("name", CASES)
def test_preset__recorded_answer__gives_text_and_calls(name) -> None:
    settings, body = CASES[name]
    response, _ = ask(body, agent_protocol=name.partition(" ")[0], **settings)
    assert response.text == ANSWER
    assert [(call.name, call.params) for call in response.tool_calls] == [("get_weather", {"city": "Rome"})]
    assert response.tool_calls_known is True
    assert (response.first_token_ms is not None) is isinstance(body, str)


@pytest.mark.parametrize("name", WITHOUT_CALLS)
def test_preset__answer_that_has_no_place_for_calls__gives_the_text(name) -> None:
    response, _ = ask(WITHOUT_CALLS[name], agent_protocol=name.partition(" ")[0])
    assert (response.text, response.tool_calls, response.tool_calls_known) == (ANSWER, (), None)


@pytest.mark.parametrize("name", ["langgraph", "langgraph sse", "ag-ui", "vercel-ai"])
def test_preset__result_of_a_call__is_found_wherever_it_stands(name) -> None:
    settings, body = CASES[name]
    response, _ = ask(body, agent_protocol=name.partition(" ")[0], **settings)
    assert response.tool_calls[0].result == "22 degrees"


@pytest.mark.parametrize("name", ["openai-chat", "openai-chat sse", "openai-responses", "openai-responses sse"])
def test_preset__tokens__are_counted(name) -> None:
    settings, body = CASES[name]
    response, _ = ask(body, agent_protocol=name.partition(" ")[0], **settings)
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == (3, 4)


MODEL = "gpt-x-1106"
NAMED = {
    "openai-chat": ({}, {"model": MODEL, "choices": [{"message": {"content": "hi"}}]}),
    "openai-chat sse": (
        {"responseFormat": "sse"},
        sse({"model": MODEL, "choices": [{"delta": {"content": "hi"}}]}),
    ),
    "openai-responses": (
        {},
        {"model": MODEL, "output": [{"type": "message", "content": [{"type": "output_text", "text": "hi"}]}]},
    ),
    "langgraph": (
        {},
        {"messages": [{"type": "ai", "content": "hi", "response_metadata": {"model_name": MODEL}}]},
    ),
    "langserve": ({}, {"output": {"content": "hi", "response_metadata": {"model_name": MODEL}}}),
    "ollama": ({}, {"model": MODEL, "message": {"content": "hi"}}),
    "eval-gate": ({}, {"model": MODEL, "response": "hi"}),
}


@pytest.mark.parametrize("name", NAMED)
def test_preset__answer_that_names_its_model__is_known_to_be_from_it(name) -> None:
    settings, body = NAMED[name]
    response, _ = ask(body, agent_protocol=name.partition(" ")[0], **settings)
    assert (response.text, response.model) == ("hi", MODEL)


@pytest.mark.parametrize("model", [7, None, {"name": "x"}, [MODEL]])
def test_preset__model_that_is_no_text__is_not_known(model) -> None:
    response, _ = ask({"model": model, "response": "hi"})
    assert response.model is None


def test_settings__answer_of_another_shape__is_from_the_model_at_its_model_path_only() -> None:
    body = {"model": "Golf", "data": {"text": "hi", "llm": MODEL}}
    assert ask(body, responsePath="data.text")[0].model is None
    assert ask(body, responsePath="data.text", modelPath="data.llm")[0].model == MODEL


FAILURES = {
    "langgraph": ({}, {"__error__": {"error": "RuntimeError", "message": "out of order"}}),
    "langgraph sse": (
        {"responseFormat": "sse"},
        sse({"error": "RuntimeError", "message": "out of order"}, name="error"),
    ),
    "langserve sse": ({"responseFormat": "sse"}, sse({"status_code": 500, "message": "out of order"}, name="error")),
    "openai-chat": ({}, {"error": {"message": "out of order", "type": "server_error"}}),
    "openai-chat sse": ({"responseFormat": "sse"}, sse({"error": {"message": "out of order"}})),
    "openai-responses": ({}, {"status": "failed", "error": {"message": "out of order"}, "output": []}),
    "a2a": ({}, {"jsonrpc": "2.0", "id": "1", "error": {"code": -32603, "message": "out of order"}}),
    "a2a task": (
        {},
        {
            "result": {
                "task": {"status": {"state": "TASK_STATE_FAILED", "message": {"parts": [{"text": "out of order"}]}}}
            }
        },
    ),
    "a2a-0.3": ({}, {"result": {"status": {"state": "failed", "message": {"parts": [{"text": "out of order"}]}}}}),
    "ag-ui": ({}, sse(ag_ui("RUN_STARTED"), ag_ui("RUN_ERROR", message="out of order"))),
    "vercel-ai": ({}, sse({"type": "start"}, {"type": "error", "errorText": "out of order"})),
    "ollama": ({}, {"error": "out of order"}),
}


@pytest.mark.parametrize("name", FAILURES)
def test_preset__failure_within_an_answer__is_an_error_of_the_agent_in_its_words(name) -> None:
    settings, body = FAILURES[name]
    with pytest.raises(TargetError) as caught:
        ask(body, agent_protocol=name.partition(" ")[0], **settings)
    assert (caught.value.message, caught.value.fault) == ("agent error: «out of order»", TargetFault.REFUSED)


@pytest.mark.parametrize("name", ["ag-ui", "vercel-ai", "openai-responses sse", "langserve sse", "ollama ndjson"])
def test_preset__stream_without_its_last_event__broke_off(name) -> None:
    settings, body = CASES[name]
    mark = "\n" if "ndjson" in name else "\n\n"
    events = [one for one in body.split(mark) if one and "[DONE]" not in one]
    with pytest.raises(TargetError, match="the stream ended before its last event") as caught:
        ask(mark.join(events[:-1]) + mark, agent_protocol=name.partition(" ")[0], **settings)
    assert caught.value.fault is TargetFault.REFUSED


def test_preset__each__is_recorded_here() -> None:
    streamed = {f"{name} {kind}" for name, kind in STREAMED_PRESETS}
    assert {*CASES, *WITHOUT_CALLS} >= ({*PRESETS} - {"eval-gate"}) | streamed


SENT = {
    "openai-responses": {"input": [{"role": "user", "content": "weather?"}]},
    "langgraph": {"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": "weather?"}]}},
    "langserve": {"input": "weather?"},
}


@pytest.mark.parametrize("name", SENT)
def test_preset__body__is_what_its_servers_take(name) -> None:
    assert ask(CASES[name][1], agent_protocol=name)[1].json == SENT[name]


def test_preset__ids_of_a_protocol__are_new_for_every_execution() -> None:
    first, second = (ask(CASES["ag-ui"][1], agent_protocol="ag-ui")[1].json for _ in range(2))
    assert first["messages"] == [{"id": "m0", "role": "user", "content": "weather?"}]
    assert len({first["threadId"], first["runId"], second["threadId"], second["runId"]}) == 4


def test_preset__headers_of_ones_own__stand_beside_those_of_the_preset() -> None:
    _, asked = ask(WITHOUT_CALLS["a2a"], agent_protocol="a2a", headers={"X-Team": "blue"})
    assert (asked.header("a2a-version"), asked.header("x-team")) == ("1.0", "blue")


def test_preset__members_of_ones_own__stand_beside_those_of_the_preset() -> None:
    body = ask({"messages": THREAD}, agent_protocol="langgraph", requestFields={"assistant_id": "support"})[1].json
    assert body["assistant_id"] == "support"
