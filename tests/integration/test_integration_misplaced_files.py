"""Commands run in the folder of their eval file: one that names a file of the root as if it ran there is told so."""

from __future__ import annotations

import json

import pytest

from tests.integration.test_integration_run import gate, record

GRADER = {"name": "check", "type": "code-grader", "command": ["python3", "tool.py"]}
HOOKS = {"before_each": {"command": ["python3", "tool.py"]}}
RIGHT = "echo Hello."
KINDS = {
    "target": ("python3 tool.py {PROMPT}", {}, {}, "agent_error"),
    "grader": (RIGHT, {"assertions": [GRADER]}, {}, "evaluation_error"),
    "hook": (RIGHT, {}, {"workspace": {"template": "../desk", "hooks": HOOKS}}, "evaluation_error"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_command__file_of_the_root__error_names_the_path_from_where_it_runs(tmp_path, kind) -> None:
    command, case, suite, error_kind = KINDS[kind]
    for name in ("evals", "desk"):
        (tmp_path / name).mkdir()
    (tmp_path / "desk" / "notes.txt").write_text("")
    (tmp_path / "tool.py").write_text("print('{\"score\": 1}')")
    (tmp_path / "targets.yaml").write_text(json.dumps([{"name": "desk", "provider": "cli", "command": command}]))
    check = {"type": "contains", "value": "Hello"}
    test = {"id": "a", "input": "Hi.", "assertions": [check]} | case
    written = {"execution": {"target": "desk"}, **suite, "tests": [test]}
    (tmp_path / "evals" / "a.eval.yaml").write_text(json.dumps(written))
    done = gate(tmp_path, "run", "evals/a.eval.yaml")
    (found,) = record(tmp_path)["suites"][0]["cases"]
    assert (found["status"], found["errorKind"]) == ("error", error_kind), found
    hint = "which has no tool.py: write ../tool.py"
    assert hint in f"{found['error']} ({found['errorHint']})"
    assert hint in " ".join(done.stdout.split())
