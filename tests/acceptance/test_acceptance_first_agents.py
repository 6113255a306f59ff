"""Four agents, each from an empty folder to an accepted suite, at the first try; then a planted change is red.

Each row is what a person types: `init`, `draft`, accept, `run`. `pytest -rP` shows how many commands that were.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.test_integration_run import gate
from tests.support.agents import Agent, agent
from tests.support.described import KEY, ROUTED, answer_as_desk, answer_as_model, describes, list_models

QUESTIONS = "How is the weather in Rome?\nWhat is the weather?\n"
WEATHER = ("--probe", "How is the weather?")
COMMAND = """\
import json, sys
calls = [{"name": "get_weather", "args": {"city": "Rome"}}]
print(json.dumps({"out": {"say": "It is 22 degrees in Rome."}, "did": calls}))
"""
FUNCTION = """\
def answer(request):
    calls = [{"name": "get_weather", "params": {"city": "Rome"}}]
    return {"response": "It is 22 degrees in Rome.", "toolCalls": calls}
"""


@dataclass
class Place:
    """Where the agent is, and how its answer changes."""

    options: tuple[str, ...]
    plant: Callable[[], object]


@contextmanager
def serve(documents: dict, respond: Callable[..., None], path: str = "") -> Iterator[Place]:
    degrees = [22]
    running: Agent
    with agent(describes(documents, lambda exchange: respond(exchange, degrees[0]))) as running:
        url = f"http://127.0.0.1:{running.port}{path}"
        yield Place(("--agent-endpoint", url, *WEATHER), lambda: degrees.__setitem__(0, 30))


@contextmanager
def write(folder: Path, text: str, *options: str) -> Iterator[Place]:
    file = folder / "desk.py"
    file.write_text(text)
    yield Place(options, lambda: file.write_text(text.replace("22", "30") + "\n"))  # another size: no stale bytecode


ROWS = {
    "FastAPI with a prefix, nested JSON and a key": lambda _: serve(
        {"/openapi.json": ROUTED}, answer_as_desk, "/v2/desk/ask"
    ),
    "OpenAI's protocol with a model": lambda _: serve({"/v1/models": list_models("small")}, answer_as_model),
    "command with JSON of its own": lambda folder: write(
        folder, COMMAND, "--agent-command", "python3 desk.py {PROMPT}", *WEATHER
    ),
    "Python function": lambda folder: write(folder, FUNCTION, "--agent-function", "desk:answer"),
}


@pytest.mark.parametrize("row", ROWS)
def test_newcomer__agent_of_each_kind__gets_an_accepted_suite_and_a_red_run_at_the_first_try(tmp_path, row) -> None:
    (tmp_path / "questions.txt").write_text(QUESTIONS)
    began, typed = time.monotonic(), 0
    with ROWS[row](tmp_path) as place:
        for words in (
            ("init", *place.options),
            ("draft", "questions.txt", "-o", "evals/first.golden.json"),
            ("draft", "--accept", "all", "evals/first.golden.json"),
            ("run",),
        ):
            done = gate(tmp_path, *words, AGENT_KEY=KEY)
            typed += 1
            assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
        assert "4 of 4 pass" in done.stdout
        place.plant()
        done = gate(tmp_path, "run", "--baseline", "latest", AGENT_KEY=KEY)
        assert done.returncode == 1, done.stdout
    drafted = json.loads((tmp_path / "evals/first.golden.json").read_text())
    assert "get_weather" in json.dumps(drafted)
    assert all(case["id"] in done.stdout.partition("REGRESSIONS (2): ")[2] for case in drafted)
    print(f"| {row} | {typed} | {time.monotonic() - began:.0f} |")
