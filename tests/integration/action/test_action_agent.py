"""The agent as the workflow's inputs describe it: how it speaks, and how long it is waited for."""

from __future__ import annotations

import pytest

from tests.support.agents import Exchange, agent, unused_port


async def completion(exchange: Exchange) -> None:
    """As a server of OpenAI's chat completions answers; whoever speaks otherwise is refused."""
    if "messages" not in exchange.json:
        exchange.answer({"error": "messages are missing"}, status="400 Bad Request")
        return
    exchange.answer({"choices": [{"message": {"role": "assistant", "content": "ok"}}]})


def test_agent_protocol__of_another_protocol__is_how_the_agent_is_asked(job) -> None:
    with agent(completion) as running:
        as_usual = job.push(running.url)
        named = job.push(running.url, {"agent-protocol": "openai-chat"})
    assert (as_usual.code, as_usual.outputs["passed"]) == (3, "0"), as_usual.log
    assert (named.code, named.outputs["passed"]) == (0, "4"), named.log


@pytest.mark.slow
def test_wait_for__an_agent_that_never_comes_up__is_one_error_after_that_time(job) -> None:
    ended = job.push(f"http://127.0.0.1:{unused_port()}/chat", {"wait-for": "1.5"})
    assert ended.code == 3
    assert "(waited 1.5 s)" in " ".join(ended.log.split())
    assert "waiting for the agent at http://127.0.0.1" in ended.log
