"""A model plays the user of a conversation with an agent that wants to end it: by the program and real requests."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.integration.test_integration_models import completion
from tests.integration.test_integration_run import gate, record
from tests.support.agents import Agent, Exchange, agent

KEY = {"OPENAI_API_KEY": "sk-test-abcdef"}
END = json.dumps({"action": "end", "message": "", "outcome": "reached"})
CASE = {
    "id": "desk-secret-id",
    "description": "secret-description",
    "user": {"goal": "a refund", "facts": ["order 4711"], "maxMessages": 4},
    "expect": {"toolsCalled": ["find_order", "find_order"], "responseNotContains": ["secret-expectation"]},
}


def desk(response: Sequence[str] = (END,)):
    """The agent at `/chat`, which writes the first of `response`; and the model of its user, at any other path."""

    async def handler(exchange: Exchange) -> None:
        if exchange.head.startswith("POST /chat "):
            exchange.answer({"response": response[0], "toolCalls": [{"name": "find_order", "success": True}]})
            return
        prompt = str(exchange.json["messages"][-1]["content"])
        said = prompt.count("\nassistant:\n")
        message = {"action": "message", "message": f"order 4711, message {said + 1}", "outcome": "open"}
        exchange.answer(completion(END if said == 2 else json.dumps(message)))

    return handler


def write(folder: Path, *cases: dict) -> None:
    (folder / "evals").mkdir(exist_ok=True)
    (folder / "evals" / "desk.golden.json").write_text(json.dumps(list(cases or [CASE])))


def run(folder: Path, running: Agent, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    base = {"OPENAI_BASE_URL": f"{running.url.removesuffix('/chat')}/v1"}
    return gate(folder, "run", "--agent-endpoint", running.url, *arguments, **(KEY | base | variables))


def asked_of_model(running: Agent) -> list[Exchange]:
    return [one for one in running.requests if not one.head.startswith("POST /chat ")]


def test_user__of_an_agent_that_ends_each_response__ends_when_it_wants_and_sees_texts_only(tmp_path) -> None:
    write(tmp_path)
    with agent(desk()) as running:
        done = run(tmp_path, running, "--simulated-user", "openai:gpt-4o-mini")
        requests = asked_of_model(running)
        talks = [one.json for one in running.requests if one.head.startswith("POST /chat ")]
    assert done.returncode == 0, done.stdout + done.stderr
    assert [talk["message"] for talk in talks] == ["order 4711, message 1", "order 4711, message 2"]
    assert len({talk["session"] for talk in talks}) == 1
    (case,) = record(tmp_path)["suites"][0]["cases"]
    assert (case["status"], case["details"]["userEnd"], len(case["details"]["turns"])) == ("passed", "reached", 2)
    assert case["judgeUsage"] == {"inputTokens": 300, "outputTokens": 60}
    assert case["judgeCostUsd"] > 0
    assert f"LLM judges and simulated users ${case['judgeCostUsd']:.2f}"[:34] in " ".join(done.stdout.split())
    sent = "".join(one.body.decode() for one in requests)
    assert len(requests) == 3
    assert "secret" not in sent
    assert "find_order" not in sent
    schema = requests[0].json["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["action"]["enum"] == ["message", "end"]


@pytest.mark.slow
def test_user__another_model_than_in_the_baseline__is_a_setup_change(tmp_path) -> None:
    write(tmp_path)
    with agent(desk(["which?"])) as running:
        first = run(tmp_path, running, EVAL_GATE_SIMULATED_USER="openai:gpt-4o-mini")
        assert first.returncode == 0, first.stdout + first.stderr
        compared = ("--baseline", "evals/results", "--fail-on", "regressions,changed")
        done = run(tmp_path, running, "--simulated-user", "openai:gpt-4o", *compared)
    assert done.returncode == 1, done.stdout
    text = " ".join(done.stdout.split())
    assert "simulated user of 1 case: `openai:gpt-4o-mini" in text


@pytest.mark.slow
def test_user__of_nobody__is_an_error_before_the_run_that_names_all_cases(tmp_path) -> None:
    write(tmp_path, CASE, CASE | {"id": "desk-2"}, {"id": "plain", "input": {"message": "a"}, "expect": CASE["expect"]})
    with agent(desk()) as running:
        done = run(tmp_path, running, "--judge", "openai:gpt-4o-mini")
        assert running.requests == []
    assert done.returncode == 2
    assert "missing-simulated-user" in done.stderr
    assert "desk-secret-id: no simulated user" in done.stderr
    assert "desk-2: no simulated user" in done.stderr
    assert "plain" not in done.stderr
    checked = gate(tmp_path, "validate", "--agent-endpoint", "http://localhost:9/chat")
    assert (checked.returncode, "desk-2: no simulated user" in checked.stdout + checked.stderr) == (2, True)


@pytest.mark.slow
def test_recording__same_conversation__is_replayed_and_another_is_an_evaluation_error(tmp_path) -> None:
    write(tmp_path)
    user = ("--simulated-user", "openai:gpt-4o-mini")
    response = ["which?"]
    with agent(desk(response)) as running:
        assert run(tmp_path, running, *user, "--recording", "record").returncode == 0
        assert len(asked_of_model(running)) == 3
        assert run(tmp_path, running, *user, "--recording", "replay").returncode == 0
        assert len(asked_of_model(running)) == 3
        response[0] = "which one?"
        assert run(tmp_path, running, *user, "--recording", "auto").returncode == 0
        assert len(asked_of_model(running)) == 5  # the first message has the same prompt
        response[0] = "which order?"
        done = run(tmp_path, running, *user, "--recording", "replay")
        assert len(asked_of_model(running)) == 5
    assert done.returncode == 3, done.stdout
    (case,) = record(tmp_path)["suites"][0]["cases"]
    assert (case["status"], case["errorKind"]) == ("error", "evaluation_error")
    assert case["error"].startswith('turn 2: the simulated user "openai:gpt-4o-mini" gave no response: no response is')
    assert "recording: replay" in case["error"]


@pytest.mark.slow
def test_budget__used_by_the_user__ends_the_run(tmp_path) -> None:
    write(tmp_path, CASE, CASE | {"id": "desk-2"}, CASE | {"id": "desk-3"})
    with agent(desk(["which?"])) as running:
        done = run(tmp_path, running, "--simulated-user", "openai:gpt-4o", "--max-cost-usd", "0.000001")
    assert done.returncode == 3, done.stdout
    assert record(tmp_path)["summary"]["notRun"] >= 2
