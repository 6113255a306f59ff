"""The recording proxy between real clients and agents: what passes unchanged, what is kept, and what never is."""

import asyncio
import gzip
import http.client
import json
import socket
import threading
from base64 import b64encode
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from eval_gate.drafts.observation import ObservationSet
from eval_gate.drafts.sources import exchange_journal
from eval_gate.drafts.sources.exchange_journal import ExchangeJournal
from eval_gate.drafts.sources.json_log import read_journal
from eval_gate.drafts.sources.proxy import ProxyRecording, RecordingProxy, record_proxy
from eval_gate.errors import GateError
from eval_gate.model.conversation import Message, ToolCall
from eval_gate.targets.http.settings import HttpSettings
from eval_gate.text.redaction import Redactor
from tests.support.agents import Agent, Exchange, Handler, agent, unused_port

KEY = "sk-test-4f9a8b7c6d5e"
Client = Callable[[int], object]


class Recorded:
    """What came of a recording."""

    def __init__(self, journal: Path, proxy: RecordingProxy, agent_: Agent, got: object) -> None:
        self.text = journal.read_text()
        self.found: ObservationSet = read_journal(journal)
        self.notes = proxy.notes
        self.agent = agent_
        self.got = got


def record(
    tmp_path: Path,
    handler: Handler,
    client: Client,
    *,
    patterns: tuple[str, ...] = (),
    path: str = "/chat",
    **settings: object,
) -> Recorded:
    """Run a client in a thread against a proxy in front of an agent, to the end of both."""
    journal = tmp_path / "journal.jsonl"

    async def main(running: Agent) -> tuple[object, RecordingProxy]:
        described = HttpSettings.model_validate(
            {"name": "a", "url": f"http://127.0.0.1:{running.port}{path}", **settings}
        )
        port = unused_port()
        recording = ProxyRecording(journal, Redactor([KEY]), patterns)
        proxy = RecordingProxy(described, recording, ExchangeJournal(journal), asyncio.Event())
        try:
            async with proxy.listen(port):
                return await asyncio.to_thread(client, port), proxy
        finally:
            await proxy.aclose()

    with agent(handler) as running:
        got, proxy = asyncio.run(main(running))
        return Recorded(journal, proxy, running, got)


def send_raw(port: int, data: bytes) -> bytes:
    """Send bytes over a connection, and return all that comes until it is closed."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(data)
        received = bytearray()
        with suppress(ConnectionError):
            while piece := connection.recv(65_536):
                received += piece
        return bytes(received)


def build_raw(body: bytes, line: str = "POST /chat HTTP/1.1", *headers: str, host: str = "localhost") -> bytes:
    fields = (line, f"Host: {host}", f"Content-Length: {len(body)}", "Connection: close", *headers)
    return "\r\n".join((*fields, "", "")).encode("latin-1") + body


def ask(*questions: str, **headers: str) -> Client:
    """Build a client that asks each question over one connection."""

    def client(port: int) -> list[tuple[int, bytes]]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        found = []
        for question in questions:
            connection.request("POST", "/chat", json.dumps({"message": question}), headers)
            answer = connection.getresponse()
            found.append((answer.status, answer.read()))
        connection.close()
        return found

    return client


async def echo(exchange: Exchange) -> None:
    exchange.answer({"response": f"you said {exchange.json['message']}", "toolCalls": [{"name": "f"}]})


def test_proxy__request_and_response__pass_unchanged_but_for_the_connection(tmp_path) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.write(
            b"HTTP/1.1 207 Some Words\r\nX-One: 1\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n"
            b"Keep-Alive: timeout=5\r\nContent-Length: 2\r\n\r\n{}"
        )

    body = b'{"message": "\xc3\xa4"}'
    request = build_raw(
        body,
        "POST /chat?x=%2F&y=a+b%20c&& HTTP/1.1",
        f"Authorization: Bearer {KEY}",
        "X-Twice: 1",
        "X-Twice: 2",
        "X-Hop: mine",
        "Connection: X-Hop",
        "Proxy-Authorization: mine",
    )
    made = record(tmp_path, handler, lambda port: send_raw(port, request))
    [arrived] = made.agent.requests
    line, *fields = arrived.head.strip().split("\r\n")
    assert line == "POST /chat?x=%2F&y=a+b%20c&& HTTP/1.1"
    assert sorted(fields) == sorted(
        [
            f"Host: 127.0.0.1:{made.agent.port}",
            f"Content-Length: {len(body)}",
            f"Authorization: Bearer {KEY}",
            "X-Twice: 1",
            "X-Twice: 2",
            "Accept-Encoding: identity",
        ]
    )
    assert arrived.body == body
    assert made.got == (
        b"HTTP/1.1 207 Some Words\r\nX-One: 1\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n"
        b"Content-Length: 2\r\nConnection: close\r\n\r\n{}"
    )


def test_proxy__exchange__is_recorded_as_the_target_describes_it(tmp_path) -> None:
    made = record(tmp_path, echo, ask("a", "b", "a"))
    assert made.got == [(200, json.dumps(echoed(text)).encode()) for text in ("a", "b", "a")]
    first, second = made.found.observations
    assert (first.question, [one.text for one in first.responses]) == ("a", ["you said a"] * 2)
    assert first.responses[0].tool_calls == (ToolCall(name="f"),)
    assert second.question == "b"
    assert made.notes == ()


def echoed(text: str) -> dict:
    return {"response": f"you said {text}", "toolCalls": [{"name": "f"}]}


def test_proxy__keys_and_personal_data__are_in_no_line(tmp_path) -> None:
    made = record(tmp_path, echo, ask(f"my key is {KEY}, call 555-0100", X_Key=KEY), patterns=(r"555-\d{4}",))
    assert json.loads(made.text) == {
        "message": "my key is ***, call ***",
        "response": "you said my key is ***, call ***",
        "toolCalls": [{"name": "f", "params": {}}],
    }
    [(_, received)] = made.got
    assert KEY.encode() in received  # what the client gets is what the agent said


OTHER = "sk-live-A9b8C7d6E5f4G3h2"
SENT = {
    "authorization": ({"Authorization": f"Bearer {OTHER}"}, ""),
    "no scheme": ({"Authorization": "hunter-two"}, ""),
    "a short word": ({"Authorization": "Bearer hunter-two"}, ""),
    "basic": ({"Authorization": f"Basic {b64encode(b'me:hunter-two').decode()}"}, ""),
    "a vendor's header": ({"X-Goog-Api-Key": "hunter-two"}, ""),
    "cookie": ({"Cookie": f"lang=english; sid={OTHER}; day=2026-11-28"}, ""),
    "query": ({}, "?api_key=hunter-two"),
}


@pytest.mark.parametrize("place", SENT)
@pytest.mark.parametrize("status", ["200 OK", "500 No"])
def test_proxy__credential_of_the_client_that_the_agent_repeats__is_in_no_line(tmp_path, place, status) -> None:
    headers, query = SENT[place]
    key = OTHER if OTHER in str(headers) else "hunter-two"

    async def handler(exchange: Exchange) -> None:
        exchange.answer({"response": f"english, 2026-11-28, your key is {key}", "toolCalls": [{"name": "f"}]}, status)

    def client(port: int) -> object:
        lines = [f"{name}: {value}" for name, value in headers.items()]
        body = json.dumps({"message": f"is it {key}"}).encode()
        return send_raw(port, build_raw(body, f"POST /chat{query} HTTP/1.1", *lines))

    made = record(tmp_path, handler, client)
    assert key in made.got.decode()
    assert key not in made.text
    assert made.text.count("***") == 2
    assert "english, 2026-11-28" in made.text


def test_proxy__cookie_that_the_agent_sets_and_says__is_in_no_line(tmp_path) -> None:
    async def handler(exchange: Exchange) -> None:
        cookie = {"Set-Cookie": "session=hunter-two; Path=/; Domain=acme.test; SameSite=Lax"}
        exchange.answer({"response": "hunter-two of acme.test", "toolCalls": []}, **cookie)

    assert "*** of acme.test" in record(tmp_path, handler, ask("Who?")).text


def test_proxy__earlier_turn_with_another_key__is_masked_in_later_ones(tmp_path) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.answer({"response": f"you are {exchange.header('Authorization')}", "toolCalls": []})

    def client(port: int) -> None:
        for turn, word in enumerate(("hunter-two", "gatherer-3")):
            body = json.dumps({"message": f"turn {turn}", "session": "s-1"}).encode()
            send_raw(port, build_raw(body, "POST /chat HTTP/1.1", f"Authorization: {word}"))

    made = record(tmp_path, handler, client, requestTemplate={"message": "{{message}}", "session": "{{session}}"})
    assert "turn 0" in made.text.splitlines()[1]
    assert "hunter-two" not in made.text
    assert "gatherer-3" not in made.text


@pytest.mark.slow
def test_proxy__text_that_cannot_be_searched__is_not_recorded(tmp_path) -> None:
    made = record(tmp_path, echo, ask("a" * 60 + "!"), patterns=(r"(a+)+$",))
    assert made.text == ""
    assert made.notes == ("Not recorded: 1 exchange, which could not be searched for the `redact` patterns.",)


def test_proxy__stream__arrives_piece_by_piece_and_is_recorded_whole(tmp_path) -> None:
    seen = threading.Event()

    async def handler(exchange: Exchange) -> None:
        exchange.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for text in ("Hel", "lo"):
            event = b'data: {"choices": [{"delta": {"content": "%b"}}]}\n\n' % text.encode()
            exchange.write(b"%x\r\n%b\r\n" % (len(event), event))
            await exchange.writer.drain()
            if text == "Hel":
                assert await asyncio.to_thread(seen.wait, 30)
        exchange.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")

    def client(port: int) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
        body = json.dumps({"messages": [*messages, {"role": "user", "content": "hi"}], "stream": True})
        connection.request("POST", "/chat", body)
        answer = connection.getresponse()
        first = answer.read(20)
        seen.set()  # the agent goes on only now
        rest = answer.read()
        connection.close()
        return first + rest

    made = record(tmp_path, handler, client, agentProtocol="openai-chat", responseFormat="sse")
    assert isinstance(made.got, bytes)
    assert made.got.endswith(b"data: [DONE]\n\n")
    [one] = made.found.observations
    assert (one.question, [message.content for message in one.earlier_messages]) == ("hi", ["a", "b"])
    assert (one.responses[0].text, one.responses[0].tool_calls_known) == ("Hello", True)


def test_proxy__compressed_response__passes_as_it_is_and_can_be_read(tmp_path) -> None:
    packed = gzip.compress(json.dumps(echoed("x")).encode(), mtime=0)

    async def handler(exchange: Exchange) -> None:
        exchange.answer(packed, Content_Encoding="gzip")

    def client(port: int) -> list[bytes]:
        body = b'{"message": "a"}'
        accept = "Accept-Encoding: br;q=1, gzip"
        return [
            send_raw(port, build_raw(body, "POST /chat HTTP/1.1", accept)),
            send_raw(port, build_raw(b"", "GET /page HTTP/1.1", accept)),
        ]

    made = record(tmp_path, handler, client)
    assert isinstance(made.got, list)
    assert all(one.endswith(b"\r\n\r\n" + packed) for one in made.got)
    assert made.found.observations[0].responses[0].text == "you said x"
    # only what can be read is prompt for, and only where it is recorded
    assert [one.header("Accept-Encoding") for one in made.agent.requests] == ["gzip", "br;q=1, gzip"]


def test_proxy__other_paths_and_methods__are_forwarded_and_not_recorded(tmp_path) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.answer(b"ok")

    def client(port: int) -> list[bytes]:
        lines = ("GET /chat", "POST /chat/other", "OPTIONS /chat", "POST /Chat", "DELETE /..%2fchat")
        return [send_raw(port, build_raw(b"", f"{line} HTTP/1.1")) for line in lines]

    made = record(tmp_path, handler, client)
    assert [one.head.split(" HTTP")[0] for one in made.agent.requests] == [
        "GET /chat",
        "POST /chat/other",
        "OPTIONS /chat",
        "POST /Chat",
        "DELETE /..%2fchat",
    ]
    assert (made.text, made.notes) == ("", ())


@pytest.mark.parametrize(
    ("line", "host"),
    [
        ("POST /chat HTTP/1.1", "evil.example"),
        ("POST /chat HTTP/1.1", "localhost.evil.example:80"),
        ("GET http://evil.example/chat HTTP/1.1", "localhost"),
    ],
)
def test_proxy__other_hosts__are_refused(tmp_path, line, host) -> None:
    made = record(tmp_path, echo, lambda port: send_raw(port, build_raw(b'{"message": "a"}', line, host=host)))
    assert isinstance(made.got, bytes)
    assert made.got.startswith(b"HTTP/1.1 403 ")
    assert (made.agent.requests, made.text) == ([], "")


def test_proxy__request_in_chunks_with_expect__arrives_whole(tmp_path) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.answer({"response": "ok"})

    def client(port: int) -> bytes:
        head = "POST /chat HTTP/1.1\r\nHost: [::1]:1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n"
        return send_raw(port, f'{head}Connection: close\r\n\r\n5\r\n{{"mes\r\nb\r\nsage": "a"}}\r\n0\r\n\r\n'.encode())

    made = record(tmp_path, handler, client)
    arrived, pieces = made.agent.requests  # which does not know chunks, and takes them for another request
    assert (arrived.header("Transfer-Encoding"), arrived.header("Expect")) == ("chunked", None)
    assert "sage" in pieces.head
    assert [one.question for one in made.found.observations] == ["a"]


def test_proxy__failures_of_the_agent__pass_and_are_recorded_as_errors(tmp_path) -> None:
    async def handler(exchange: Exchange) -> None:
        match exchange.json["message"]:
            case "500":
                exchange.answer({"error": f"broken {KEY}"}, "500 Internal Server Error")
            case "shape":
                exchange.answer({"answer": "x"})
            case "large":
                exchange.answer({"response": "x" * 5_000})
            case _:
                exchange.reset()

    made = record(tmp_path, handler, ask("500", "shape", "large", "reset"), maxResponseBytes=1_000)
    assert isinstance(made.got, list)
    assert [status for status, _ in made.got] == [500, 200, 200, 502]
    assert len(made.got[2][1]) > 5_000  # what is too large for a record still passes
    errors = {one.question: one.errors for one in made.found.observations}
    assert errors["500"] == ('agent error: HTTP 500 Internal Server Error: «{"error": "broken ***"}»',)
    assert errors["shape"][0].startswith('the response has no value at "response"')
    assert errors["large"] == ("the response is larger than 1,000 bytes",)
    assert errors["reset"] == ("the agent cannot be reached: Server disconnected",)
    assert not any(one.responses for one in made.found.observations)


def test_proxy__agent_that_is_not_there__is_an_error_with_its_question(tmp_path) -> None:
    made = record(tmp_path, echo, ask("a"), url=f"http://127.0.0.1:{unused_port()}/chat")
    assert isinstance(made.got, list)
    assert made.got[0][0] == 502
    [one] = made.found.observations
    assert (one.question, one.responses) == ("a", ())
    assert one.errors == ("the agent cannot be reached: Connection refused",)


def test_proxy__connection_that_breaks_in_the_response__breaks_for_the_client_too(tmp_path) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n")
        await exchange.writer.drain()
        exchange.writer.close()

    made = record(tmp_path, handler, lambda port: send_raw(port, build_raw(b'{"message": "a"}')))
    assert isinstance(made.got, bytes)
    assert not made.got.endswith(b"0\r\n\r\n")  # which would say that it is complete
    [one] = made.found.observations
    assert one.responses == ()
    assert one.errors[0].startswith("the connection broke during the response: ")


def test_proxy__error_of_the_library_that_is_shortened__shows_no_part_of_what_the_client_sent(tmp_path) -> None:
    sent = "q7Rk-2vXw9Lm4Tz8"

    async def handler(exchange: Exchange) -> None:
        exchange.write(
            b"HTTP/1.1 200 OK\r\nbad header" + b"-" * int(exchange.json["message"]) + sent.encode() + b"\r\n\r\n"
        )

    made = record(tmp_path, handler, ask(*map(str, range(150, 250)), Authorization=f"Bearer {sent}"))
    errors = [one.errors[0] for one in made.found.observations]
    assert any("***" in one for one in errors), errors
    assert not any(sent[:6] in one for one in errors), [one for one in errors if sent[:6] in one]


def test_proxy__error_that_is_shortened__shows_no_part_of_a_key(tmp_path) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.answer(b"x" * int(exchange.json["message"]) + KEY.encode() + b" rest" * 99, "500 No")

    made = record(tmp_path, handler, ask(*map(str, range(150, 200))))
    assert len(made.found.observations) == 50
    assert KEY[:5] not in made.text


def test_proxy__client_that_leaves__ends_the_exchange_without_a_record(tmp_path) -> None:
    left = threading.Event()

    async def handler(exchange: Exchange) -> None:
        exchange.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
        await exchange.writer.drain()
        assert await asyncio.to_thread(left.wait, 30)
        with suppress(ConnectionError):
            while True:  # until the proxy has left, too
                exchange.write(b"1\r\nx\r\n")
                await exchange.writer.drain()
                await asyncio.sleep(0)

    def client(port: int) -> None:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(build_raw(b'{"message": "a"}'))
            assert connection.recv(1)
        left.set()

    made = record(tmp_path, handler, client)
    assert made.text == ""
    assert made.notes == ("Not recorded: 1 exchange, cut off by the client.",)


def test_proxy__client_that_leaves_in_its_request__is_not_recorded(tmp_path, caplog) -> None:
    def client(port: int) -> None:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(b"POST /chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\nhalf")
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65_536):
                pass

    made = record(tmp_path, echo, client)
    assert (made.text, made.agent.requests, caplog.records) == ("", [], [])
    assert [note.partition(",")[0] for note in made.notes] == ["Not recorded: 1 exchange"]


def test_proxy__session__has_the_earlier_messages_of_its_conversation(tmp_path) -> None:
    def client(port: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        for session, text in (("one", "a"), ("two", "x"), ("one", "b")):
            connection.request("POST", "/chat", json.dumps({"message": text, "thread": {"id": session}}))
            connection.getresponse().read()
        connection.close()

    template = {"message": "{{message}}", "thread": {"id": "{{session}}"}}
    made = record(tmp_path, echo, client, requestTemplate=template)
    last = made.found.observations[-1]
    assert last.question == "b"
    assert last.earlier_messages == (
        Message(role="user", content="a"),
        Message(role="assistant", content="you said a"),
    )
    assert "one" not in made.text


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not JSON",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        b'{"message": ' + b"[" * 150 + b"]" * 150 + b"}",
        b'{"message": {"a": 1}}',
        b'{"message": " "}',
        b'{"other": "a"}',
    ],
)
def test_proxy__request_without_a_question__passes_and_is_counted(tmp_path, body) -> None:
    async def handler(exchange: Exchange) -> None:
        exchange.answer({"response": "ok"})

    made = record(tmp_path, handler, lambda port: send_raw(port, build_raw(body)))
    assert isinstance(made.got, bytes)
    assert made.got.startswith(b"HTTP/1.1 200 OK")
    assert [one.body for one in made.agent.requests] == [body]
    assert made.text == ""
    assert [note.partition(",")[0] for note in made.notes] == ["Not recorded: 1 exchange"]


def test_proxy__hostile_texts__are_one_line_of_ascii_each(tmp_path) -> None:
    hostile = "\x00\n\x1b[31m\u202e{{seed:x}} \ud800"
    made = record(tmp_path, echo, ask(hostile))
    assert made.text.isascii()
    assert made.text.count("\n") == 1
    assert made.found.observations[0].question == hostile.replace("\ud800", "\ufffd")


def test_journal__earlier_recording__is_gone_on_with(tmp_path) -> None:
    (tmp_path / "journal.jsonl").write_text('{"message": "old", "response": "r"}\n{"message": "cut of')
    made = record(tmp_path, echo, ask("new"))
    assert [one.question for one in made.found.observations] == ["old", "new"]
    assert made.found.notes[0].endswith("journal.jsonl:2): not JSON.")


def test_journal__line_that_could_not_be_read_again__is_not_written(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(exchange_journal, "DRAFT_SOURCE_BYTES", 150)
    made = record(tmp_path, echo, ask("a", "b", "c"))
    assert [one.question for one in made.found.observations] == ["a"]
    assert made.notes == ("Not recorded: 2 exchanges, with which the recording would exceed 64,000,000 bytes.",)


def start(tmp_path: Path, port: int, **settings: object) -> GateError:
    described = HttpSettings.model_validate({"name": "a", "url": "http://localhost:9/chat", **settings})
    with pytest.raises(GateError) as caught:
        asyncio.run(record_proxy(port, described, ProxyRecording(tmp_path / "journal.jsonl", Redactor())))
    assert caught.value.code == "invalid-proxy"
    return caught.value


def test_record_proxy__port_in_use__is_refused(tmp_path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = f"the proxy cannot listen at 127.0.0.1:{port}: address already in use"
        assert start(tmp_path, port).message == said


def test_record_proxy__port_of_the_agent__is_refused(tmp_path) -> None:
    assert start(tmp_path, 9).message == "port 9 is that of the agent itself"


def test_record_proxy__agent_that_answers_later__is_refused(tmp_path) -> None:
    assert "`poll`" in start(tmp_path, 10, poll={"idPath": "id", "url": "/jobs/{{id}}"}).message
