"""A Python function on a pull request: the lines of docs/python.md, run as they stand, and the action as it is."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.agents import agent
from tests.support.jobs import pull_request_event, push_event
from tests.support.program import CLEAN

PAGE = (Path(__file__).parents[3] / "docs" / "python.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("\n## On a pull request\n")[2].partition("\n## ")[0]
AGENT = 'def answer(request):\n    return {"response": "ok", "toolCalls": []}\n'
CHANGED = 'def answer(request):\n    return {"response": "no" if "2" in request.message else "ok", "toolCalls": []}\n'


def read_block(language: str) -> str:
    return re.search(rf"^```{language}\n(.*?)^```", SECTION, re.MULTILINE | re.DOTALL)[1]


def read_steps() -> list[dict]:
    return yaml.safe_load(read_block("yaml"))["steps"]


def find_commands() -> dict[str, str]:
    """The command of the workflow, and the one that takes its place."""
    run = next(step["run"] for step in read_steps() if step.get("name") == "Run the evals")
    command = read_block("console").removeprefix("$ ").strip()
    configured = command.replace(" --agent-function my_agent:answer", "")
    return {"a test": run.splitlines()[-1], "the command line": command, "its configuration": configured}


def run_step(job, command: str) -> None:
    words = shlex.split(command)
    assert words[:2] == ["python", "-m"]
    done = subprocess.run(
        [sys.executable, *words[1:]], cwd=job.workspace, env=CLEAN, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("which", ["a test", "the command line", "its configuration"])
def test_page__its_workflow__compares_publishes_and_names_the_planted_change(job, github, which) -> None:
    command = find_commands()[which]
    (inputs,) = [step["with"] for step in read_steps() if step["uses" if "uses" in step else "run"].startswith("eval-")]
    (job.workspace / "my_agent.py").write_text(AGENT)
    (job.workspace / "test_agent.py").write_text(read_block("python"))
    if which == "its configuration":
        (job.workspace / "eval-gate.yaml").write_text("agentFunction: my_agent:answer\n")
    run_step(job, command)
    job.begin_run(event="push")
    pushed = job.step("push", push_event(github), inputs)
    assert (pushed.code, pushed.outputs["total"]) == (0, "4"), pushed.log
    pull = github.state.add_pull(7)
    (job.workspace / "my_agent.py").write_text(CHANGED)
    run_step(job, command)
    job.begin_run(event="pull_request", head_branch=pull.head_ref, head_sha=pull.head_sha)
    ended = job.step("pull_request", pull_request_event(github, pull), inputs)
    assert (ended.code, ended.outputs["regressions"]) == (1, "1"), ended.log
    (comment,) = github.state.comments.values()
    assert "## ❌ Agent eval gate — 1 regression" in comment.body
    assert "gs-002" in comment.body


def test_action__function_in_the_files_of_a_pull_request__is_refused_and_not_imported(job, github) -> None:
    with agent() as running:
        job.push(running.url)
    (job.workspace / "my_agent.py").write_text("open('it-ran', 'w')\n" + AGENT)
    targets = "targets: [{name: bot, provider: python, function: 'my_agent:answer'}]\n"
    for text in (targets, "agentFunction: my_agent:answer\n"):
        (job.workspace / "eval-gate.yaml").write_text(text)
        pull = github.state.add_pull(len(github.state.pulls) + 7)
        job.begin_run(event="pull_request", head_branch=pull.head_ref, head_sha=pull.head_sha)
        ended = job.step("pull_request", pull_request_event(github, pull), {})
        assert ended.code == 2, ended.log
        assert "a Python function would run inside the action" in ended.log
        assert "results: latest" in ended.log
    assert not (job.workspace / "it-ran").exists()
