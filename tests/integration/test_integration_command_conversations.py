"""Conversations with commands and mocks through the command line: who remembers, what breaks, who is refused."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
import yaml

from tests.integration.test_integration_run import record
from tests.support.program import gate

DESK = """\
import json, pathlib, sys


def answer(messages):
    facts = [text for text in messages if "4711" in text]
    return f"{len(messages)}: {facts[0] if facts else 'which order?'}"


def store(session, text):
    file = pathlib.Path(f"{session}.json")
    messages = [*(json.loads(file.read_text()) if file.exists() else []), text]
    file.write_text(json.dumps(messages))
    return messages


how, *rest = sys.argv[1:] or ["lines"]
if how == "--session":
    print(answer(store(*rest)))
elif how == "--resume":
    print(answer(store(rest[0], pathlib.Path(rest[1]).read_text())))
elif how == "--history":
    print(answer([one["content"] for one in json.load(open(rest[0])) if one["role"] == "user"]))
elif how == "lines":
    said = []
    for line in sys.stdin:
        said.append(json.loads(line)["message"])
        print(json.dumps({"text": answer(said)}), flush=True)
elif how == "dies":
    for number, line in enumerate(sys.stdin):
        if number:
            sys.exit("the desk lost its store")
        print(json.dumps({"text": "1: fine"}), flush=True)
elif how == "hangs once":
    for number, line in enumerate(sys.stdin):
        mark = pathlib.Path("hung")
        if number and not mark.exists():
            mark.touch()
            import time
            time.sleep(60)
        print(json.dumps({"text": f"{number + 1}: order 4711"}), flush=True)
"""
PAGE = (Path(__file__).parents[2] / "docs" / "targets.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("### A command with several turns\n")[2].partition("\n## ")[0]
SHOWN = {one["name"]: one for one in yaml.safe_load(re.findall(r"```yaml\n(.*?)```", SECTION, re.DOTALL)[0])}
"""The targets of the page, whose programs are called `desk.py`."""
RUN = f"{sys.executable} desk.py"
TARGETS = {
    **SHOWN,
    "resume": {
        "command": f"{RUN} --session {{SESSION}} {{PROMPT}}",
        "resume_command": f"{RUN} --resume {{SESSION}} {{PROMPT_FILE}}",
    },
    "dies": {"command": f"{RUN} dies", "conversation": "lines"},
    "hangs": {"command": f"{RUN} 'hangs once'", "conversation": "lines", "timeout_seconds": 2, "max_retries": 1},
    "batch": {"command": f"{RUN} lines {{PROMPT}}", "provider_batching": True},
    "blind": {"command": f"{RUN} lines {{EVAL_ID}}"},
    "editor": {"provider": "vscode"},
    "canned": {"provider": "mock", "responses": {"gs-a": ["1: fine", "2: order 4711"], "gs-b": "order 4711"}},
}
TURNS = [
    {"message": "My order is 4711.", "expect": {"responseContains": ["1: "]}},
    {"message": "It is 'broken'.", "expect": {"responseContains": ["2: ", "4711"]}},
    {"message": "So how much?", "expect": {"responseContains": ["3: ", "4711"]}},
]


def run(folder: Path, name: str, *options: str, turns=TURNS, program: str = DESK):
    (folder / "evals").mkdir()
    (folder / "evals" / "desk.py").write_text(program)
    (folder / "evals" / "desk.golden.json").write_text(
        json.dumps([{"id": case, "turns": turns} for case in ("gs-a", "gs-b")])
    )
    described = {"provider": "cli", **TARGETS[name], "name": name}
    (folder / "targets.yaml").write_text(json.dumps({"targets": [described]}))
    return gate(folder, "run", "--target", name, *options)


def cases(folder: Path) -> list[dict]:
    return record(folder)["suites"][0]["cases"]


@pytest.mark.rows_each("name")
@pytest.mark.parametrize("name", [*SHOWN, "resume"])
def test_conversation__each_way_of_a_command__remembers_the_first_turn(tmp_path, name) -> None:
    done = run(tmp_path, name, "--concurrency", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    for case in cases(tmp_path):
        assert [turn["response"] for turn in case["details"]["turns"]] == [
            f"{number}: My order is 4711." for number in (1, 2, 3)
        ]
    if name in {"desk", "resume"}:
        assert len(list((tmp_path / "evals").glob("*-*.json"))) == 2  # a session for each conversation


@pytest.mark.parametrize("number", range(2))
def test_page__programs_of_it__hold_a_conversation(tmp_path, number) -> None:
    programs = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)
    assert len(programs) == 2
    turns = [{"message": "one"}, {"message": "two", "expect": {"responseContains": ["You said 2 things."]}}]
    done = run(tmp_path, ("replay", "live")[number], turns=turns, program=programs[number])
    assert done.returncode == 0, done.stdout + done.stderr


def test_conversation__program_dies_in_the_second_turn__is_an_agent_error_that_names_it(tmp_path) -> None:
    done = run(tmp_path, "dies")
    assert done.returncode != 0
    case = cases(tmp_path)[0]
    assert (case["status"], case["errorKind"], case["failedTurn"]) == ("error", "agent_error", 2)
    assert case["error"] == (
        "turn 2: the command exited with code 1 before it printed a response: the desk lost its store"
    )
    assert case["details"]["turns"][0]["response"] == "1: fine"


def test_conversation__turn_times_out__begins_again_in_a_new_process(tmp_path) -> None:
    done = run(tmp_path, "hangs", "--case", "gs-a", turns=[*TURNS[:2]])
    assert done.returncode == 0, done.stdout + done.stderr
    case = cases(tmp_path)[0]
    assert (case["status"], case["attempts"]) == ("passed", 4)
    assert "the conversation was started again 1 time: turn 2: timed out" in done.stdout + done.stderr


def test_conversation__mock_with_too_few_responses__is_an_evaluation_error_of_that_turn(tmp_path) -> None:
    run(tmp_path, "canned")
    first, second = cases(tmp_path)
    assert (first["errorKind"], first["failedTurn"]) == ("evaluation_error", 3)
    assert "the mock has 2 responses for this case" in first["error"]
    assert (second["status"], second["failedTurn"]) == ("failed", 1)


@pytest.mark.rows_each("name")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("batch", "it runs many cases in one call (providerBatching)"),
        (
            "blind",
            "its command does not get the messages: it has no {PROMPT}, {PROMPT_FILE} or {CONVERSATION_FILE}. For",
        ),
        ("editor", "it begins a new chat for every message, and a chat cannot be continued (VS Code)"),
    ],
)
def test_conversation__target_that_cannot__is_refused_before_the_run(tmp_path, name, why) -> None:
    done = run(tmp_path, name)
    assert done.returncode == 2, done.stdout
    assert f" have several turns, and the target {name} cannot: {why}" in " ".join((done.stdout + done.stderr).split())
    assert not (tmp_path / "evals" / "results").exists()
