"""Connections to agents over real sockets: what is sent again, what is kept, what breaks, and in which words."""

import asyncio
import gzip
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from yarl import URL

from eval_gate.model.execution import ErrorCause
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.http.connection import Connection, ConnectionLostError, HttpRequest, ResponseHead, ResponseLimits
from eval_gate.targets.http.request_builder import parse_address
from eval_gate.text.redaction import Redactor
from tests.support.agents import Exchange, agent, ok, unused_port

SECRET = "top-secret-token"
OK = b"HTTP/1.1 200 OK\r\n"
LENGTH = OK + b"Content-Length: 2\r\n\r\nok"
CHUNKS = OK + b"Transfer-Encoding: chunked\r\n\r\n"
PACKED = gzip.compress(b"ok", mtime=0)


def ask(
    port: int,
    *methods: str,
    host: str = "127.0.0.1",
    scheme: str = "http",
    between=None,
    at_once: bool = False,
    room: int = 2,
) -> list:
    """Status and body of each answer over one pool, or the error. `between` may hold the loop still after the first."""

    async def main() -> list:
        connection = Connection(Redactor([SECRET]), ResponseLimits(1_000, frozenset()), room - 1, secure=False)
        url = parse_address(f"{scheme}://{host}:{port}/chat?key={SECRET}")

        async def one(method: str) -> object:
            try:
                head, body = await connection.exchange(HttpRequest(method, url, {"accept": "*/*"}, b"x"))
            except (ConnectionLostError, TargetError) as error:
                return error
            return head.status, body

        try:
            if at_once:
                return await asyncio.gather(*map(one, methods))
            found = []
            for method in methods:
                found.append(await one(method))
                if between is not None:
                    between()
            return found
        finally:
            await connection.aclose()

    return asyncio.run(asyncio.wait_for(main(), 20))


def saying(*sent: bytes):
    """An agent that sends these bytes and closes."""

    async def handler(exchange: Exchange) -> None:
        for piece in sent:
            exchange.write(piece)
            await exchange.writer.drain()
        exchange.writer.close()

    return handler


def closing_at(*numbers: int):
    """An agent that closes instead of answering these requests."""

    async def handler(exchange: Exchange) -> None:
        if exchange.number in numbers:
            exchange.writer.close()
        else:
            exchange.answer(b"ok")

    return handler


@pytest.mark.parametrize(
    ("sent", "body"),
    [
        (LENGTH, b"ok"),
        (CHUNKS + b"2;a=b\r\nok\r\n0\r\nX: 1\r\n\r\n", b"ok"),
        (OK + b"\r\nto the end", b"to the end"),
        (b"HTTP/1.0 200 X\r\n\r\nto the end", b"to the end"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + LENGTH, b"ok"),
        (b"HTTP/1.1 103 Early\r\n\r\n" + LENGTH, b"ok"),
        (OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(PACKED) + PACKED, b"ok"),
        (OK + b"X: " + b"a" * 60_000 + b"\r\nContent-Length: 2\r\n\r\nok", b"ok"),
        (OK + b"X: a\r\n" * 200 + b"Content-Length: 2\r\n\r\nok", b"ok"),
        (OK + b"X: caf\xe9\r\nContent-Length: 2\r\n\r\nok", b"ok"),
    ],
    ids=range(10),
)
def test_exchange__whole_answer__is_read_to_its_end(sent: bytes, body: bytes) -> None:
    with agent(saying(sent)) as running:
        assert ask(running.port, "POST") == [(200, body)]


@pytest.mark.parametrize(
    ("sent", "kind", "said"),
    [
        (
            b"SSH-2.0-OpenSSH_9.6 top-secret-token\r\n\r\n",
            TargetError,
            "is not HTTP: Bad status line: Expected HTTP/, RTSP/ or ICE/, in «SSH-2.0-OpenSSH_9.6 ***»",
        ),
        (b"HTTP/1.1 two hundred\r\n\r\n", TargetError, "the response is not HTTP: "),
        (OK + b"Content-Length: many\r\n\r\n", TargetError, "not HTTP: Invalid character in Content-Length"),
        (OK + b"no colon\r\n\r\n", TargetError, "not HTTP: Invalid header token"),
        (OK + b"X: " + b"top-secret-token" * 9_000 + b"\r\n\r\n", TargetError, "not HTTP: Got more than 65536 bytes"),
        (OK + b"X: 1\r\n" * 300 + b"\r\n", TargetError, "not HTTP: Too many headers received"),
        (CHUNKS + b"xyz\r\n", TargetError, "not HTTP: Invalid character in chunk size"),
        (b"", ConnectionLostError, "Server disconnected"),
        (b"HTTP/1.1 200", ConnectionLostError, "Server disconnected"),
        (OK + b"Content-Length: 9\r\n\r\nhalf", ConnectionLostError, "Not enough data to satisfy content length"),
        (CHUNKS + b"9\r\nhalf", ConnectionLostError, "Not enough data to satisfy transfer length"),
        (
            OK + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope",
            TargetError,
            "does not match its content encoding",
        ),
        (OK + b"Content-Encoding: br\r\nContent-Length: 1\r\n\r\nx", TargetError, 'is compressed as "br"'),
        (OK + b"Content-Length: 1001\r\n\r\n" + b"a" * 1_001, TargetError, "is larger than 1,000 bytes"),
    ],
    ids=range(14),
)
def test_exchange__broken_server__is_said_in_bounded_words_without_secrets(sent: bytes, kind: type, said: str) -> None:
    with agent(saying(sent)) as running:
        (error,) = ask(running.port, "POST")
    assert isinstance(error, kind)
    assert said in str(error)
    assert len(str(error)) < 500
    assert SECRET not in str(error)


def test_exchange__several_one_after_the_other__over_one_connection() -> None:
    with agent(ok) as running:
        assert len(ask(running.port, "POST", "POST", "GET")) == 3
        assert running.connections == 1


def test_exchange__more_than_there_is_room_for__wait_for_a_connection() -> None:
    with agent(ok) as running:
        assert len(ask(running.port, *["POST"] * 9, at_once=True)) == 9
        assert running.connections <= 2


@pytest.mark.parametrize(("method", "lost", "requests"), [("GET", False, 3), ("POST", True, 2)])
def test_exchange__kept_connection_that_closes_without_a_byte__only_what_may_be_repeated_is(
    method, lost, requests
) -> None:
    with agent(closing_at(1)) as running:
        found = ask(running.port, "POST", method)
        assert isinstance(found[1], ConnectionLostError) is lost
        assert len(running.requests) == requests


@pytest.mark.parametrize("host", ["127.0.0.1", "no-such-host.invalid", "a" * 64 + ".example", "localhost"])
def test_exchange__nobody_there__was_never_connected_and_says_why(host: str) -> None:
    (error,) = ask(unused_port(), "POST", host=host)
    assert isinstance(error, ConnectionLostError)
    assert (error.was_connected, error.begun) == (False, False)
    assert Connection(Redactor(), ResponseLimits(1, frozenset()), 1, secure=False).describe_error(error)
    assert SECRET not in str(error)


def test_exchange__kept_connection_was_closed_unnoticed__post_goes_over_a_new_one() -> None:
    answered, closed = threading.Event(), threading.Event()

    async def closes(exchange: Exchange) -> None:
        await ok(exchange)
        await asyncio.to_thread(answered.wait, 20)
        exchange.writer.close()
        await exchange.writer.wait_closed()
        closed.set()

    def between() -> None:
        answered.set()
        assert closed.wait(20)

    with agent(closes) as running:
        assert [one[0] for one in ask(running.port, "POST", "POST", between=between)] == [200, 200]
        assert (running.connections, len(running.requests)) == (2, 2)


@pytest.mark.parametrize("noticed", [True, False], ids=["noticed", "unnoticed"])
def test_exchange__bytes_came_after_the_answer__are_no_answer_to_the_next_request(noticed: bool) -> None:
    answered, said_more = threading.Event(), threading.Event()

    async def says_more(exchange: Exchange) -> None:
        await ok(exchange)
        if exchange.number == 0:
            if not noticed:
                await asyncio.to_thread(answered.wait, 20)
            exchange.answer(b"for somebody else", status="418 Teapot")
            await exchange.writer.drain()
            said_more.set()

    def between() -> None:
        answered.set()
        assert said_more.wait(20)

    with agent(says_more) as running:
        assert [one[0] for one in ask(running.port, "POST", "POST", between=between)] == [200, 200]
        assert running.connections == 2


@asynccontextmanager
async def hasty(host: str, heads: list[bytes]) -> AsyncIterator[int]:
    """The port of one who answers as soon as the head of a request is there, and reads no more than that."""
    writers = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")

    server = await asyncio.start_server(serve, host, 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0.01)  # the loop closes them in its next turns


async def statuses(host: str, port: int, *contents: bytes) -> list[int]:
    connection = Connection(Redactor(), ResponseLimits(100, frozenset()), 0, secure=False)
    try:
        url = URL(f"http://{host}:{port}/")
        return [
            (await asyncio.wait_for(connection.exchange(HttpRequest("POST", url, {}, content)), 10))[0].status
            for content in contents
        ]
    finally:
        await connection.aclose()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
def test_exchange__answered_before_the_request_is_read__what_is_left_of_it_is_not_before_the_next() -> None:
    heads: list[bytes] = []

    async def main() -> list[int]:
        async with hasty("127.0.0.1", heads) as port:
            # more than the system takes at once
            return await statuses("127.0.0.1", port, bytes(32_000_000), b"x")

    assert asyncio.run(main()) == [413, 413]
    assert [head[:4] for head in heads] == [b"POST", b"POST"]


def has_ipv6() -> bool:
    with suppress(OSError), socket.socket(socket.AF_INET6) as one:
        one.bind(("::1", 0))
        return True
    return False


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no ::1")
@pytest.mark.parametrize("host", ["[::1]", "localhost", "agent.localhost"])
def test_exchange__listens_on_the_ipv6_of_the_machine_itself__is_found(host, monkeypatch) -> None:
    def getaddrinfo(_host, port, family=0, type=0, proto=0, flags=0):  # noqa: A002 (the system's name for it)
        if flags & socket.AI_ADDRCONFIG:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("::1", port, 0, 0))]

    async def main() -> list[int]:
        async with hasty("::1", []) as port:
            monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
            return await statuses(host, port, b"x")

    assert asyncio.run(main()) == [413]


@pytest.mark.slow
def test_exchange__cancelled__closes_the_connection_and_the_next_one_is_answered() -> None:
    async def hangs_first(exchange: Exchange) -> None:
        if exchange.number == 0:
            await asyncio.sleep(60)
        await ok(exchange)

    async def main(port: int) -> list[int]:
        connection = Connection(Redactor(), ResponseLimits(100, frozenset()), 0, secure=False)
        request = HttpRequest("POST", URL(f"http://127.0.0.1:{port}/"), {}, b"x")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(connection.exchange(request), 0.2)
        head, _ = await asyncio.wait_for(connection.exchange(request), 10)
        await connection.aclose()
        return [head.status]

    with agent(hangs_first) as running:
        assert asyncio.run(main(running.port)) == [200]
        assert running.connections == 2


def test_exchange__proxies_of_the_environment__are_used_but_for_hosts_without(monkeypatch) -> None:
    with agent(ok) as proxy, agent(ok) as direct:
        monkeypatch.setenv("http_proxy", f"http://me:pw@127.0.0.1:{proxy.port}")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert ask(80, "POST", host="agent.invalid")[0][0] == 200
        assert ask(direct.port, "POST")[0][0] == 200
        assert proxy.requests[0].head.startswith("POST http://agent.invalid/chat?key=")
        assert proxy.requests[0].header("proxy-authorization") == "Basic bWU6cHc="
        assert len(proxy.requests) == len(direct.requests) == 1


@pytest.mark.parametrize("status", [403, 407, 502])
def test_exchange__proxy_that_refuses__is_named_without_its_credentials(monkeypatch, status) -> None:
    refusal = f"HTTP/1.1 {status} Refused\r\nContent-Length: 0\r\n\r\n".encode()
    with agent(saying(refusal)) as proxy:
        monkeypatch.setenv("https_proxy", f"http://me:hush@127.0.0.1:{proxy.port}")
        (error,) = ask(443, "POST", host="agent.invalid", scheme="https")
    said = f"no connection: the proxy 127.0.0.1:{proxy.port} refused the connection (HTTP {status} Refused)"
    assert (str(error.message), error.cause, error.fault) == (said, ErrorCause.PROXY_REFUSED, TargetFault.UNREACHABLE)


def test_exchange__proxy_where_nobody_listens__is_named_and_asked_again(monkeypatch) -> None:
    port = unused_port()
    monkeypatch.setenv("http_proxy", f"http://me:hush@127.0.0.1:{port}")
    (error,) = ask(80, "POST", host="agent.invalid")
    said = f"no connection: the proxy 127.0.0.1:{port} accepts no connection (Connection refused)"
    assert (error.message, error.retryable) == (said, True)


@pytest.mark.parametrize(
    ("status", "said", "cause"),
    [
        (407, "no connection: the proxy 127.0.0.1:{port} refused the request (HTTP 407 Refused)", "proxy_refused"),
        (403, "agent error: HTTP 403 Refused (through the proxy 127.0.0.1:{port})", "access_refused"),
        (500, "agent error: HTTP 500 Refused", "agent_failed"),
    ],
)
def test_build_status_error__behind_a_proxy__names_it_where_it_may_have_answered(
    monkeypatch, status, said, cause
) -> None:
    port = unused_port()
    monkeypatch.setenv("http_proxy", f"http://me:hush@127.0.0.1:{port}")
    connection = Connection(Redactor(), ResponseLimits(100, frozenset()), 0, secure=False)
    request = HttpRequest("POST", URL("http://agent.invalid/"), {}, b"x")
    error = connection.build_status_error(ResponseHead(status, "Refused", {}), b"", request)
    assert (error.message, error.cause) == (said.format(port=port), cause)


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("http://localhost:8000/chat", "http://localhost:8000/chat"),
        ("http://localhost:80", "http://localhost/"),
        ("https://a.example/v1?api-version=2024-06-01", "https://a.example/v1?api-version=2024-06-01"),
        ("https://a.example:443/a%2Fb%3A/.well-known?sig=%3D%7E", "https://a.example/a%2Fb%3A/.well-known?sig=%3D%7E"),
        ("http://bücher.example/ü?%41 b", "http://xn--bcher-kva.example/%C3%BC?%41%20b"),
    ],
)
def test_address_of__what_is_encoded__stays_as_it_is_written(text: str, sent: str) -> None:
    url = parse_address(text)
    assert f"{url.scheme}://{url.host_port_subcomponent}{url.raw_path_qs}" == sent
