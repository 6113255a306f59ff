"""Straight to a server over plain HTTP: its connections are kept, and each is asked one request at a time.

Nothing but this is done here, for a third of what a client library takes for the same bytes: no TLS, no proxy, no
redirect, no cookie. `connection` says who is asked this way.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import Final

from aiohappyeyeballs import AddrInfoType, start_connection

from eval_gate.targets.http.incoming import IncomingAnswer, NoHttpError
from eval_gate.text.foreign.unpacking import PackingError

_IDLE_S: Final = 15.0
"""A connection that was not used for so long is closed: many servers close theirs soon after."""
_KNOWN_S: Final = 10.0
"""Seconds for which the addresses of a name are remembered."""
_NEXT_ADDRESS_S: Final = 0.25
"""After so long without a connection the next address of a name is tried beside it (RFC 8305)."""
_MAY_REPEAT: Final = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
"""What is the same done twice (RFC 9110): asked again where a kept connection broke before a byte came."""


class LostError(Exception):
    """No connection, or one that broke. Its message are the words of the system or of a client, if there are any."""

    def __init__(self, said: str, *, made: bool, begun: bool = False, system: OSError | None = None) -> None:
        super().__init__(said)
        self.system = system
        """What the system said, of one that was not made."""
        self.made = made
        """There was a connection."""
        self.begun = begun
        """The answer had begun: its head was there."""


class BrokenError(LostError):
    """The connection broke."""

    def __init__(self, said: str, *, begun: bool, silent: bool) -> None:
        super().__init__(said, made=True, begun=begun)
        self.silent = silent
        """Not a byte had come."""


class NotConnectedError(LostError):
    """There is no connection."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error), made=False, system=error if isinstance(error, OSError) else None)


class PlainPool:
    """The connections to one server. Raises LostError, NoHttpError and PackingError."""

    def __init__(self, host: str, port: int, at_most: int, *, success_limit: int, error_limit: int) -> None:
        """`at_most` connections at once; of a body no more bytes are read than the limit, and a piece."""
        self._host = host
        self._port = port
        self._limits = success_limit, error_limit
        self._room = asyncio.Semaphore(at_most)
        self._idle: list[_Line] = []
        self._addresses: asyncio.Task[Sequence[AddrInfoType]] | None = None
        self._addresses_until = 0.0
        self._turn = 0
        self._clock = asyncio.get_running_loop().time

    async def ask(self, method: str, request: bytes) -> IncomingAnswer:
        """Send these bytes, and read the whole answer. To be cancelled closes the connection."""
        async with self._room:
            line = self._kept()
            if line is not None:
                try:
                    return await self._over(line, method, request)
                except BrokenError as error:
                    if not error.silent or method not in _MAY_REPEAT:
                        raise
            return await self._over(await self._connected(), method, request)

    def close(self) -> None:
        """Close those that wait for a request."""
        for line in self._idle:
            line.close()
        self._idle.clear()

    def _kept(self) -> _Line | None:
        while self._idle:
            line = self._idle.pop()  # the one that was used last: what is left over grows old
            if self._clock() - line.used < _IDLE_S and line.is_quiet():
                return line
            line.close()
        return None

    async def _over(self, line: _Line, method: str, request: bytes) -> IncomingAnswer:
        answer = IncomingAnswer(method, success_limit=self._limits[0], error_limit=self._limits[1])
        try:
            await line.ask(request, answer)
        finally:
            answer.let_go()
            if answer.whole and answer.reusable and line.is_open and line.is_sent:
                line.used = self._clock()
                self._idle.append(line)
            else:
                line.close()
        return answer

    async def _connected(self) -> _Line:
        try:
            found = await self._addresses_of_host()
            at = self._turn % len(found)  # of several addresses each has its share, beginning with the system's first
            self._turn += 1
            connection = await start_connection([*found[at:], *found[:at]], happy_eyeballs_delay=_NEXT_ADDRESS_S)
            _, line = await asyncio.get_running_loop().create_connection(lambda: _Line(connection), sock=connection)
        except (OSError, UnicodeError) as error:  # the second of a name that can be none
            self._addresses = None
            raise NotConnectedError(error) from error
        return line

    async def _addresses_of_host(self) -> Sequence[AddrInfoType]:
        """Looked up once for all who want a connection at the same time."""
        if self._addresses is None or (self._addresses.done() and self._clock() > self._addresses_until):
            self._addresses = asyncio.ensure_future(self._looked_up())
            self._addresses.add_done_callback(_seen)
        return await asyncio.shield(self._addresses)

    async def _looked_up(self) -> Sequence[AddrInfoType]:
        loop = asyncio.get_running_loop()
        # a machine with IPv6 for itself alone, as containers have it, must find an agent that listens on ::1
        flags = 0 if _is_here(self._host) else socket.AI_ADDRCONFIG
        found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM, flags=flags)
        self._addresses_until = self._clock() + _KNOWN_S
        if not found:
            raise OSError(f"{self._host} has no address")
        return found


def _is_here(host: str) -> bool:
    """Whether this is an address, or the name of the machine itself: whatever it is reached by is tried."""
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return host.lower().rstrip(".").rpartition(".")[2] == "localhost"
    return True


def _seen(task: asyncio.Task[Sequence[AddrInfoType]]) -> None:
    """All who waited may be gone, and asyncio complains of errors that nobody looks at."""
    if not task.cancelled():
        task.exception()


class _Line(asyncio.Protocol):
    """One connection: idle, or with one request under way."""

    def __init__(self, connection: socket.socket) -> None:
        self.used = 0.0
        self.is_open = False
        self._connection = connection
        self._answer: IncomingAnswer | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._silent = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.is_open = True
        with suppress(OSError):  # some systems complain where the other side is gone already, which shows soon enough
            self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    @property
    def is_sent(self) -> bool:
        """Nothing of a request waits to be sent: some answer before they have read it all."""
        return self._transport.get_write_buffer_size() == 0

    def is_quiet(self) -> bool:
        """Whether it is open and nothing has come since the last answer, neither an end nor bytes nobody asked for.

        The loop may not have had its turn since: the system is asked, so that no request is lost that need not be.
        """
        if not self.is_open or self._transport.is_closing():
            return False
        try:
            self._connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    async def ask(self, request: bytes, answer: IncomingAnswer) -> None:
        """Send the request and wait until the answer is whole."""
        if not self.is_open:
            raise BrokenError("Server disconnected", begun=False, silent=True)
        self._answer, self._silent = answer, True
        self._waiter = waiter = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        try:
            await waiter
        finally:
            self._answer = self._waiter = None

    def data_received(self, data: bytes) -> None:
        answer, waiter = self._answer, self._waiter
        if answer is None or waiter is None or waiter.done():
            self.close()  # nobody asked for this
            return
        self._silent = False
        try:
            answer.feed(data)
        except (NoHttpError, PackingError) as error:
            waiter.set_exception(error)
            self.close()
            return
        if answer.whole:
            waiter.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        waiter, answer = self._waiter, self._answer
        if waiter is None or answer is None or waiter.done():
            return
        if exc is None and answer.ended():
            waiter.set_result(None)
            return
        begun = answer.head is not None
        said = str(exc) if exc else "the server closed it" if begun else "Server disconnected"
        waiter.set_exception(BrokenError(said, begun=begun, silent=self._silent))

    def close(self) -> None:
        """Close it, whatever is under way."""
        if self.is_open:
            self.is_open = False
            self._transport.abort()
