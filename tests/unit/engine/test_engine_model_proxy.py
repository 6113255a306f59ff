"""The connection of a run to the proxy of its agent's model calls."""

from __future__ import annotations

import asyncio

import pytest

from eval_gate.engine.model_proxy import ModelProxy
from eval_gate.errors import ExitCode, GateError
from eval_gate.model.model_recording import ExecutionCalls
from tests.support.agents import Exchange, agent

RECORDING = {"mode": "replay", "file": "f.jsonl", "digest": "0123456789abcdef", "providers": ["openai"]}


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        (b"<html>", "200 OK", "is not the proxy of `eval-gate record`"),
        (b'{"mode": "other", "file": ""}', "200 OK", "is not the proxy of `eval-gate record`"),
        (RECORDING, "307 Temporary Redirect", "HTTP 307"),
    ],
)
def test_connect__other_server__ends_the_run_before_its_first_request(body, status, why) -> None:
    async def respond(exchange: Exchange) -> None:
        exchange.answer(body, status, Location="/elsewhere")

    with agent(respond) as running, pytest.raises(GateError, match=why) as caught:
        asyncio.run(ModelProxy.connect(f"http://127.0.0.1:{running.port}"))
    assert (caught.value.code, caught.value.exit_code) == ("model-proxy-unreachable", ExitCode.INCOMPLETE)
    assert len(running.requests) == 1


def test_connect__another_machine__is_refused() -> None:
    with pytest.raises(GateError, match="names another machine") as caught:
        asyncio.run(ModelProxy.connect("http://proxy.example:8799"))
    assert caught.value.exit_code is ExitCode.USAGE


def test_execution__proxy_that_goes_away__has_a_miss_whatever_the_agent_responded() -> None:
    async def respond(exchange: Exchange) -> None:
        if exchange.number < 3:
            exchange.answer({"calls": 2, "liveCalls": 1} if exchange.number else RECORDING)
        else:
            exchange.reset()

    async def execute(url: str) -> tuple[ModelProxy, list[ExecutionCalls]]:
        proxy, calls = await ModelProxy.connect(url), []
        for name in "ab":
            await proxy.begin(name)
            calls.append(await proxy.end(name))
        await proxy.aclose()
        return proxy, calls

    with agent(respond) as running:
        proxy, (first, second) = asyncio.run(execute(f"http://127.0.0.1:{running.port}"))
    assert (first.miss, proxy.recording.calls, proxy.recording.live_calls) == (None, 2, 1)
    assert "cannot be reached" in (second.miss or "")
    (setting,) = proxy.settings
    assert (setting.name, setting.value, setting.default) == ("modelCalls", "replayed #0123456789abcdef", "live")
