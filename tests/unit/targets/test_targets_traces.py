"""Traces of single requests: where each kind of target finds its id, and which requests carry one."""

from __future__ import annotations

import asyncio
import json
import sys

import pytest

from eval_gate.model.conversation import Message, Response
from eval_gate.targets.base import Request, Target, TargetError
from eval_gate.targets.command.settings import CliSettings
from eval_gate.targets.command.target import CliTarget
from eval_gate.targets.function import FunctionSettings, FunctionTarget
from eval_gate.targets.http.settings import HttpSettings
from eval_gate.targets.http.target import HttpTarget
from eval_gate.text.redaction import Redactor
from tests.support.agents import Exchange, agent

W3C = f"00-{'4b' * 16}-00f067aa0ba902b7-01"
REQUEST = Request("c-1", (Message(role="user", content="hi"),), run_id="r", execution_id="e" * 32)
ANSWER = {"response": "ok", "toolCalls": []}


def respond(target: Target) -> Response:
    async def main() -> Response:
        try:
            return await target.respond(REQUEST)
        finally:
            await target.aclose()

    return asyncio.run(main())


def respond_http(body: bytes | dict, status: str = "200 OK", *, headers: dict | None = None, **settings: object) -> str:
    """The trace of a response of an HTTP agent, or of its error."""

    async def handler(exchange: Exchange) -> None:
        exchange.answer(body, status, **(headers or {}))

    with agent(handler) as running:
        values = HttpSettings.complete_values({"name": "a", "url": running.url, "maxRetries": 0, **settings})
        target = HttpTarget(HttpSettings.model_validate(values), redact=Redactor(), concurrency=1)
        try:
            return respond(target).trace_id
        except TargetError as error:
            return error.trace_id


@pytest.mark.parametrize(
    ("headers", "settings", "trace"),
    [
        ({}, {}, None),
        ({"x_trace_id": "t"}, {}, "t"),
        ({"x_trace_id": "t", "traceparent": W3C}, {}, "4b" * 16),
        ({"x_trace_id": "t", "X_Own": "o"}, {"traceHeader": "x-own"}, "o"),
        ({"x_trace_id": "t"}, {"traceHeader": "X-Own"}, None),
        ({"x_trace_id": "t"}, {"traceparent": True}, "t"),
        ({}, {"traceparent": True}, "e" * 32),
        ({"x_trace_id": "t"}, {"tracePath": "meta.trace", "traceparent": True}, "7"),
    ],
)
def test_http__several_places__the_response_precedes_the_header_and_that_precedes_what_was_sent(
    headers, settings, trace
) -> None:
    body = ANSWER | {"meta": {"trace": 7}}
    assert respond_http(body, headers=headers, **settings) == trace
    if "tracePath" not in settings:
        for status in ("500 Internal Server Error", "200 OK"):
            assert respond_http(b"no JSON", status, headers=headers, **settings) == trace


def test_http__stream__has_the_newest_trace_of_its_events_or_of_the_whole_response() -> None:
    events = [{"delta": "o", "trace": "t1"}, {"delta": "k", "trace": "t2"}, {"done": {"response": "ok"}}]
    body = "".join(f"data: {json.dumps(one)}\n\n" for one in events).encode()
    stream = {"responseFormat": "sse", "responsePath": "delta"}
    content = {"Content_Type": "text/event-stream"}
    assert respond_http(body, headers=content, tracePath="trace", **stream) == "t2"
    rule = {"where": "delta=o", "path": "trace"}
    assert respond_http(body, headers=content, tracePath=rule, **stream) == "t1"


def test_function_and_command__trace_path__finds_it_in_what_they_return(tmp_path) -> None:
    answer, common = ANSWER | {"trace": {"id": "t"}}, {"name": "a", "tracePath": "trace.id"}
    function = FunctionSettings.model_validate({**common, "provider": "python", "function": "m:f"})
    assert respond(FunctionTarget(lambda request: answer, function)).trace_id == "t"
    (tmp_path / "agent.py").write_text(f"print({json.dumps(answer)!r})")
    command = {**common, "provider": "cli", "commandTemplate": f"{sys.executable} agent.py"}
    settings = CliSettings.model_validate(CliSettings.complete_values(command))
    assert respond(CliTarget(settings, root=tmp_path, environment={}, redact=Redactor())).trace_id == "t"
