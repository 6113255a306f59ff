"""The proxy of model calls: to which execution a call belongs, what answers it, and what is recorded."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from eval_gate.model.model_recording import CallMode
from eval_gate.model_calls import call_proxy, recording_file
from eval_gate.model_calls.call_proxy import ModelCallProxy
from eval_gate.model_calls.recording_file import CallRecording
from eval_gate.struct import replace
from eval_gate.targets.model.proxied_providers import PROXIED
from tests.support.agents import Exchange, agent

CHAT = "/openai/v1/chat/completions"


async def provider(exchange: Exchange) -> None:
    """Count its answers; some texts ask for events, an error, a key, or half an answer."""
    if b'"stream"' in exchange.body:
        exchange.answer(b'data: {"n": 1}\n\ndata: [DONE]\n\n', Content_Type="text/event-stream")
    elif b'"fail"' in exchange.body:
        exchange.answer({"error": "slow down"}, "429 Too Many Requests")
    elif b'"leak"' in exchange.body:
        exchange.answer({"key": "ghp_" + "a1B2c3D4e5F6" * 3})
    elif b'"break"' in exchange.body:
        exchange.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        await exchange.writer.drain()
        exchange.reset()
    elif b'"leave"' in exchange.body:
        exchange.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        with suppress(ConnectionError):
            while True:  # until the client, and so the proxy, has left
                exchange.write(b"1\r\nx\r\n")
                await exchange.writer.drain()
                await asyncio.sleep(0)
    else:
        exchange.answer({"number": exchange.number, "rest": "x" * 2_000 if b'"long"' in exchange.body else ""})


class Client:
    """An agent and a gate at one proxy."""

    def __init__(self, port: int) -> None:
        self._port = port

    def send(self, method: str, path: str, body: object = None, **headers: str) -> tuple[int, bytes]:
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        with closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)) as connection:
            connection.request(method, path, None if body is None else json.dumps(body), fields)
            with closing(connection.getresponse()) as response:
                return response.status, response.read()

    def ask(self, text: str = "hi", path: str = CHAT, **headers: str) -> tuple[int, bytes]:
        return self.send("POST", path, {"model": "m", "prompt": text}, **headers)

    def leave(self, text: str) -> None:
        with closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)) as connection:
            connection.request("POST", CHAT, json.dumps({"prompt": text}))
            connection.getresponse().read(1)

    def begin(self, *names: str) -> None:
        assert [self.send("POST", f"/eval-gate/executions/{name}")[0] for name in names] == [200] * len(names)

    def end(self, name: str) -> dict:
        status, body = self.send("DELETE", f"/eval-gate/executions/{name}")
        return json.loads(body) if status == 200 else {"status": status}


class Use(NamedTuple):
    """What a client returned, and what the proxy did."""

    result: Any
    proxy: ModelCallProxy
    announced: list[str]


def use_proxy(file: Path, mode: CallMode, client: Callable[[Client], object]) -> Use:
    """Let a client use a proxy in front of a provider."""
    announced: list[str] = []

    async def main(url: str) -> Use:
        proxy = ModelCallProxy(CallRecording(file, mode), {"openai": f"{url}/base/v1"}, announced.append)
        try:
            async with proxy.listen(0) as port:
                return Use(await asyncio.to_thread(client, Client(port)), proxy, announced)
        finally:
            await proxy.aclose()

    with agent(provider) as running:
        use = asyncio.run(main(f"http://127.0.0.1:{running.port}"))
        for request in running.requests:
            assert request.head.split(" ")[1].startswith("/base/v1/")
            assert request.header("x-eval-gate-execution") is None
        return use


@pytest.fixture
def file(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "calls.jsonl"


def test_call__recorded_and_replayed__is_the_same_in_order_and_holds_no_key(file) -> None:
    secret = "super-secret-0815-value"

    def ask(client: Client) -> object:
        client.begin("1")
        path, key = f"{CHAT}?key={secret}&alt=sse", f"Bearer {secret}"
        calls = client.ask(), client.ask(), client.ask(f"say {secret}", path, authorization=key), client.ask("stream")
        return calls, client.end("1")

    answers, calls = use_proxy(file, CallMode.RECORD, ask).result
    assert [json.loads(body)["number"] for _, body in answers[:3]] == [0, 1, 2]
    assert calls == {"calls": 4, "liveCalls": 4, "miss": None}
    assert use_proxy(file, CallMode.REPLAY, ask).result == (answers, calls | {"liveCalls": 0})
    assert secret not in file.read_text()


def test_call__of_open_executions__goes_to_the_one_it_names(file) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"

    def ask(client: Client) -> list[dict]:
        client.begin("a", "b", trace)
        client.ask(x_eval_gate_execution="a")
        client.ask(path=f"/eval-gate/executions/b{CHAT}")
        client.ask(traceparent=f"00-{trace}-b7ad6b7169203331-01")
        return [client.end(name) for name in ("a", "b", trace, "a")]

    calls = use_proxy(file, CallMode.RECORD, ask).result
    assert [one.get("liveCalls") for one in calls] == [1, 1, 1, None]
    assert len(file.read_text().splitlines()) == 1  # the same call of each of them


@pytest.mark.parametrize("mode", CallMode)
def test_call__that_may_belong_to_several_executions__is_a_miss_of_each(file, mode) -> None:
    def ask(client: Client) -> list[dict]:
        client.begin("a", "b")
        assert client.ask(traceparent="00-ffffffffffffffffffffffffffffffff-b7ad6b7169203331-01")[0] == 404
        return [client.end("a"), client.end("b")]

    assert all("while 2 executions were open" in one["miss"] for one in use_proxy(file, mode, ask).result)


def test_miss__in_an_execution__names_what_differs_and_is_of_no_other(file) -> None:
    use_proxy(file, CallMode.RECORD, lambda one: one.ask("hello Ann"))

    def ask(client: Client) -> object:
        client.begin("a")
        miss = client.ask("hello Bob"), client.end("a")
        # outside of executions, the last answer is repeated; inside, it is not
        client.ask("hello Ann")
        client.ask("hello Ann")
        client.begin("b")
        client.ask("hello Ann")
        client.ask("hello Ann")
        return *miss, client.end("b")

    ((status, body), first, second), proxy, announced = use_proxy(file, CallMode.REPLAY, ask)
    assert "`prompt` differs (recorded `hello Ann`, now `hello Bob`)" in first["miss"]
    assert (status, json.loads(body)["error"]["message"]) == (404, f"Eval Gate: {first['miss']}")
    assert "came more often in one execution than it is recorded (1 time)" in second["miss"]
    assert announced == [f"Not answered: {one['miss']}" for one in (first, second)]
    assert proxy.outside.miss is None


def test_miss__outside_of_executions__counts_in_every_later_one(file) -> None:
    def ask(client: Client) -> list[dict]:
        client.ask()
        client.begin("a", "b")
        return [client.end("a"), client.end("b")]

    calls, proxy, _ = use_proxy(file, CallMode.REPLAY, ask)
    assert proxy.outside.miss
    assert [one["miss"] for one in calls] == [proxy.outside.miss] * 2


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("fail", "HTTP 429"),
        ("leak", "holds a key, or what looks like one"),
        ("break", "the connection broke"),
        ("leave", "the agent left"),
        ("long", "larger than 1,000 bytes"),
        ("other", "is not a regular file"),
    ],
    ids=str,
)
def test_record__response_that_cannot_be_stored__passes_and_says_why(file, monkeypatch, text, why) -> None:
    if text == "other":
        file.mkdir()
    monkeypatch.setattr(call_proxy, "MAX_RESPONSE_BYTES", 100)  # of a request
    for module in (call_proxy, recording_file):
        monkeypatch.setattr(module, "RECORDING_LINE_BYTES", 1_000)

    def ask(client: Client) -> int | None:
        try:
            return client.ask(text)[0] if text != "leave" else client.leave(text)
        except (http.client.HTTPException, OSError):
            return None

    status, proxy, announced = use_proxy(file, CallMode.RECORD, ask)
    assert (status, file.is_file()) == ({"fail": 429, "break": None, "leave": None}.get(text, 200), False)
    assert re.match(f"Not recorded: .*{why}", announced[0])
    assert (proxy.failure is not None) is (text == "other")


@pytest.mark.parametrize(
    ("path", "is_miss"), [("/mistral/v1/chat", False), ("/", False), ("/openai/chat", True), (CHAT, True)]
)
def test_call__that_can_go_nowhere__is_a_miss_but_for_a_probe_of_the_port(file, monkeypatch, path, is_miss) -> None:
    monkeypatch.setattr(call_proxy, "MAX_RESPONSE_BYTES", 3)

    def ask(client: Client) -> object:
        status = client.ask(path=path)[0]
        client.begin("a")
        client.ask(path=path)
        return status, client.end("a")["miss"] is not None

    result, proxy, _ = use_proxy(file, CallMode.RECORD, ask)
    assert (*result, proxy.outside.miss is not None) == (404, True, is_miss)


def test_call__of_an_execution_called_like_a_provider__goes_to_the_provider(file, monkeypatch) -> None:
    monkeypatch.setitem(PROXIED, "openai", replace(PROXIED["openai"], default_address="https://model.example"))
    path = "/eval-gate/executions/openai@127.0.0.1:9/openai/chat"
    assert use_proxy(file, CallMode.RECORD, lambda one: one.ask(path=path)[0]).result == 200


def test_run__that_begins__forgets_executions_of_a_gate_that_was_killed(file) -> None:
    def ask(client: Client) -> object:
        client.begin("killed")
        status, body = client.send("POST", "/eval-gate/runs")
        return status, json.loads(body), client.end("killed")

    status, description, calls = use_proxy(file, CallMode.RECORD, ask).result
    assert (status, description["mode"], description["digest"], calls) == (200, "record", None, {"status": 404})
