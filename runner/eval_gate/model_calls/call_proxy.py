"""Proxy between an agent and its model providers: records their answers, or replays them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from aiohttp import ClientError, web
from msgspec import json as json_of
from yarl import URL

from eval_gate.errors import GateError
from eval_gate.model.base import Record
from eval_gate.model.limits import MAX_RESPONSE_BYTES, RECORDING_LINE_BYTES
from eval_gate.model.model_recording import CallMode, ExecutionCalls
from eval_gate.model_calls.misses import describe_miss
from eval_gate.model_calls.recording_file import CallRecording, ModelCall
from eval_gate.targets.http.forwarding import (
    BodyCopy,
    ForwardingProxy,
    ReceivedResponse,
    drop_connection_headers,
    end_response,
    iter_exchange_secrets,
)
from eval_gate.targets.model.proxied_providers import EXECUTION_HEADER, GATE_PATH, PROXIED, get_base_path
from eval_gate.text.redaction import Redactor
from eval_gate.text.untrusted.http_response import DecompressionError

_EXECUTIONS: Final = f"{GATE_PATH}/executions/"
_TRACE: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-")
"""The trace id of a W3C `traceparent`, which is the id of the execution."""


class _Execution:
    """Calls of one execution so far."""

    def __init__(self) -> None:
        self.numbers: Counter[str] = Counter()
        self.calls = self.live_calls = 0
        self.miss: str | None = None


class ModelCallProxy(ForwardingProxy):
    """Proxy of an agent's model calls, which the gate tells when executions begin and end."""

    def __init__(self, recording: CallRecording, addresses: Mapping[str, str], announce: Callable[[str], None]) -> None:
        """`addresses` are those of the providers, by their names."""
        super().__init__(Redactor(), secure=recording.mode is not CallMode.REPLAY)
        self._recording, self._addresses, self._announce = recording, addresses, announce
        self._open: dict[str, _Execution] = {}
        self.outside = _Execution()
        """Calls that belong to no execution."""
        self.calls = 0
        self.failure: GateError | None = None
        """Why the file cannot be written."""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Control an execution, or answer a model call."""
        path = request.raw_path.partition("?")[0]
        if path == f"{GATE_PATH}/runs" and request.method == "POST":
            self._open.clear()  # of a gate that was killed
            return _respond(self._recording.description)
        execution_id = request.headers.get(EXECUTION_HEADER)
        if path.startswith(_EXECUTIONS):
            execution_id, slash, rest = path.removeprefix(_EXECUTIONS).partition("/")
            if not slash:
                return self._direct_execution(request.method, execution_id)
            path = f"/{rest}"
        executions = self._list_executions(request, execution_id)
        body = BodyCopy(MAX_RESPONSE_BYTES)
        await body.add_rest(request.content)
        call = ModelCall(request.method, path, request.rel_url.raw_query_string, body.read_decoded(()))
        return await self._respond_to_call(request, call, executions)

    def _direct_execution(self, method: str, execution_id: str) -> web.Response:
        """Begin an execution, or end it and return its calls."""
        if method == "POST":
            self._open[execution_id] = _Execution()
            return _respond(ExecutionCalls())
        execution = self._open.pop(execution_id, None) if method == "DELETE" else None
        if execution is None:
            return _refuse(f"no execution {execution_id[:200]} is open")
        miss = self.outside.miss or execution.miss
        return _respond(ExecutionCalls(calls=execution.calls, live_calls=execution.live_calls, miss=miss))

    def _list_executions(self, request: web.Request, execution_id: str | None) -> list[_Execution]:
        """List the executions to which a call may belong: the one that it names, else all that are open."""
        trace = _TRACE.match(request.headers.get("traceparent", ""))
        if execution_id is None and trace and trace[1] in self._open:  # else it is of the agent's own tracing
            execution_id = trace[1]
        if execution_id is None:
            return list(self._open.values()) or [self.outside]
        return [self._open.get(execution_id, self.outside)]

    async def _respond_to_call(
        self, request: web.Request, call: ModelCall, executions: list[_Execution]
    ) -> web.StreamResponse:
        provider = next((name for name in PROXIED if call.path.startswith(f"{get_base_path(name)}/")), None)
        if provider is None:
            if call.path.split("/")[1] not in PROXIED:  # outside of executions, it may be a probe of the port
                executions = [one for one in executions if one is not self.outside]
            return self._refuse_call(executions, "no provider of models is at this path of the proxy")
        self.calls += 1
        for execution in executions:
            execution.calls += 1
        if len(executions) > 1:
            what = (
                f"a model call came while {len(executions)} executions were open, and does not say to which it belongs"
            )
            what += f": pass on the header {EXECUTION_HEADER}, or run one case at a time"
            return self._refuse_call(executions, what)
        if len(call.data) > MAX_RESPONSE_BYTES:
            return self._refuse_call(executions, f"a model call is larger than {MAX_RESPONSE_BYTES:,} bytes")
        (execution,) = executions
        redact, number = Redactor(iter_exchange_secrets(request, None)), execution.numbers[call.key]
        calls = self._recording.list_calls(call.key) if self._recording.mode is not CallMode.RECORD else ()
        if execution is self.outside:  # where the last answer is repeated
            number = min(number, len(calls) - 1)
        if 0 <= number < len(calls):
            execution.numbers[call.key] += 1
            headers, body = {"Content-Type": calls[number].content_type}, calls[number].response.encode()
            return web.Response(status=calls[number].status, headers=headers, body=body)
        if self._recording.mode is CallMode.REPLAY:
            return self._refuse_call(executions, describe_miss(call, self._recording, redact))
        return await self._ask_provider(provider, request, call, execution, redact)

    def _refuse_call(self, executions: list[_Execution], miss: str) -> web.Response:
        """Refuse a call, and note why in the executions to which it may belong."""
        for execution in executions:
            execution.miss = execution.miss or miss
        self._announce(f"Not answered: {miss}")
        return _refuse(miss)

    async def _ask_provider(
        self, provider: str, request: web.Request, call: ModelCall, execution: _Execution, redact: Redactor
    ) -> web.StreamResponse:
        """Forward a call, and record it if the provider answered it."""
        path = call.path.partition("?")[0].removeprefix(get_base_path(provider))
        query = "".join(request.raw_path.partition("?")[1:])  # as it came
        url = URL(f"{self._addresses[provider].rstrip('/')}{path}{query}", encoded=True)
        headers = drop_connection_headers(request.headers)
        for header in ("Expect", "Accept-Encoding", EXECUTION_HEADER):
            headers.popall(header, None)
        headers["Host"], headers["Accept-Encoding"] = url.host_port_subcomponent or "", "identity"
        execution.live_calls += 1
        try:
            received = await self.forward(request, url, headers, call.data or None, RECORDING_LINE_BYTES)
        except (ClientError, OSError, TimeoutError) as error:
            received = ReceivedResponse(error=f"{provider} cannot be reached: {self.describe_error(error)}")
        if why := received.error or self._record(call, received, execution, redact):
            self._announce(f"Not recorded: {redact(why)}")
        return await end_response(received)

    def _record(
        self, call: ModelCall, received: ReceivedResponse, execution: _Execution, redact: Redactor
    ) -> str | None:
        """Record an answered call, and return why not, or None."""
        assert received.head is not None
        if not received.head.is_success:
            return f"the provider answered with HTTP {received.head.status}"
        if received.is_cut_off:
            return "the agent left before the end of a response"
        number = execution.numbers[call.key]
        execution.numbers[call.key] += 1
        content_type = received.head.headers.get("content-type", "")
        try:
            content = received.body.read_decoded(received.encodings)
            return self._recording.add(call, number, (received.head.status, content_type, content), redact)
        except DecompressionError as error:
            return str(error)
        except GateError as error:
            self.failure = self.failure or error
            return error.message


def _refuse(why: str) -> web.Response:
    """Build an error that the providers' libraries raise, and do not retry."""
    error = {"message": f"Eval Gate: {why}", "type": "not_recorded", "code": "not_recorded", "status": "NOT_FOUND"}
    body = json_of.encode({"type": "error", "error": error})
    return web.Response(status=404, body=body, content_type="application/json", headers={"x-should-retry": "false"})


def _respond(value: Record) -> web.Response:
    return web.Response(body=json_of.encode(value), content_type="application/json")
