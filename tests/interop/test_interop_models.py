"""Our chats against another project's stand-in for model providers, which knows nothing of us.

It is an npm package: `npm ci` in `tests/interop/models` installs it.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from eval_gate.evaluators.judge.prompt import VERDICT_SCHEMA
from eval_gate.model.conversation import Message, ToolSpec
from eval_gate.model.usage import Usage
from eval_gate.targets.base import TargetError
from eval_gate.targets.model.build import build_chat
from eval_gate.targets.model.settings import ModelSettings
from tests.support.agents import unused_port
from tests.support.program import gate

PEER = Path(__file__).parent / "models"
SERVER = PEER / "node_modules" / ".bin" / "llmock"

pytestmark = pytest.mark.skipif(
    not (shutil.which("node") and SERVER.exists()) and os.environ.get("EVAL_GATE_REQUIRE_INTEROP") != "1",
    reason="the stand-in for model providers is not installed: run `npm ci` in tests/interop/models",
)

KEY = "key-of-the-test"
FIXTURES = {
    "fixtures": [
        {
            "match": {"userMessage": "candidate_answer", "responseFormat": "json_schema"},
            "response": {"content": '{"score": 1, "hits": ["held to it"], "misses": [], "reasoning": "ok"}'},
        },
        {
            "match": {"userMessage": "candidate_answer"},
            "response": {"content": '{"score": 1, "hits": ["journal"], "misses": [], "reasoning": "ok"}'},
        },
        {"match": {"userMessage": "limit"}, "response": {"error": {"message": "Slow down."}, "status": 429}},
        {
            "match": {"userMessage": "weather", "hasToolResult": True},
            "response": {"content": "Both are sunny.", "usage": {"prompt_tokens": 40, "completion_tokens": 5}},
        },
        {
            "match": {"userMessage": "weather"},
            "response": {
                "toolCalls": [
                    {"name": "get_weather", "arguments": '{"city": "Rome"}'},
                    {"name": "get_weather", "arguments": '{"city": "Oslo"}'},
                ]
            },
        },
    ]
}
TARGETS = {
    "openai": ("gpt-4o", "/v1"),
    "openai-compatible": ("qwen3", "/v1"),
    "azure": ("gpt-4o", ""),
    "anthropic": ("claude-sonnet-5", ""),
    "gemini": ("gemini-2.5-flash", ""),
}
WEATHER = ToolSpec(
    name="get_weather", description="Weather", parameters={"type": "object", "properties": {"city": {"type": "string"}}}
)
QUESTION = Message(role="user", content="How is the weather in Rome and Oslo?")


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[str]:
    fixtures = tmp_path_factory.mktemp("models") / "fixtures.json"
    fixtures.write_text(json.dumps(FIXTURES))
    port = unused_port()
    url = f"http://127.0.0.1:{port}"
    running = subprocess.Popen(
        [SERVER, "--port", str(port), "--fixtures", fixtures, "--strict", "--log-level", "silent"],
        env={**os.environ, "AIMOCK_API_KEYS": KEY},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(100):
            try:
                urllib.request.urlopen(f"{url}/health", timeout=1).close()
                break
            except urllib.error.HTTPError as error:
                error.close()
                break
            except OSError:
                assert running.poll() is None, "the stand-in ended at once"
                time.sleep(0.1)
        yield url
    finally:
        running.terminate()
        running.wait(10)


def converse(provider: str, url: str, *, question: Message = QUESTION, key: str = KEY, turns: int = 2):
    """All turns: calls are answered with `sunny`."""
    model, path = TARGETS[provider]
    place = "endpoint" if provider == "azure" else "baseUrl"
    raw = {"name": "t", "provider": provider, "model": model, "apiKey": key, place: url + path}

    async def main():
        chat = build_chat(ModelSettings.model_validate(raw), {}, timeout_s=30)
        messages, found = [Message(role="system", content="Be brief."), question], []
        try:
            for _ in range(turns):
                turn = await chat.ask(messages, [WEATHER])
                found.append(turn)
                messages.append(Message(role="assistant", content=turn.text, tool_calls=turn.tool_calls))
                messages += [Message(role="tool", content="sunny", tool_call_id=call.id) for call in turn.tool_calls]
            return found
        finally:
            await chat.aclose()

    return asyncio.run(main())


@pytest.mark.parametrize("provider", TARGETS)
def test_conversation__with_parallel_calls__is_understood_both_ways(server, provider) -> None:
    first, second = converse(provider, server)
    assert [(call.name, call.params) for call in first.tool_calls] == [
        ("get_weather", {"city": "Rome"}),
        ("get_weather", {"city": "Oslo"}),
    ]
    assert len({call.id for call in first.tool_calls}) == 2
    assert (second.text, second.finish) == ("Both are sunny.", "stop")
    assert second.usage == Usage(input_tokens=40, output_tokens=5)


@pytest.mark.parametrize("provider", TARGETS)
def test_limit__is_told_with_its_status(server, provider) -> None:
    with pytest.raises(TargetError) as caught:
        converse(provider, server, question=Message(role="user", content="limit"))
    assert (caught.value.status, caught.value.retryable) == (429, True)
    assert "Slow down." in caught.value.message


@pytest.mark.parametrize("provider", TARGETS)
def test_key__that_is_wrong__is_refused_for_good(server, provider) -> None:
    with pytest.raises(TargetError) as caught:
        converse(provider, server, key="another-key")
    assert (caught.value.status, caught.value.retryable) == (401, False)
    assert "another-key" not in caught.value.message


SCHEMAS = {
    "openai": ("response_format", "json_schema", "schema"),
    "openai-compatible": ("response_format", "json_schema", "schema"),
    "azure": ("response_format", "json_schema", "schema"),
}


@pytest.mark.parametrize("provider", SCHEMAS)
def test_judge__asked_by_the_whole_program__has_sent_the_form_of_a_verdict(server, tmp_path, provider) -> None:
    """What the stand-in's journal says of it, and its own match by `responseFormat`."""
    model, path = TARGETS[provider]
    place = "endpoint" if provider == "azure" else "baseUrl"
    judge = {"name": "judge", "provider": provider, "model": model, "apiKey": "${{ KEY }}", place: server + path}
    desk = {"name": "desk", "provider": "mock", "response": "It is so.", "judgeTarget": "judge"}
    (tmp_path / "targets.yaml").write_text(json.dumps({"targets": [desk, judge]}))
    (tmp_path / "suite.yaml").write_text(
        "evalcases: [{id: one, expected_outcome: Says so., input_messages: [{role: user, content: Is it so?}]}]"
    )
    before = len(_journal(server))
    done = gate(tmp_path, "run", "suite.yaml", "--target", "desk", KEY=KEY)
    assert done.returncode == 0, done.stdout + done.stderr
    [entry] = _journal(server)[before:]
    found = entry["body"]
    for step in SCHEMAS[provider]:
        found = found[step]
    assert found == VERDICT_SCHEMA
    [kept] = (tmp_path / "evals" / "results").glob("*/run.json")
    [result] = json.loads(kept.read_text())["suites"][0]["cases"][0]["evaluatorResults"]
    assert result["hits"] == ["held to it"]


def _journal(server: str) -> list[dict]:
    request = urllib.request.Request(f"{server}/__aimock/journal", headers={"Authorization": f"Bearer {KEY}"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)
