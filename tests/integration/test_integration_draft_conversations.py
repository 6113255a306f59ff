"""Conversations through `eval-gate draft`: from questions, a log and traces to a suite that the agent passes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.test_integration_draft_sources import TRACES, read_drafts, write_log
from tests.support.model_server import model_server, openai_answer
from tests.support.program import gate

DESK = '''\
"""A desk that remembers the order of each session."""

ORDERS = {}


def respond(request):
    if "4711" in request.message:
        ORDERS[request.session] = "A-4711"
        return answer("Order A-4711 was 49.90 euros.", "find_order")
    order = ORDERS.get(request.session)
    return answer("You get PRICE euros back.", "refund") if order else answer("Which order is it?")


def answer(text, *tools):
    return {"response": text, "toolCalls": [{"name": name, "success": True} for name in tools]}
'''
QUESTIONS = "I want my money back for A-4711.\nHow much do I get?\n\nHow are you?\n"
AGENT = ("--agent-function", "desk:respond")
FILE = "evals/first.golden.json"


def write_desk(folder: Path, price: str) -> None:
    """Write the agent. Python compiles it anew within the same second only if its length changes."""
    (folder / "desk.py").write_text(DESK.replace("PRICE", price))


def read_turns(folder: Path) -> list[dict]:
    return json.loads((folder / FILE).read_text())[0]["turns"]


def test_draft__questions_as_turns__are_a_conversation_that_the_agent_passes_and_an_update_renews(tmp_path) -> None:
    write_desk(tmp_path, "49.90")
    (tmp_path / "questions.txt").write_text(QUESTIONS)
    done = gate(tmp_path, "draft", "questions.txt", "--turns", "-o", FILE, *AGENT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == [
        f"{FILE}: 2 drafts from 6 executions",
        "  gs-find-order-001  I want my money back for A-4711. (2 turns)",
    ]
    assert "second turn" not in done.stdout
    first, second = read_turns(tmp_path)
    assert (first["expect"]["toolsCalled"], second["expect"]["toolsCalled"]) == (["find_order"], ["refund"])
    assert second["expect"]["responseContainsNumber"] == ["49.90"]
    review = gate(tmp_path, "draft", "--review", FILE).stdout
    assert "  turn 2, user: How much do I get?\n  response, 3 of 3 executions:\n    calls refund {}\n" in review
    assert gate(tmp_path, "draft", FILE, "--accept", "all").returncode == 0
    assert gate(tmp_path, "run", "--strict", *AGENT).returncode == 0
    write_desk(tmp_path, "139.90")
    failed = gate(tmp_path, "run", *AGENT)
    assert (failed.returncode, "turn 2 of 2" in failed.stdout) == (1, True)
    renewed = gate(tmp_path, "draft", FILE, "--update", "gs-find-order-001", "--yes", *AGENT)
    assert renewed.returncode == 0, renewed.stderr
    again, changed = read_turns(tmp_path)
    assert again == first
    assert changed["expect"] == second["expect"] | {"responseContainsNumber": ["139.90"]}
    assert gate(tmp_path, "run", *AGENT).returncode == 0


def test_draft__log_with_two_interleaved_sessions__is_two_conversations(tmp_path) -> None:
    write_log(
        tmp_path,
        {"message": "Where is A-4711?", "response": "A-4711 is in Oslo.", "chat": 1},
        {"message": "Do you have lamps?", "response": "We have 12 lamps.", "chat": 2},
        {"message": "When will it come?", "response": "On 3 May.", "chat": 1},
        {"message": "How much is one?", "response": "19.90 euros.", "chat": 2},
    )
    done = gate(tmp_path, "draft", "--from-log", "agent.log", "--field", "session=chat", "-o", "a.golden.json")
    assert done.returncode == 0, done.stderr
    drafts = read_drafts(tmp_path / "a.golden.json")
    assert [[turn["message"] for turn in case["turns"]] for case in drafts] == [
        ["Where is A-4711?", "When will it come?"],
        ["Do you have lamps?", "How much is one?"],
    ]


def test_draft__traces_of_one_conversation__are_one_case(tmp_path) -> None:
    source = str(TRACES / "pydantic-ai-2.68.json")
    done = gate(tmp_path, "draft", "--from-traces", source, "-o", "a.golden.json")
    assert done.returncode == 0, done.stderr
    [case] = read_drafts(tmp_path / "a.golden.json")
    assert len(case["turns"]) == 2


@pytest.mark.parametrize(
    ("options", "other"),
    [
        (("questions.txt", "--format", "agentv", "-o", "a.eval.yaml"), "--format agentv"),
        (("--from-log", "agent.log", "-o", "a.json"), "--from-log"),
    ],
)
def test_draft__turns_where_there_are_none__exits_2(tmp_path, options, other) -> None:
    (tmp_path / "questions.txt").write_text(QUESTIONS)
    done = gate(tmp_path, "draft", "--turns", *options)
    assert done.returncode == 2
    assert f"error[conflicting-options]: --turns cannot be combined with {other}" in done.stderr


def test_update__conversation_of_a_simulated_user__asks_the_model_that_plays_it(tmp_path) -> None:
    write_desk(tmp_path, "49.90")
    user = {"goal": "a refund", "firstMessage": "A-4711", "maxMessages": 3}
    case = {"id": "gs-user", "user": user, "expect": {"toolsCalled": ["refund"]}}
    (tmp_path / "evals").mkdir()
    (tmp_path / FILE).write_text(json.dumps([case]))
    end = openai_answer(json.dumps({"action": "end", "message": "", "outcome": "reached"}))
    options = ("draft", *AGENT, "--simulated-user", "openai:gpt-5-mini")
    with model_server(end) as server:
        keys = {"OPENAI_API_KEY": "sk-test-0123456789abcdef", "OPENAI_BASE_URL": f"{server.url}/v1"}
        done = gate(tmp_path, *options, FILE, "--update", "gs-user", "--yes", **keys)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / FILE).read_text())[0]["expect"]["toolsCalled"] == ["find_order"]
    refused = gate(tmp_path, *options, "--review", FILE)
    assert (refused.returncode, "--simulated-user cannot be combined with --review" in refused.stderr) == (2, True)
