"""Record the exchanges with an HTTP agent: a proxy on this machine that forwards every request and response.

Only questions and responses are stored, never headers; credentials of headers, cookies and query parameters are masked
in them. The client receives exactly what the agent sends, piece by piece.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import threading
import time
from base64 import b64decode
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from types import FrameType
from typing import Final
from urllib.parse import urlsplit

from aiohttp import ClientError, ClientResponse, web
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from eval_gate.drafts.observation import ObservationSet
from eval_gate.drafts.sources.exchange_journal import (
    BodyCopy,
    ExchangeJournal,
    RecordedExchange,
    mask_entry,
    parse_response,
)
from eval_gate.drafts.sources.json_log import read_journal
from eval_gate.drafts.sources.request_mapping import RequestContent, RequestMapping
from eval_gate.drafts.sources.source_messages import PromptError, SessionMessages
from eval_gate.errors import GateError
from eval_gate.files.certificates import load_ssl_context
from eval_gate.model.limits import DRAFT_SOURCE_BYTES, MAX_RESPONSE_BYTES
from eval_gate.struct import FrozenStruct, field, replace
from eval_gate.targets.agent_address import ContainerProbe, is_local_host
from eval_gate.targets.base import TargetError
from eval_gate.targets.http.connection import ResponseHead, find_proxy, read_head
from eval_gate.targets.http.pool import MAX_LINE, make_pool
from eval_gate.targets.http.request_builder import RequestBuilder
from eval_gate.targets.http.settings import HttpSettings
from eval_gate.text.escape import format_count
from eval_gate.text.javascript.regex import PatternMatcher
from eval_gate.text.redaction import Redactor
from eval_gate.text.untrusted.http_response import DecompressionError
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
_READABLE: Final = frozenset({"gzip", "x-gzip", "deflate", "identity"})
"""Encodings in which a response can be recorded."""
_IDENTITY: Final = "identity"
_AUTOMATIC_HEADERS: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
_MAX_ERROR: Final = 300
"""Characters of an error that are recorded."""
_MAX_CLIENTS: Final = 100
_MAX_SESSIONS: Final = 1_000
_SHUTDOWN_S: Final = 5.0
_ADDED: Final = web.ResponseKey("added", list[str])
_ADDED_BY_SERVER: Final = ("Content-Type", "Date", "Server")


class ProxyRecording(FrozenStruct):
    """How to record: the journal, what to mask, and where to report progress."""

    journal: Path
    redact: Redactor
    patterns: tuple[str, ...] = ()
    """The team's `redact` patterns."""
    announce: Callable[[str], None] = lambda _: None


async def record_proxy(port: int, settings: HttpSettings, recording: ProxyRecording) -> ObservationSet:
    """Forward requests from a port of this machine to the agent until SIGINT or SIGTERM, and record its exchanges.

    Requests without the target's method and path are only forwarded. The result is what the journal holds, including
    what an earlier recording left there; the caller removes the journal when the result is stored. Raises GateError for
    a port that cannot be used, settings that do not fit a proxy, and a journal that cannot be written.
    """
    check_proxy_settings(port, settings)
    with ExchangeJournal(recording.journal) as journal, _catch_signals() as stopped:
        proxy = RecordingProxy(settings, recording, journal, stopped)
        try:
            async with proxy.listen(port):
                recording.announce(f"Recording: send requests for {proxy.shown_agent} to http://{HOST}:{port}")
                if journal.earlier_bytes:
                    recording.announce(f"Continuing {recording.journal}: remove the file to begin anew")
                recording.announce("Press Ctrl-C to end the recording and write the drafts")
                await stopped.wait()
        finally:
            await proxy.aclose()
    if proxy.failure is not None:
        raise proxy.failure
    observations = read_journal(recording.journal)
    return replace(observations, notes=(*observations.notes, *proxy.notes))


def check_proxy_settings(port: int, settings: HttpSettings) -> None:
    """Check that a proxy at this port can record the target. Raises GateError `invalid-proxy`."""
    if settings.poll is not None:
        raise GateError(
            "invalid-proxy",
            "the proxy cannot record an agent whose response comes later (`poll`)",
            "ask the questions of a file instead: eval-gate draft QUESTIONS -o FILE",
        )
    parts = urlsplit(settings.url.open())
    own = parts.port or (443 if parts.scheme == "https" else 80)
    if own == port and is_local_host(parts.hostname or ""):
        raise GateError(
            "invalid-proxy", f"port {port} is that of the agent itself", "choose another port: --proxy PORT"
        )


@contextmanager
def _catch_signals() -> Iterator[asyncio.Event]:
    """Set the event at the first SIGINT or SIGTERM. From then on, signals are handled as before."""
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler)

    def stop(_number: int, _frame: FrameType | None) -> None:
        restore()
        loop.call_soon_threadsafe(stopped.set)

    for number in handlers:
        signal.signal(number, stop)
    try:
        yield stopped
    finally:
        restore()


class RecordingProxy:
    """Proxy that forwards to one agent and writes its exchanges to a journal."""

    def __init__(
        self, settings: HttpSettings, recording: ProxyRecording, journal: ExchangeJournal, stopped: asyncio.Event
    ) -> None:
        """Prepare to forward. `stopped` is set where the recording cannot go on."""
        self._recording = recording
        self._stopped = stopped
        self._journal = journal
        self._matcher = PatternMatcher()
        self._settings = settings
        self._requests = RequestMapping(settings)
        builder = RequestBuilder(settings, ContainerProbe())
        self._origin = builder.url.origin()
        self._host = builder.headers.get("host") or self._origin.host_port_subcomponent or ""
        self._pool = make_pool(_MAX_CLIENTS, load_ssl_context() if self._origin.scheme == "https" else None)
        self._sessions = SessionMessages(_MAX_SESSIONS)
        self._tasks = set[asyncio.Task[None]]()
        self._not_recorded: Counter[str] = Counter()
        self._recorded = 0
        self.failure: GateError | None = None
        """Why the journal cannot be written, which ends the recording."""

    @property
    def shown_agent(self) -> str:
        """Address of the agent, without path and secrets."""
        return self._recording.redact(str(self._origin))

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about what was not recorded."""
        counts = self._not_recorded.items()
        return tuple(f"Not recorded: {format_count(count, 'exchange')}, {why}." for why, count in counts)

    @asynccontextmanager
    async def listen(self, port: int) -> AsyncIterator[None]:
        """Accept requests within the block; those under way at its end have 5 s. Raises GateError `invalid-proxy`."""
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", self._handle)
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
                await web.TCPSite(runner, HOST, port).start()
            except OSError as error:
                reason = os.strerror(error.errno) if error.errno else str(error)
                what = f"the proxy cannot listen at {HOST}:{port}: {reason.lower()}"
                raise GateError("invalid-proxy", what, "choose a free port above 1023: --proxy PORT") from error
            yield
        finally:
            await runner.cleanup()

    async def aclose(self) -> None:
        """Write what is recorded, and close all connections to the agent."""
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._pool.close()
        await self._matcher.aclose()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        """Forward one request, and record the exchange if it is one with the target."""
        refusal = _find_refusal(request)
        if refusal is not None:
            return web.Response(status=HTTPStatus.FORBIDDEN, text=f"{refusal}\n")
        sent = BodyCopy(MAX_RESPONSE_BYTES)
        is_exchange = self._requests.is_exchange(RequestContent(request.method, request.raw_path, b""))
        started = time.perf_counter()
        try:
            received = await self._forward(request, sent, is_exchange=is_exchange)
        except (ClientError, OSError, TimeoutError) as error:
            received = _Received(error=f"the agent cannot be reached: {self._describe_error(error)}")
            with suppress(ConnectionError):
                await sent.add_rest(request.content)
        except asyncio.CancelledError:
            self._not_recorded["cut off at the end of the recording"] += is_exchange
            raise
        if is_exchange:
            task = asyncio.create_task(self._record(request, sent, received, (time.perf_counter() - started) * 1000))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        if received.response is None:
            return web.Response(status=HTTPStatus.BAD_GATEWAY, text=f"{received.error}\n")
        with suppress(ConnectionError):
            await received.response.write_eof()
        return received.response

    async def _forward(self, request: web.Request, sent: BodyCopy, *, is_exchange: bool) -> _Received:
        """Send a request to the agent and its response to the client, piece by piece."""
        url = URL(f"{self._origin}{request.raw_path}", encoded=True)
        async with self._pool.request(
            request.method,
            url,
            headers=self._select_request_headers(request, is_exchange=is_exchange),
            data=sent.iter_copied(request.content) if request.can_read_body else None,
            skip_auto_headers=_AUTOMATIC_HEADERS,
            allow_redirects=False,
            proxy=find_proxy(url),
        ) as upstream:
            headers = _drop_connection_headers(upstream.headers)
            response = web.StreamResponse(status=upstream.status, reason=upstream.reason, headers=headers)
            response[_ADDED] = [name for name in _ADDED_BY_SERVER if name not in headers]
            received = _Received(response, read_head(upstream), BodyCopy(self._settings.max_response_bytes))
            encodings = upstream.headers.getall("content-encoding", ())
            return await self._relay(request, upstream, replace(received, encodings=tuple(encodings)))

    async def _relay(self, request: web.Request, upstream: ClientResponse, received: _Received) -> _Received:
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
            return replace(received, error=f"the connection broke during the response: {self._describe_error(error)}")
        return received

    def _select_request_headers(self, request: web.Request, *, is_exchange: bool) -> CIMultiDict[str]:
        """Select the headers to forward; the response to a recorded request is compressed only as it can be read."""
        headers = _drop_connection_headers(request.headers)
        headers.popall("Expect", None)  # the proxy has answered it
        headers["Host"] = self._host
        encodings = headers.popall("Accept-Encoding", None)
        if encodings is not None and is_exchange:
            words = [word.strip() for value in encodings for word in value.split(",")]
            encodings = [", ".join(word for word in words if word.partition(";")[0].strip().lower() in _READABLE)]
        for value in encodings or ():
            headers.add("Accept-Encoding", value or _IDENTITY)
        if not encodings:
            headers["Accept-Encoding"] = _IDENTITY
        return headers

    def _describe_error(self, error: Exception) -> str:
        message = (
            os.strerror(error.errno) if isinstance(error, OSError) and error.errno and error.errno > 0 else str(error)
        )
        return self._recording.redact(message) or type(error).__name__

    async def _record(self, request: web.Request, sent: BodyCopy, received: _Received, duration_ms: float) -> None:
        """Write one exchange to the journal, or count it as not recorded."""
        try:
            if received.is_cut_off:
                self._not_recorded["cut off by the client"] += 1
                return
            content = RequestContent(request.method, request.raw_path, sent.read(request.headers))
            redact = Redactor(iter_exchange_secrets(request, received.response))
            redact.include(self._recording.redact)
            exchange = self._build_exchange(content, received, duration_ms, redact)
            entry = await mask_entry(exchange, redact, self._recording.patterns, self._matcher)
            if entry is None:
                self._not_recorded["which could not be searched for the `redact` patterns"] += 1
                return
            if not self._journal.append(entry):
                self._not_recorded[f"with which the recording would exceed {DRAFT_SOURCE_BYTES:,} bytes"] += 1
                return
        except (PromptError, DecompressionError) as error:
            self._not_recorded[str(error)] += 1
        except GateError as error:
            self.failure = self.failure or error
            self._stopped.set()
        else:
            self._recorded += 1
            self._recording.announce(f"Recorded {self._recorded:,}")

    def _build_exchange(
        self, content: RequestContent, received: _Received, duration_ms: float, redact: Redactor
    ) -> RecordedExchange:
        """Build the record of one exchange. Raises PromptError and DecompressionError."""
        session = self._requests.find_session(content)
        prompt = self._sessions.complete_prompt(session, self._requests.parse_prompt(content))
        text = redact(prompt.text)
        self._sessions.add_exchange(session, prompt, text, None)
        if received.error is not None or received.head is None:
            # masked before it is cut: the agent may repeat what the client sent
            return RecordedExchange(prompt, error=received.error and redact(received.error)[:_MAX_ERROR])
        try:
            body = received.body.read_decoded(received.encodings)
            response = parse_response(self._settings, redact, received.head, body, duration_ms)
        except (TargetError, DecompressionError) as error:
            return RecordedExchange(prompt, error=str(error))
        self._sessions.add_exchange(session, prompt, text, response.text)
        return RecordedExchange(prompt, response)


class _Received(FrozenStruct):
    """The result of a request: a response for the client with a copy of it, or an error."""

    response: web.StreamResponse | None = None
    head: ResponseHead | None = None
    body: BodyCopy = field(default_factory=lambda: BodyCopy(0))
    encodings: tuple[str, ...] = ()
    error: str | None = None
    is_cut_off: bool = False
    """The client left before the end."""


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


def _drop_connection_headers(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
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
