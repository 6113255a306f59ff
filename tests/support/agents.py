"""Real agents over loopback that behave as badly as a test wants."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

Handler = Callable[["Exchange"], Awaitable[None]]


@dataclass
class Exchange:
    """One request that arrived, and the connection to answer on."""

    number: int
    head: str
    body: bytes
    writer: asyncio.StreamWriter

    def write(self, data: bytes) -> None:
        self.writer.write(data)

    def answer(self, body: bytes | dict, status: str = "200 OK", **headers: str) -> None:
        """A whole answer. Header names are written with `_` for `-`."""
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        fields = {"Content-Type": "application/json", "Content-Length": str(len(data))}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        self.write(f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + data)

    def reset(self) -> None:
        """Cut the connection without a word."""
        self.writer.transport.abort()

    @property
    def json(self) -> dict:
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        for line in self.head.split("\r\n")[1:]:
            key, _, value = line.partition(": ")
            if key.lower() == name.lower():
                return value
        return None


@dataclass
class Agent:
    """A running agent: what it was asked so far, and over how many connections."""

    port: int = 0
    requests: list[Exchange] = field(default_factory=list)
    connections: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/chat"


async def ok(exchange: Exchange) -> None:
    exchange.answer({"response": "ok", "toolCalls": []})


@contextmanager
def agent(handler: Handler = ok) -> Iterator[Agent]:
    """An agent in a thread of its own, on a free port, gone afterwards."""
    running = Agent()
    loop = asyncio.new_event_loop()
    tasks: set[asyncio.Task] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        running.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                length = next(
                    (int(line[15:]) for line in head.lower().split("\r\n") if line.startswith("content-length:")), 0
                )
                exchange = Exchange(len(running.requests), head, await reader.readexactly(length), writer)
                running.requests.append(exchange)
                await handler(exchange)
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0))
    running.port = server.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def end() -> None:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    try:
        yield running
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


@contextmanager
def vanishing_agent() -> Iterator[str]:
    """The address of an agent that is up when it is waited for, and gone before it is asked anything."""
    # only one connection is let in until it is taken, and then nobody listens any more
    listening = socket.create_server(("127.0.0.1", 0), backlog=0)

    def vanish() -> None:
        with suppress(OSError):
            connection, _ = listening.accept()
            listening.close()
            with connection:
                connection.settimeout(60)
                connection.recv(1)  # until whoever waited has seen that somebody is there

    thread = threading.Thread(target=vanish, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/chat"
    finally:
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)  # where nobody came
        thread.join(10)
        listening.close()


def unused_port() -> int:
    """A port nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
