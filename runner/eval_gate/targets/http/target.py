"""The HTTP agent: one request per case, over pooled connections."""

from __future__ import annotations

import asyncio
import time
from urllib.parse import unquote, urlsplit

import httpx

from eval_gate.config.settings import TargetChoice
from eval_gate.model.conversation import Response
from eval_gate.model.result import TargetIdentity
from eval_gate.targets.base import DescribedTarget, Request, TargetError, TargetFault
from eval_gate.targets.build import Surroundings
from eval_gate.targets.container import System, connection_hint, reachable_host
from eval_gate.targets.http.asking import Asking
from eval_gate.targets.http.connection import Bounds, Connection, was_made
from eval_gate.targets.http.reading import Reader, other_format
from eval_gate.targets.http.settings import HttpSettings, ResponseFormat
from eval_gate.targets.retry import retry_policy, with_retries
from eval_gate.text.foreign.quote import quote
from eval_gate.text.redact import Redactor
from eval_gate.text.urls import public_url


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
        self._retry = retry_policy(settings, max_retries)
        self._system = system or System()
        self._asking = Asking(settings, self._system)
        self._reader = Reader(settings)
        self._url = self._asking.url
        bounds = Bounds(settings.max_response_bytes, self._retry.retryable_status_codes)
        self._connection = Connection(redact, bounds, concurrency, secure=self._url.scheme == "https")

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
                request = httpx.Request("GET", url, headers=self._asking.headers)
                answer, body = await self._connection.exchange(request)
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
        await self._connection.aclose()

    async def _once(self, request: Request) -> Response:
        http_request = self._asking.request(request)
        started = time.perf_counter()
        try:
            if self._settings.response_format.streams:
                return await self._streamed(http_request, started)
            answer, body = await self._connection.exchange(http_request)
        except httpx.HTTPError as error:
            raise self._broken(error) from error
        duration_ms = _since(started)
        if not answer.is_success:
            raise self._connection.refused(answer, body)
        if self._settings.response_format is ResponseFormat.TEXT:
            return self._reader.text(body, answer.charset_encoding, duration_ms)
        try:
            return self._reader.read(body, duration_ms)
        except TargetError as error:
            error.hint = other_format(answer.headers.get("content-type", ""), ResponseFormat.JSON) or error.hint
            raise

    async def _streamed(self, request: httpx.Request, started: float) -> Response:
        """The answer that comes in events, read until it is over. Raises TargetError, and httpx's errors."""
        from eval_gate.targets.http.stream import Collector

        async with self._connection.opened(request) as answer:
            if not answer.is_success:
                raise self._connection.refused(answer, await self._connection.body(answer))
            kind = answer.headers.get("content-type", "")
            if other_format(kind, self._settings.response_format) and "json" in kind:
                raise self._reader.in_another_format(await self._connection.body(answer), kind)
            collector = Collector(self._settings, self._reader, self._redact.data)
            async for piece in self._connection.pieces(answer):
                if collector.feed(piece):
                    break
            return collector.response(_since(started))

    def _broken(self, error: httpx.HTTPError) -> TargetError:
        """No answer, or half of one. Only who could not connect at all is unreachable."""
        if isinstance(error, httpx.ReadError):
            what, again = "broke in the middle of the answer", False
        elif was_made(error):
            what, again = "broke before the answer", True
        else:
            return self._unreachable(error, self._url, "agent error: no connection")
        said = f"agent error: the connection {what}: {self._connection.words(error)}"
        return TargetError(said, fault=TargetFault.REFUSED, retryable=again)

    def _unreachable(self, error: httpx.HTTPError, url: httpx.URL, what: str) -> TargetError:
        port = url.port or (443 if url.scheme == "https" else 80)
        return TargetError(
            f"{what} to {url.host}:{port}: {self._connection.words(error)}",
            fault=TargetFault.UNREACHABLE,
            retryable=True,
            hint=connection_hint(httpx.URL(self._settings.url).host, self._system),
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


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
