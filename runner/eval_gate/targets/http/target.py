"""The HTTP agent: one request per case, over pooled connections."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode, urlsplit

from yarl import URL

from eval_gate.config.settings import TargetChoice
from eval_gate.model.conversation import Response
from eval_gate.model.setup import TargetIdentity
from eval_gate.targets.base import DescribedTarget, Request, TargetError, TargetFault
from eval_gate.targets.build import BuildContext
from eval_gate.targets.container import System, connection_hint, is_here
from eval_gate.targets.http.connection import (
    ACCEPTED,
    AnswerHead,
    Bounds,
    Connection,
    LostError,
    SentRequest,
    head_of,
    proxy_to,
)
from eval_gate.targets.http.requests import Asking, address_of
from eval_gate.targets.http.response import AnswerReader, other_format
from eval_gate.targets.http.settings import HttpHealthCheck, HttpSettings, ResponseFormat
from eval_gate.targets.retry import retry_policy, with_retries
from eval_gate.targets.waiting import until_there
from eval_gate.text.foreign.quote import quote
from eval_gate.text.javascript.strings import as_text
from eval_gate.text.redact import Redactor
from eval_gate.text.urls import public_url, secrets_of

if TYPE_CHECKING:
    from eval_gate.targets.http.polling import Poller

_CONNECT_S: Final = 5.0
_HANGS_UP_S: Final = 0.1


class HttpTarget(DescribedTarget[HttpSettings]):
    """An agent behind a URL. One connection per case in flight, kept open between cases."""

    def __init__(
        self,
        settings: HttpSettings,
        *,
        redact: Redactor,
        concurrency: int,
        max_retries: int | None = None,
        wait_for: float | None = None,
        system: System | None = None,
    ) -> None:
        super().__init__(settings)
        self._redact = redact
        self._retry = retry_policy(settings, max_retries)
        self._system = system or System()
        self._asking = Asking(settings, self._system)
        self._reader = AnswerReader(settings)
        self._url = self._asking.url
        self._wait_s = next((given for given in (wait_for, settings.wait_for) if given is not None), self._usual_wait_s)
        bounds = Bounds(settings.max_response_bytes, self._retry.retryable_status_codes)
        self._connection = Connection(redact, bounds, concurrency, secure=self._url.scheme == "https")
        self._poller: Poller | None = None
        if settings.poll is not None:
            from eval_gate.targets.http.polling import Poller

            self._poller = Poller(settings, settings.poll, self._asking, self._connection)

    @property
    def identity(self) -> TargetIdentity:
        """The URL as it was given, without credentials, query and secrets."""
        shown = self._redact(public_url(self._settings.url.open()))
        return TargetIdentity(name=self._settings.name, provider="http", identity=shown)

    async def respond(self, request: Request) -> Response:
        """Ask once, and again where the policy says so. Raises TargetError."""
        return await with_retries(lambda: self._once(request), self._retry)

    @property
    def _usual_wait_s(self) -> float:
        """An agent on this machine may just have been started, by the step before."""
        return 30 if is_here(urlsplit(self._settings.url.open()).hostname or "") else 0

    async def check_health(self) -> None:
        """Wait until the health check answers 2xx, or anybody accepts connections. Raises TargetError (unreachable)."""
        check = self._settings.healthcheck
        shown = self.identity.identity
        if check is not None:
            await until_there(lambda: self._healthy(check), self._wait_s, f"the agent's health check ({shown})")
        elif self._wait_s and proxy_to(self._url) is None:
            await until_there(self._listens, self._wait_s, f"the agent at {shown}")

    async def _listens(self) -> None:
        """Raises TargetError (unreachable) where nobody accepts connections."""
        try:
            async with asyncio.timeout(_CONNECT_S):
                reader, writer = await asyncio.open_connection(self._url.host, self._url.port)
        except (OSError, TimeoutError) as error:
            said = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error) or "no answer in time"
            raise self._nobody_there(self._url, "agent error: no connection", said) from error
        try:
            if self._system.in_container():  # its engine accepts for a port, and hangs up where nobody is behind it
                async with asyncio.timeout(_HANGS_UP_S):
                    if not await reader.read(1):
                        raise self._nobody_there(self._url, "agent error: no connection", "it was closed at once")
        except ConnectionError as error:
            raise self._nobody_there(self._url, "agent error: no connection", "it was closed at once") from error
        except TimeoutError:
            pass
        finally:
            writer.close()

    async def _healthy(self, check: HttpHealthCheck) -> None:
        """Ask the health check's URL. Raises TargetError (unreachable) unless it answers 2xx."""
        url = self._asking.plain(address_of(check.url.open()))
        try:
            async with asyncio.timeout(check.timeout_seconds):
                answer, body = await self._connection.exchange(SentRequest("GET", url, self._asking.headers))
        except TimeoutError as error:
            what = f"the agent's health check did not answer within {check.timeout_seconds:g} s"
            raise TargetError(what, fault=TargetFault.UNREACHABLE) from error
        except LostError as error:
            raise self._unreachable(error, url, "the health check found no connection") from error
        if not answer.is_success:
            what = f"the agent's health check answered HTTP {answer.status}: {quote(body)}"
            raise TargetError(what, fault=TargetFault.UNREACHABLE)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._connection.aclose()

    async def _once(self, request: Request) -> Response:
        values = self._asking.values(request)
        http_request = self._asking.request(request, values)
        started = time.perf_counter()
        try:
            if self._settings.response_format.streams:
                return await self._streamed(http_request, started)
            answer, body = await self._connection.exchange(http_request)
        except LostError as error:
            raise self._broken(error) from error
        if not answer.is_success:
            raise self._connection.refused(answer, body)
        if self._poller is not None:
            answer, body = await self._poller.finished((answer, body), values, self._retry)
        duration_ms = _since(started)
        if self._settings.response_format is ResponseFormat.TEXT:
            return self._reader.text(body, answer.charset, duration_ms)
        try:
            return self._reader.read(body, duration_ms)
        except TargetError as error:
            error.hint = self._other_hint(answer) or error.hint
            raise

    def _other_hint(self, answer: AnswerHead) -> str | None:
        """What to write where the answer itself says that it is of another kind than was described."""
        if answer.status == ACCEPTED and self._poller is None:
            return "HTTP 202 says that the answer comes later: describe where with `poll`"
        return other_format(answer.header("content-type"), ResponseFormat.JSON)

    async def _streamed(self, request: SentRequest, started: float) -> Response:
        """The answer that comes in events, read until it is over. Raises TargetError and LostError."""
        from eval_gate.targets.http.stream import Collector

        async with self._connection.opened(request) as answer:
            head = head_of(answer)
            if not head.is_success:
                raise self._connection.refused(head, await self._connection.body(answer, head))
            kind = head.header("content-type")
            if other_format(kind, self._settings.response_format) and "json" in kind:
                raise self._reader.in_another_format(await self._connection.body(answer, head), kind)
            collector = Collector(self._settings, self._reader, self._redact.data)
            async for piece in self._connection.pieces(answer):
                if collector.feed(piece):
                    break
            return collector.response(_since(started))

    def _broken(self, error: LostError) -> TargetError:
        """No answer, or half of one. Only who could not connect at all is unreachable."""
        if error.begun:
            what, again = "broke in the middle of the answer", False
        elif error.made:
            what, again = "broke before the answer", True
        else:
            return _with_hint(self._unreachable(error, self._url, "agent error: no connection"))
        said = f"agent error: the connection {what}: {self._connection.words(error)}"
        return TargetError(said, fault=TargetFault.REFUSED, retryable=again)

    def _unreachable(self, error: LostError, url: URL, what: str) -> TargetError:
        return self._nobody_there(url, what, self._connection.words(error))

    def _nobody_there(self, url: URL, what: str, said: str) -> TargetError:
        settings = self._settings
        hint = connection_hint(public_url(settings.url.open()), settings.place_written_at, self._system)
        message = f"{what} to {url.host}:{url.port}: {said}"
        return TargetError(message, fault=TargetFault.UNREACHABLE, retryable=True, hint=hint and self._redact(hint))


def build(settings: HttpSettings, choice: TargetChoice, context: BuildContext) -> HttpTarget:
    """The agent, not yet connected. Raises GateError for what is no address."""
    public_url(settings.url.open())
    check, poll = settings.healthcheck, settings.poll
    beside = (check.url if check else None, poll.url if poll else None)
    addresses = [one.open() for one in (settings.url, *beside) if one is not None]
    query = urlencode({name: as_text(value) for name, value in settings.query.open().items()})
    context.redact.learn(secret for one in (*addresses, f"http://query/?{query}") for secret in secrets_of(one))
    return HttpTarget(
        settings,
        redact=context.redact,
        concurrency=choice.concurrency or settings.workers or 1,
        max_retries=choice.max_retries,
        wait_for=choice.wait_for,
    )


def _with_hint(error: TargetError) -> TargetError:
    """With what to do in the message itself: a run of few cases has nobody who sums up and says it."""
    if error.hint:
        error.message, error.hint = f"{error.message} ({error.hint})", None
    return error


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000
