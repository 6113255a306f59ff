"""Workspaces of AgentV 4 files, from the file to the exit code: what targets find there and what graders are told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.test_integration_run import gate
from tests.support.agents import agent, ok

WORK = "import pathlib, sys; pathlib.Path('log.txt').open('a').write(sys.argv[1] + '\\n'); print(sys.argv[1])\n"
CHECK = """\
import json, os, pathlib, sys
told = json.load(sys.stdin)
lines = told["config"]["lines"]
found = pathlib.Path(told["workspace_path"], "log.txt").read_text().split()
passed = found == lines and os.environ["AGENTV_WORKSPACE_PATH"] == told["workspace_path"]
passed = passed and told["file_changes"].endswith("\\n".join(f"+{line}" for line in lines))
passed = passed and not pathlib.Path("../fails", lines[-1]).exists()
print(json.dumps({"assertions": [{"text": f"found {found}", "passed": passed}]}))
"""


def write_project(folder: Path, *cases: tuple[str, list[str]], workspace: str = "{template: ../desk}") -> None:
    """Cases that each write their id into a file, and the lines that are to be there then."""
    for name, text in {"desk/work.py": WORK, "checks/check.py": CHECK}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    (folder / "targets.yaml").write_text(
        "targets:\n- {name: worker, provider: cli, command: 'python3 work.py {EVAL_ID}', workers: 3}\n"
    )
    tests = [
        {
            "id": name,
            "input": "Write.",
            "assertions": [
                {
                    "name": "check",
                    "type": "code-grader",
                    "command": ["python3", "../checks/check.py"],
                    "config": {"lines": lines},
                }
            ],
        }
        for name, lines in cases
    ]
    head = f"execution: {{target: worker}}\nworkspace: {workspace}\n"
    (folder / "evals").mkdir(exist_ok=True)
    (folder / "evals" / "a.eval.yaml").write_text(f"{head}tests: {json.dumps(tests)}\n")


def run(folder: Path, *options: str):
    return gate(folder, "run", "evals/a.eval.yaml", "--output-dir", "results", *options)


def cases(folder: Path) -> dict[str, dict]:
    results = folder / "results"
    found = json.loads((results / json.loads((results / "latest.json").read_text())["path"]).read_text())
    return {case["id"]: case for suite in found["suites"] for case in suite["cases"]}


@pytest.mark.contract("agentv.today.workspace")
@pytest.mark.parametrize(
    ("workspace", "second"),
    [("{template: ../desk}", ["a", "b"]), ("{template: ../desk, isolation: per_test}", ["b"])],
    ids=["shared", "of each case"],
)
def test_workspace__cases_that_write__find_what_is_theirs_and_graders_are_told(tmp_path, workspace, second) -> None:
    write_project(tmp_path, ("a", ["a"]), ("b", second), workspace=workspace)
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (tmp_path / "desk" / "log.txt").exists()


@pytest.mark.contract("agentv.today.workspace")
@pytest.mark.parametrize(
    ("workspace", "second"),
    [("{template: ../desk}", ["a", "b"]), ("{template: ../desk, isolation: per_test}", ["b"])],
    ids=["shared", "of each case"],
)
@pytest.mark.slow
def test_workspace__case_that_fails_and_is_run_again__gets_a_fresh_copy(tmp_path, workspace, second) -> None:
    """Were it not fresh, its second execution would find its own line."""
    write_project(tmp_path, ("a", ["a"]), ("b", second), workspace=workspace)
    assert run(tmp_path).returncode == 0
    (tmp_path / "results").rename(tmp_path / "before")
    (tmp_path / "fails").mkdir()
    (tmp_path / "fails" / "b").touch()
    done = run(tmp_path, "--baseline", "before")
    assert done.returncode == 1, done.stdout + done.stderr
    trials = cases(tmp_path)["b"]["trials"]
    assert len(trials) > 1
    assert {one["error"] for one in trials} == {f"check: score 0.00, found {second}"}


@pytest.mark.contract("agentv.today.workspace")
def test_workspace__other_template__is_a_setup_change_of_its_cases(tmp_path) -> None:
    write_project(tmp_path, ("a", ["a"]))
    assert run(tmp_path).returncode == 0
    (tmp_path / "results").rename(tmp_path / "before")
    (tmp_path / "desk" / "more.txt").write_text("more\n")
    done = run(tmp_path, "--baseline", "before")
    assert done.returncode == 0, done.stderr
    assert "1 case that passes in the baseline has a changed prompt: `a`" in done.stdout, done.stdout


@pytest.mark.contract("agentv.today.workspace")
def test_workspace__case_that_fails__its_changes_are_kept_beside_the_result(tmp_path) -> None:
    write_project(tmp_path, ("a", ["never"]), ("b", ["b"]), workspace="{template: ../desk, isolation: per_test}")
    assert run(tmp_path).returncode == 1
    [kept] = (tmp_path / "results").glob("*/workspace-*.md")
    assert cases(tmp_path)["a"]["warnings"][-1].endswith(f"next to the run result: {kept.name} (1 file)")
    assert "diff --git a/log.txt b/log.txt\nnew file mode 100644\n" in kept.read_text()


def test_workspace__http_agent__is_asked_as_always_and_graders_see_that_nothing_changed(tmp_path) -> None:
    write_project(tmp_path, ("a", ["a"]))
    none = "told['file_changes'] is None"
    (tmp_path / "checks" / "check.py").write_text(
        f"import json, sys; told = json.load(sys.stdin)\nprint(json.dumps({{'score': float({none})}}))"
    )
    with agent(ok) as running:
        done = run(tmp_path, "--agent-endpoint", running.url)
    assert done.returncode == 0, done.stdout + done.stderr


def test_workspace__target_that_takes_all_cases_at_once__is_refused_with_the_place_of_the_case(tmp_path) -> None:
    write_project(tmp_path, ("a", ["a"]))
    targets = tmp_path / "targets.yaml"
    targets.write_text(targets.read_text().replace("workers: 3", "provider_batching: true"))
    done = run(tmp_path)
    assert done.returncode == 2
    assert "unsupported-workspace" in done.stderr
    assert (
        "evals/a.eval.yaml:3: case a has a workspace, and the target worker runs many cases in one call" in done.stderr
    )


@pytest.mark.contract("agentv.today.workspace")
@pytest.mark.parametrize(
    "work",
    [
        "for number in range(600): open(str(number), 'w')",
        "open('a', 'w').write('x\\n' * 600_000); open('b', 'w').write('y\\n' * 400_000)",
    ],
    ids=["too many files", "too long changes"],
)
def test_workspace__more_than_can_be_compared__is_an_evaluation_error_and_never_a_pass(tmp_path, work) -> None:
    write_project(tmp_path, ("a", ["a"]))
    (tmp_path / "desk" / "work.py").write_text(f"{work}\nprint('done')\n")
    done = run(tmp_path)
    case = cases(tmp_path)["a"]
    assert (done.returncode, case["status"], case["errorKind"]) == (3, "error", "evaluation_error"), done.stdout
    assert "the changes in the workspace are not known" in case["error"]


def hooked(**hooks: str) -> str:
    """A shared workspace with these hooks, each a line of Python."""
    told = {name: {"command": ["python3", "-c", line]} for name, line in hooks.items()}
    return json.dumps({"template": "../desk", "hooks": told})


FAILS = "import sys; sys.exit('no such branch')"


@pytest.mark.contract("agentv.today.hooks")
@pytest.mark.parametrize(
    ("hooks", "failed"),
    [
        ({"before_all": FAILS}, ["a", "b"]),
        (
            {"before_each": "import json, sys; json.load(sys.stdin)['test_id'] == 'b' and sys.exit('no such branch')"},
            ["b"],
        ),
        ({"after_each": FAILS}, ["a", "b"]),
        ({"before_all": "import time; time.sleep(60)"}, ["a", "b"]),
    ],
    ids=["before all", "before one", "after each", "too slow"],
)
def test_hook__that_fails__is_an_evaluation_error_of_its_cases(tmp_path, hooks, failed) -> None:
    write_project(tmp_path, ("a", ["a"]), ("b", ["a", "b"]), workspace=hooked(**hooks))
    file = tmp_path / "evals" / "a.eval.yaml"
    if "time" in hooks.get("before_all", ""):
        file.write_text(
            file.read_text().replace('"command": ["python3", "-c"', '"timeout_ms": 200, "command": ["python3", "-c"', 1)
        )
    done = run(tmp_path)
    found = cases(tmp_path)
    assert done.returncode == 3, done.stdout + done.stderr
    assert [name for name, case in found.items() if case.get("errorKind") == "evaluation_error"] == failed
    [name] = hooks
    wanted = "did not end within 0.2 s" if "sleep" in hooks[name] else "exited with code 1: no such branch"
    assert {found[one]["error"] for one in failed} == {f"the {name} hook {wanted}"}


@pytest.mark.contract("agentv.today.hooks")
def test_hook__that_puts_more_there_than_can_be_compared__matters_to_graders_of_changes_only(tmp_path) -> None:
    many = "import json, pathlib, sys; place = pathlib.Path(json.load(sys.stdin)['workspace_path']); "
    many += "[(place / str(number)).touch() for number in range(600)]"
    write_project(tmp_path, ("a", ["a"]), workspace=hooked(before_all=many))
    assert run(tmp_path).returncode == 3
    assert "the changes in the workspace are not known: There are more than 500 files" in cases(tmp_path)["a"]["error"]
    file = tmp_path / "evals" / "a.eval.yaml"
    head = file.read_text().partition("tests: ")[0]
    file.write_text(f"{head}tests: [{{id: a, input: x, assertions: [{{type: equals, value: a}}]}}]\n")
    assert run(tmp_path).returncode == 0


@pytest.mark.contract("agentv.today.hooks")
def test_hook__after_all_that_fails__is_a_notice_and_decides_nothing(tmp_path) -> None:
    write_project(tmp_path, ("a", ["a"]), workspace=hooked(after_all=FAILS))
    done = run(tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "evals/a.eval.yaml: the after_all hook exited with code 1: no such branch" in done.stdout


@pytest.mark.contract("agentv.today.hooks")
def test_hook__environment__has_no_secret_but_those_that_programs_get(tmp_path) -> None:
    show = "import os, sys; sys.exit(' '.join(sorted(one for one in os.environ if one.startswith('DESK_'))) + '!')"
    write_project(tmp_path, ("a", ["a"]), workspace=hooked(before_all=show))
    variables = {"DESK_TOKEN": "t0k3n-of-the-desk", "DESK_NAME": "desk-of-four"}
    for options, wanted in ([], "!"), (["--pass-env", "DESK_NAME"], "DESK_NAME!"):
        gate(tmp_path, "run", "evals/a.eval.yaml", "--output-dir", "results", *options, **variables)
        assert cases(tmp_path)["a"]["error"] == f"the before_all hook exited with code 1: {wanted}"


@pytest.mark.contract("agentv.today.hooks")
def test_hook__changed_script__is_a_setup_change_of_its_cases(tmp_path) -> None:
    write_project(tmp_path, ("a", ["a"]))
    (tmp_path / "evals" / "set_up.py").write_text("pass\n")
    file = tmp_path / "evals" / "a.eval.yaml"
    hooks = "hooks: {before_all: {command: [python3, set_up.py]}}"
    file.write_text(file.read_text().replace("template: ../desk", f"template: ../desk, {hooks}"))
    assert run(tmp_path).returncode == 0
    (tmp_path / "results").rename(tmp_path / "before")
    (tmp_path / "evals" / "set_up.py").write_text("print()\n")
    done = run(tmp_path, "--baseline", "before")
    assert "hook or health check of 1 case changed: `evals/set_up.py" in done.stdout, done.stdout
