"""The HTTP agent: one request per case, over pooled connections."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies

import httpx

from eval_gate.config.settings import TargetChoice
from eval_gate.model import limits
from eval_gate.model.conversation import Response
from eval_gate.model.result import TargetIdentity
from eval_gate.targets.base import DescribedTarget, Request, TargetError, TargetFault
from eval_gate.targets.build import Surroundings
from eval_gate.targets.container import System, connection_hint, reachable_host
from eval_gate.targets.http.asking import Asking
from eval_gate.targets.http.reading import Reader
from eval_gate.targets.http.settings import HttpSettings
from eval_gate.targets.retry import retry_policy, with_retries
from eval_gate.text.foreign.quote import quote
from eval_gate.text.foreign.unpacking import PackingError, Unpacker
from eval_gate.text.redact import Redactor
from eval_gate.text.urls import public_url

if TYPE_CHECKING:
    import aiohttp
    from httpx_aiohttp import AiohttpTransport

MAX_ERROR_BODY: Final = limits.ERROR_BYTES
_RETRY_AFTER_LIMIT_S = 3_600.0


class HttpTarget(DescribedTarget[HttpSettings]):
    """An agent behind a URL. One connection per case in flight, kept open between cases."""

    def __init__(
        self,
        settings: HttpSettings,
        *,
        redact: Redactor,
        concurrency: int,
        max_retries: int | None = None,
        system: System | None = None,
    ) -> None:
        super().__init__(settings)
        self._redact = redact
        self._concurrency = concurrency
        self._retry = retry_policy(settings, max_retries)
        self._system = system or System()
        self._asking = Asking(settings, self._system)
        self._reader = Reader(settings)
        self._url = self._asking.url
        self._transport: AiohttpTransport | None = None

    @property
    def identity(self) -> TargetIdentity:
        """The URL as it was given, without credentials, query and secrets."""
        shown = self._redact(public_url(self._settings.url))
        return TargetIdentity(name=self._settings.name, provider="http", identity=shown)

    async def respond(self, request: Request) -> Response:
        """Ask once, and again where the policy says so. Raises TargetError."""
        return await with_retries(lambda: self._once(request), self._retry)

    async def check_health(self) -> None:
        """Ask the health check's URL, if there is one. Raises TargetError (unreachable) unless it answers 2xx."""
        check = self._settings.healthcheck
        if check is None:
            return
        url = httpx.URL(check.url)
        url = url.copy_with(host=reachable_host(url.host, self._system))
        try:
            async with asyncio.timeout(check.timeout_seconds):
                answer, body = await self._exchange(httpx.Request("GET", url, headers=self._asking.headers))
        except TimeoutError as error:
            what = f"the agent's health check did not answer within {check.timeout_seconds:g} s"
            raise TargetError(what, fault=TargetFault.UNREACHABLE) from error
        except httpx.HTTPError as error:
            raise self._unreachable(error, url, "the health check found no connection") from error
        if not answer.is_success:
            what = f"the agent's health check answered HTTP {answer.status_code}: {quote(body)}"
            raise TargetError(what, fault=TargetFault.UNREACHABLE)

    async def aclose(self) -> None:
        """Close all connections."""
        if self._transport is not None:
            await self._transport.aclose()

    async def _once(self, request: Request) -> Response:
        http_request = self._asking.request(request)
        started = time.perf_counter()
        try:
            answer, body = await self._exchange(http_request)
        except httpx.HTTPError as error:
            raise self._broken(error) from error
        duration_ms = (time.perf_counter() - started) * 1000
        if not answer.is_success:
            raise self._refused(answer, body)
        return self._reader.read(body, duration_ms)

    async def _exchange(self, request: httpx.Request) -> tuple[httpx.Response, bytes]:
        """One request and the whole answer.

        Straight through the transport: redirects, cookies and authentication flows are not wanted here, and the
        client that brings them costs as much again as the request.
        """
        transport = self._connected()
        import aiohttp

        try:
            answer = await transport.handle_async_request(request)
            try:
                return answer, await self._body(answer)
            finally:
                await answer.aclose()
        except aiohttp.ClientError as error:
            # what the transport has no httpx error for: above all bytes that are not HTTP
            raise TargetError(
                f"agent error: the answer is not HTTP: {' '.join(self._words(error).split())}",
                fault=TargetFault.MALFORMED,
            ) from error

    async def _body(self, answer: httpx.Response) -> bytes:
        """The whole body without secrets, as long as it stays within the limit: an agent may stream for ever."""
        assert isinstance(answer.stream, httpx.AsyncByteStream)
        limit = self._settings.max_response_bytes if answer.is_success else MAX_ERROR_BODY
        try:
            body = await _at_most(limit, answer.stream, Unpacker(answer.headers.get_list("content-encoding")))
        except PackingError as error:
            raise TargetError(f"agent error: the answer {error}", fault=TargetFault.MALFORMED) from error
        cut = len(body) > limit
        body = self._redact.data(body, cut_after=cut)
        if cut and answer.is_success:
            raise TargetError(
                f"agent error: the answer is larger than {limit:,} bytes; it begins {quote(body)}",
                fault=TargetFault.MALFORMED,
                hint="raise the target's maxResponseBytes if this is right",
            )
        return body

    def _refused(self, answer: httpx.Response, body: bytes) -> TargetError:
        where = f" to {quote(self._redact(answer.headers.get('location', '')).encode())}" if answer.is_redirect else ""
        said = f": {quote(body)}" if body.strip() else ""
        return TargetError(
            f"agent error: HTTP {answer.status_code} {answer.reason_phrase}{where}{said}",
            fault=TargetFault.REFUSED,
            retryable=answer.status_code in self._retry.retryable_status_codes,
            status=answer.status_code,
            retry_after_s=_retry_after(answer.headers),
        )

    def _broken(self, error: httpx.HTTPError) -> TargetError:
        """No answer, or half of one. Only who could not connect at all is unreachable."""
        if isinstance(error, httpx.ReadError):
            what, again = "broke in the middle of the answer", False
        elif _was_made(error):
            what, again = "broke before the answer", True
        else:
            return self._unreachable(error, self._url, "agent error: no connection")
        said = f"agent error: the connection {what}: {self._words(error)}"
        return TargetError(said, fault=TargetFault.REFUSED, retryable=again)

    def _unreachable(self, error: httpx.HTTPError, url: httpx.URL, what: str) -> TargetError:
        return TargetError(
            f"{what} to {url.host}:{url.port or (443 if url.scheme == 'https' else 80)}: {self._words(error)}",
            fault=TargetFault.UNREACHABLE,
            retryable=True,
            hint=connection_hint(httpx.URL(self._settings.url).host, self._system),
        )

    def _words(self, error: Exception) -> str:
        """The library's words, masked before they are cut, or its name where it has none."""
        return self._redact(str(error))[:300] or type(error).__name__

    def _connected(self) -> AiohttpTransport:
        if self._transport is None:
            from httpx_aiohttp import AiohttpTransport

            # TLS settings cost 20 ms of certificates: only for those who use them
            self._transport = AiohttpTransport(verify=self._url.scheme == "https", client=self._session)
        return self._transport

    def _session(self) -> aiohttp.ClientSession:
        """The pool: as many connections as cases in flight, proxies from the environment where there are any."""
        import aiohttp

        verify = httpx.create_ssl_context() if self._url.scheme == "https" else True
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._concurrency + 1, ssl=verify),
            cookie_jar=aiohttp.DummyCookieJar(),
            # looked up for every request, so only where it matters
            trust_env=bool(getproxies()),
            max_line_size=65_536,
            max_field_size=65_536,
        )


def build(settings: HttpSettings, choice: TargetChoice, around: Surroundings) -> HttpTarget:
    """The agent, not yet connected. Raises GateError for what is no address."""
    public_url(settings.url)
    around.redact.learn([unquote(urlsplit(settings.url).password or "")])
    return HttpTarget(
        settings,
        redact=around.redact,
        concurrency=choice.concurrency or settings.workers or 1,
        max_retries=choice.max_retries,
    )


async def _at_most(limit: int, stream: httpx.AsyncByteStream, unpacker: Unpacker) -> bytes:
    """What the stream holds; of more than `limit` bytes, some more than that. Raises PackingError."""
    body = bytearray()
    async for chunk in stream:
        for piece in unpacker.pieces(chunk):
            body += piece
            if len(body) > limit:
                return bytes(body)
    return bytes(body)


def _was_made(error: httpx.HTTPError) -> bool:
    """Whether there was a connection: the transport has one httpx error for many of aiohttp's."""
    import aiohttp

    cause = error.__cause__
    if isinstance(cause, aiohttp.ClientConnectorError | aiohttp.ClientProxyConnectionError):
        return False
    return isinstance(cause, aiohttp.ServerDisconnectedError | aiohttp.ClientOSError)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds of a `Retry-After` header in its numeric form."""
    try:
        return min(max(float(headers.get("retry-after", "")), 0.0), _RETRY_AFTER_LIMIT_S)
    except ValueError:
        return None
