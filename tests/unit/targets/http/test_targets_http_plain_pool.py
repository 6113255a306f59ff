"""Connections over plain HTTP, kept between requests: when one is asked again, and when it is gone."""

import asyncio
import gc
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import pytest

from eval_gate.targets.http.incoming import IncomingAnswer
from eval_gate.targets.http.plain_pool import BrokenError, NotConnectedError, PlainPool
from tests.support.agents import Agent, Exchange, agent, ok, unused_port

ENDS = b"\r\nhost: here\r\ncontent-length: 0\r\n\r\n"


def asked(running: Agent, *methods: str, at_once: bool = False, host: str = "127.0.0.1", room: int = 2) -> list[object]:
    """The answers, or what was raised instead, of one pool."""

    async def main() -> list[object]:
        pool = PlainPool(host, running.port, room, success_limit=100, error_limit=100)
        asking = [pool.ask(method, method.encode() + b" / HTTP/1.1" + ENDS) for method in methods]
        try:
            if at_once:
                return await asyncio.gather(*asking)
            return [(await asyncio.gather(one, return_exceptions=True))[0] for one in asking]
        finally:
            pool.close()
            await asyncio.sleep(0)

    return asyncio.run(asyncio.wait_for(main(), 20))


def statuses(found: list[object]) -> list[object]:
    return [one.head.status if isinstance(one, IncomingAnswer) else type(one) for one in found]


def closing_at(*numbers: int):
    """An agent that closes instead of answering these requests."""

    async def handler(exchange: Exchange) -> None:
        if exchange.number in numbers:
            exchange.writer.close()
        else:
            await ok(exchange)

    return handler


def test_ask__several_one_after_the_other__over_one_connection() -> None:
    with agent() as running:
        assert statuses(asked(running, "POST", "POST", "GET")) == [200, 200, 200]
        assert running.connections == 1


def test_ask__more_than_there_is_room_for__wait_for_a_connection() -> None:
    with agent() as running:
        assert statuses(asked(running, *["POST"] * 9, at_once=True)) == [200] * 9
        assert running.connections <= 2


@pytest.mark.parametrize(("method", "found", "requests"), [("GET", 200, 3), ("POST", BrokenError, 2)])
def test_ask__kept_connection_that_closes_without_a_byte__only_what_may_be_repeated_is(method, found, requests) -> None:
    with agent(closing_at(1)) as running:
        assert statuses(asked(running, "POST", method)) == [200, found]
        assert len(running.requests) == requests


def test_ask__new_connection_that_closes_without_a_byte__is_not_asked_again() -> None:
    with agent(closing_at(0)) as running:
        (error,) = asked(running, "GET")
        assert isinstance(error, BrokenError)
        assert (str(error), error.begun, error.silent) == ("Server disconnected", False, True)
        assert len(running.requests) == 1


def test_ask__closes_in_the_middle_of_the_answer__says_that_it_had_begun() -> None:
    async def half(exchange: Exchange) -> None:
        exchange.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
        await exchange.writer.drain()
        exchange.writer.close()

    with agent(half) as running:
        (error,) = asked(running, "GET")
    assert isinstance(error, BrokenError)
    assert (error.begun, error.silent) == (True, False)


def test_ask__more_than_was_asked_for__that_connection_is_not_asked_again() -> None:
    async def chatty(exchange: Exchange) -> None:
        exchange.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" + b"HTTP/1.1 500 No\r\n\r\n")

    with agent(chatty) as running:
        assert statuses(asked(running, "POST", "POST")) == [200, 200]
        assert running.connections == 2


@pytest.mark.slow
def test_ask__cancelled__closes_the_connection_and_the_next_one_is_answered() -> None:
    async def hangs_first(exchange: Exchange) -> None:
        if exchange.number == 0:
            await asyncio.sleep(60)
        await ok(exchange)

    async def main(port: int) -> int:
        pool = PlainPool("127.0.0.1", port, 1, success_limit=100, error_limit=100)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(pool.ask("POST", b"POST / HTTP/1.1" + ENDS), 0.2)
        answer = await asyncio.wait_for(pool.ask("POST", b"POST / HTTP/1.1" + ENDS), 10)
        pool.close()
        await asyncio.sleep(0)
        return answer.head.status

    with agent(hangs_first) as running:
        assert asyncio.run(main(running.port)) == 200
        assert running.connections == 2


def test_ask__name_with_several_addresses__one_that_listens_is_found() -> None:
    with agent() as running:
        assert statuses(asked(running, "POST", host="localhost")) == [200]


@pytest.mark.parametrize("host", ["127.0.0.1", "no-such-host.invalid", "a" * 64 + ".example"])
def test_ask__nobody_there__says_what_the_system_says(host) -> None:
    (error,) = asked(Agent(port=unused_port()), "POST", host=host)
    assert isinstance(error, NotConnectedError)
    assert str(error)


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


def asked_twice(port: int, between: threading.Event, first: threading.Event) -> list[object]:
    """POST, say so by `first`, and POST again when `between` is there; the loop has no turn to notice anything."""

    async def main() -> list[object]:
        pool = PlainPool("127.0.0.1", port, 1, success_limit=100, error_limit=100)
        found: list[object] = []
        for _ in range(2):
            found.append(await asyncio.wait_for(pool.ask("POST", b"POST / HTTP/1.1" + ENDS), 20))
            first.set()
            assert between.wait(20)
        pool.close()
        await asyncio.sleep(0)
        return found

    return asyncio.run(main())


def test_ask__kept_connection_was_closed_unnoticed__post_goes_over_a_new_one() -> None:
    answered, closed = threading.Event(), threading.Event()

    async def closes(exchange: Exchange) -> None:
        await ok(exchange)
        await asyncio.to_thread(answered.wait, 20)
        exchange.writer.close()
        await exchange.writer.wait_closed()
        closed.set()

    with agent(closes) as running:
        assert statuses(asked_twice(running.port, closed, answered)) == [200, 200]
        assert (running.connections, len(running.requests)) == (2, 2)


def test_ask__bytes_came_after_the_answer__are_no_answer_to_the_next_request() -> None:
    answered, said_more = threading.Event(), threading.Event()

    async def says_more(exchange: Exchange) -> None:
        await ok(exchange)
        if exchange.number == 0:
            await asyncio.to_thread(answered.wait, 20)
            exchange.answer(b"for somebody else", status="418 Teapot")
            said_more.set()

    with agent(says_more) as running:
        assert statuses(asked_twice(running.port, said_more, answered)) == [200, 200]
        assert running.connections == 2


def test_ask__answered_before_the_request_is_read__what_is_left_of_it_is_not_before_the_next() -> None:
    heads: list[bytes] = []
    size = 32_000_000  # more than the system takes at once
    large = b"POST / HTTP/1.1\r\nhost: here\r\ncontent-length: %d\r\n\r\n" % size + bytes(size)

    async def main() -> list[int]:
        async with hasty("127.0.0.1", heads) as port:
            pool = PlainPool("127.0.0.1", port, 1, success_limit=100, error_limit=100)
            found = []
            for request in large, b"GET / HTTP/1.1" + ENDS:
                found.append((await asyncio.wait_for(pool.ask("POST", request), 10)).head.status)
            pool.close()
        return found

    assert asyncio.run(main()) == [413, 413]
    assert [head[:4] for head in heads] == [b"POST", b"GET "]


@contextmanager
def resolving(monkeypatch: pytest.MonkeyPatch, *found: tuple[str, int]) -> Iterator[list[str]]:
    """A system that knows these addresses, of IPv6 the machine's own alone; the names that it was asked for."""
    names: list[str] = []

    def getaddrinfo(host, port, family=0, type=0, proto=0, flags=0):  # noqa: A002 (the system's name for it)
        names.append(host)
        kept = [one for one in found if not (flags & socket.AI_ADDRCONFIG and ":" in one[0])]
        if not kept:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        six, four = socket.AF_INET6, socket.AF_INET
        return [(six if ":" in one[0] else four, socket.SOCK_STREAM, 6, "", one) for one in kept]

    with monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", getaddrinfo)
        yield names


def test_ask__name_with_two_addresses__the_first_of_the_system_is_asked_first(monkeypatch) -> None:
    with agent(closing_at(9)) as first, agent(closing_at(9)) as second:
        addresses = ("127.0.0.1", first.port), ("127.0.0.1", second.port)
        with resolving(monkeypatch, *addresses) as names:
            assert statuses(asked(first, "POST", host="two.example")) == [200]
            assert (first.connections, second.connections) == (1, 0)
            assert statuses(asked(first, "POST", "POST", at_once=True, host="two.example")) == [200, 200]
            assert (first.connections, second.connections) == (2, 1)
        assert names == ["two.example", "two.example"]


def has_ipv6() -> bool:
    with suppress(OSError), socket.socket(socket.AF_INET6) as one:
        one.bind(("::1", 0))
        return True
    return False


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no ::1")
@pytest.mark.parametrize("host", ["::1", "localhost", "agent.localhost"])
def test_ask__listens_on_the_ipv6_of_the_machine_itself__is_found(host, monkeypatch) -> None:
    async def main() -> int:
        async with hasty("::1", []) as port:
            with resolving(monkeypatch, ("::1", port)):
                pool = PlainPool(host, port, 1, success_limit=100, error_limit=100)
                found = await asyncio.wait_for(pool.ask("POST", b"POST / HTTP/1.1" + ENDS), 20)
            pool.close()
        return found.head.status

    assert asyncio.run(main()) == 413


@pytest.mark.slow
@pytest.mark.parametrize(
    "sent",
    [b"HTTP/1.0 200 OK\r\n\r\nok", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"],
    ids=["to the end", "by its length"],
)
def test_ask__however_its_end_is_known__nothing_holds_on_to_the_answer(sent) -> None:
    async def says(exchange: Exchange) -> None:
        exchange.write(sent)
        exchange.writer.close()

    with agent(says) as running:
        gc.collect()
        gc.disable()  # a run collects seldom
        try:
            (found,) = asked(running, "POST")
            assert isinstance(found, IncomingAnswer)
            del found
            assert not [one for one in gc.get_objects() if isinstance(one, IncomingAnswer)]
        finally:
            gc.enable()


def test_ask__switches_to_something_else__is_an_answer_and_the_loop_complains_of_nothing(caplog) -> None:
    async def switches(exchange: Exchange) -> None:
        exchange.write(b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x02hi")

    with agent(switches) as running:
        assert statuses(asked(running, "POST", "POST")) == [101, 101]
        assert running.connections == 2
    assert not caplog.records
