"""The HTTP target against real servers, well-behaved and not."""

import asyncio
import gzip
import re
import socket
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from eval_gate.model.conversation import Message, Response
from eval_gate.model.execution import ErrorKind
from eval_gate.targets.agent_address import ContainerProbe
from eval_gate.targets.base import Request, TargetError, TargetFault
from eval_gate.targets.http.settings import HttpSettings
from eval_gate.targets.http.target import HttpTarget
from eval_gate.text.redaction import Redactor
from tests.support.agents import Agent, Exchange, agent, unused_port

SECRET = "top-secret-token"
CALLS = [{"name": "a"}]


def request(message: str = "hi", *before: str, case_id: str = "gs-1") -> Request:
    return Request(case_id, tuple(Message(role="user", content=text) for text in (*before, message)))


def ask(url: str, *requests: Request, max_retries: int | None = None, within: float = 10, **settings) -> list[Response]:
    """The answers, one after the other over one target."""

    async def main() -> list[Response]:
        described = HttpSettings.model_validate({"name": "a", "url": url, "initialDelayMs": 1} | settings)
        target = HttpTarget(described, redact=Redactor([SECRET]), concurrency=4, max_retries=max_retries)
        try:
            async with asyncio.timeout(within):
                return [await target.respond(one) for one in requests or (request(),)]
        finally:
            await target.aclose()

    return asyncio.run(main())


def broken(handler, **options) -> TargetError:
    with agent(handler) as running, pytest.raises(TargetError) as caught:
        ask(running.url, **options)
    return caught.value


def answering(body: bytes | dict, status: str = "200 OK", **headers: str):
    async def handler(exchange: Exchange) -> None:
        exchange.answer(body, status, **headers)

    return handler


@pytest.mark.contract("endpoint.request", "endpoint.response")
def test_respond__the_contracts_shape__is_sent_and_read() -> None:
    call = {"name": "get_weather", "success": True, "durationMs": 12.5, "params": {"city": "Rome", "n": [1]}}
    calls = [{**call, "result": {"sky": "clear \ud83d"}}]
    body = {"response": "sunny ☀", "toolCalls": calls, "usage": {"inputTokens": 3, "outputTokens": 4}, "costUsd": 0.5}
    with agent(answering(body)) as running:
        response = ask(running.url, request('say "{{seed:x}}" é'))[0]
        sent = running.requests[0]
    assert sent.json == {"message": 'say "{{seed:x}}" é'}
    assert sent.head.startswith("POST /chat HTTP/1.1")
    assert sent.header("content-type") == "application/json"
    assert (response.text, response.tool_calls[0].name, response.tool_calls[0].params) == (
        "sunny ☀",
        "get_weather",
        {"city": "Rome", "n": [1]},
    )
    assert (response.tool_calls[0].success, response.tool_calls[0].duration_ms) == (True, 12.5)
    assert response.tool_calls[0].result == {"sky": "clear \ufffd"}
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens, response.cost_usd) == (3, 4, 0.5)


def test_respond__several_messages__are_sent_as_a_conversation_too() -> None:
    with agent() as running:
        ask(running.url, request("second", "first"))
        assert running.requests[0].json == {
            "message": "second",
            "conversation": [{"role": "user", "content": "first"}, {"role": "user", "content": "second"}],
        }


@pytest.mark.contract("endpoint.response")
def test_respond__no_tool_calls__means_none() -> None:
    with agent(answering({"response": "ok"})) as running:
        assert ask(running.url)[0].tool_calls == ()


@pytest.mark.contract("endpoint.response.missing-text", "endpoint.errors")
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"text": "ok"}, 'the response has no value at "response"; it has the key text; it begins «{"text": "ok"}»'),
        ({"response": None}, 'the response has no text at "response"'),
        ({"response": 5}, 'the response has no text at "response"'),
        (b"[]", 'the response has no value at "response"; it begins «[]»'),
        (
            b"<html><body>Sign in</body></html>",
            "the response is not JSON; it begins «<html><body>Sign in</body></html>»",
        ),
        (b"", "the response is not JSON; it begins «»"),
        (b"\xff\xfe", "the response is not JSON"),
        (b"[" * 100_000, "the response is nested deeper than 200 levels"),
        ({"response": "x", "toolCalls": {}}, '"toolCalls" is not a list but an empty'),
        ({"response": "x", "toolCalls": [{}]}, '"toolCalls[0]" has no name'),
        (b'{"response": "x", "a": ' + b"[" * 900 + b"]" * 900 + b"}", "the response is nested deeper than 200 levels"),
        ({"response": "x", "toolCalls": [{"name": "a"}] * 10_001}, '"toolCalls" lists 10,001 calls, more than 10,000'),
        (
            {"response": "x", "toolCalls": [{"name": "a" * 1_001}]},
            '"toolCalls[0]" has no name of up to 1000 characters',
        ),
        ({"response": "x", "toolCalls": ["get_weather"]}, '"toolCalls[0]" has no name'),
        (
            {"response": "x", "toolCalls": [{"name": "a", "params": [1]}]},
            '"toolCalls[0].params" is not a mapping but a list',
        ),
        (
            {"response": "x", "toolCalls": [{"name": "a", "success": "yes"}]},
            '"toolCalls[0].success" is not true or false',
        ),
    ],
    ids=range(16),
)
def test_respond__wrong_shape__quotes_the_beginning_and_names_the_field(body, said) -> None:
    error = broken(answering(body))
    assert error.fault is TargetFault.MALFORMED
    if said.endswith("an empty"):
        said = '"toolCalls" is not a list but a mapping'
    who = "" if said.startswith("the response has no ") else "agent error: "
    assert error.message.startswith(f"{who}{said}")


@pytest.mark.contract("endpoint.errors", "endpoint.retries")
@pytest.mark.parametrize(
    "status", ["400 Bad Request", "401 Unauthorized", "404 Not Found", "500 Internal Server Error"]
)
def test_respond__refusal_of_its_own__is_an_error_and_not_retried(status) -> None:
    asked = []

    async def handler(exchange: Exchange) -> None:
        asked.append(exchange)
        exchange.answer(b"no \x1b[31mway\x00", status)

    error = broken(handler)
    assert error.message == f"agent error: HTTP {status}: «no [31mway»"
    assert (len(asked), error.fault, error.retryable) == (1, TargetFault.REFUSED, False)


@pytest.mark.contract("endpoint.retries")
@pytest.mark.parametrize(
    "status", ["429 Too Many Requests", "502 Bad Gateway", "503 Service Unavailable", "504 Gateway Timeout"]
)
def test_respond__momentary_refusal__is_retried_and_counted(status) -> None:
    async def handler(exchange: Exchange) -> None:
        if exchange.number < 2:
            exchange.answer(b"later", status)
        else:
            exchange.answer({"response": "ok"})

    with agent(handler) as running:
        assert ask(running.url)[0].attempts == 3
        assert len(running.requests) == 3


def test_respond__retries_used_up__raises_the_last_error() -> None:
    error = broken(answering(b"later", "503 Service Unavailable"), max_retries=1)
    assert error.message == "agent error: HTTP 503 Service Unavailable: «later»"


def test_respond__no_retries_wanted__asks_once() -> None:
    with agent(answering(b"", "503 Service Unavailable")) as running:
        with pytest.raises(TargetError):
            ask(running.url, max_retries=0)
        assert len(running.requests) == 1


@pytest.mark.slow
def test_respond__retry_after__is_waited_for() -> None:
    async def handler(exchange: Exchange) -> None:
        if exchange.number == 0:
            exchange.answer(b"", "429 Too Many Requests", Retry_After="0.4")
        else:
            exchange.answer({"response": "ok"})

    with agent(handler) as running:
        started = asyncio.run(_clock())
        ask(running.url)
        assert asyncio.run(_clock()) - started >= 0.4


async def _clock() -> float:
    import time

    return time.monotonic()


def test_respond__nobody_listens__is_unreachable_with_the_address() -> None:
    port = unused_port()
    with pytest.raises(TargetError) as caught:
        ask(f"http://127.0.0.1:{port}/chat")
    assert caught.value.fault is TargetFault.UNREACHABLE
    assert caught.value.message.startswith(f"agent error: no connection to 127.0.0.1:{port}: ")


def test_respond__cut_before_the_answer__is_tried_again() -> None:
    async def handler(exchange: Exchange) -> None:
        if exchange.number == 0:
            exchange.reset()
        else:
            exchange.answer({"response": "ok"})

    with agent(handler) as running:
        assert ask(running.url)[0].attempts == 2


def test_respond__cut_in_the_middle_of_the_answer__is_an_error_of_the_agent() -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
        await exchange.writer.drain()
        exchange.writer.close()

    error = broken(handler)
    assert error.message.startswith("agent error: the connection broke during the response")
    assert (error.fault, error.retryable) == (TargetFault.REFUSED, False)


def test_respond__streams_for_ever__is_ended_at_the_limit() -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            exchange.write(b"400\r\n" + b"x" * 1024 + b"\r\n")
            await exchange.writer.drain()

    error = broken(handler, maxResponseBytes=100_000)
    assert error.message.startswith("agent error: the response is larger than 100,000 bytes; it begins «xxx")
    assert len(error.message) < 400


@pytest.mark.slow
def test_respond__compression_bomb__is_ended_at_the_limit() -> None:
    bomb = gzip.compress(b"x" * 20_000_000)
    error = broken(answering(bomb, Content_Encoding="gzip"), maxResponseBytes=100_000)
    assert error.message.startswith("agent error: the response is larger than")


def test_respond__compressed_answer__is_read() -> None:
    with agent(answering(gzip.compress(b'{"response": "ok"}'), Content_Encoding="gzip")) as running:
        assert ask(running.url)[0].text == "ok"


def test_respond__broken_compression__is_said() -> None:
    error = broken(answering(b"not gzip", Content_Encoding="gzip"))
    assert error.message.startswith("agent error: the response does not match its content encoding")


def test_respond__redirect__is_not_followed_with_our_headers() -> None:
    with agent() as elsewhere, agent(answering(b"", "302 Found", Location=elsewhere.url)) as running:
        with pytest.raises(TargetError, match=r"agent error: HTTP 302 Found to «http://127"):
            ask(running.url, headers={"Authorization": SECRET})
        assert elsewhere.requests == []


def test_respond__secret_echoed__is_masked() -> None:
    error = broken(answering(f"bad token {SECRET}".encode(), "401 Unauthorized"))
    assert error.message == "agent error: HTTP 401 Unauthorized: «bad token ***»"
    error = broken(answering(f"<p>{SECRET}</p>".encode()))
    assert SECRET not in error.message


def test_respond__lone_surrogate__becomes_a_replacement_character() -> None:
    body = b'{"response": "a\\ud800b", "toolCalls": [{"name": "t\\ud800", "params": {"p": "\\udfff"}}]}'
    with agent(answering(body)) as running:
        response = ask(running.url)[0]
    assert (response.text, response.tool_calls[0].name, response.tool_calls[0].params) == (
        "a\ufffdb",
        "t\ufffd",
        {"p": "\ufffd"},
    )


@pytest.mark.slow
@pytest.mark.contract("endpoint.latency")
def test_respond__slow_body__is_part_of_the_latency() -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.write(b"HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n")
        await exchange.writer.drain()
        await asyncio.sleep(0.15)
        exchange.write(b'{"response": "ok"}')

    with agent(handler) as running:
        assert 150 <= ask(running.url)[0].duration_ms < 5_000


def test_respond__many_cases__use_one_connection_each_in_flight() -> None:
    with agent() as running:
        ask(running.url, *[request() for _ in range(20)])
        assert (len(running.requests), running.connections) == (20, 1)


def test_respond__kept_connection_closed_meanwhile__is_no_failed_case() -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.answer({"response": "ok"})
        await exchange.writer.drain()
        exchange.writer.close()

    with agent(handler) as running:
        assert len(ask(running.url, request(), request(), request())) == 3


def test_respond__template_and_paths__fit_an_existing_endpoint() -> None:
    body = {"data": [{"reply": "ok"}], "meta": {"tools": [{"name": "a"}]}}
    with agent(answering(body)) as running:
        response = ask(
            running.url,
            request("hi", "before"),
            requestTemplate={"q": "{{message}}", "id": "case {{caseId}}", "turns": "{{conversation}}", "n": 1},
            responsePath="data[0].reply",
            toolCallsPath="meta.tools",
            headers={"X-Team": "blue"},
        )[0]
        sent = running.requests[0]
    assert sent.json == {
        "q": "hi",
        "id": "case gs-1",
        "turns": [{"role": "user", "content": "before"}, {"role": "user", "content": "hi"}],
        "n": 1,
    }
    assert sent.header("x-team") == "blue"
    assert (response.text, response.tool_calls[0].name) == ("ok", "a")


@pytest.mark.contract("endpoint.presets")
def test_respond__sidecar_preset__reads_message_and_args() -> None:
    body = {"message": "ok", "toolCalls": [{"name": "a", "args": {"x": 1}, "result": {}}]}
    with agent(answering(body)) as running:
        response = ask(running.url, agent_protocol="tool-forge-sidecar")[0]
    assert (response.text, response.tool_calls[0].params, response.tool_calls[0].success) == ("ok", {"x": 1}, None)


@pytest.mark.contract("endpoint.presets")
def test_respond__openai_preset__speaks_chat_completions() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "a", "arguments": '{"x": 1}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    body = {"choices": [{"message": message}], "usage": {"prompt_tokens": 5, "completion_tokens": 6}}
    with agent(answering(body)) as running:
        response = ask(running.url, agent_protocol="openai-chat")[0]
        assert running.requests[0].json == {"messages": [{"role": "user", "content": "hi"}]}
    assert (response.text, response.tool_calls[0].name, response.tool_calls[0].params) == ("", "a", {"x": 1})
    assert response.usage is not None
    assert response.usage.output_tokens == 6


CALL = {"toolName": "get_weather", "input": '{"city": "Rome"}', "status": "ok", "took": 7, "out": {"sky": "clear"}}
FIELDS = {
    "nameField": "toolName",
    "argsField": "input",
    "successField": "status",
    "durationField": "took",
    "resultField": "out",
}


def test_respond__fields_of_a_call__are_read_where_the_description_says() -> None:
    with agent(answering({"message": "ok", "toolCalls": [CALL, CALL | {"status": "failed"}]})) as running:
        response = ask(running.url, agent_protocol="tool-forge-sidecar", **FIELDS)[0]
    first, second = response.tool_calls
    assert (first.name, first.params, first.success, first.duration_ms, first.result) == (
        "get_weather",
        {"city": "Rome"},
        True,
        7,
        {"sky": "clear"},
    )
    assert second.success is False


def test_respond__path_to_names_alone__gives_calls_without_arguments() -> None:
    with agent(answering({"message": "ok", "toolCalls": [CALL, {"toolName": "b"}]})) as running:
        response = ask(running.url, agent_protocol="tool-forge-sidecar", toolCallsPath="toolCalls[].toolName")[0]
    assert [(call.name, call.params) for call in response.tool_calls] == [("get_weather", {}), ("b", {})]


def test_respond__path_to_names_of_which_one_is_missing__is_an_error_and_loses_no_call() -> None:
    body = {"message": "ok", "toolCalls": [CALL, {"name": "b"}]}
    error = broken(answering(body), agent_protocol="tool-forge-sidecar", toolCallsPath="toolCalls[].toolName")
    assert '"toolCalls[].toolName" has no value in member 1 of the list' in error.message


def test_respond__list_of_messages__the_last_text_and_the_calls_of_all_with_their_results() -> None:
    calls = [{"id": "1", "name": "a", "args": {"x": 1}}, {"id": "2", "name": "b", "args": {}}]
    messages = [
        {"type": "human", "content": "hi"},
        {"type": "ai", "content": "", "tool_calls": calls},
        {"type": "tool", "tool_call_id": "2", "content": "boom", "status": "error"},
        {"type": "tool", "tool_call_id": "1", "content": "one", "status": "success"},
        {"type": "ai", "content": [{"type": "text", "text": "all "}, {"type": "text", "text": "done"}]},
    ]
    with agent(answering({"messages": messages})) as running:
        response = ask(
            running.url,
            responsePath="messages[?type=ai][-1].content",
            toolCallsPath="messages[?type=ai].tool_calls[]",
            argsField="args",
            toolResults={
                "path": "messages[?type=tool]",
                "idField": "tool_call_id",
                "resultField": "content",
                "successField": "status",
            },
        )[0]
    assert response.text == "all done"
    assert [(call.name, call.params, call.success, call.result) for call in response.tool_calls] == [
        ("a", {"x": 1}, True, "one"),
        ("b", {}, False, "boom"),
    ]


@pytest.mark.parametrize(
    ("body", "settings", "text"),
    [
        ({"output": {"content": "a"}}, {"responsePath": ["output.content", "output"]}, "a"),
        ({"output": "a"}, {"responsePath": ["output.content", "output"]}, "a"),
        ({"parts": [{"text": "a"}, {"data": {}}, {"text": "b"}]}, {"responsePath": "parts"}, "ab"),
        ({"out": [{"parts": [{"text": "a"}]}, {"parts": [{"text": "b"}]}]}, {"responsePath": "out[].parts[]"}, "ab"),
        (
            {"m": [{"r": "a", "t": "x"}, {"r": "u", "t": "y"}, {"r": "a", "t": "z"}]},
            {"responsePath": "m[?r=a].t"},
            "x\nz",
        ),
        ({"parts": [], "toolCalls": CALLS}, {"responsePath": "parts"}, ""),
        ({"m": [], "toolCalls": CALLS}, {"responsePath": "m[?r=a].t"}, ""),
    ],
)
def test_respond__text_in_parts_or_several_places__is_put_together(body, settings, text) -> None:
    with agent(answering(body)) as running:
        assert ask(running.url, **settings)[0].text == text


@pytest.mark.parametrize(
    ("body", "path", "said"),
    [
        ({"m": []}, "m[?r=a].t", '"m[?r=a].t"'),
        ({"m": [{"r": "b"}], "toolCalls": []}, "m[?r=a][-1].t", '"m[?r=a][-1].t"'),
        ({"parts": [{"data": 1}]}, "parts", '"parts"'),
        ({"a": {"text": "x"}}, ["a.b", "a"], '"a.b" or "a"'),
        ({"a": 5}, "a", '"a"'),
    ],
)
def test_respond__no_text_where_it_should_be__is_an_error_and_no_empty_answer(body, path, said) -> None:
    error = broken(answering(body), responsePath=path)
    assert re.match(rf"the response has no (text|value) at {re.escape(said)}", error.message)


@pytest.mark.parametrize(("said", "success"), [("Succeeded", True), ("error", False), (None, None), (True, True)])
def test_respond__word_for_success__is_understood(said, success) -> None:
    with agent(answering({"response": "ok", "toolCalls": [{"name": "a", "success": said}]})) as running:
        assert ask(running.url)[0].tool_calls[0].success is success


def test_respond__error_of_a_call__says_that_it_failed() -> None:
    calls = [{"name": "a", "error": "boom"}, {"name": "a", "error": None}, {"name": "a"}]
    with agent(answering({"response": "ok", "toolCalls": calls})) as running:
        response = ask(running.url, errorField="error")[0]
    assert [call.success for call in response.tool_calls] == [False, None, None]


def chat(**message: object) -> dict:
    return {"choices": [{"message": {"content": "ok"} | message}]}


@pytest.mark.parametrize(
    ("body", "settings", "known"),
    [
        ({"response": "ok", "toolCalls": CALLS}, {}, True),
        ({"response": "ok", "toolCalls": []}, {}, True),
        ({"response": "ok", "toolCalls": None}, {}, True),
        ({"response": "ok"}, {}, None),
        ({"response": "ok", "toolCalls": []}, {"toolCallsPath": "tolCalls"}, None),
        ({"response": "ok", "trace": {}}, {"toolCallsPath": "trace.tools"}, None),
        ({"response": "ok", "trace": {"tools": None}}, {"toolCallsPath": "trace.tools"}, True),
        ({"message": "ok"}, {"agentProtocol": "tool-forge-sidecar"}, None),
        (chat(), {"agentProtocol": "openai-chat"}, True),
        (chat(), {"agentProtocol": "openai-chat", "toolCallsPath": "choices[0].calls"}, None),
        ({"reply": "ok"}, {"agentProtocol": "openai-chat", "responsePath": "reply"}, None),
    ],
)
def test_respond__list_of_calls__is_known_where_the_answer_or_its_protocol_has_a_place_for_it(
    body, settings, known
) -> None:
    with agent(answering(body)) as running:
        response = ask(running.url, **settings)[0]
    assert response.tool_calls_known is known
    path = settings.get("toolCallsPath", "choices[0].message.tool_calls" if "reply" in body else "toolCalls")
    assert response.tool_calls_location == (
        "" if known else f"a list of tool calls at `{path}` (toolCallsPath, agentProtocol)"
    )


def test_respond__cut_before_every_answer__has_crashed_and_is_not_unreachable() -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.reset()

    error = broken(handler, max_retries=1)
    assert error.message.startswith("agent error: the connection broke before the response")
    assert (error.fault, error.retryable, error.error_kind) == (TargetFault.REFUSED, True, ErrorKind.AGENT_ERROR)


def test_identity__url__shows_no_credentials_query_or_secret() -> None:
    settings = HttpSettings.model_validate({"name": "a", "url": f"http://me:pw@host:1/{SECRET}?key=1#f"})
    identity = HttpTarget(settings, redact=Redactor([SECRET, "pw"]), concurrency=1).identity
    assert identity.identity == "http://host:1/***"


def test_respond__credentials_in_the_url__are_sent_as_basic() -> None:
    with agent() as running:
        ask(f"http://me:pw@127.0.0.1:{running.port}/chat")
        assert running.requests[0].header("authorization") == "Basic bWU6cHc="


@pytest.mark.slow
def test_respond__proxy_in_the_environment__is_used(monkeypatch) -> None:
    with agent() as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        assert ask("http://agent.invalid/chat")[0].text == "ok"
        assert proxy.requests[0].head.startswith("POST http://agent.invalid/chat")


def healthy(running: Agent, **settings) -> None:
    async def main() -> None:
        described = HttpSettings.model_validate({"name": "a", "url": running.url} | settings)
        target = HttpTarget(described, redact=Redactor(), concurrency=1)
        try:
            await target.check_health()
        finally:
            await target.aclose()

    asyncio.run(main())


def test_respond__server_that_speaks_no_http__is_an_error_that_says_so() -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.write(b"SSH-2.0-OpenSSH_9.2\r\n")

    error = broken(handler)
    assert error.message.startswith("agent error: the response is not HTTP: ")
    assert error.fault is TargetFault.MALFORMED


def test_check_health__answers__2xx_is_healthy_and_nothing_else() -> None:
    with agent(answering(b"fine", "201 Created")) as running:
        healthy(running, healthcheck=f"http://127.0.0.1:{running.port}/health")
        assert running.requests[0].head.startswith("GET /health")
    with agent(answering(b"starting", "503 Service Unavailable")) as running:
        with pytest.raises(TargetError, match=r"health check returned HTTP 503: «starting»"):
            healthy(running, waitFor=0.2, healthcheck={"type": "http", "url": running.url})


@pytest.mark.slow
def test_check_health__silent__ends_in_time() -> None:
    async def handler(exchange: Exchange) -> None:
        await asyncio.sleep(30)

    with agent(handler) as running, pytest.raises(TargetError, match=r"did not respond within 0\.1 s"):
        healthy(running, waitFor=0.2, healthcheck={"url": running.url, "timeoutSeconds": 0.1})


def test_check_health__engine_that_hangs_up__is_nobody_outside_of_the_container_only(tmp_path) -> None:
    """An engine accepts for every port that it publishes, also while nobody listens behind it."""

    def hang_up() -> None:
        with suppress(OSError):
            while True:
                listening.accept()[0].close()

    async def look(host: str, marker: Path) -> None:
        url = f"http://{host}:{listening.getsockname()[1]}/chat"
        described = HttpSettings.model_validate({"name": "a", "url": url, "waitFor": 0.01})
        system = ContainerProbe(marker_files=(marker,))
        target = HttpTarget(described, redact=Redactor(), concurrency=1, system=system)
        try:
            await target.check_health()
        finally:
            await target.aclose()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=hang_up, daemon=True)
        thread.start()
        with pytest.raises(TargetError, match="it was closed at once"):
            asyncio.run(look("127.1", tmp_path))
        asyncio.run(look("127.1", tmp_path / "none"))
        asyncio.run(look("127.0.0.1", tmp_path))
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(10)


@pytest.mark.slow
def test_check_health__none_described__asks_nothing() -> None:
    with agent() as running:
        healthy(running)
        assert running.requests == []
