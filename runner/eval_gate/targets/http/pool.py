"""Pool of connections to agents, made with aiohttp."""

from __future__ import annotations

import asyncio
import select
import socket
from typing import TYPE_CHECKING, Final

from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector
from aiohttp.abc import ResolveResult
from aiohttp.resolver import ThreadedResolver

if TYPE_CHECKING:
    from ssl import SSLContext

    from aiohttp import ClientRequest
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

MAX_LINE: Final = 65_536
"""Maximum bytes of one line in the head of a response."""
MAX_LINES: Final = 256
_IS_NUMERIC: Final = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV


def make_pool(at_most: int, certificates: SSLContext | None, *, keep_open: bool = True) -> ClientSession:
    """Make a pool of at most `at_most` connections, without redirects and cookies; each may be used once only."""
    connector = QuietConnector(
        limit=at_most,
        ssl=True if certificates is None else certificates,
        resolver=LocalResolver(),
        force_close=not keep_open,
    )
    return ClientSession(
        connector=connector,
        cookie_jar=DummyCookieJar(),
        headers={"accept-encoding": "gzip, deflate"},  # what `Decompressor` reads
        timeout=ClientTimeout(),  # the case has its own time limit
        auto_decompress=False,
        max_line_size=MAX_LINE,
        max_field_size=MAX_LINE,
        max_headers=MAX_LINES,
    )


class QuietConnector(TCPConnector):
    """Connector that reuses a connection only if nothing has arrived since the last response.

    aiohttp takes unexpected data for the response to the next request, and notices a closed connection only after the
    next turn of the event loop.
    """

    async def connect(self, req: ClientRequest, traces: list[Trace], timeout: ClientTimeout) -> Connection:  # noqa: ASYNC109 (aiohttp's name)
        """Return a connection for one request on which no data has arrived unasked. Raises the errors of aiohttp."""
        while True:
            connection = await super().connect(req, traces, timeout)
            if _is_quiet(connection):
                return connection
            connection.close()


def _is_quiet(connection: Connection) -> bool:
    protocol, transport = connection.protocol, connection.transport
    if protocol is None or transport is None or protocol.should_close:
        return False
    one = transport.get_extra_info("socket")
    if hasattr(select, "poll"):  # select.select knows no number above 1,023
        poll = select.poll()
        poll.register(one, select.POLLIN)
        return not poll.poll(0)
    return not select.select([one], [], [], 0)[0]


class LocalResolver(ThreadedResolver):
    """Resolver that also finds agents on `::1` where only the loopback has IPv6, as in containers."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Resolve a host name to its addresses, in the order of the system. Raises OSError."""
        try:
            if host.lower().rstrip(".").rpartition(".")[2] != "localhost":
                return await super().resolve(host, port, family)
            # without AI_ADDRCONFIG, for which a machine's own addresses do not count
            loop = asyncio.get_running_loop()
            addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, family=family)
        except UnicodeError as error:  # a name that can be none
            raise OSError(None, str(error)) from error
        return [
            ResolveResult(hostname=host, host=str(at[0]), port=int(at[1]), family=kind, proto=proto, flags=_IS_NUMERIC)
            for kind, _, proto, _, at in addresses
        ]
