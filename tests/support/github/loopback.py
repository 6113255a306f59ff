"""HTTP over loopback for the fake's three hosts: reads requests, plays faults, keeps the log, cuts connections."""

from __future__ import annotations

import json
import selectors
import socket
import socketserver
import struct
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol
from urllib.parse import parse_qsl, urlsplit

from tests.support.github.faults import Fault, Faults


@dataclass
class Request:
    """A request as it arrived. `json` is None where the body is empty or not JSON."""

    method: str
    target: str  # the path with its query
    headers: Message
    raw: bytes
    violations: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        url = urlsplit(self.target)
        self.path = url.path
        self.query = dict(parse_qsl(url.query, keep_blank_values=True))
        self.json: Any = None
        self.bad_json = False
        if self.raw and "json" in self.headers.get("Content-Type", "json"):
            try:
                self.json = json.loads(self.raw)
            except ValueError:
                self.bad_json = True

    @property
    def token(self) -> str | None:
        scheme, _, token = self.headers.get("Authorization", "").partition(" ")
        return token if scheme.lower() in {"bearer", "token"} else None


@dataclass
class Answer:
    """An answer: JSON in `body`, or bytes in `raw` with their type."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    content_type: str = "application/json; charset=utf-8"

    @property
    def data(self) -> bytes:
        if self.raw is not None:
            return self.raw
        return b"" if self.body is None else json.dumps(self.body).encode()


@dataclass
class Exchange:
    """A request and what came of it. The status is 0 where the client got none."""

    host: str
    method: str
    path: str  # with its query
    status: int
    headers: dict[str, str]  # of the request, in lower case
    body: Any  # of the request: parsed where it is JSON
    violations: list[str]
    fault: str | None = None


class Service(Protocol):
    """What one of the hosts says."""

    host: str

    def judge(self, request: Request) -> list[str]:
        """What is wrong with the request."""

    def answer(self, request: Request) -> Answer: ...

    def failure(self, fault: Fault, request: Request) -> Answer:
        """A planned failure in this host's words."""

    def judge_answer(self, request: Request, answer: Answer) -> list[str]:
        """What is wrong with our own answer."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # an answer leaves in one piece
    server: LoopbackServer

    def log_message(self, *_: Any) -> None:
        pass

    def exchange(self) -> None:
        body = self._body()
        if len(body) < int(self.headers.get("Content-Length") or 0):  # the client ended before it had said all
            self._cut()
            return
        request = Request(self.command, self.path, self.headers, body)
        fault = self.server.faults.take(request.method, request.target)
        if fault and fault.seconds:
            self.server.closing.wait(fault.seconds)
        if fault and fault.meeting:
            try:
                fault.meeting.wait()
            except threading.BrokenBarrierError:
                request.violations.append("the others that were to be asked for at the same time did not come")
        answer = self.server.respond(request, fault)
        if answer is None:
            self._cut()
        else:
            self._send(answer, fault)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = do_HEAD = exchange  # noqa: N815

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        whole = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            whole += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return whole

    def _send(self, answer: Answer, fault: Fault | None) -> None:
        data = answer.data
        self.send_response_only(answer.status)
        self.send_header("Server", self.version_string())
        if "Date" not in answer.headers:
            self.send_header("Date", self.date_time_string())
        if data:
            self.send_header("Content-Type", answer.content_type)
        if answer.status != 204:
            self.send_header("Content-Length", str(max(len(data) + (fault.too_long if fault else 0), 0)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if fault and fault.drip_s:
            self._drip(data, fault.drip_s)
            return
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data[: fault.cut_after if fault else None])
        if fault and (fault.cut_after is not None or fault.too_long):
            self.wfile.flush()
            self.close_connection = True

    def _drip(self, data: bytes, seconds: float) -> None:
        """Head and body, a byte at a time, until it is all said or nobody listens any more."""
        self.close_connection = True
        head = b"".join(self._headers_buffer) + b"\r\n"
        self._headers_buffer = []
        for byte in head + data:
            if self.server.closing.wait(seconds):
                return
            self.wfile.write(bytes([byte]))
            self.wfile.flush()

    def _cut(self) -> None:
        """End the connection without a word: the client sees a reset, not an end."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()


class LoopbackServer(ThreadingHTTPServer):
    """One host on a port of its own. Ending its connections waits for every thread of them."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self, service: Service, faults: Faults, lock: threading.RLock, note: Callable[[Exchange], None], address: str
    ) -> None:
        self.service, self.faults, self.lock, self.note = service, faults, lock, note
        self.closing = threading.Event()
        self._connections: dict[socket.socket, threading.Thread] = {}
        super().__init__((address, 0), Handler)

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # HTTPServer would look its own name up first
        self.server_name, self.server_port = self.server_address[:2]

    def end(self) -> None:
        """Listen no more and end what is connected."""
        self.server_close()
        for connection, thread in list(self._connections.items()):
            with suppress(OSError):  # it is closed already
                connection.shutdown(socket.SHUT_RDWR)
            thread.join(10)

    def respond(self, request: Request, fault: Fault | None) -> Answer | None:
        """The answer, or None where the connection is to be cut; either way it is in the log."""
        found = request.violations
        found += self.service.judge(request)
        answer: Answer | None = None
        if fault and fault.code is not None:
            answer = self.service.failure(fault, request)
        elif not (fault and fault.reset_before):
            try:
                with self.lock:
                    answer = self.service.answer(request)
            except Exception:  # noqa: BLE001 - a defect of the fake must not look like a fault of GitHub's
                found.append(f"the fake failed: {traceback.format_exc()}")
                answer = Answer(500, {"message": "the fake failed, see its violations"})
            found += self.service.judge_answer(request, answer)
        if fault and fault.reset_after:
            answer = None
        headers = {name.lower(): value for name, value in request.headers.items()}
        body = request.raw if request.json is None else request.json
        status = answer.status if answer else 0
        name = fault.name if fault else None
        self.note(
            Exchange(self.service.host, request.method, request.target, status, headers, body or None, found, name)
        )
        return answer

    @property
    def open_connections(self) -> int:
        """How many clients are connected now."""
        return len(self._connections)

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = threading.Thread(target=self.process_request_thread, args=(request, client_address), daemon=True)
        self._connections[request] = thread
        thread.start()

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self._connections.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is no news; anything else is a defect of the fake."""
        if not isinstance(sys.exception(), OSError):
            self.note(
                Exchange(self.service.host, "?", "?", 0, {}, None, [f"the fake failed: {traceback.format_exc()}"])
            )


class Door:
    """Where clients of several hosts come in: a thread that sleeps until somebody does, or it is closed."""

    def __init__(self, *servers: LoopbackServer) -> None:
        self._servers = servers
        self._closed, self._bell = socket.socketpair()
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def open(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Nobody comes in, every connection is ended, and no thread is left."""
        for server in self._servers:
            server.closing.set()
        self._bell.close()
        self._thread.join(10)
        self._closed.close()
        for server in self._servers:
            server.end()

    def _accept(self) -> None:
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._closed, selectors.EVENT_READ)
            for server in self._servers:
                waiting.register(server, selectors.EVENT_READ, server)
            while True:
                for ready, _ in waiting.select():
                    if ready.data is None:
                        return
                    ready.data.handle_request()
