"""Connection of a run to the proxy of its agent's model calls."""

from __future__ import annotations

from typing import Final, TypeVar

from aiohttp import ClientError, ClientSession, ClientTimeout
from msgspec import MsgspecError
from yarl import URL

from eval_gate.errors import ExitCode, GateError
from eval_gate.model.base import Record, decode_json
from eval_gate.model.model_recording import CallMode, ExecutionCalls, ModelRecording
from eval_gate.model.setup import SettingValue
from eval_gate.struct import replace
from eval_gate.targets.agent_address import ContainerProbe, is_local_host, resolve_host
from eval_gate.targets.http.forwarding import BodyCopy
from eval_gate.targets.http.pool import make_pool
from eval_gate.targets.model.proxied_providers import GATE_PATH, build_execution_variables

UNREACHABLE_HINT: Final = "start the agent, or this run, with `eval-gate replay -- CMD`, or omit modelProxy"
_TIMEOUT: Final = ClientTimeout(total=10)
_MAX_BYTES: Final = 1_000_000
_MAX_CONNECTIONS: Final = 100
_Reply = TypeVar("_Reply", bound=Record)


class ModelProxy:
    """Connection of a run to the proxy of its agent's model calls."""

    def __init__(self, address: str, pool: ClientSession) -> None:
        url = URL(address.rstrip("/"))
        self._host = url.host_port_subcomponent or ""
        self._url = url.with_host(resolve_host(url.host or "", ContainerProbe()))
        self._pool = pool
        self._recording = ModelRecording(mode=CallMode.RECORD, file="")
        self._replayed = self._live = self._incomplete = 0

    @classmethod
    async def connect(cls, address: str) -> ModelProxy:
        """Begin a run at the proxy. Raises GateError: `model-proxy-unreachable` (incomplete), `invalid-proxy`."""
        if not is_local_host(URL(address).host or ""):
            raise GateError(
                "invalid-proxy", "modelProxy names another machine, which could read the agent's keys", UNREACHABLE_HINT
            )
        proxy = cls(address, make_pool(_MAX_CONNECTIONS, None))
        try:
            proxy._recording = await proxy._request("POST", "runs", ModelRecording)
        except _ProxyError as error:
            await proxy.aclose()
            raise GateError(
                "model-proxy-unreachable", str(error), UNREACHABLE_HINT, exit_code=ExitCode.INCOMPLETE
            ) from error
        return proxy

    @property
    def recording(self) -> ModelRecording:
        """The recording, with the calls of this run so far."""
        return replace(
            self._recording,
            replayed_calls=self._replayed,
            live_calls=self._live,
            incomplete_executions=self._incomplete,
        )

    @property
    def settings(self) -> tuple[SettingValue, ...]:
        """What replays the agent's model calls, for the setup of the run; empty if they are live."""
        if self._recording.digest is None:
            return ()
        rest = " or live" if self._recording.mode is CallMode.REPLAY_OR_LIVE else ""
        return (SettingValue(name="modelCalls", value=f"replayed #{self._recording.digest}{rest}", default="live"),)

    def build_variables(self, execution_id: str) -> dict[str, str]:
        """Build the variables of a program that is asked in this execution."""
        recording = self._recording
        replayed = recording.providers if recording.mode is CallMode.REPLAY else ()
        return build_execution_variables(str(self._url), execution_id, replayed)

    async def begin(self, execution_id: str) -> str | None:
        """Begin an execution, and return why the proxy does not know it, or None."""
        try:
            await self._request("POST", f"executions/{execution_id}", ExecutionCalls)
        except _ProxyError as error:
            return str(error)
        return None

    async def end(self, execution_id: str) -> ExecutionCalls:
        """End an execution, and return its calls; a proxy that does not report them is a miss."""
        try:
            calls = await self._request("DELETE", f"executions/{execution_id}", ExecutionCalls)
        except _ProxyError as error:
            calls = ExecutionCalls(misses=(str(error),))
        self._incomplete += bool(calls.misses)
        self._replayed += calls.replayed
        self._live += calls.live
        return calls

    async def aclose(self) -> None:
        """Close the connections."""
        await self._pool.close()

    async def _request(self, method: str, path: str, kind: type[_Reply]) -> _Reply:
        """Send a request of this run. Raises _ProxyError."""
        who = f"the model proxy at {self._host[:200]}"
        try:
            url, headers = URL(f"{self._url}{GATE_PATH}/{path}"), {"Host": self._host}
            async with self._pool.request(
                method, url, headers=headers, timeout=_TIMEOUT, allow_redirects=False
            ) as response:
                await (body := BodyCopy(_MAX_BYTES)).add_rest(response.content)
                if response.status != 200:
                    raise _ProxyError(f"{who} refused a request of this run: HTTP {response.status}")
                return decode_json(body.read_decoded(()), kind)
        except (TimeoutError, ClientError, OSError) as error:
            raise _ProxyError(f"{who} cannot be reached: {str(error)[:200] or type(error).__name__}") from error
        except MsgspecError as error:
            raise _ProxyError(f"{who} is not the proxy of `eval-gate record` or `eval-gate replay`") from error


class _ProxyError(Exception):
    """The proxy cannot be used; the message says why."""
