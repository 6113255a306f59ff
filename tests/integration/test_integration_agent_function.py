"""A Python function on the command line: from its first draft to a red run that names the change, and every mistake."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.integration.test_integration_own_json import draft_and_accept
from tests.integration.test_integration_run import record, write_suite
from tests.support.agents import agent
from tests.support.program import gate

AGENT = """\
import os, sys
print("imported")


def answer(request):
    print("called")
    print("called", file=sys.__stdout__)
    os.system("echo started a program")
    city = "Lisbon" if "Lisbon" in request.message else "Rome"
    call = {"name": "get_weather", "params": {"city": city}, "success": True}
    return {"response": f"It is sunny in {city}.", "toolCalls": [call]}
"""
FUNCTION = ("--agent-function", "my_agent:answer")


def write_agent(folder: Path, source: str = AGENT, name: str = "my_agent.py") -> None:
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(source)


def run_source(folder: Path, source: str, *options: str):
    """Run one case against the function `answer` of this source."""
    write_agent(folder, source)
    write_suite(folder, 1)
    return gate(folder, "run", *FUNCTION, *options)


def test_function__is_drafted_from_and_its_planted_change_is_named(tmp_path) -> None:
    write_agent(tmp_path)
    draft_and_accept(tmp_path, *FUNCTION)
    green = gate(tmp_path, "run", *FUNCTION)
    assert green.returncode == 0, green.stdout + green.stderr
    write_agent(tmp_path, AGENT.replace('"city": city', '"city": "Rome"'))
    red = gate(tmp_path, "run", *FUNCTION, "--baseline", "latest")
    assert red.returncode == 1, red.stdout
    assert "REGRESSIONS (1): gs-get-weather-001" in red.stdout
    assert "set-up" not in red.stdout + red.stderr
    assert "tightened" not in red.stdout


def test_function__text_where_no_tool_is_called__is_a_response_without_calls(tmp_path) -> None:
    write_agent(
        tmp_path,
        f"{AGENT}    \n\nwith_call = answer\n\n\ndef answer(request):\n"
        "    return with_call(request) if 'sunny' in request.message else 'Lisbon.'\n",
    )
    (tmp_path / "questions.txt").write_text("Is it sunny in Lisbon?\nWhat is the capital of Portugal?\n")
    drafted = gate(tmp_path, "draft", "questions.txt", "-o", "evals/first.golden.json", *FUNCTION)
    assert "2 drafts from 6 executions" in drafted.stdout, drafted.stdout + drafted.stderr
    assert gate(tmp_path, "draft", "evals/first.golden.json", "--accept", "all").returncode == 0
    done = gate(tmp_path, "run", *FUNCTION)
    assert done.returncode == 0, done.stdout
    expected = [
        case["expect"]["toolsCalled"] for case in json.loads((tmp_path / "evals/first.golden.json").read_text())
    ]
    assert sorted(expected) == [[], ["get_weather"]]


def test_function__what_it_prints__is_no_part_of_the_result(tmp_path) -> None:
    write_agent(tmp_path)
    write_suite(tmp_path, 1, responseContains=["Rome"])
    done = gate(tmp_path, "run", *FUNCTION, "--json")
    assert json.loads(done.stdout)["target"]["identity"] == "python:my_agent.answer"
    assert {"imported", "called", "started a program"} <= {*done.stderr.splitlines()}


@pytest.mark.parametrize(
    "line",
    ["agentFunction: my_agent:answer", "targets: [{name: a, provider: python, function: 'my_agent:answer'}]"],
)
def test_function__of_a_configuration__is_run(tmp_path, line) -> None:
    write_agent(tmp_path)
    write_suite(tmp_path, 2, responseContains=["Rome"])
    (tmp_path / "eval-gate.yaml").write_text(line + "\n")
    done = gate(tmp_path, "run", "--concurrency", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert gate(tmp_path, "validate").returncode == 0


def test_function__of_a_configuration__gives_way_to_another_target_of_the_command_line(tmp_path) -> None:
    write_suite(tmp_path, 1)
    (tmp_path / "eval-gate.yaml").write_text("agentFunction: nowhere:answer\n")
    with agent() as running:
        assert gate(tmp_path, "run", "--agent-endpoint", running.url).returncode == 0


def test_function__in_a_package_with_json_of_its_own__is_read_as_described(tmp_path) -> None:
    write_agent(tmp_path, "async def answer(request):\n    return {'data': {'reply': 'ok'}}\n", "bot/main.py")
    write_suite(tmp_path, 1)
    described = "{name: a, provider: python, function: 'bot.main:answer', responsePath: data.reply}"
    (tmp_path / "targets.yaml").write_text(f"targets:\n- {described}\n")
    done = gate(tmp_path, "run")
    assert done.returncode == 0, done.stdout + done.stderr
    first = record(tmp_path)
    write_agent(tmp_path, "def answer(request):\n    return {'data': {'reply': 'ok', 'text': 'no'}}\n", "bot/main.py")
    assert gate(tmp_path, "run").returncode == 0
    assert record(tmp_path)["target"]["fingerprint"] == first["target"]["fingerprint"], "the agent is not its set-up"
    (tmp_path / "targets.yaml").write_text(f"targets:\n- {described.replace('data.reply', 'data.text')}\n")
    changed = gate(tmp_path, "run", "--baseline", "latest", "--fail-on", "never")
    assert "`responsePath` `data.reply` → `data.text`" in changed.stdout


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("", 'my_agent.py has no "answer"'),
        ("def answr(request): ...", 'my_agent.py has no "answer" (did you mean "answr"?)'),
        ("answer = 'ok'", "my_agent:answer is of the type str and not a function"),
        ("class answer: ...", "my_agent:answer is a class and not a function"),
        (
            "def answer(a, b): ...",
            "my_agent:answer cannot be called with one argument, the request: it is answer(a",
        ),
        ("\nimport not_there", 'my_agent.py:2: needs "not_there"'),
        ("\nimport not_there.part", 'my_agent needs the package "not_there", which is not installed'),
        ("\n\nraise ValueError('no key')", "my_agent.py:3: ValueError: no key"),
        ("\ndef answer(:", "my_agent.py:2: SyntaxError: invalid syntax"),
        ("import sys; sys.exit('gone')", "my_agent.py:1: SystemExit: gone"),
    ],
)
def test_function__that_cannot_be_called__is_a_configuration_error(tmp_path, source, said) -> None:
    done = run_source(tmp_path, source)
    assert done.returncode == 2, done.stdout
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["run", "validate"])
@pytest.mark.parametrize(
    ("place", "said"),
    [
        (
            "my_agnt:answer",
            'no module "my_agnt" in this folder or among the installed packages (did you mean',
        ),
        ("my_agent.inner:answer", 'no module "my_agent.inner" in this folder'),
        ("my_agent.py", '--agent-function: "my_agent.py" is not module:name: write one such as my_agent:answer'),
    ],
)
def test_function__that_is_nowhere__is_said_by_run_and_validate(tmp_path, command, place, said) -> None:
    write_agent(tmp_path)
    write_suite(tmp_path, 1)
    done = gate(tmp_path, command, "--agent-function", place)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_validate__runs_no_code_of_the_agent(tmp_path) -> None:
    write_agent(tmp_path, "open('it-ran', 'w')\n")
    write_suite(tmp_path, 1)
    assert gate(tmp_path, "validate", *FUNCTION).returncode == 0
    assert not (tmp_path / "it-ran").exists()


def test_function__beside_another_target__is_refused(tmp_path) -> None:
    done = run_source(tmp_path, AGENT, "--agent-endpoint", "http://localhost:1")
    assert done.returncode == 2
    assert "--agent-endpoint and --agent-function are both given, but a run evaluates one target" in done.stderr


@pytest.mark.parametrize(
    ("source", "said", "line"),
    [
        ("def answer(request):\n    return {}['city']", "KeyError: 'city'", 2),
        ("import sys\ndef answer(request):\n    sys.exit(4)", "SystemExit: 4", 3),
        ("def answer(request):\n    raise StopIteration", "StopIteration", None),
        ("def answer(request):\n    return 4", "the response cannot be read: it is of type int", None),
    ],
)
def test_function__that_raises__is_an_agent_error_that_names_the_line(tmp_path, source, said, line) -> None:
    done = run_source(tmp_path, source)
    assert done.returncode == 3
    assert said in done.stdout
    (case,) = record(tmp_path)["suites"][0]["cases"]
    assert case["trials"][0]["errorKind"] == "agent_error"
    assert line is None or f"my_agent.py, line {line}" in done.stdout


def test_function__that_never_returns__times_out_and_the_process_ends(tmp_path) -> None:
    began = time.monotonic()
    done = run_source(tmp_path, "import time\ndef answer(request):\n    time.sleep(100)", "--timeout-ms", "300")
    assert (done.returncode, "no response within 300 ms" in done.stdout) == (3, True)
    assert time.monotonic() - began < 50
