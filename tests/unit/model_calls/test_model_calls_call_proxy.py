"""The proxy of model calls: to which execution a call belongs, what answers it, and what is recorded."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from eval_gate.model.model_recording import CallMode
from eval_gate.model_calls.call_proxy import ModelCallProxy
from eval_gate.model_calls.recording_file import CallRecording
from eval_gate.struct import replace
from eval_gate.targets.model.proxied_providers import PROXIED
from tests.support.agents import Exchange, Handler, agent

CHAT = "/openai/v1/chat/completions"
EVENTS = [b'data: {"n": 1}\n\n', b"data: [DONE]\n\n"]


async def provider(exchange: Exchange) -> None:
    """Count its answers; `stream` asks for events, `fail` for an error, `leak` for a key."""
    if b'"stream"' in exchange.body:
        exchange.answer(b"".join(EVENTS), Content_Type="text/event-stream")
    elif b'"fail"' in exchange.body:
        exchange.answer({"error": "slow down"}, "429 Too Many Requests")
    elif b'"leak"' in exchange.body:
        exchange.answer({"key": "ghp_" + "a1B2c3D4e5F6" * 3})
    else:
        exchange.answer({"number": exchange.number})


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

    def begin(self, number: str) -> None:
        assert self.send("POST", f"/eval-gate/executions/{number}")[0] == 200

    def end(self, number: str) -> dict:
        status, body = self.send("DELETE", f"/eval-gate/executions/{number}")
        return json.loads(body) if status == 200 else {"status": status}


def use_proxy(
    file: Path, mode: CallMode, client: Callable[[Client], object], handler: Handler = provider
) -> tuple[object, ModelCallProxy, list[str]]:
    """Let a client use a proxy in front of a provider, and return its result, the proxy and what was announced."""
    announced: list[str] = []

    async def main(url: str) -> tuple[object, ModelCallProxy]:
        recording = CallRecording(file, mode, "3f2c1ab" * 5)
        proxy = ModelCallProxy(recording, {"openai": f"{url}/base/v1"}, announced.append)
        try:
            async with proxy.listen(0) as port:
                return await asyncio.to_thread(client, Client(port)), proxy
        finally:
            await proxy.aclose()

    with agent(handler) as running:
        got, proxy = asyncio.run(main(f"http://127.0.0.1:{running.port}"))
        assert all(one.head.split(" ")[1].startswith("/base/v1/") for one in running.requests)
        return got, proxy, announced


@pytest.fixture
def file(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "calls.jsonl"


def test_call__recorded_and_replayed__is_the_same_in_order_and_holds_no_key(file) -> None:
    def ask(client: Client) -> object:
        client.begin("1")
        calls = [client.ask(), client.ask(), client.ask("other"), client.ask("stream")]
        return calls, client.end("1")

    (first, counts), _, _ = use_proxy(file, CallMode.RECORD, ask)
    assert [json.loads(body)["number"] for _, body in first[:3]] == [0, 1, 2]
    assert (counts["live"], counts["replayed"], counts["misses"]) == (4, 0, [])
    (again, counts), proxy, _ = use_proxy(file, CallMode.REPLAY, ask)
    assert (again, counts["replayed"], proxy.replayed) == (first, 4, 4)


def test_call__headers_and_query_with_keys__are_in_no_line(file) -> None:
    secret = "super-secret-0815-value"
    use_proxy(
        file,
        CallMode.RECORD,
        lambda one: one.ask(f"say {secret}", f"{CHAT}?key={secret}&alt=sse", authorization=f"Bearer {secret}"),
    )
    (line,) = file.read_text().splitlines()
    assert (json.loads(line)["path"], secret in line) == (f"{CHAT}?alt=sse", False)
    assert json.loads(line)["request"]["prompt"] == "say ***"


def test_call__of_open_executions__goes_to_the_one_it_names(file) -> None:
    def ask(client: Client) -> list[dict]:
        trace = "0af7651916cd43dd8448eb211c80319c"
        for number in ("a", "b", trace):
            client.begin(number)
        client.ask(x_eval_gate_execution="a")
        client.ask(path=f"/eval-gate/executions/b{CHAT}")
        client.ask(traceparent=f"00-{trace}-b7ad6b7169203331-01")
        return [client.end(number) for number in ("a", "b", trace, "a")]

    ended, _, _ = use_proxy(file, CallMode.RECORD, ask)
    assert [one.get("live") for one in ended] == [1, 1, 1, None]
    assert len(file.read_text().splitlines()) == 1  # the same call of each of them


@pytest.mark.parametrize("mode", CallMode)
def test_call__that_may_belong_to_several_executions__is_a_miss_of_each(file, mode) -> None:
    def ask(client: Client) -> list[dict]:
        client.begin("a")
        client.begin("b")
        foreign = "00-ffffffffffffffffffffffffffffffff-b7ad6b7169203331-01"
        assert client.ask(traceparent=foreign)[0] == 404
        return [client.end("a"), client.end("b")]

    ended, _, _ = use_proxy(file, mode, ask)
    assert all("while 2 executions were open" in one["misses"][0] for one in ended)


def test_miss__in_an_execution__is_an_error_that_is_not_retried_and_names_what_differs(file) -> None:
    use_proxy(file, CallMode.RECORD, lambda one: one.ask("hello Ann"))

    def ask(client: Client) -> object:
        client.begin("a")
        return client.ask("hello Bob"), client.end("a"), client.ask("hello Ann"), client.ask("hello Ann")

    (refused, ended, *fine), _, announced = use_proxy(file, CallMode.REPLAY, ask)
    assert (refused[0], [status for status, _ in fine]) == (404, [200, 200])  # outside of executions, the last repeats
    assert "`prompt` differs (recorded `hello Ann`, now `hello Bob`)" in json.loads(refused[1])["error"]["message"]
    assert (len(ended["misses"]), announced) == (1, [f"Not answered: {ended['misses'][0]}"])


def test_miss__more_often_than_recorded__is_one(file) -> None:
    use_proxy(file, CallMode.RECORD, lambda one: one.ask())

    def ask(client: Client) -> dict:
        client.begin("a")
        client.ask()
        client.ask()
        return client.end("a")

    ended, _, _ = use_proxy(file, CallMode.REPLAY, ask)
    assert "came more often in one execution than it is recorded (1 time)" in ended["misses"][0]


def test_miss__outside_of_executions__counts_in_every_later_one(file) -> None:
    def ask(client: Client) -> list[dict]:
        client.ask()
        for number in "ab":
            client.begin(number)
        return [client.end("a"), client.end("b")]

    ended, proxy, _ = use_proxy(file, CallMode.REPLAY, ask)
    assert [len(one["misses"]) for one in ended] == [1, 1]
    assert proxy.outside.misses


def test_live__call_that_is_not_recorded__is_made_and_added_to_the_others(file) -> None:
    use_proxy(file, CallMode.RECORD, lambda one: one.ask("old"))
    (old, new), proxy, _ = use_proxy(file, CallMode.REPLAY_OR_LIVE, lambda one: (one.ask("old"), one.ask("new")))
    assert ((old[0], new[0]), proxy.replayed, proxy.recorded) == ((200, 200), 1, 1)
    assert len(file.read_text().splitlines()) == 2


@pytest.mark.parametrize(
    ("text", "why"), [("fail", "HTTP 429"), ("leak", "holds a key, or what looks like one")], ids=str
)
def test_record__response_that_may_not_be_stored__passes_and_says_why(file, text, why) -> None:
    (status, _), proxy, announced = use_proxy(file, CallMode.RECORD, lambda one: one.ask(text))
    assert (status, proxy.recorded, file.exists()) == (429 if text == "fail" else 200, 0, False)
    assert why in announced[0]


def test_record__provider_that_breaks_off__is_not_recorded(file) -> None:
    async def breaks(exchange: Exchange) -> None:
        exchange.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        await exchange.writer.drain()
        exchange.reset()

    def ask(client: Client) -> None:
        with pytest.raises((http.client.HTTPException, OSError)):
            client.ask()

    _, proxy, announced = use_proxy(file, CallMode.RECORD, ask, breaks)
    assert (proxy.recorded, announced[0].startswith("Not recorded: the connection broke")) == (0, True)


@pytest.mark.parametrize(
    ("path", "misses"), [("/mistral/v1/chat", 0), ("/", 0), ("/openai/chat", 1), ("/azure/openai/x", 1)]
)
def test_call__that_can_go_nowhere__is_refused_and_a_miss_if_it_is_of_a_provider(file, path, misses) -> None:
    (status, body), proxy, _ = use_proxy(file, CallMode.RECORD, lambda one: one.ask(path=path))
    assert (status, b"Eval Gate" in body, len(proxy.outside.misses)) == (404, True, misses)


def test_call__to_no_provider__is_a_miss_of_an_execution_alone(file) -> None:
    def ask(client: Client) -> object:
        probe = client.send("GET", "/health")[0]
        client.begin("a")
        return probe, client.ask(path="/v1/chat/completions")[0], client.end("a")["misses"]

    (probe, status, misses), proxy, _ = use_proxy(file, CallMode.REPLAY, ask)
    assert (probe, status, len(misses), proxy.outside.misses) == (404, 404, 1, [])


def test_call__of_an_execution_called_like_a_provider__goes_to_the_provider(file, monkeypatch) -> None:
    monkeypatch.setitem(PROXIED, "openai", replace(PROXIED["openai"], default_address="https://model.example"))

    def ask(client: Client) -> int:
        return client.ask(path="/eval-gate/executions/openai@127.0.0.1:9/openai/chat")[0]

    assert use_proxy(file, CallMode.RECORD, ask)[0] == 200


def test_record__file_that_cannot_be_written__is_told_and_the_agent_has_its_response(file) -> None:
    file.mkdir()
    (status, _), proxy, announced = use_proxy(file, CallMode.RECORD, lambda one: one.ask())
    assert (status, proxy.recorded, announced[0][:13]) == (200, 0, "Not recorded:")
    assert proxy.failure is not None


def test_run__that_begins__forgets_executions_of_a_gate_that_was_killed(file) -> None:
    def ask(client: Client) -> object:
        client.begin("killed")
        status, body = client.send("POST", "/eval-gate/runs")
        return status, json.loads(body), client.end("killed")

    (status, described, ended), _, _ = use_proxy(file, CallMode.RECORD, ask)
    assert (status, described["mode"], described["digest"], ended) == (200, "record", None, {"status": 404})
