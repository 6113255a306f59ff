"""Connection of a run to the proxy of its agent's model calls."""

from __future__ import annotations

from contextlib import suppress
from typing import Final, TypeVar

from aiohttp import ClientError, ClientTimeout
from msgspec import MsgspecError
from yarl import URL

from eval_gate.errors import ExitCode, GateError
from eval_gate.model.base import Record, decode_json
from eval_gate.model.limits import PROXY_REPLY_BYTES
from eval_gate.model.model_recording import CallMode, ExecutionCalls, ModelRecording
from eval_gate.model.setup import SettingValue
from eval_gate.struct import replace
from eval_gate.targets.agent_address import ContainerProbe, is_local_host, resolve_host
from eval_gate.targets.http.forwarding import BodyCopy
from eval_gate.targets.http.pool import make_pool
from eval_gate.targets.model.proxied_providers import GATE_PATH, build_variables

_HINT: Final = "start the agent, or this run, with `eval-gate replay -- CMD`, or omit modelProxy"
_TIMEOUT: Final = ClientTimeout(total=10)
_MAX_CONNECTIONS: Final = 100
_Reply = TypeVar("_Reply", bound=Record)


class ModelProxy:
    """Connection of a run to the proxy of its agent's model calls."""

    def __init__(self, address: str) -> None:
        url = URL(address.rstrip("/"))
        self._host = url.host_port_subcomponent or ""
        self._url = url.with_host(resolve_host(url.host or "", ContainerProbe()))
        self._pool = make_pool(_MAX_CONNECTIONS, None)
        self.recording = ModelRecording(mode=CallMode.RECORD, file="")
        """The recording, with the calls of this run so far."""

    @classmethod
    async def connect(cls, address: str) -> ModelProxy:
        """Begin a run at the proxy. Raises GateError: `model-proxy-unreachable` (incomplete), `invalid-proxy`."""
        if not is_local_host(URL(address).host or ""):
            what = "modelProxy names another machine, which could read the agent's keys"
            raise GateError("invalid-proxy", what, _HINT)
        proxy = cls(address)
        try:
            proxy.recording = await proxy._request("POST", "runs", ModelRecording)
        except GateError:
            await proxy.aclose()
            raise
        return proxy

    @property
    def settings(self) -> tuple[SettingValue, ...]:
        """What replays the agent's model calls, for the setup of the run; empty if they are live."""
        if self.recording.digest is None:
            return ()
        rest = " or live" if self.recording.mode is CallMode.REPLAY_OR_LIVE else ""
        return (SettingValue(name="modelCalls", value=f"replayed #{self.recording.digest}{rest}", default="live"),)

    def build_variables(self, execution_id: str) -> dict[str, str]:
        """Build the variables of a program that is asked in this execution: its addresses name the execution."""
        address = f"{self._url}{GATE_PATH}/executions/{execution_id}"
        without_keys = self.recording.mode is CallMode.REPLAY
        return build_variables(address, self.recording.providers, {}, without_keys=without_keys)

    async def begin(self, execution_id: str) -> None:
        """Begin an execution. One that the proxy does not know ends with a miss."""
        with suppress(GateError):
            await self._request("POST", f"executions/{execution_id}", ExecutionCalls)

    async def end(self, execution_id: str) -> ExecutionCalls:
        """End an execution, and return its calls; a proxy that does not report them is a miss."""
        try:
            calls = await self._request("DELETE", f"executions/{execution_id}", ExecutionCalls)
        except GateError as error:
            return ExecutionCalls(miss=error.message)
        total, live_calls = self.recording.calls + calls.calls, self.recording.live_calls + calls.live_calls
        self.recording = replace(self.recording, calls=total, live_calls=live_calls)
        return calls

    async def aclose(self) -> None:
        """Close the connections."""
        await self._pool.close()

    async def _request(self, method: str, path: str, kind: type[_Reply]) -> _Reply:
        """Send a request of this run. Raises GateError `model-proxy-unreachable`."""
        url, body = URL(f"{self._url}{GATE_PATH}/{path}"), BodyCopy(PROXY_REPLY_BYTES)
        try:
            async with self._pool.request(
                method, url, headers={"Host": self._host}, timeout=_TIMEOUT, allow_redirects=False
            ) as response:
                await body.add_rest(response.content)
                if response.status == 200:
                    return decode_json(body.read_decoded(()), kind)
                problem = f"refused a request of this run: HTTP {response.status}"
        except (TimeoutError, ClientError, OSError) as error:
            problem = f"cannot be reached: {str(error)[:200] or type(error).__name__}"
        except MsgspecError:
            problem = "is not the proxy of `eval-gate record` or `eval-gate replay`"
        what = f"the model proxy at {self._host[:200]} {problem}"
        raise GateError("model-proxy-unreachable", what, _HINT, exit_code=ExitCode.INCOMPLETE)
