"""HTTP agent as a target: one request for each case over pooled connections."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode, urlsplit

from yarl import URL

from eval_gate.config.settings import TargetChoice
from eval_gate.model.conversation import Response
from eval_gate.model.execution import ErrorCause
from eval_gate.model.setup import TargetIdentity
from eval_gate.struct import replace
from eval_gate.targets.agent_address import LOCAL_NAMES, ContainerProbe, find_connection_hint, is_local_host
from eval_gate.targets.base import DescribedTarget, Request, TargetError, TargetFault
from eval_gate.targets.build_context import BuildContext
from eval_gate.targets.http.connection import (
    ACCEPTED,
    Connection,
    ConnectionLostError,
    HttpRequest,
    ResponseHead,
    ResponseLimits,
    find_proxy,
    read_head,
)
from eval_gate.targets.http.request_builder import RequestBuilder, parse_address
from eval_gate.targets.http.session_reader import SessionReader
from eval_gate.targets.http.settings import ENDPOINT_NAME, HttpHealthCheck, HttpSettings
from eval_gate.targets.readiness import wait_until_ready
from eval_gate.targets.response.reader import ResponseReader, find_format_hint
from eval_gate.targets.response.settings import ResponseFormat
from eval_gate.targets.retry import LoadLimiter, build_retry_policy, build_shard_limiter, respond_with_retries
from eval_gate.text.javascript.strings import as_text
from eval_gate.text.redaction import Redactor
from eval_gate.text.untrusted.excerpt import format_excerpt
from eval_gate.text.urls import iter_url_secrets, to_public_url

if TYPE_CHECKING:
    from eval_gate.targets.http.polling import Poller

Heads = list[ResponseHead]
_CONNECT_S: Final = 5.0
_HANG_UP_S: Final = 0.1
_SESSION_HINT: Final = (
    "it no longer finds the session of the turn before: let it keep sessions, and check which id it returns and gets"
)


class HttpTarget(DescribedTarget[HttpSettings]):
    """Target behind a URL, with one connection per case in flight, kept open between cases."""

    def __init__(
        self,
        settings: HttpSettings,
        *,
        redact: Redactor,
        concurrency: int,
        max_retries: int | None = None,
        wait_for: float | None = None,
        system: ContainerProbe | None = None,
    ) -> None:
        super().__init__(settings)
        self.conversation_problem, self.remembers_turns = settings.conversation_problem, settings.names_session
        self.sends_traceparent = settings.traceparent
        self._redact = redact
        self.retry_policy = build_retry_policy(settings, max_retries)
        self.limiter = LoadLimiter(concurrency)
        self._system = system or ContainerProbe()
        self._builder = RequestBuilder(settings, self._system)
        self._reader = ResponseReader(settings)
        self._url = self._builder.url
        self.origin = str(self._url.origin()), self._builder.headers
        # an agent on this machine may just have been started, by the step before
        usual_s = 30 if is_local_host(urlsplit(settings.url.open()).hostname or "") else 0
        self._wait_s = next(seconds for seconds in (wait_for, settings.wait_for, usual_s) if seconds is not None)
        bounds = ResponseLimits(settings.max_response_bytes, self.retry_policy.retryable_status_codes)
        self._connection = Connection(redact, bounds, concurrency, secure=self._url.scheme == "https")
        self._was_up = False
        """Whether the agent accepted a connection before."""
        self._turn_notices: set[str] = set()
        self._poller: Poller | None = None
        if settings.poll is not None:
            from eval_gate.targets.http.polling import Poller

            self._poller = Poller(settings, settings.poll, self._builder, self._connection)

    @property
    def identity(self) -> TargetIdentity:
        """The URL as it was given, without credentials, query and secrets."""
        url = self._redact(to_public_url(self._settings.url.open()))
        return TargetIdentity(name=self._settings.name, provider="http", identity=url)

    async def respond(self, request: Request) -> Response:
        """Send the request, and retry it as the policy allows. Raises TargetError."""
        is_remembered = request.open_session is not None and self.remembers_turns
        try:
            response = await respond_with_retries(
                lambda: self._respond_once(request), self.retry_policy, self.limiter, only_unprocessed=is_remembered
            )
        except TargetError as error:
            if error.status == HTTPStatus.NOT_FOUND and is_remembered and request.turn > 1:
                error.hint = _SESSION_HINT  # the path exists: the turn before got a response
            raise
        if request.turn:
            self._note_turn(request)
        return response

    @property
    def notices(self) -> tuple[str, ...]:
        """Whether the agent refused requests because of its load, and what its conversations may lack."""
        name = self._settings.name
        who = "the agent" if name == ENDPOINT_NAME else f"the agent {name}"
        return (*self.limiter.list_notices(who), *(f"{who} {what}" for what in sorted(self._turn_notices)))

    def _note_turn(self, request: Request) -> None:
        """Note for the result what a turn of a conversation sent twice, or did not send."""
        if request.turn == 1 and len(request.messages) > 1 and not self._settings.repeats_messages:
            what = "did not get the messages before the first turn: {{message}} is only the last one"
            self._turn_notices.add(what)
        if request.turn > 1 and self._settings.repeats_turns:
            what = (
                "got earlier turns again in {{conversation}}: with {{session}}, an agent with a memory has them twice"
            )
            self._turn_notices.add(what)

    async def check_health(self) -> None:
        """Wait until the health check returns 2xx or the port accepts connections. Raises TargetError (unreachable)."""
        check = self._settings.healthcheck
        url = self.identity.identity
        if check is not None:
            await wait_until_ready(
                lambda: self._check_health_url(check), self._wait_s, f"the agent's health check ({url})"
            )
        elif self._wait_s and find_proxy(self._url) is None:
            await wait_until_ready(self._check_listening, self._wait_s, f"the agent at {url}")
        else:
            return
        self._was_up = True

    async def _check_listening(self) -> None:
        """Check that a process accepts connections at the address of the agent."""
        try:
            async with asyncio.timeout(_CONNECT_S):
                reader, writer = await asyncio.open_connection(self._url.host, self._url.port)
        except (OSError, TimeoutError) as error:
            why = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error) or "no response in time"
            raise self._build_unreachable_error(self._url, "agent error: no connection", why, error) from error
        is_closed = False
        try:
            # the container's engine accepts connections for a port of the machine, and closes one without a listener
            if self._url.host not in LOCAL_NAMES and self._system.is_container():
                with suppress(TimeoutError):
                    async with asyncio.timeout(_HANG_UP_S):
                        is_closed = not await reader.read(1)
        except ConnectionError:
            is_closed = True
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
        if is_closed:
            raise self._build_unreachable_error(self._url, "agent error: no connection", "it was closed at once")

    async def _check_health_url(self, check: HttpHealthCheck) -> None:
        """Request the health check's URL. Raises TargetError (unreachable) unless the status is 2xx."""
        url = self._builder.resolve_url(parse_address(check.url.open()))
        try:
            async with asyncio.timeout(check.timeout_seconds):
                head, body = await self._connection.exchange(HttpRequest("GET", url, self._builder.headers))
        except TimeoutError as error:
            what = f"the agent's health check did not respond within {check.timeout_seconds:g} s"
            raise TargetError(what, fault=TargetFault.UNREACHABLE) from error
        except ConnectionLostError as error:
            raise self._translate_unreachable(error, url, "the health check got no connection") from error
        if not head.is_success:
            what = f"the agent's health check returned HTTP {head.status}: {format_excerpt(body)}"
            raise TargetError(what, fault=TargetFault.UNREACHABLE)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._connection.aclose()

    async def _respond_once(self, request: Request) -> Response:
        """Send the request once, and read the response with its trace. Raises TargetError, also with the trace."""
        heads: Heads = []
        try:
            response = await self._read_once(request, heads)
        except TargetError as error:
            error.trace_id = self._find_trace(request, heads)
            raise
        return replace(response, trace_id=response.trace_id or self._find_trace(request, heads))

    def _find_trace(self, request: Request, heads: Heads) -> str | None:
        sent_id = request.execution_id if self._settings.traceparent else ""
        traces = (head.find_trace(self._settings.trace_header) for head in reversed(heads))
        return next(filter(None, traces), sent_id) or None

    async def _read_once(self, request: Request, heads: Heads) -> Response:
        started = time.perf_counter()
        session_reader = None if request.open_session is None else SessionReader(self._settings, request.open_session)
        if self._settings.response_format.streams:
            try:
                built = self._builder.build_request(request)
                response = await self._read_stream(built, started, session_reader, heads)
            except ConnectionLostError as error:
                raise self._translate_lost_connection(error) from error
        else:
            received = await self._fetch_responses(request, heads)
            response = self._read_response(*received[-1], _measure_ms(started))
            if session_reader is not None:
                for head, body in received:
                    session_reader.read_head(head)
                    session_reader.read_body(body)
                if session_reader.has_unread_id:
                    self._turn_notices.add(
                        "returned another `session` than it got, and no turn gets it: if it is the id of the "
                        "conversation, set `sessionPath: session`"
                    )
        return response if session_reader is None else session_reader.update_session(response)

    def _read_response(self, head: ResponseHead, body: bytes, duration_ms: float) -> Response:
        if self._settings.response_format is ResponseFormat.TEXT:
            return self._reader.read_text(body, head.charset, duration_ms)
        try:
            return self._reader.read(body, duration_ms)
        except TargetError as error:
            error.hint = self._find_format_hint(head) or error.hint
            raise

    async def fetch_output(self, request: Request) -> bytes:
        """Send one request, and return the body of the response, in which nothing is read yet. Raises TargetError."""
        head, body = (await self._fetch_responses(request, []))[-1]
        hint = self._find_format_hint(head) if self._settings.response_format is ResponseFormat.JSON else None
        if hint is not None:
            message = f"agent error: HTTP {head.status} with {format_excerpt(body)}"
            raise TargetError(message, fault=TargetFault.MALFORMED, hint=hint)
        return body

    async def _fetch_responses(self, request: Request, heads: Heads) -> list[tuple[ResponseHead, bytes]]:
        """Fetch the response to one request, and that of a job that finishes later. Raises TargetError.

        `heads` gets each of their heads, also before an error.
        """
        values = self._builder.build_values(request)
        http_request = self._builder.build_request(request, values)
        try:
            head, body = await self._connection.exchange(http_request)
        except ConnectionLostError as error:
            raise self._translate_lost_connection(error) from error
        self._was_up = True
        heads.append(head)
        if not head.is_success:
            raise self._connection.build_status_error(head, body, http_request)
        received = [(head, body)]
        if self._poller is not None:
            received.append(await self._poller.wait_for_response((head, body), values, self.retry_policy))
            heads.append(received[-1][0])
        return received

    def _find_format_hint(self, response: ResponseHead) -> str | None:
        """Find the hint for a response whose status or content type does not fit the description."""
        if response.status == ACCEPTED and self._poller is None:
            return "HTTP 202 means that the response comes later: set the target's `poll`"
        return find_format_hint(response.get_header("content-type"), ResponseFormat.JSON)

    async def _read_stream(
        self, request: HttpRequest, started: float, session_reader: SessionReader | None, heads: Heads
    ) -> Response:
        from eval_gate.targets.response.stream import StreamCollector

        async with self._connection.open_response(request) as response:
            head = read_head(response)
            heads.append(head)
            if not head.is_success:
                body = await self._connection.read_body(response, head)
                raise self._connection.build_status_error(head, body, request)
            kind = self._redact(head.get_header("content-type"))
            if find_format_hint(kind, self._settings.response_format) and "json" in kind:
                raise self._reader.build_format_error(await self._connection.read_body(response, head), kind)
            observe = None
            if session_reader is not None:
                session_reader.read_head(head)
                observe = session_reader.read_value
            collector = StreamCollector(self._settings, self._reader, self._redact.mask_bytes, observe)
            async for piece in self._connection.iter_pieces(response):
                if collector.feed(piece):
                    break
            return collector.build_response(_measure_ms(started))

    def _translate_lost_connection(self, error: ConnectionLostError) -> TargetError:
        """Translate a connection without a whole response; only one that was never made is unreachable."""
        if error.begun:
            what, retryable = "broke during the response", False
        elif error.was_connected:
            what, retryable = "broke before the response", True
        else:
            return self._translate_unreachable(error, self._url, "agent error: no connection")
        text = f"agent error: the connection {what}: {self._connection.describe_error(error)}"
        return TargetError(text, fault=TargetFault.REFUSED, retryable=retryable, known_cause=ErrorCause.CONNECTION_LOST)

    def _translate_unreachable(self, error: ConnectionLostError, url: URL, what: str) -> TargetError:
        target_error = self._build_unreachable_error(url, what, self._connection.describe_error(error), error.system)
        if error.tls_hint is not None:
            target_error.known_cause, target_error.hint = ErrorCause.TLS_FAILED, error.tls_hint
        return target_error

    def _build_unreachable_error(self, url: URL, what: str, reason: str, system: OSError | None = None) -> TargetError:
        settings, hint, cause = self._settings, None, None
        if self._was_up:
            cause = ErrorCause.AGENT_GONE
        else:
            hint = find_connection_hint(to_public_url(settings.url.open()), settings.find_place("url"), self._system)
            cause = ErrorCause.HOST_NOT_FOUND if isinstance(system, socket.gaierror) else None
        return TargetError(
            f"{what} to {url.host}:{url.port}: {reason}",
            fault=TargetFault.UNREACHABLE,
            retryable=True,
            hint=hint and self._redact(hint),
            known_cause=cause,
        )


def build(settings: HttpSettings, choice: TargetChoice, context: BuildContext) -> HttpTarget:
    """Build the HTTP target, not yet connected. Raises GateError if its address is invalid."""
    to_public_url(settings.url.open())
    check, poll = settings.healthcheck, settings.poll
    other_urls = (check.url if check else None, poll.url if poll else None)
    addresses = [one.open() for one in (settings.url, *other_urls) if one is not None]
    query = urlencode({name: as_text(value) for name, value in settings.query.open().items()})
    context.redact.add_secrets(
        secret for one in (*addresses, f"http://query/?{query}") for secret in iter_url_secrets(one)
    )
    target = HttpTarget(
        settings,
        redact=context.redact,
        concurrency=choice.concurrency or settings.workers or 1,
        max_retries=choice.max_retries,
        wait_for=choice.wait_for,
    )
    target.limiter.rate = build_shard_limiter(choice.requests_per_minute, context.shards)
    return target


def _measure_ms(started: float) -> float:
    return (time.perf_counter() - started) * 1000
