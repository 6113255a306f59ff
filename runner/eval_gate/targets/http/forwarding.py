"""Proxies on this machine that forward requests piece by piece, and keep a copy of what passes.

The client receives exactly what the other server sends.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from base64 import b64decode
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from aiohttp import ClientError, ClientResponse, StreamReader, web
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from eval_gate.errors import GateError
from eval_gate.files.certificates import load_ssl_context
from eval_gate.struct import FrozenStruct, field, replace
from eval_gate.targets.agent_address import is_local_host
from eval_gate.targets.http.connection import ResponseHead, find_proxy, read_head
from eval_gate.targets.http.pool import MAX_LINE, make_pool
from eval_gate.text.redaction import Redactor
from eval_gate.text.untrusted.http_response import Decompressor
from eval_gate.text.urls import is_credential_name, iter_url_secrets

HOST: Final = "127.0.0.1"
_HOP_BY_HOP: Final = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    }
)
"""Headers for one connection only (RFC 9110, section 7.6.1)."""
_COOKIES: Final = frozenset({"cookie", "set-cookie"})
_PLAIN: Final = re.compile(r"[A-Za-z_/-]*|[0-9.:TZ+-]+")
"""Cookie values that are no secrets: a word, a path, a number, a date."""
_AUTOMATIC_HEADERS: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
_MAX_CLIENTS: Final = 100
_SHUTDOWN_S: Final = 5.0
_ADDED: Final = web.ResponseKey("added", list[str])
_ADDED_BY_SERVER: Final = ("Content-Type", "Date", "Server")


class BodyCopy:
    """Copy of a body, up to one byte more than a limit."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._data = bytearray()

    def add(self, piece: bytes) -> None:
        """Add the next bytes, as far as there is room."""
        self._data += piece[: self.limit + 1 - len(self._data)]

    async def iter_copied(self, stream: StreamReader) -> AsyncIterator[bytes]:
        """Yield all pieces of a stream, and keep a copy."""
        async for piece in stream.iter_any():
            self.add(piece)
            yield piece

    async def add_rest(self, stream: StreamReader) -> None:
        """Add what is left of a stream, as far as there is room."""
        while len(self._data) <= self.limit and (piece := await stream.readany()):
            self.add(piece)

    def read_decoded(self, encodings: Sequence[str]) -> bytes:
        """Return the body without compression, up to some bytes more than the limit. Raises DecompressionError."""
        unpacker, decoded = Decompressor(encodings), bytearray()
        for piece in unpacker.iter_pieces(bytes(self._data)):
            decoded += piece
            if len(decoded) > self.limit:
                break
        return bytes(decoded)


class ReceivedResponse(FrozenStruct):
    """The result of a request: a response for the client with a copy of it, or an error."""

    response: web.StreamResponse | None = None
    head: ResponseHead | None = None
    body: BodyCopy = field(default_factory=lambda: BodyCopy(0))
    encodings: tuple[str, ...] = ()
    error: str | None = None
    is_cut_off: bool = False
    """The client left before the end."""


class ForwardingProxy(ABC):
    """Server on this machine; a subclass decides about each request."""

    def __init__(self, redact: Redactor, *, secure: bool) -> None:
        self.redact = redact
        self._pool = make_pool(_MAX_CLIENTS, load_ssl_context() if secure else None)

    @abstractmethod
    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Respond to a request of this machine."""

    @asynccontextmanager
    async def listen(self, port: int, host: str = HOST) -> AsyncIterator[int]:
        """Accept requests within the block, and yield the port, which is a free one for 0.

        Requests under way at the end have 5 s. Raises GateError `invalid-proxy`.
        """
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._handle_local)
        application.on_response_prepare.append(_remove_added_headers)
        runner = web.AppRunner(
            application,
            access_log=None,
            handle_signals=False,
            shutdown_timeout=_SHUTDOWN_S,
            max_line_size=MAX_LINE,
            max_field_size=MAX_LINE,
        )
        await runner.setup()
        try:
            try:
                await web.TCPSite(runner, host, port).start()
            except OSError as error:
                reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
                what = f"the proxy cannot listen at {host}:{port}: {reason.lower()}"
                raise GateError("invalid-proxy", what, "choose a free port above 1023") from error
            yield runner.addresses[0][1]
        finally:
            await runner.cleanup()

    async def aclose(self) -> None:
        """Close all connections to other servers."""
        await self._pool.close()

    async def _handle_local(self, request: web.Request) -> web.StreamResponse:
        refusal = _find_refusal(request)
        if refusal is not None:
            return web.Response(status=HTTPStatus.FORBIDDEN, text=f"{refusal}\n")
        return await self.handle(request)

    async def forward(
        self,
        request: web.Request,
        url: URL,
        headers: CIMultiDict[str],
        data: bytes | AsyncIterator[bytes] | None,
        limit: int,
    ) -> ReceivedResponse:
        """Send a request and its response to the client, piece by piece. Raises ClientError, OSError, TimeoutError.

        The copy of the response has at most `limit` bytes, and one more.
        """
        async with self._pool.request(
            request.method,
            url,
            headers=headers,
            data=data,
            skip_auto_headers=_AUTOMATIC_HEADERS,
            allow_redirects=False,
            proxy=find_proxy(url),
        ) as upstream:
            own = drop_connection_headers(upstream.headers)
            response = web.StreamResponse(status=upstream.status, reason=upstream.reason, headers=own)
            response[_ADDED] = [name for name in _ADDED_BY_SERVER if name not in own]
            encodings = tuple(upstream.headers.getall("content-encoding", ()))
            received = ReceivedResponse(response, read_head(upstream), BodyCopy(limit), encodings)
            return await self._relay(request, upstream, received)

    async def _relay(
        self, request: web.Request, upstream: ClientResponse, received: ReceivedResponse
    ) -> ReceivedResponse:
        """Send the body of a response to the client as it arrives, and keep a copy."""
        assert received.response is not None
        try:
            await received.response.prepare(request)
            async for piece in upstream.content.iter_any():
                received.body.add(piece)
                await received.response.write(piece)
        except ConnectionError:  # of the client: those of the agent are of the class ClientError
            return received if upstream.content.at_eof() else replace(received, is_cut_off=True)
        except ClientError as error:
            if request.transport is not None:
                request.transport.abort()  # so that the client sees that it is incomplete
            return replace(received, error=f"the connection broke during the response: {self.describe_error(error)}")
        return received

    def describe_error(self, error: Exception) -> str:
        """Describe the error of a connection, without secrets."""
        message = (
            os.strerror(error.errno) if isinstance(error, OSError) and error.errno and error.errno > 0 else str(error)
        )
        return self.redact(message) or type(error).__name__


async def end_response(received: ReceivedResponse) -> web.StreamResponse:
    """Write the end of a forwarded response, which the client may no longer want, or the error instead of one."""
    if received.response is None:
        return web.Response(status=HTTPStatus.BAD_GATEWAY, text=f"{received.error}\n")
    with suppress(ConnectionError):
        await received.response.write_eof()
    return received.response


def iter_exchange_secrets(request: web.Request, response: web.StreamResponse | None) -> Iterator[str]:
    """Yield the credentials in the headers and cookies of an exchange, and in its query."""
    yield from iter_url_secrets(f"http://{HOST}{request.raw_path}")
    for name, value in (*request.headers.items(), *(response.headers.items() if response is not None else ())):
        if name.lower() in _COOKIES:
            # what follows in Set-Cookie are its attributes
            pairs = [pair.partition("=") for pair in value.split(";")[: 1 if name.lower() == "set-cookie" else None]]
            yield from (
                text.strip(' "') for key, _, text in pairs if is_credential_name(key) or not _PLAIN.fullmatch(text)
            )
        elif is_credential_name(name):
            scheme, _, secret = value.partition(" ")
            yield from (value, secret)
            if scheme.lower() == "basic":
                with suppress(ValueError):
                    yield b64decode(secret).decode("utf-8", "replace").partition(":")[2]


def _find_refusal(request: web.Request) -> str | None:
    """Find why to refuse: a page of another site could reach the proxy by a name that resolves to this machine."""
    name = urlsplit(f"//{request.headers.get('Host', HOST)}").hostname
    if name is None or not is_local_host(name):
        return f"the proxy of Eval Gate is for this machine only: use http://{HOST} with its port"
    if not request.raw_path.startswith("/") or not request.raw_path.isascii():
        return "the proxy of Eval Gate takes only paths, in ASCII"
    return None


def drop_connection_headers(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """Copy the headers without those that are for one connection only."""
    connection_names = {word.strip().lower() for value in headers.getall("Connection", ()) for word in value.split(",")}
    copy = CIMultiDict[str]()
    for name, value in headers.items():
        if name.lower() not in _HOP_BY_HOP | connection_names:
            copy.add(name, value)
    return copy


async def _remove_added_headers(_request: web.Request, response: web.StreamResponse) -> None:
    """Remove the headers that the server adds to a response of the agent."""
    for name in response.get(_ADDED, ()):
        response.headers.popall(name, None)
