"""Connections over plain HTTP, kept between requests: when one is asked again, and when it is gone."""

import asyncio

import pytest

from eval_gate.targets.http.incoming import Incoming
from eval_gate.targets.http.straight import BrokenError, NotConnectedError, Pool
from tests.support.agents import Agent, Exchange, agent, ok, unused_port

ENDS = b"\r\nhost: here\r\ncontent-length: 0\r\n\r\n"


def asked(running: Agent, *methods: str, at_once: bool = False, host: str = "127.0.0.1", room: int = 2) -> list[object]:
    """The answers, or what was raised instead, of one pool."""

    async def main() -> list[object]:
        pool = Pool(host, running.port, room, success_limit=100, error_limit=100)
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
    return [one.status if isinstance(one, Incoming) else type(one) for one in found]


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


def test_ask__cancelled__closes_the_connection_and_the_next_one_is_answered() -> None:
    async def hangs_first(exchange: Exchange) -> None:
        if exchange.number == 0:
            await asyncio.sleep(60)
        await ok(exchange)

    async def main(port: int) -> int:
        pool = Pool("127.0.0.1", port, 1, success_limit=100, error_limit=100)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(pool.ask("POST", b"POST / HTTP/1.1" + ENDS), 0.2)
        answer = await asyncio.wait_for(pool.ask("POST", b"POST / HTTP/1.1" + ENDS), 10)
        pool.close()
        await asyncio.sleep(0)
        return answer.status

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
