"""Connections to an HTTP agent: send requests, read bounded responses, explain failures."""

from __future__ import annotations

import ast
import os
import re
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from dataclasses import KW_ONLY, dataclass
from email.message import Message
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple

from eval_gate.files.certificates import CERTIFICATES_HINT, load_ssl_context
from eval_gate.model import limits
from eval_gate.model.execution import ErrorCause
from eval_gate.process.orphans import is_own_process
from eval_gate.struct import FrozenStruct
from eval_gate.targets.base import TargetError, TargetFault, names_missing_model
from eval_gate.targets.isolation import get_isolation_headers, is_isolated
from eval_gate.text.redaction import Redactor
from eval_gate.text.retry_after import parse_retry_after
from eval_gate.text.untrusted.bounded_json import UntrustedJsonError, parse_untrusted_json
from eval_gate.text.untrusted.excerpt import format_excerpt
from eval_gate.text.untrusted.http_response import DecompressionError, Decompressor
from eval_gate.text.urls import format_proxy

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

ACCEPTED: Final = 202
"""HTTP status of a response that announces a later result."""
MAX_ERROR_BODY: Final = limits.ERROR_BYTES
_ERRNO: Final = re.compile(r"\[Errno (\d{1,4})\]")
_OTHER_FIELDS_HINT: Final = "it expects other fields: set the target's requestTemplate, headers or query"
_CREDENTIALS_HINT: Final = "it requires authentication: set the target's headers, with a secret as ${{ NAME }}"
_MODEL_HINT: Final = "it has no such model: correct the model in the target's requestFields or requestTemplate"
_NO_TLS_HINT: Final = "check whether the agent expects http:// at this port"
_STATUS_HINTS: Final[Mapping[int, str]] = {
    400: _OTHER_FIELDS_HINT,
    401: _CREDENTIALS_HINT,
    403: _CREDENTIALS_HINT,
    404: "the server has nothing at this path: check the path of the agent's URL",
    405: "it expects another method: set the target's method",
    415: "it expects another kind of body: set the target's form, or headers with another Content-Type",
    422: _OTHER_FIELDS_HINT,
    **dict.fromkeys((301, 302, 303, 307, 308), "it redirects: set the agent's URL to the address that responds"),
    429: "lower requestsPerMinute or concurrency",
}
"""Hints for HTTP statuses with which an agent refuses a request."""
_STATUSES_OF_PROXIES: Final = frozenset({403, 502, 503, 504})
"""Statuses of a proxy that did not pass on a request, or got no response."""
_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_KNOWN_STATUSES: Final = frozenset(map(int, HTTPStatus))


class HttpRequest(NamedTuple):
    """One HTTP request as sent."""

    method: str
    url: URL
    headers: Mapping[str, str]
    """Headers, with names in lower case."""
    content: bytes | None = None
    is_repeatable: bool = True
    """Whether a GET or PUT may be sent again if the connection is lost; no turn of a conversation may."""


class ResponseHead(NamedTuple):
    """Status, reason and headers of an HTTP response."""

    status: int
    reason_phrase: str
    """Reason phrase behind the status, as received."""
    headers: Mapping[str, str]
    """Headers, with names in lower case; of repeated headers only the first."""
    set_cookies: tuple[str, ...] = ()
    """All `Set-Cookie` headers, as received."""

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
        usual = HTTPStatus(self.status).phrase if self.status in _KNOWN_STATUSES else ""
        return self.reason_phrase.encode("ascii", "ignore").decode() if self.reason_phrase else usual

    def get_header(self, name: str) -> str:
        """Return the first header `name` as text, whatever bytes it contains; empty if it is missing."""
        text = self.headers.get(name, "")
        if text.isascii():
            return text
        data = text.encode("utf-8", "surrogateescape")
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data.decode("latin-1")

    @property
    def cookie_names(self) -> tuple[str, ...]:
        """Names of all cookies that it sets."""
        return tuple(text.partition("=")[0].strip() for text in self.set_cookies)

    def find_cookie(self, name: str) -> str:
        """Find the value that the response sets for a cookie, the last one; empty if it sets none."""
        pairs = (text.partition(";")[0].partition("=") for text in self.set_cookies)
        values = [value.strip() for key, _, value in pairs if key.strip() == name]
        return values[-1] if values else ""

    def find_trace(self, header: str | None) -> str:
        """Find the id or address of its trace, by default in a usual header (W3C Trace Context); empty if none."""
        names = (header.lower(),) if header else ("traceparent", "x-trace-id")
        text = next(filter(None, (self.get_header(name).strip() for name in names)), "")
        match = _TRACEPARENT.fullmatch(text)
        return match[1] if match else text

    @property
    def charset(self) -> str | None:
        """Encoding in the content type; None if there is none."""
        kind = Message()
        kind["content-type"] = self.get_header("content-type")
        return kind.get_content_charset(failobj=None)


@dataclass(eq=False)
class ConnectionLostError(Exception):
    """Connection that was not made or was lost. The message is that of the HTTP library, if any."""

    message: str
    _: KW_ONLY
    was_connected: bool
    """There was a connection."""
    begun: bool = False
    """The response had begun: its head had arrived."""
    system: OSError | None = None
    """Error of the system, if there was no connection."""
    tls_hint: str | None = None
    """What to do if a TLS connection was not made; None for every other failure."""


class ResponseLimits(FrozenStruct):
    """Maximum size of a response in bytes, and the statuses that are retried."""

    max_bytes: int
    retryable_statuses: frozenset[int]


class Connection:
    """Pools of connections to one agent, one per case in flight.

    They are kept open between cases, except those of isolated executions.
    """

    def __init__(self, redact: Redactor, bounds: ResponseLimits, concurrency: int, *, secure: bool) -> None:
        self._redact = redact
        self._bounds = bounds
        self._concurrency = concurrency
        self._secure = secure
        self._pools: dict[tuple[bool, bool], aiohttp.ClientSession] = {}
        """By whether their connections are kept open, and whether their requests are repeatable."""
        self._proxies: dict[str, str | None] = {}
        """By scheme and host, as far as known."""

    async def aclose(self) -> None:
        """Close all connections."""
        for pool in self._pools.values():
            await pool.close()

    async def exchange(self, request: HttpRequest) -> tuple[ResponseHead, bytes]:
        """Send one request and read the whole response, without secrets. Raises TargetError and ConnectionLostError."""
        async with self.open_response(request) as response:
            head = read_head(response)
            return head, await self.read_body(response, head)

    @asynccontextmanager
    async def open_response(self, request: HttpRequest) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request, and yield the response with its head. Raises TargetError and ConnectionLostError."""
        pool, proxy = self._get_pool(is_repeatable=request.is_repeatable), self._find_proxy(request.url)
        headers = {**get_isolation_headers(), **request.headers}  # headers of the description take precedence
        from aiohttp import ClientError

        try:
            async with pool.request(
                request.method,
                request.url,
                headers=headers,
                data=request.content or None,
                allow_redirects=False,
                proxy=proxy,
                skip_auto_headers=("content-type",),  # servers refuse the usual one where there is no body
            ) as response:
                yield response
        except ClientError as error:
            raise self._translate_error(error, proxy) from error

    def _translate_error(self, error: aiohttp.ClientError, proxy: str | None) -> TargetError | ConnectionLostError:
        """Translate an error of the HTTP client: a lost connection, or a response that is not HTTP."""
        import aiohttp

        # what the library says of a proxy has its address with the credentials in it
        if isinstance(error, aiohttp.ClientHttpProxyError):
            message = self._redact(f"HTTP {error.status} {error.message}")
            return build_proxy_error(proxy, f"refused the connection ({message})")
        if isinstance(error, aiohttp.ClientProxyConnectionError):
            lost = ConnectionLostError("no connection", was_connected=False, system=error.os_error)
            return build_proxy_error(proxy, f"accepts no connection ({self.describe_error(lost)})", retryable=True)
        if isinstance(error, aiohttp.ClientResponseError):
            return self._build_not_http_error(error.message)
        if not isinstance(error, aiohttp.ClientConnectionError | aiohttp.ClientPayloadError | aiohttp.InvalidURL):
            return self._build_not_http_error(str(error))
        never = isinstance(error, aiohttp.ClientConnectorError)
        was_connected = not never and isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError)
        system = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else None
        tls_hint = None
        if isinstance(error, aiohttp.ClientSSLError):
            system = None  # the library says more than the system
            tls_hint = _NO_TLS_HINT if isinstance(error, aiohttp.ClientConnectorSSLError) else CERTIFICATES_HINT
        # of half a head the library would show what it is to Python
        message = "Server disconnected" if isinstance(error, aiohttp.ServerDisconnectedError) else str(error)
        begun = isinstance(error, aiohttp.ClientPayloadError)
        return ConnectionLostError(message, was_connected=was_connected, begun=begun, system=system, tls_hint=tls_hint)

    def _build_not_http_error(self, why: str) -> TargetError:
        words, excerpt = [], ""
        for line in map(str.strip, why.splitlines()):
            # aiohttp puts the received bytes on a line of their own, in the notation of Python
            if line.startswith(("b'", 'b"')):
                with suppress(SyntaxError, ValueError):
                    part = self._redact.mask_bytes(ast.literal_eval(line), cut_before=True, cut_after=True)
                    excerpt = f", in {format_excerpt(part)}"
            elif line.strip("^"):
                words.append(line.partition(": b")[0].rstrip(":"))
        message = self._redact(": ".join(words))[:300]
        return TargetError(
            f"agent error: the response is not HTTP: {message}{excerpt}",
            fault=TargetFault.MALFORMED,
            known_cause=ErrorCause.NOT_HTTP,
        )

    async def iter_pieces(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """Yield the decompressed body as it arrives, which may never end. Raises TargetError beyond the limit."""
        unpacker = Decompressor(response.headers.getall("content-encoding", ()))
        limit, read = self._bounds.max_bytes, 0
        try:
            async for chunk in response.content.iter_any():
                for piece in unpacker.iter_pieces(chunk):
                    read += len(piece)
                    if read > limit:
                        raise self._build_too_large_error(piece)
                    yield piece
        except DecompressionError as error:
            raise _build_decompression_error(error) from error

    async def read_body(self, response: aiohttp.ClientResponse, head: ResponseHead) -> bytes:
        """Read the body, masked; that of an error is truncated. Raises TargetError for a success beyond the limit."""
        limit = self._bounds.max_bytes if head.is_success else MAX_ERROR_BODY
        try:
            body = await _read_at_most(limit, response, Decompressor(response.headers.getall("content-encoding", ())))
        except DecompressionError as error:
            raise _build_decompression_error(error) from error
        cut = len(body) > limit
        if cut and head.is_success:
            raise self._build_too_large_error(body)
        return self._redact.mask_bytes(body, cut_after=cut)

    def build_status_error(self, response: ResponseHead, body: bytes, request: HttpRequest) -> TargetError:
        """Build the error for a response whose HTTP status is not a success."""
        where = (
            f" to {format_excerpt(self._redact(response.get_header('location')).encode())}"
            if response.is_redirect
            else ""
        )
        words = f": {format_excerpt(body)}" if body.strip() else ""
        proxy = self._find_proxy(request.url)
        if response.status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
            words = self._redact(f"HTTP {response.status} {response.reason}")
            return build_proxy_error(proxy, f"refused the request ({words})")
        # the proxy may have answered for the agent
        through = f" (through {format_proxy(proxy)})" if proxy and response.status in _STATUSES_OF_PROXIES else ""
        no_model = response.status == HTTPStatus.NOT_FOUND and _is_missing_model(body, request)
        return TargetError(
            f"agent error: HTTP {response.status} {response.reason}{through}{where}{words}",
            fault=TargetFault.REFUSED,
            retryable=response.status in self._bounds.retryable_statuses,
            hint=_MODEL_HINT if no_model else _STATUS_HINTS.get(response.status),
            known_cause=ErrorCause.MODEL_NOT_FOUND if no_model else None,
            status=response.status,
            retry_after_s=parse_retry_after(response.get_header("retry-after")),
        )

    def describe_error(self, error: Exception) -> str:
        """Why, masked before it is cut: the system's words, else the library's, else the error's name."""
        return self._redact(_find_system_message(error) or str(error))[:300] or type(error).__name__

    def _build_too_large_error(self, body: bytes) -> TargetError:
        excerpt = format_excerpt(self._redact.mask_bytes(body, cut_after=True))
        return TargetError(
            f"agent error: the response is larger than {self._bounds.max_bytes:,} bytes; it begins {excerpt}",
            fault=TargetFault.MALFORMED,
            known_cause=ErrorCause.TOO_LARGE,
            hint="if this size is expected, raise the target's maxResponseBytes",
        )

    def _find_proxy(self, url: URL) -> str | None:
        place = f"{url.scheme}://{url.raw_host}"
        if place not in self._proxies:
            self._proxies[place] = find_proxy(url)
        return self._proxies[place]

    def _get_pool(self, *, is_repeatable: bool) -> aiohttp.ClientSession:
        """Return the pool of this execution, created on first use, with one connection more than cases in flight."""
        keep_open = not is_isolated()
        key = keep_open, is_repeatable
        if key not in self._pools:
            with _skip_certificates() if is_own_process() else nullcontext():
                from eval_gate.targets.http.pool import make_pool

            proxies = (value for name, value in os.environ.items() if name.lower().endswith("_proxy"))
            # certificates cost 20 ms: only for those who use them
            secure = self._secure or any(value.lower().startswith("https://") for value in proxies)
            certificates = load_ssl_context() if secure else None
            pool = make_pool(self._concurrency + 1, certificates, keep_open=keep_open)
            pool._retry_connection = is_repeatable  # noqa: SLF001 (there is no option for it)
            self._pools[key] = pool
        return self._pools[key]


@contextmanager
def _skip_certificates() -> Iterator[None]:
    """Import aiohttp in this block: it would read the system's certificates twice, 45 ms of the 500 of a start."""
    read = ssl.SSLContext.set_default_verify_paths
    # aiohttp's own contexts then trust no certificate; `_get_pool` does not use them in a process of our own
    ssl.SSLContext.set_default_verify_paths = lambda _: None  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        ssl.SSLContext.set_default_verify_paths = read  # type: ignore[method-assign]


def build_proxy_error(proxy: str | None, what: str, *, retryable: bool = False) -> TargetError:
    """Build the error for a proxy that did not pass on a request; `retryable` if it may do so the next time."""
    return TargetError(
        f"no connection: {format_proxy(proxy or '')} {what}"[:300],
        fault=TargetFault.UNREACHABLE,
        retryable=retryable,
        known_cause=ErrorCause.PROXY_REFUSED,
    )


def find_proxy(url: URL) -> str | None:
    """Find the proxy for an address, or return None if there is none.

    A proxy accepts connections even if the agent behind it is down. Proxies come from the environment, and on some
    systems from the system settings. SOCKS proxies are not supported.
    """
    if sys.platform == "linux" and not any(name.lower().endswith("_proxy") for name in os.environ):
        return None  # to load what looks takes 10 ms
    from urllib.request import getproxies, proxy_bypass

    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all") or ""
    if not proxy.startswith(("http://", "https://")) or url.host is None or proxy_bypass(url.host):
        return None
    return proxy


def read_head(response: aiohttp.ClientResponse) -> ResponseHead:
    """Read the status, reason and headers of a response."""
    fields = {name.lower(): value for name, value in reversed(list(response.headers.items()))}
    return ResponseHead(
        response.status, response.reason or "", fields, tuple(response.headers.getall("set-cookie", ()))
    )


def _find_system_message(error: Exception) -> str | None:
    """Find the message of the system below an error of the HTTP client, such as `Connection refused`."""
    cause = error.system if isinstance(error, ConnectionLostError) else None
    if cause is None:
        return None
    if isinstance(cause, socket.gaierror):
        return cause.strerror
    number = cause.errno or next(map(int, _ERRNO.findall(str(cause))), None)  # of several addresses: the first
    return os.strerror(number) if number else None


async def _read_at_most(limit: int, response: aiohttp.ClientResponse, unpacker: Decompressor) -> bytes:
    """Read the decompressed body, and stop soon after `limit` bytes: a longer one has some bytes more."""
    body = bytearray()
    while chunk := await response.content.readany():
        for piece in unpacker.iter_pieces(chunk):
            body += piece
            if len(body) > limit:
                return bytes(body)
    return bytes(body)


def _is_missing_model(body: bytes, request: HttpRequest) -> bool:
    """Whether a server that has the path of the request reports that it does not have its model."""
    try:
        document = parse_untrusted_json(request.content or b"null")
        model = document.get("model") if isinstance(document, dict) else None
        return names_missing_model(parse_untrusted_json(body), model)
    except UntrustedJsonError:
        return False


def _build_decompression_error(error: DecompressionError) -> TargetError:
    return TargetError(f"agent error: the response {error}", fault=TargetFault.MALFORMED)
