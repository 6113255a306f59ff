"""The connections to an HTTP agent: one request, its answer as it comes within bounds, and what went wrong in words."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.request import getproxies

from eval_gate.files.certificates import certificates
from eval_gate.model import limits
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.text.foreign.quote import quote
from eval_gate.text.foreign.unpacking import PackingError, Unpacker
from eval_gate.text.redact import Redactor

if TYPE_CHECKING:
    import aiohttp
    import httpx
    from multidict import CIMultiDict, CIMultiDictProxy
    from yarl import URL

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
_STATUSES: Final = frozenset(map(int, HTTPStatus))


class Sent(NamedTuple):
    """One request as it is sent. Address and headers that are the same object as before are made ready once."""

    method: str
    url: httpx.URL
    headers: httpx.Headers
    content: bytes | None = None


class Head(NamedTuple):
    """What an answer begins with."""

    status: int
    said: str
    """The words behind the status, as they came."""
    headers: CIMultiDictProxy[str]

    @property
    def is_success(self) -> bool:
        """Whether it is 2xx."""
        return 200 <= self.status <= 299

    @property
    def is_redirect(self) -> bool:
        """Whether it is 3xx."""
        return 300 <= self.status <= 399

    @property
    def reason(self) -> str:
        """The words behind the status, else the usual ones."""
        usual = HTTPStatus(self.status).phrase if self.status in _STATUSES else ""
        return self.said.encode("ascii", "ignore").decode() if self.said else usual

    def header(self, name: str) -> str:
        """The first header of this name as text, whatever its bytes are; "" for none."""
        text = self.headers.get(name, "")
        if text.isascii():
            return text
        data = text.encode("utf-8", "surrogateescape")
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data.decode("latin-1")

    @property
    def charset(self) -> str | None:
        """What the content type says the text is encoded as; None where it does not."""
        kind = Message()
        kind["content-type"] = self.header("content-type")
        return kind.get_content_charset(failobj=None)


class LostError(Exception):
    """No connection, or one that broke. Its cause is the client's own error."""


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
        self._pool: aiohttp.ClientSession | None = None
        self._url: tuple[httpx.URL, URL] | None = None
        self._headers: tuple[Sent, CIMultiDict[str]] | None = None

    async def aclose(self) -> None:
        """Close all of them."""
        if self._pool is not None:
            await self._pool.close()

    @asynccontextmanager
    async def opened(self, request: Sent) -> AsyncIterator[aiohttp.ClientResponse]:
        """One request, and the answer of which the head is there. Raises TargetError for bytes that are not HTTP.

        Straight to the pool, not through httpx: what its requests and answers are for is not wanted here, and they
        cost as much again as the request. Raises LostError for lost connections.
        """
        pool = self._connected()
        from aiohttp import ClientError

        url, headers = self._ready(request)
        data = request.content or None
        try:
            async with pool.request(request.method, url, headers=headers, data=data, allow_redirects=False) as answer:
                yield answer
        except ClientError as error:
            raise self._told(error) from error

    def _ready(self, request: Sent) -> tuple[URL, CIMultiDict[str]]:
        """Address and headers as the pool takes them. Nearly all requests of a run have the same."""
        if self._url is None or self._url[0] is not request.url:
            from yarl import URL

            self._url = request.url, URL(str(request.url))
        known = self._headers
        if known is None or known[0].url is not request.url or known[0].headers is not request.headers:
            from multidict import CIMultiDict

            host = [] if "host" in request.headers else [("host", request.url.netloc.decode("ascii"))]
            self._headers = known = request, CIMultiDict([*host, *request.headers.items()])
        return self._url[1], known[1]

    def _told(self, error: aiohttp.ClientError) -> TargetError | LostError:
        """What the client's error means: the connection was lost, or what came is no HTTP."""
        from aiohttp import ClientConnectionError, ClientHttpProxyError, ClientPayloadError, InvalidURL

        if isinstance(error, ClientConnectionError | ClientPayloadError | ClientHttpProxyError | InvalidURL):
            return LostError(str(error))
        said = f"agent error: the answer is not HTTP: {' '.join(self.words(error).split())}"
        return TargetError(said, fault=TargetFault.MALFORMED)

    async def exchange(self, request: Sent) -> tuple[Head, bytes]:
        """One request and the whole answer, without secrets. Raises TargetError and LostError."""
        async with self.opened(request) as answer:
            return head_of(answer), await self.body(answer)

    async def pieces(self, answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """The body as it comes, unpacked: an agent may stream for ever. Raises TargetError beyond the limit."""
        unpacker = Unpacker(answer.headers.getall("content-encoding", ()))
        limit, read = self._bounds.bytes, 0
        try:
            async for chunk in answer.content.iter_any():
                for piece in unpacker.pieces(chunk):
                    read += len(piece)
                    if read > limit:
                        raise self._too_large(piece)
                    yield piece
        except PackingError as error:
            raise _packed(error) from error

    async def body(self, answer: aiohttp.ClientResponse) -> bytes:
        """The whole body without secrets, as long as it stays within the limit. Raises TargetError."""
        is_success = head_of(answer).is_success
        limit = self._bounds.bytes if is_success else MAX_ERROR_BODY
        try:
            body = await _at_most(limit, answer, Unpacker(answer.headers.getall("content-encoding", ())))
        except PackingError as error:
            raise _packed(error) from error
        cut = len(body) > limit
        if cut and is_success:
            raise self._too_large(body)
        return self._redact.data(body, cut_after=cut)

    def refused(self, answer: Head, body: bytes) -> TargetError:
        """The error about an answer that is none."""
        where = f" to {quote(self._redact(answer.header('location')).encode())}" if answer.is_redirect else ""
        said = f": {quote(body)}" if body.strip() else ""
        return TargetError(
            f"agent error: HTTP {answer.status} {answer.reason}{where}{said}",
            fault=TargetFault.REFUSED,
            retryable=answer.status in self._bounds.retryable,
            hint=_TO_DO.get(answer.status),
            status=answer.status,
            retry_after_s=retry_after(answer.header("retry-after")),
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

    def _connected(self) -> aiohttp.ClientSession:
        """The pool: as many connections as cases in flight, proxies from the environment where there are any."""
        if self._pool is None:
            import aiohttp

            # certificates cost 20 ms: only for those who use them
            verify = certificates() if self._secure else True
            self._pool = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._concurrency + 1, ssl=verify),
                cookie_jar=aiohttp.DummyCookieJar(),
                # how long an answer may take is the case's own matter
                timeout=aiohttp.ClientTimeout(),
                auto_decompress=False,
                # looked up for every request, so only where it matters
                trust_env=bool(getproxies()),
                max_line_size=65_536,
                max_field_size=65_536,
            )
        return self._pool


def head_of(answer: aiohttp.ClientResponse) -> Head:
    """What the answer begins with."""
    return Head(answer.status, answer.reason or "", answer.headers)


def was_broken_off(error: LostError) -> bool:
    """Whether the answer had begun."""
    import aiohttp

    return isinstance(error.__cause__, aiohttp.ClientPayloadError)


def was_made(error: LostError) -> bool:
    """Whether there was a connection."""
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


def retry_after(header: str) -> float | None:
    """Seconds of a `Retry-After` header in its numeric form."""
    try:
        return min(max(float(header), 0.0), _RETRY_AFTER_LIMIT_S)
    except ValueError:
        return None


async def _at_most(limit: int, answer: aiohttp.ClientResponse, unpacker: Unpacker) -> bytes:
    """What the answer holds; of more than `limit` bytes, some more than that. Raises PackingError."""
    body = bytearray()
    while chunk := await answer.content.readany():
        for piece in unpacker.pieces(chunk):
            body += piece
            if len(body) > limit:
                return bytes(body)
    return bytes(body)


def _packed(error: PackingError) -> TargetError:
    return TargetError(f"agent error: the answer {error}", fault=TargetFault.MALFORMED)
