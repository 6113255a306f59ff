"""A newcomer's agent: a route beside another, a key in an optional header, JSON that nothing describes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.test_integration_draft_review import on_terminal
from tests.integration.test_integration_init import config, files_in
from tests.integration.test_integration_init_agent import listed_commands, origin, target
from tests.integration.test_integration_run import gate
from tests.support.agents import Agent, Exchange, agent
from tests.support.described import KEY, describes

ORDER = ("--probe", "Where is order 4711?")


def post(field: str, responses: dict) -> dict:
    header = {"name": "x-agent-key", "in": "header", "required": False, "schema": {"type": "string"}}
    fields = {field: {"type": "string"}, "lang": {"type": "string", "default": "en"}}
    schema = {"type": "object", "properties": fields, "required": [field]}
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    return {"post": {"parameters": [header], "requestBody": body, "responses": responses}}


def describe(responses: dict) -> dict:
    return {
        "openapi": "3.1.0",
        "paths": {"/api/v1/feedback": post("comment", responses), "/api/v1/ask": post("question", responses)},
    }


def respond(exchange: Exchange) -> None:
    if exchange.header("x-agent-key") != KEY:
        exchange.answer({"detail": "no key"}, status="401 Unauthorized")
    elif "question" not in exchange.json:
        exchange.answer({"detail": "Field required"}, status="422 Unprocessable Entity")
    elif "order" not in exchange.json["question"]:
        exchange.answer({"data": {"reply": "How can I help?", "steps": []}})
    else:
        steps = [{"tool": "find_order", "args": {"id": 4711}}, {"tool": "say", "args": {}}]
        exchange.answer({"data": {"reply": "It is on its way.", "steps": steps}})


@pytest.fixture
def desk() -> Iterator[Agent]:
    with agent(describes({"/openapi.json": describe({})}, respond)) as running:
        yield running


def decided(folder: Path) -> None:
    found = target(folder)
    assert found["headers"] == {"x-agent-key": "${{ AGENT_KEY }}"}
    assert found["requestTemplate"] == {"question": "{{message}}"}
    places = {key: found[key] for key in ("responsePath", "toolCallsPath", "nameField", "argsField")}
    assert places == {
        "responsePath": "data.reply",
        "toolCallsPath": "data.steps",
        "nameField": "tool",
        "argsField": "args",
    }
    assert gate(folder, "run", AGENT_KEY=KEY).returncode == 0


def test_newcomer__two_routes_an_optional_key_and_own_json__takes_two_calls(tmp_path, desk) -> None:
    first = gate(tmp_path, "init", "--agent-endpoint", origin(desk.url), *ORDER, AGENT_KEY=KEY)
    assert first.returncode == 0, first.stderr
    (command,) = [one for one in listed_commands(first.stdout) if any("/ask" in word for word in one)]
    second = gate(tmp_path, *command, AGENT_KEY=KEY)
    assert (second.returncode, second.stderr) == (0, ""), second.stdout
    assert ('response    "It is on its way."' in second.stdout, "tool calls  find_order, say" in second.stdout) == (
        True,
        True,
    )
    decided(tmp_path)


def test_newcomer__on_a_terminal__takes_one_call(tmp_path, desk) -> None:
    on_terminal(tmp_path, f"2\n{ORDER[1]}\nn\n", "init", "--agent-endpoint", origin(desk.url), AGENT_KEY=KEY)
    decided(tmp_path)


def test_newcomer__key_is_not_set__names_the_header_of_the_description_and_writes_nothing(tmp_path, desk) -> None:
    words = ("--agent-endpoint", f"{origin(desk.url)}/api/v1/ask", *ORDER)
    done = gate(tmp_path, "init", *words)
    assert done.returncode == 2
    assert "export AGENT_KEY=... for x-agent-key" in done.stderr
    assert "Authorization" not in done.stderr
    assert files_in(tmp_path) == {}
    assert gate(tmp_path, "init", *words, AGENT_KEY=KEY).returncode == 0
    decided(tmp_path)


@pytest.mark.parametrize("below", ["", "/nothing"])
def test_newcomer__undecided_call_after_a_decided_one__changes_no_file(tmp_path, desk, below) -> None:
    words = ("--agent-endpoint", f"{origin(desk.url)}/api/v1/ask", *ORDER)
    assert gate(tmp_path, "init", *words, AGENT_KEY=KEY).returncode == 0
    before = files_in(tmp_path)
    place = origin(desk.url)
    if below:
        place = "http://127.0.0.1:1/ask"
    done = gate(tmp_path, "init", "--agent-endpoint", place, *ORDER, "--yes", AGENT_KEY=KEY)
    assert (done.returncode, files_in(tmp_path)) == (0, before)
    assert "kept        eval-gate.yaml: not everything is decided, so nothing is written" in done.stdout
    assert listed_commands(done.stdout)
    assert done.stdout.endswith("\nRun one of the commands above.\n")


def test_newcomer__greeting_that_calls_no_tool__advises_a_question_that_does(tmp_path, desk) -> None:
    words = ("--agent-endpoint", f"{origin(desk.url)}/api/v1/ask")
    done = gate(tmp_path, "init", *words, "--probe", "Hello", AGENT_KEY=KEY)
    assert done.returncode == 0, done.stderr
    assert "give --probe a question that makes your agent call one" in done.stdout
    assert "toolCallsPath" not in target(tmp_path)


def test_newcomer__described_response_with_several_texts__is_a_part_of_the_first_choice(tmp_path) -> None:
    text = {"type": "string"}
    schema = {"type": "object", "properties": {"answer": text, "session_id": text}}
    responses = {"200": {"content": {"application/json": {"schema": schema}}}}

    def answer(exchange: Exchange) -> None:
        exchange.answer({"answer": "hi", "session_id": "s-1"})

    with agent(describes({"/openapi.json": describe(responses)}, answer)) as running:
        first = gate(tmp_path, "init", "--agent-endpoint", origin(running.url), *ORDER)
        wanted = {f"{origin(running.url)}/api/v1/ask", "responsePath=answer"}
        (command,) = [one for one in listed_commands(first.stdout) if wanted <= set(one)]
        assert gate(tmp_path, *command).returncode == 0
        assert target(tmp_path)["responsePath"] == "answer"
        assert gate(tmp_path, "run").returncode == 0
    assert "agentEndpoint" not in config(tmp_path)
