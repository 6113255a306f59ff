"""Record the exchanges with an HTTP agent: a proxy on this machine that forwards every request and response.

Only questions and responses are stored, never headers; credentials of headers, cookies and query parameters are masked
in them. The client receives exactly what the agent sends, piece by piece.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final
from urllib.parse import urlsplit

from aiohttp import ClientError, web
from multidict import CIMultiDict
from yarl import URL

from eval_gate.drafts.observation import ObservationSet
from eval_gate.drafts.sources.exchange_journal import ExchangeJournal, RecordedExchange, mask_entry, parse_response
from eval_gate.drafts.sources.json_log import read_journal
from eval_gate.drafts.sources.request_mapping import RequestContent, RequestMapping
from eval_gate.drafts.sources.source_messages import PromptError, SessionMessages
from eval_gate.errors import GateError
from eval_gate.model.limits import DRAFT_SOURCE_BYTES, MAX_RESPONSE_BYTES
from eval_gate.struct import FrozenStruct, replace
from eval_gate.targets.agent_address import ContainerProbe, is_local_host
from eval_gate.targets.base import TargetError
from eval_gate.targets.http.forwarding import (
    HOST,
    BodyCopy,
    ForwardingProxy,
    ReceivedResponse,
    drop_connection_headers,
    end_response,
    iter_exchange_secrets,
)
from eval_gate.targets.http.request_builder import RequestBuilder
from eval_gate.targets.http.settings import HttpSettings
from eval_gate.text.escape import format_count
from eval_gate.text.javascript.regex import PatternMatcher
from eval_gate.text.redaction import Redactor
from eval_gate.text.untrusted.http_response import DecompressionError

_READABLE: Final = frozenset({"gzip", "x-gzip", "deflate", "identity"})
"""Encodings in which a response can be recorded."""
_IDENTITY: Final = "identity"
_MAX_ERROR: Final = 300
"""Characters of an error that are recorded."""
_MAX_SESSIONS: Final = 1_000


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
    journal = ExchangeJournal(recording.journal)
    with _catch_signals() as stopped:
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


class RecordingProxy(ForwardingProxy):
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
        super().__init__(recording.redact, secure=self._origin.scheme == "https")
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

    async def aclose(self) -> None:
        """Write what is recorded, and close all connections to the agent."""
        if self._tasks:
            await asyncio.wait(self._tasks)
        await super().aclose()
        await self._matcher.aclose()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Forward one request, and record the exchange if it is one with the target."""
        sent = BodyCopy(MAX_RESPONSE_BYTES)
        is_exchange = self._requests.is_exchange(RequestContent(request.method, request.raw_path, b""))
        started = time.perf_counter()
        try:
            received = await self.forward(
                request,
                URL(f"{self._origin}{request.raw_path}", encoded=True),
                self._select_request_headers(request, is_exchange=is_exchange),
                sent.iter_copied(request.content) if request.can_read_body else None,
                self._settings.max_response_bytes,
            )
        except (ClientError, OSError, TimeoutError) as error:
            received = ReceivedResponse(error=f"the agent cannot be reached: {self.describe_error(error)}")
            with suppress(ConnectionError):
                await sent.add_rest(request.content)
        except asyncio.CancelledError:
            self._not_recorded["cut off at the end of the recording"] += is_exchange
            raise
        if is_exchange:
            task = asyncio.create_task(self._record(request, sent, received, (time.perf_counter() - started) * 1000))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await end_response(received)

    def _select_request_headers(self, request: web.Request, *, is_exchange: bool) -> CIMultiDict[str]:
        """Select the headers to forward; the response to a recorded request is compressed only as it can be read."""
        headers = drop_connection_headers(request.headers)
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

    async def _record(
        self, request: web.Request, sent: BodyCopy, received: ReceivedResponse, duration_ms: float
    ) -> None:
        """Write one exchange to the journal, or count it as not recorded."""
        try:
            if received.is_cut_off:
                self._not_recorded["cut off by the client"] += 1
                return
            content = RequestContent(request.method, request.raw_path, _read_body(request, sent))
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
        self, content: RequestContent, received: ReceivedResponse, duration_ms: float, redact: Redactor
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


def _read_body(request: web.Request, sent: BodyCopy) -> bytes:
    """Return the body of a request without compression. Raises PromptError and DecompressionError."""
    data = sent.read_decoded(request.headers.getall("content-encoding", ()))
    if len(data) > sent.limit:
        raise PromptError(f"the request is larger than {sent.limit:,} bytes")
    return data
