"""The connections to an HTTP agent: one request, its answer as it comes within bounds, and what went wrong in words."""

from __future__ import annotations

import asyncio
import os
import re
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from eval_gate.files.certificates import certificates
from eval_gate.model import limits
from eval_gate.struct import FrozenStruct
from eval_gate.targets.base import TargetError, TargetFault
from eval_gate.targets.http.address import Address, proxied, proxies
from eval_gate.targets.http.incoming import AnswerHead, NoHttpError
from eval_gate.targets.http.plain_pool import LostError, PlainPool
from eval_gate.text.foreign.quote import quote
from eval_gate.text.foreign.unpacking import PackingError, Unpacker
from eval_gate.text.redact import Redactor

if TYPE_CHECKING:
    import aiohttp
    from multidict import CIMultiDict
    from yarl import URL

ACCEPTED: Final = 202
"""The HTTP status of one who will answer later."""
MAX_ERROR_BODY: Final = limits.ERROR_BYTES
_ERRNO: Final = re.compile(r"\[Errno (\d{1,4})\]")
_RETRY_AFTER_LIMIT_S: Final = 3_600.0
_ASKS_OTHERWISE: Final = "it wants other fields: the target's requestTemplate, headers and query say what is sent"
_WANTS_CREDENTIALS: Final = "it wants to know who asks: give the target headers, with a secret as ${{ NAME }}"
_BODILESS: Final = frozenset({"GET", "HEAD", "OPTIONS", "DELETE", "TRACE"})
"""Without a body they say nothing of its length."""
_OF_A_CONNECTION: Final = frozenset({"connection", "content-length", "expect", "te", "transfer-encoding", "upgrade"})
"""Headers that change how a connection is used: a client library knows what they ask for."""
_ENDS_A_LINE: Final = re.compile(r"[\r\n\0]")
_TO_DO: Final[Mapping[int, str]] = {
    400: _ASKS_OTHERWISE,
    401: _WANTS_CREDENTIALS,
    403: _WANTS_CREDENTIALS,
    404: "somebody is there, and has nothing at this path: look at the path of the agent's address",
    405: "it takes another method there: say which with the target's method",
    415: "it wants another kind of body: the target's form, or headers with another Content-Type",
    422: _ASKS_OTHERWISE,
    429: "it was asked too often: lower requestsPerMinute, or concurrency",
}
"""What to change where an agent that answers refuses what it is asked, by HTTP status."""


class SentRequest(NamedTuple):
    """One request as it is sent. Address and headers that are the same object as before are made ready once."""

    method: str
    url: Address
    headers: Mapping[str, str]
    """Their names in lower case."""
    content: bytes | None = None


class Bounds(FrozenStruct):
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
        self._pools: dict[tuple[str, int], PlainPool] = {}
        """Of plain HTTP, by host and port."""
        self._straight: tuple[SentRequest, tuple[PlainPool, bytes] | None] | None = None
        """The latest request, and what was found out about the likes of it."""
        self._url: tuple[Address, URL] | None = None
        self._headers: tuple[SentRequest, CIMultiDict[str]] | None = None

    async def aclose(self) -> None:
        """Close all of them."""
        for pool in self._pools.values():
            pool.close()
        if self._pools:
            await asyncio.sleep(0)  # they are closed in the next turn of the loop
        if self._pool is not None:
            await self._pool.close()

    @asynccontextmanager
    async def opened(self, request: SentRequest) -> AsyncIterator[aiohttp.ClientResponse]:
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

    def _ready(self, request: SentRequest) -> tuple[URL, CIMultiDict[str]]:
        """Address and headers as the pool takes them. Nearly all requests of a run have the same."""
        if self._url is None or self._url[0] is not request.url:
            from yarl import URL

            self._url = request.url, URL(str(request.url), encoded=True)
        known = self._headers
        if known is None or known[0].url is not request.url or known[0].headers is not request.headers:
            from multidict import CIMultiDict

            host = [] if "host" in request.headers else [("host", request.url.netloc)]
            self._headers = known = request, CIMultiDict([*host, *request.headers.items()])
        return self._url[1], known[1]

    def _told(self, error: aiohttp.ClientError) -> TargetError | LostError:
        """What the client's error means: the connection was lost, or what came is no HTTP."""
        import aiohttp

        lost = aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, aiohttp.ClientHttpProxyError
        if not isinstance(error, (*lost, aiohttp.InvalidURL)):
            return self._no_http(self.words(error))
        never = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ClientProxyConnectionError)
        made = not never and isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError)
        system = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else None
        if isinstance(error, aiohttp.ClientSSLError):
            system = None  # the library says more than the system
        return LostError(str(error), made=made, begun=isinstance(error, aiohttp.ClientPayloadError), system=system)

    def _no_http(self, why: str) -> TargetError:
        said = f"agent error: the answer is not HTTP: {' '.join(self._redact(why).split())}"
        return TargetError(said, fault=TargetFault.MALFORMED)

    async def exchange(self, request: SentRequest) -> tuple[AnswerHead, bytes]:
        """One request and the whole answer, without secrets. Raises TargetError and LostError."""
        straight = self._straight_to(request)
        if straight is None:
            async with self.opened(request) as answer:
                return head_of(answer), await self.body(answer)
        pool, begin = straight
        data = request.content or b""
        length = b"content-length: %d\r\n" % len(data) if data or request.method not in _BODILESS else b""
        try:
            found = await pool.ask(request.method, b"%b%b\r\n%b" % (begin, length, data))
        except NoHttpError as error:
            raise self._no_http(str(error)) from error
        except PackingError as error:
            raise _packed(error) from error
        assert found.head is not None  # it is whole
        return found.head, self._without_secrets(found.head, bytes(found.body))

    def _straight_to(self, request: SentRequest) -> tuple[PlainPool, bytes] | None:
        """The pool that this request goes to without a client library, and how it begins; None for all others."""
        known = self._straight
        if (
            known is not None
            and known[0].url is request.url
            and known[0].headers is request.headers
            and known[0].method == request.method
        ):
            return known[1]
        found = None
        begin = _begin_of(request)
        if begin is not None and request.url.scheme == "http" and not proxied(request.url):
            host, port = request.url.raw_host, request.url.port
            if (host, port) not in self._pools:
                self._pools[host, port] = PlainPool(
                    *(host, port, self._concurrency + 1),
                    success_limit=self._bounds.bytes,
                    error_limit=MAX_ERROR_BODY,
                )
            found = self._pools[host, port], begin
        self._straight = request, found
        return found

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
        head = head_of(answer)
        limit = self._bounds.bytes if head.is_success else MAX_ERROR_BODY
        try:
            body = await _at_most(limit, answer, Unpacker(answer.headers.getall("content-encoding", ())))
        except PackingError as error:
            raise _packed(error) from error
        return self._without_secrets(head, body)

    def _without_secrets(self, head: AnswerHead, body: bytes) -> bytes:
        """The body as it may be shown. Raises TargetError for an answer that is larger than the limit."""
        cut = len(body) > (self._bounds.bytes if head.is_success else MAX_ERROR_BODY)
        if cut and head.is_success:
            raise self._too_large(body)
        return self._redact.data(body, cut_after=cut)

    def refused(self, answer: AnswerHead, body: bytes) -> TargetError:
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
                trust_env=bool(proxies()),
                max_line_size=65_536,
                max_field_size=65_536,
            )
        return self._pool


def head_of(answer: aiohttp.ClientResponse) -> AnswerHead:
    """What the answer begins with."""
    fields = {name.lower(): value for name, value in reversed(list(answer.headers.items()))}
    return AnswerHead(answer.status, answer.reason or "", fields)


def _begin_of(request: SentRequest) -> bytes | None:
    """How the request begins, up to its length; None where it asks for more than is done without a client library."""
    headers = dict(request.headers)
    said = [request.method, *headers, *headers.values()]
    if not headers.keys().isdisjoint(_OF_A_CONNECTION) or any(_ENDS_A_LINE.search(text) for text in said):
        return None
    url = request.url
    headers = {"host": url.netloc, **headers}
    headers.setdefault("accept-encoding", "gzip, deflate")
    lines = (f"{name}: {value}\r\n".encode() for name, value in headers.items())
    return b"%b %b HTTP/1.1\r\n%b" % (request.method.encode(), url.target.encode(), b"".join(lines))


def _system_words(error: Exception) -> str | None:
    """`Connection refused`, where the system said so below what a client made of it."""
    below = error.system if isinstance(error, LostError) else None
    if below is None:
        return None
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
