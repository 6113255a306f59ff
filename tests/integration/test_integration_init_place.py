"""Where the workflow that `eval-gate init` writes runs: in the container, or on the machine of the job, and why."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.integration.test_integration_init import ROOT, WORKFLOW, init
from tests.unit.examples.test_examples_workflows import LINTERS, lint

SUITE = """\
description: d
evalcases:
  - id: a
    outcome: it answers
    input_messages: [{{role: user, content: hi}}]
    execution:
      evaluators:
        - {{name: grader, type: code_judge, script: {script}}}
"""


def agentv(folder: Path, script: str, **files: str) -> None:
    """A repository of AgentV whose evals are graded by this command."""
    (folder / "evals" / "checks").mkdir(parents=True)
    (folder / "evals" / "a.eval.yaml").write_text(SUITE.format(script=script))
    for name, text in files.items():
        (folder / "evals" / "checks" / name.replace("_", ".")).write_text(text)


def steps(folder: Path) -> list[dict]:
    return yaml.safe_load((folder / WORKFLOW).read_text())["jobs"]["evals"]["steps"]


def uses(folder: Path) -> list[str]:
    return [step["uses"].partition("@")[0] for step in steps(folder) if "uses" in step]


EVALS = "the evals run commands, which need what is installed on the runner"
AGENT = "the target may be a program, which needs what is installed on the runner"


def check_host(folder: Path, said: str, reason: str) -> None:
    """The workflow does without the container, says why, and passes the linters."""
    assert "eval-gate/eval-gate/host" in uses(folder)
    text = (folder / WORKFLOW).read_text()
    assert f"      # Runs on the runner, not in the container: {reason}.\n" in text
    assert f"the workflow runs without the container: {reason}" in said
    assert "host.docker.internal" not in text
    assert "reaches the agent at" not in text
    for linter in LINTERS:
        assert lint(linter, folder / WORKFLOW).returncode == 0, linter


def test_init__evals_run_commands__the_workflow_does_without_the_container_and_says_why(tmp_path) -> None:
    agentv(tmp_path, "python3 checks/check.py", check_py="import json\n")
    done = init(tmp_path)
    assert done.returncode == 0, done.stderr
    check_host(tmp_path, done.stdout, EVALS)
    assert steps(tmp_path)[-2]["with"] == {"agent-endpoint": "http://localhost:8080/chat"}


def test_init__example_that_runs_a_command__counts_too(tmp_path) -> None:
    check_host(tmp_path, init(tmp_path, "--format", "agentv").stdout, EVALS)


@pytest.mark.parametrize("words", [("--agent-command", "cat {PROMPT_FILE}"), ("--agent-function", "desk:answer")])
def test_init__agent_that_is_a_program__runs_where_it_is_installed(tmp_path, words) -> None:
    check_host(tmp_path, init(tmp_path, *words).stdout, AGENT)


@pytest.mark.parametrize("words", [(), ("--model", "openai:gpt-4o"), ("--agent-endpoint", "https://a.example/x")])
def test_init__nothing_runs_a_command__the_workflow_uses_the_container(tmp_path, words) -> None:
    done = init(tmp_path, *words)
    assert uses(tmp_path) == ["actions/checkout", "eval-gate/eval-gate"]
    assert "container" not in done.stdout


def test_init__lists_of_packages_are_there__the_workflow_installs_them(tmp_path) -> None:
    agentv(tmp_path, "python3 checks/check.py", check_py="import requests\n")
    (tmp_path / "requirements.txt").write_text("requests\n")
    init(tmp_path)
    [install] = [step["run"] for step in steps(tmp_path) if step.get("name", "").startswith("Install")]
    assert install == "pip install --requirement requirements.txt"
    for linter in LINTERS:
        assert lint(linter, tmp_path / WORKFLOW).returncode == 0, linter


def test_init__target_of_a_list_is_a_program__the_workflow_does_without_the_container(tmp_path) -> None:
    agentv(tmp_path, "cat")
    (tmp_path / "targets.yaml").write_text(
        "targets:\n  - {name: default, provider: cli, command_template: 'uv run agent.py {PROMPT}'}\n"
    )
    done = init(tmp_path)
    check_host(tmp_path, done.stdout, EVALS)
    (tmp_path / "evals/a.eval.yaml").unlink()
    (tmp_path / WORKFLOW).unlink()
    (tmp_path / "eval-gate.yaml").unlink()
    check_host(tmp_path, init(tmp_path, "--format", "tool-forge").stdout, AGENT)


def test_init__workflow_is_there__nothing_is_said_of_where_it_runs(tmp_path) -> None:
    agentv(tmp_path, "node x.mjs")
    (tmp_path / WORKFLOW).parent.mkdir(parents=True)
    (tmp_path / WORKFLOW).write_text("on: push\n")
    assert "container" not in init(tmp_path).stdout


def test_workflow__pins_what_our_own_workflows_pin() -> None:
    written = re.findall(
        r"actions/setup-python@\S+ # \S+", (ROOT / "runner/eval_gate/cli/starter/file_texts.py").read_text()
    )
    assert len(written) == 1
    assert written[0] in (ROOT / ".github/workflows/ci.yml").read_text()
