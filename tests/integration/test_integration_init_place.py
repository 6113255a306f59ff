"""Where the workflow that `eval-gate init` writes runs: in the container, or on the machine of the job, and why."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from eval_gate.cli.starter.programs import ProgramUse, find_missing_in_image
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


@pytest.mark.parametrize(
    ("script", "files", "because"),
    [
        ("python3 checks/check.py", {"check_py": "import json, requests\n"}, "evals/checks/check.py imports requests"),
        ("[node, checks/check.mjs]", {"check_mjs": ""}, "evals/a.eval.yaml runs node"),
        ("npx tsx checks/check.ts", {"check_ts": ""}, "evals/a.eval.yaml runs npx"),
    ],
)
def test_init__graders_need_what_the_image_lacks__the_workflow_does_without_the_container_and_says_why(
    tmp_path, script, files, because
) -> None:
    agentv(tmp_path, script, **files)
    done = init(tmp_path)
    assert done.returncode == 0, done.stderr
    assert uses(tmp_path) == ["actions/checkout", "actions/setup-python", "eval-gate/eval-gate/host"]
    text = (tmp_path / WORKFLOW).read_text()
    assert f"      #   {because}\n" in text
    assert f"the workflow runs without the container, because its image lacks programs: {because}" in done.stdout
    # the agent is on the same machine as the gate
    assert "host.docker.internal" not in text
    assert "reaches the agent at" not in text
    assert steps(tmp_path)[-2]["with"] == {"agent-endpoint": "http://localhost:8080/chat"}
    for linter in LINTERS:
        assert lint(linter, tmp_path / WORKFLOW).returncode == 0, linter


def test_init__graders_need_nothing_else__the_workflow_uses_the_container_and_says_so(tmp_path) -> None:
    agentv(tmp_path, "python3 checks/check.py", check_py="import json, sys, helper\n", helper_py="import re\n")
    done = init(tmp_path)
    assert uses(tmp_path) == ["actions/checkout", "eval-gate/eval-gate"]
    assert "the workflow runs in the container" in done.stdout


def test_init__lists_of_packages_are_there__the_workflow_installs_them(tmp_path) -> None:
    agentv(tmp_path, "python3 checks/check.py", check_py="import requests\n")
    (tmp_path / "requirements.txt").write_text("requests\n")
    (tmp_path / "package-lock.json").write_text("{}")
    init(tmp_path)
    [install] = [step["run"] for step in steps(tmp_path) if step.get("name", "").startswith("Install")]
    assert install == "pip install --requirement requirements.txt\nnpm ci\n"
    for linter in LINTERS:
        assert lint(linter, tmp_path / WORKFLOW).returncode == 0, linter


def test_init__target_is_a_program_that_the_image_lacks__the_workflow_does_without_the_container(tmp_path) -> None:
    agentv(tmp_path, "cat")
    (tmp_path / "targets.yaml").write_text(
        "targets:\n  - {name: default, provider: cli, command_template: 'uv run agent.py {PROMPT}'}\n"
    )
    done = init(tmp_path)
    assert "targets.yaml runs uv" in done.stdout
    assert "eval-gate/eval-gate/host" in uses(tmp_path)


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


@pytest.mark.parametrize(
    ("command", "lacks"),
    [
        ("cat in.json | jq .score", ["f runs jq"]),
        ("A=1 timeout 5 ./run.sh", ["run.sh runs node"]),
        ("bash run.sh && echo done", ["run.sh runs node"]),
        (("sh", "-c", "npm test"), ["f runs npm"]),
        ("./check.js", ["check.js runs node"]),
        ("./check.py {PROMPT}", ["check.py imports numpy", "deep.py imports pandas"]),
        ("python -m pytest evals", ["f runs python -m pytest"]),
        ("python3 -c 'import yaml; print(1)'", ["f imports yaml"]),
        ("/usr/bin/python3.12 -I check.py", ["check.py imports numpy", "deep.py imports pandas"]),
        ("echo 'node is only a word' > out.txt", []),
        ("python -m http.server", []),
        ("python optional.py", []),
        ("python broken.py", []),
        ("python not-there.py", []),
        ("echo 'half a quote", []),
        ("{PROMPT} --fast", []),
        ("$TOOL x", []),
        ("", []),
        ("for x in 1 2; do echo $x; done", []),
        ("grep x <<< y; node<in.mjs", ["f runs node"]),
    ],
)
def test_missing__by_command__names_programs_and_packages_that_the_image_lacks(tmp_path, command, lacks) -> None:
    texts = {
        "run.sh": "#!/bin/sh\nset -e\n# node is great\necho node\nnode check.js\n",
        "check.js": "#!/usr/bin/env node\n",
        "check.py": "#!/usr/bin/env python3\nimport json, numpy.linalg\nfrom deep import x\nfrom . import y\n",
        "deep.py": "import pandas, check\n",
        "optional.py": "try:\n    import orjson\nexcept ImportError:\n    orjson = None\n",
        "broken.py": "import (\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    assert list(find_missing_in_image([ProgramUse(command, "f", (tmp_path,))], tmp_path)) == lacks


def test_missing__names_that_would_break_a_line__are_escaped_and_cut(tmp_path) -> None:
    [said] = find_missing_in_image([ProgramUse(("x\n" + "y" * 500,), "f", (tmp_path,))], tmp_path)
    assert "\n" not in said
    assert len(said) <= 160
