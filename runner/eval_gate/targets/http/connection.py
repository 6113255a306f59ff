"""The connections to an HTTP agent: one request, its answer as it comes within bounds, and what went wrong in words."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.request import getproxies

import httpx

from eval_gate.files.certificates import certificates
from eval_gate.model import limits
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.text.foreign.quote import quote
from eval_gate.text.foreign.unpacking import PackingError, Unpacker
from eval_gate.text.redact import Redactor

if TYPE_CHECKING:
    import aiohttp
    from httpx_aiohttp import AiohttpTransport

ACCEPTED: Final = 202
"""The HTTP status of one who will answer later."""
MAX_ERROR_BODY: Final = limits.ERROR_BYTES
_ERRNO: Final = re.compile(r"\[Errno (\d{1,4})\]")
_RETRY_AFTER_LIMIT_S: Final = 3_600.0
_ASKS_OTHERWISE: Final = "it wants other fields: the target's requestTemplate, headers and query say what is sent"
_WANTS_CREDENTIALS: Final = "it wants to know who asks: give the target headers, with a secret as ${{ NAME }}"
_TO_DO: Final[Mapping[int, str]] = {
    400: _ASKS_OTHERWISE,
    401: _WANTS_CREDENTIALS,
    403: _WANTS_CREDENTIALS,
    404: "somebody is there, and has nothing at this path: look at the path of the agent's address",
    405: "it takes another method there: say which with the target's method",
    415: "it wants another kind of body: the target's form, or headers with another Content-Type",
    422: _ASKS_OTHERWISE,
}
"""What to change where an agent that answers refuses what it is asked, by HTTP status."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of an answer is read, in bytes, and which statuses are worth another try."""

    bytes: int
    retryable: frozenset[int]


class Connection:
    """The pool of connections to one agent: as many as cases in flight, kept open between cases."""

    def __init__(self, redact: Redactor, bounds: Bounds, concurrency: int, *, secure: bool) -> None:
        self._redact = redact
        self._bounds = bounds
        self._concurrency = concurrency
        self._secure = secure
        self._transport: AiohttpTransport | None = None

    async def aclose(self) -> None:
        """Close all of them."""
        if self._transport is not None:
            await self._transport.aclose()

    @asynccontextmanager
    async def opened(self, request: httpx.Request) -> AsyncIterator[httpx.Response]:
        """One request, and the answer of which the head is there. Raises TargetError for bytes that are not HTTP.

        Straight through the transport: redirects, cookies and authentication flows are not wanted here, and the
        client that brings them costs as much again as the request. Raises what httpx raises for lost connections.
        """
        transport = self._connected()
        import aiohttp

        try:
            answer = await transport.handle_async_request(request)
            try:
                yield answer
            finally:
                await answer.aclose()
        except aiohttp.ClientError as error:
            # what the transport has no httpx error for: above all bytes that are not HTTP
            raise TargetError(
                f"agent error: the answer is not HTTP: {' '.join(self.words(error).split())}",
                fault=TargetFault.MALFORMED,
            ) from error

    async def exchange(self, request: httpx.Request) -> tuple[httpx.Response, bytes]:
        """One request and the whole answer, without secrets. Raises TargetError, and httpx's errors."""
        async with self.opened(request) as answer:
            return answer, await self.body(answer)

    async def pieces(self, answer: httpx.Response) -> AsyncIterator[bytes]:
        """The body as it comes, unpacked: an agent may stream for ever. Raises TargetError beyond the limit."""
        assert isinstance(answer.stream, httpx.AsyncByteStream)
        unpacker = Unpacker(answer.headers.get_list("content-encoding"))
        limit, read = self._bounds.bytes, 0
        try:
            async for chunk in answer.stream:
                for piece in unpacker.pieces(chunk):
                    read += len(piece)
                    if read > limit:
                        raise self._too_large(piece)
                    yield piece
        except PackingError as error:
            raise _packed(error) from error

    async def body(self, answer: httpx.Response) -> bytes:
        """The whole body without secrets, as long as it stays within the limit. Raises TargetError."""
        assert isinstance(answer.stream, httpx.AsyncByteStream)
        limit = self._bounds.bytes if answer.is_success else MAX_ERROR_BODY
        try:
            body = await _at_most(limit, answer.stream, Unpacker(answer.headers.get_list("content-encoding")))
        except PackingError as error:
            raise _packed(error) from error
        cut = len(body) > limit
        if cut and answer.is_success:
            raise self._too_large(body)
        return self._redact.data(body, cut_after=cut)

    def refused(self, answer: httpx.Response, body: bytes) -> TargetError:
        """The error about an answer that is none."""
        where = f" to {quote(self._redact(answer.headers.get('location', '')).encode())}" if answer.is_redirect else ""
        said = f": {quote(body)}" if body.strip() else ""
        return TargetError(
            f"agent error: HTTP {answer.status_code} {answer.reason_phrase}{where}{said}",
            fault=TargetFault.REFUSED,
            retryable=answer.status_code in self._bounds.retryable,
            hint=_TO_DO.get(answer.status_code),
            status=answer.status_code,
            retry_after_s=retry_after(answer.headers),
        )

    def words(self, error: Exception) -> str:
        """Why, masked before it is cut: the system's words, else the library's, else the error's name."""
        return self._redact(_system_words(error) or str(error))[:300] or type(error).__name__

    def _too_large(self, body: bytes) -> TargetError:
        shown = quote(self._redact.data(body, cut_after=True))
        return TargetError(
            f"agent error: the answer is larger than {self._bounds.bytes:,} bytes; it begins {shown}",
            fault=TargetFault.MALFORMED,
            hint="raise the target's maxResponseBytes if this is right",
        )

    def _connected(self) -> AiohttpTransport:
        if self._transport is None:
            from httpx_aiohttp import AiohttpTransport

            # certificates cost 20 ms: only for those who use them
            verify = certificates() if self._secure else False
            self._transport = AiohttpTransport(verify=verify, client=self._session)
        return self._transport

    def _session(self) -> aiohttp.ClientSession:
        """The pool: as many connections as cases in flight, proxies from the environment where there are any."""
        import aiohttp

        verify = certificates() if self._secure else True
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._concurrency + 1, ssl=verify),
            cookie_jar=aiohttp.DummyCookieJar(),
            # looked up for every request, so only where it matters
            trust_env=bool(getproxies()),
            max_line_size=65_536,
            max_field_size=65_536,
        )


def was_made(error: httpx.HTTPError) -> bool:
    """Whether there was a connection: the transport has one httpx error for many of aiohttp's."""
    import aiohttp

    cause = error.__cause__
    if isinstance(cause, aiohttp.ClientConnectorError | aiohttp.ClientProxyConnectionError):
        return False
    return isinstance(cause, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError)


def _system_words(error: Exception) -> str | None:
    """`Connection refused`, where the system said so below what the libraries made of it."""
    import aiohttp

    cause = error.__cause__
    if not isinstance(cause, aiohttp.ClientConnectorError) or isinstance(cause, aiohttp.ClientSSLError):
        return None
    below = cause.os_error
    if isinstance(below, socket.gaierror):
        return below.strerror
    number = below.errno or next(map(int, _ERRNO.findall(str(below))), None)  # of several addresses: the first
    return os.strerror(number) if number else None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds of a `Retry-After` header in its numeric form."""
    try:
        return min(max(float(headers.get("retry-after", "")), 0.0), _RETRY_AFTER_LIMIT_S)
    except ValueError:
        return None


async def _at_most(limit: int, stream: httpx.AsyncByteStream, unpacker: Unpacker) -> bytes:
    """What the stream holds; of more than `limit` bytes, some more than that. Raises PackingError."""
    body = bytearray()
    async for chunk in stream:
        for piece in unpacker.pieces(chunk):
            body += piece
            if len(body) > limit:
                return bytes(body)
    return bytes(body)


def _packed(error: PackingError) -> TargetError:
    return TargetError(f"agent error: the answer {error}", fault=TargetFault.MALFORMED)
