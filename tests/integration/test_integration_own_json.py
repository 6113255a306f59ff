"""Agents with JSON of their own: a command and a Python function, from their first draft to a red run that names it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.test_integration_run import record, write_suite
from tests.support.program import gate

DESK = """\
import json, sys
question = sys.argv[1]
city = "Lisbon" if "Lisbon" in question else "Rome"
call = {"tool": "get_weather", "arguments": {"city": city}, "outcome": {"degrees": 21}}
print(json.dumps({"data": {"reply": f"It is sunny in {city}."}, "steps": {"calls": [call]}, "cost": 3}))
"""
TARGET = """\
targets:
- name: desk
  provider: cli
  command: python3 ../desk.py {PROMPT}
  responsePath: data.reply
  toolCallsPath: steps.calls
  nameField: tool
  argsField: arguments
  resultField: outcome
"""
QUESTIONS = "What is the weather in Lisbon?\nHow warm is it in Rome?\n"


def write_desk(folder: Path, source: str = DESK, target: str = TARGET) -> None:
    (folder / "desk.py").write_text(source)
    (folder / "targets.yaml").write_text(target)


def draft_and_accept(folder: Path, *target: str) -> None:
    """Draft a suite of two cases from a target, and accept both."""
    (folder / "questions.txt").write_text(QUESTIONS)
    done = gate(folder, "draft", "questions.txt", "-o", "evals/first.golden.json", *target)
    assert (done.returncode, "2 drafts from 6 executions" in done.stdout) == (0, True), done.stdout + done.stderr
    accepted = gate(folder, "draft", "evals/first.golden.json", "--accept", "all")
    assert accepted.returncode == 0, accepted.stderr
    for case in json.loads((folder / "evals/first.golden.json").read_text()):
        assert case["expect"]["toolsCalled"] == ["get_weather"]


def test_command__own_json__is_drafted_from_and_its_planted_change_is_named(tmp_path) -> None:
    write_desk(tmp_path)
    draft_and_accept(tmp_path, "--target", "desk")
    green = gate(tmp_path, "run", "--target", "desk")
    assert green.returncode == 0, green.stdout + green.stderr
    (tmp_path / "desk.py").write_text(DESK.replace('"city": city', '"city": "Rome"'))
    red = gate(tmp_path, "run", "--target", "desk", "--baseline", "latest")
    assert red.returncode == 1, red.stdout
    assert "REGRESSIONS (1): gs-get-weather-001" in red.stdout


@pytest.mark.parametrize(
    ("printed", "said"),
    [
        (
            '{"data": {"text": "hi"}}',
            'no value at "data.reply" (targets.yaml:5: targets[desk].responsePath); "data" has',
        ),
        ('Loading…\\n{"data": {"reply": "hi"}}', "the response is not JSON"),
        ("", "the response is not JSON"),
        (
            '{"data": {"reply": "hi"}, "steps": {"calls": 4}}',
            '"steps.calls" (targets.yaml:6: targets[desk].toolCallsPath) is not a list',
        ),
        ('{"data": {"reply": "hi"}, "steps": {"calls": [{"name": "x"}]}}', '"steps.calls[0]" has no tool'),
    ],
)
def test_command__output_of_another_shape__is_an_agent_error_that_names_the_place(tmp_path, printed, said) -> None:
    write_desk(tmp_path, f"print('{printed}')\n")
    write_suite(tmp_path, 1)
    done = gate(tmp_path, "run", "--target", "desk")
    assert done.returncode in (1, 3)
    assert said in done.stdout
    assert "responsePath and of the tool calls with its toolCallsPath" in done.stdout
    assert "URL" not in done.stdout


def test_command__failure_that_it_reports__is_an_agent_error_in_its_words(tmp_path) -> None:
    write_desk(tmp_path, 'print(\'{"fault": {"why": "no quota"}}\')\n', TARGET + "  failure: fault.why\n")
    write_suite(tmp_path, 1)
    done = gate(tmp_path, "run", "--target", "desk")
    assert done.returncode == 3
    assert record(tmp_path)["suites"][0]["cases"][0]["error"] == "agent error: «no quota»"


def test_command__events_as_lines__are_read_as_those_of_an_http_agent(tmp_path) -> None:
    source = 'print(\'{"delta": "o"}\')\nprint(\'{"delta": "k"}\')\n'
    target = "targets:\n- {name: desk, provider: cli, command: 'python3 ../desk.py {PROMPT}', responseFormat: ndjson"
    write_desk(tmp_path, source, target + ", responsePath: delta}\n")
    write_suite(tmp_path, 1)
    done = gate(tmp_path, "run", "--target", "desk")
    assert done.returncode == 0, done.stdout


def test_command__batch_of_own_json__is_read_line_by_line(tmp_path) -> None:
    source = (
        "import json, os\n"
        'for line in open(os.environ["AGENT_BATCH_INPUT"]):\n'
        '    print(json.dumps({"id": json.loads(line)["id"], "data": {"reply": "ok"}, "steps": {"calls": []}}))\n'
    )
    write_desk(tmp_path, source, TARGET.replace(" {PROMPT}", "") + "  providerBatching: true\n")
    write_suite(tmp_path, 3)
    done = gate(tmp_path, "run", "--target", "desk")
    assert done.returncode == 0, done.stdout


def test_command__another_response_path__is_a_setup_change(tmp_path) -> None:
    write_desk(tmp_path, DESK.replace('"cost": 3', '"answer": "ok"').replace("It is sunny", "ok"))
    write_suite(tmp_path, 1)
    assert gate(tmp_path, "run", "--target", "desk").returncode == 0
    first = record(tmp_path)
    (tmp_path / "targets.yaml").write_text(TARGET.replace("data.reply", "answer"))
    done = gate(tmp_path, "run", "--target", "desk", "--baseline", "latest")
    assert "`responsePath` `data.reply` → `answer`" in done.stdout
    assert record(tmp_path)["target"]["fingerprint"] != first["target"]["fingerprint"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("  responsePath: data[\n", 'targets.yaml:5: targets[desk].responsePath: "data[" is not a path'),
        (
            "  agentProtocol: claude-code\n  argsField: a\n",
            "agentProtocol reads the whole response, so argsField has no effect: remove either",
        ),
        (
            "  providerBatching: true\n  responseFormat: sse\n",
            "each response of a batch is one line of JSON, so responseFormat has to be json",
        ),
    ],
)
def test_command__description_that_contradicts_itself__names_file_line_and_setting(tmp_path, lines, said) -> None:
    write_desk(tmp_path, target="".join(TARGET.splitlines(keepends=True)[:4]) + lines)
    write_suite(tmp_path, 1)
    done = gate(tmp_path, "validate", "--target", "desk")
    assert done.returncode == 2
    assert said in done.stderr
