"""Conversations of the program as a process: killed and resumed, interrupted, over the budget."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

from tests.integration.test_integration_run import record, started, wait_until
from tests.support.model_server import model_server, openai_answer
from tests.support.program import gate

CASES = 9
AGENT = """\
import json, pathlib, time


def answer(request):
    with open("turns.jsonl", "a") as file:
        file.write(json.dumps([request.case_id, request.session, request.turn]) + "\\n")
    while request.case_id >= "gs-3" and request.turn == 2 and not pathlib.Path("go").exists():
        time.sleep(0.01)
    return {"response": f"ok {len(request.messages)}", "toolCalls": [], "costUsd": 0.01}
"""
"""An agent that does not respond to the second turn of later cases before there is a file `go`."""
OPTIONS = ("--agent-function", "desk:answer", "--concurrency", "3")
RUN_USER = ("run", *OPTIONS, "--simulated-user", "openai:gpt-5-mini")


def write_project(folder: Path) -> None:
    (folder / "evals").mkdir()
    (folder / "desk.py").write_text(AGENT)
    turns = [{"message": f"message {turn}", "expect": {"responseContains": ["ok"]}} for turn in (1, 2, 3)]
    cases = [{"id": f"gs-{number}", "turns": turns} for number in range(CASES)]
    (folder / "evals" / "desk.golden.json").write_text(json.dumps(cases))


def list_turns(folder: Path) -> list[tuple[str, str, int]]:
    file = folder / "turns.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    return [tuple(json.loads(line)) for line in lines]


def test_run__killed_in_the_second_turn_and_resumed__begins_it_again_and_loses_nothing_finished(tmp_path) -> None:
    write_project(tmp_path)
    process = started(tmp_path, *OPTIONS)
    wait_until(lambda: sum(case >= "gs-3" and turn == 2 for case, _, turn in list_turns(tmp_path)) == 3)
    process.kill()
    process.communicate()
    killed, sent_before = record(tmp_path), len(list_turns(tmp_path))
    (tmp_path / "go").touch()
    done = gate(tmp_path, "run", *OPTIONS, "--resume", killed["runId"])
    assert done.returncode == 0, done.stderr
    assert f"resuming, 3 of {CASES} done" in done.stderr
    sessions = defaultdict(list)
    for case, session, turn in list_turns(tmp_path):
        sessions[case, session].append(turn)
    assert all(turns in ([1, 2], [1, 2, 3]) for turns in sessions.values())
    assert {case for case, _, _ in list_turns(tmp_path)[sent_before:]} == {f"gs-{number}" for number in range(3, CASES)}
    whole = [case for (case, _), turns in sessions.items() if len(turns) == 3]
    assert sorted(whole) == [f"gs-{number}" for number in range(CASES)]
    resumed = record(tmp_path)
    assert (resumed["complete"], resumed["summary"]["passed"]) == (True, CASES)
    assert [len(case["details"]["turns"]) for case in resumed["suites"][0]["cases"]] == [3] * CASES


def test_run__budget_used_within_a_conversation__is_inconclusive_and_names_case_turn_and_cost(tmp_path) -> None:
    write_project(tmp_path)
    (tmp_path / "go").touch()
    options = ("--agent-function", "desk:answer", "--max-cost-usd", "0.045")
    done = gate(tmp_path, "run", *options)
    assert done.returncode == 3, done.stdout
    assert (
        "case gs-1 was interrupted before turn 3, because the budget of $0.045 is used up: its turns cost $0.0200"
        in (done.stdout + done.stderr)
    )
    assert len(list_turns(tmp_path)) == 5
    cases = record(tmp_path)["suites"][0]["cases"]
    assert [case["status"] for case in cases] == ["passed", *["not_run"] * (CASES - 1)]
    done = gate(tmp_path, "run", *OPTIONS, "--resume", record(tmp_path)["runId"])
    assert (done.returncode, record(tmp_path)["summary"]["passed"]) == (0, CASES)


def test_run__one_message__has_the_case_fingerprints_that_it_had_before_there_were_conversations(tmp_path) -> None:
    write_project(tmp_path)
    case = {
        "id": "gs-one-001",
        "input": {"message": "hi"},
        "expect": {"responseContains": ["hi"], "toolsCalled": ["x"]},
    }
    (tmp_path / "evals" / "desk.golden.json").write_text(json.dumps([case | {"description": "one"}]))
    gate(tmp_path, "run", *OPTIONS)
    (case,) = record(tmp_path)["suites"][0]["cases"]
    assert case["fingerprint"] == "d6dfd48f8e65f5b6c3db905d48374583b561141112ab38cd18012f4759582bab"
    assert (case["fingerprints"]["prompt"], case["fingerprints"]["expectation"]) == (
        "877b7cb0e515814d",
        "8288362b614a2894",
    )
    assert (case["details"]["turns"], case["failedTurn"]) == ([], None)


def write_user(folder: Path, **user) -> None:
    write_project(folder)
    (folder / "go").touch()
    asked = {"goal": "a refund for a broken lamp", "facts": ["order 4711"], "firstMessage": "my lamp broke"} | user
    case = {"id": "gs-user", "user": asked, "expect": {"responseContains": ["ok 3"]}}
    (folder / "evals" / "desk.golden.json").write_text(json.dumps([case]))


def move(**fields: str) -> dict:
    return openai_answer(json.dumps({"action": "message", "message": "", "outcome": "open"} | fields))


def test_run__simulated_user__writes_the_messages_and_its_claim_passes_nothing(tmp_path) -> None:
    write_user(tmp_path)
    with model_server(move(message="order 4711"), move(action="end", outcome="given_up")) as server:
        done = gate(tmp_path, *RUN_USER, OPENAI_API_KEY="sk-test-0123456789abcdef", OPENAI_BASE_URL=f"{server.url}/v1")
    assert done.returncode == 0, done.stdout + done.stderr
    (case,) = record(tmp_path)["suites"][0]["cases"]
    assert [(turn["message"], turn["response"]) for turn in case["details"]["turns"]] == [
        ("my lamp broke", "ok 1"),
        ("order 4711", "ok 3"),
    ]
    assert (case["details"]["userEnd"], case["costUsd"], case["judgeUsage"]["inputTokens"] > 0) == (
        "given_up",
        0.02,
        True,
    )


def test_run__simulated_user_without_a_valid_message__is_an_evaluation_error_that_keeps_its_turns(tmp_path) -> None:
    write_user(tmp_path)
    with model_server(openai_answer("I would rather not.")) as server:
        done = gate(tmp_path, *RUN_USER, OPENAI_API_KEY="sk-test-0123456789abcdef", OPENAI_BASE_URL=f"{server.url}/v1")
    assert done.returncode == 3, done.stdout + done.stderr
    (case,) = record(tmp_path)["suites"][0]["cases"]
    assert (case["status"], case["errorKind"], case["failedTurn"]) == ("error", "evaluation_error", 2)
    assert case["error"].startswith("turn 2: the simulated user ")
    assert case["errorCause"] == "user_failed"
    said = " ".join(done.stdout.split())
    assert "EVALUATION ERRORS (1): the model that plays the simulated user gave no message" in said, said
    assert 'If it ends the same way, check the model "openai:gpt-5-mini" (http' in said, said
    assert "check the LLM judge" not in said, said
    assert [turn["status"] for turn in case["details"]["turns"]] == [None, "error"]
