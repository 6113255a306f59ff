"""Programs that a configuration names: what they get to see of us, and who they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.test_integration_run import ENVIRONMENT, ROOT, gate, record
from tests.support.agents import agent

SECRETS = {"OPENAI_API_KEY": "sk-canary-1", "GH_TOKEN": "ghp-canary-2", "GITHUB_TOKEN": "ghs-canary-3"}
SECRETS |= {"ACTIONS_RUNTIME_TOKEN": "eyJ-canary-4", "MY_OWN_THING": "own-canary-5"}
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
NOBODY = 65_534


@pytest.fixture
def project(tmp_path) -> Path:
    return checkout(tmp_path)


@pytest.fixture
def opened() -> Iterator[Path]:
    """A checkout that everybody may enter, as a runner's workspace is; the folders of tests are closed."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield checkout(folder)


def checkout(folder: Path) -> Path:
    (folder / "evals").mkdir()
    case = {"id": "a", "input": {"message": "ask"}, "expect": {"responseContains": ["ok"]}}
    (folder / "evals/x.golden.json").write_text(json.dumps([case]))
    (folder / "evals/y.eval.yaml").write_text(
        "evalcases:\n- id: j1\n  expected_outcome: fine\n  input_messages:\n  - {role: user, content: hi}\n"
        "  execution:\n    evaluators:\n"
        "    - {name: g, type: code_judge, script: [sh, -c, 'env | sort > ../seen-by-judge']}\n"
    )
    return folder


def configure(folder: Path, **settings) -> None:
    (folder / "eval-gate.json").write_text(json.dumps(settings))


def command(line: str, **more) -> dict[str, object]:
    return {"name": "c", "provider": "cli", "command_template": line} | more


def test_finding_5__snapshot_judge_target_and_health_check__see_the_same_reduced_environment(project) -> None:
    note = "env | sort > seen-by-{}; "
    target = command("env | sort > ../seen-by-target; echo ok")
    target["healthcheck"] = {"type": "command", "command_template": "env | sort > ../seen-by-health"}
    configure(project, targets=[target], snapshotCommand=note.format("snapshot") + "echo '{}'")
    done = gate(project, "run", **SECRETS)
    seen = {file.name: file.read_text() for file in project.glob("seen-by-*")}
    assert {*seen} == {"seen-by-target", "seen-by-health", "seen-by-judge", "seen-by-snapshot"}, done.stderr
    for name, text in seen.items():
        assert "canary" not in text, name
        assert "PATH=" in text
    variables = [
        {line.partition("=")[0] for line in text.splitlines()} - {"PWD", "_", "OLDPWD", "SHLVL"}
        for text in seen.values()
    ]
    assert variables.count(variables[0]) == len(variables)


def test_command__leaves_its_group_on_a_runner__is_found_by_the_runner_when_the_job_ends(project) -> None:
    """The runner ends what a job left behind by a variable that all it starts inherits: we must not take it away."""
    stays = "import os, time; os.setsid(); open('../seen', 'w').write(os.environ.get('RUNNER_TRACKING_ID', ''))"
    line = f'{sys.executable} -c "{stays}" & while ! test -s ../seen; do sleep 0.01; done; echo ok'
    configure(project, targets=[command(line, timeout_seconds=20)])
    done = gate(project, "run", "--case", "a", RUNNER_TRACKING_ID="github_2b6e")
    assert (done.returncode, (project / "seen").read_text()) == (0, "github_2b6e"), done.stdout


@pytest.mark.parametrize("way", ["flag", "file", "target"])
def test_finding_5__variable_that_is_passed_by_name__is_there_and_a_secret(project, way) -> None:
    target = command('echo "ok $MY_OWN_THING"')
    if way == "target":
        target["pass_env"] = ["MY_OWN_THING"]
    configure(
        project,
        targets=[target],
        evals=["evals/x.golden.json"],
        **({"passEnv": ["MY_OWN_THING"]} if way == "file" else {}),
    )
    done = gate(project, "run", *(["--pass-env", "MY_OWN_THING"] if way == "flag" else []), **SECRETS)
    assert done.returncode == 0, done.stderr
    (case,) = record(project)["suites"][0]["cases"]
    assert case["details"]["response"] == "ok ***"


@pytest.mark.slow
def test_finding_5__command_that_fails_for_a_variable__is_told_its_name(project) -> None:
    configure(
        project,
        targets=[command('echo "no OPENAI_API_KEY in the environment" >&2; exit 1')],
        evals=["evals/x.golden.json"],
    )
    gate(project, "run", **SECRETS)
    (case,) = record(project)["suites"][0]["cases"]
    assert "OPENAI_API_KEY is set here, but commands do not get it: add it to passEnv" in case["error"]
    configure(project, targets=[command("echo ok")], snapshotCommand='echo "KeyError: MY_OWN_THING" >&2; exit 1')
    done = gate(project, "run", **SECRETS)
    assert done.returncode == 3
    assert "MY_OWN_THING is set here, but commands do not get it" in done.stderr


def test_finding_5__command_that_names_a_variable_in_its_text__is_told_its_name(project) -> None:
    """What it says itself helps nobody: a shell reads a variable that is not set as nothing."""
    target = command('test -n "${MY_OWN_THING}" && echo ok')
    configure(project, targets=[target], evals=["evals/x.golden.json"])
    gate(project, "run", **SECRETS)
    (case,) = record(project)["suites"][0]["cases"]
    assert "MY_OWN_THING is set here, but commands do not get it" in case["error"]
    gate(project, "run")  # not set here either: there is nothing to pass
    (case,) = record(project)["suites"][0]["cases"]
    assert "MY_OWN_THING" not in case["error"]


def test_finding_5__judge_and_health_check_that_fail_for_a_variable__are_told_its_name(project) -> None:
    suite = project / "evals/y.eval.yaml"
    suite.write_text(suite.read_text().replace("env | sort > ../seen-by-judge", "ask $MY_OWN_THING; exit 1"))
    configure(project, targets=[command("echo ok")], evals=["evals/y.eval.yaml"])
    gate(project, "run", **SECRETS)
    (case,) = record(project)["suites"][0]["cases"]
    assert "MY_OWN_THING is set here, but commands do not get it" in case["error"]
    sick = command("echo ok", healthcheck={"type": "command", "command_template": "ping $OPENAI_API_KEY; exit 1"})
    configure(project, targets=[sick], evals=["evals/x.golden.json"])
    gate(project, "run", **SECRETS)
    (case,) = record(project)["suites"][0]["cases"]
    assert "OPENAI_API_KEY is set here, but commands do not get it" in case["error"]


READ_US = "cat /proc/$PPID/environ 2>&1 | tr '\\\\0' ' '; head -c 1 /proc/$PPID/mem 2>&1; id -u; echo ok"


@as_root
def test_finding_5__root_in_a_workspace_of_root__commands_are_nobody_and_cannot_read_us(opened) -> None:
    configure(opened, targets=[command(READ_US)], evals=["evals/x.golden.json"])
    gate(opened, "run", **SECRETS)
    (case,) = record(opened)["suites"][0]["cases"]
    said = case["details"]["response"]
    assert str(NOBODY) in said.split()
    assert "canary" not in said
    assert said.count("Permission denied") == 2


@as_root
def test_finding_5__nobody__reads_the_checkout_writes_its_files_and_has_a_home(opened) -> None:
    (opened / "evals/notes.txt").write_text("noted")
    line = 'cat notes.txt {PROMPT_FILE} > {OUTPUT_FILE}; touch "$HOME/.eval-gate-test" && rm "$HOME/.eval-gate-test"'
    configure(opened, targets=[command(f"{line}; echo ' ok' >> {{OUTPUT_FILE}}")], evals=["evals/x.golden.json"])
    gate(opened, "run", **SECRETS, HOME="/root")
    found = record(opened)["suites"][0]
    assert found["cases"][0]["details"]["response"] == "notedask ok"
    (said,) = [one for one in record(opened)["warnings"] if "nobody" in one]
    assert "they can read the folder but not write to it" in said


@as_root
def test_finding_5__workflow_in_a_workspace_only_root_may_enter__starts_nothing(project) -> None:
    configure(project, targets=[command("touch ../started; echo ok")], evals=["evals/x.golden.json"])
    done = gate(project, "run", GITHUB_ACTIONS="true")
    assert done.returncode == 2
    assert "error[commands-as-root]" in done.stderr
    assert not (project / "started").exists()
    gate(project, "run")  # a person who is root in a folder of their own
    assert (project / "started").exists()
    assert any("commands run as root" in one for one in record(project)["warnings"])


@as_root
@pytest.mark.parametrize("owner", [0, 1234])
def test_finding_5__folder_of_root_in_a_description__does_not_make_a_command_root(opened, owner) -> None:
    configure(opened, targets=[command("id -u; echo ok", cwd="/")], evals=["evals/x.golden.json"])
    os.chown(opened, owner, owner)
    gate(opened, "run", **SECRETS)
    (case,) = record(opened)["suites"][0]["cases"]
    assert case["details"]["response"].split() == [str(owner or NOBODY), "ok"]


@as_root
def test_finding_5__same_user__cannot_read_the_environment_of_who_hides() -> None:
    """Without rights over all, as in a container's usual set: the user is the same, and the door is closed."""
    code = (
        "import ctypes, os, subprocess, sys\n"
        "from eval_gate.process.memory_protection import protect_memory\n"
        "os.setgroups([]); os.setgid(1234); os.setuid(1234)\n"
        "ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)\n"  # as a process is that was never root
        "if sys.argv[1] == 'hide': protect_memory()\n"
        "done = subprocess.run(['cat', f'/proc/{os.getpid()}/environ'], capture_output=True, text=True, cwd='/')\n"
        "print(done.stdout, done.stderr)"
    )

    def run(word: str) -> str:
        words = [sys.executable, "-c", code, word]
        environment = ENVIRONMENT | {"PYTHONPATH": str(ROOT / "runner")} | SECRETS
        return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout

    assert "canary-1" in run("stay")
    hidden = run("hide")
    assert "canary" not in hidden
    assert "Permission denied" in hidden


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux only")
def test_finding_5__every_run__is_hidden_from_its_first_moment() -> None:
    """The files below /proc of a process that hides belong to root; as root, only the process itself can tell."""
    code = (
        "import ctypes; from eval_gate.process.memory_protection import protect_memory; protect_memory(); "
        "print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
    )
    words = [sys.executable, "-c", code]
    done = subprocess.run(
        words, env=ENVIRONMENT | {"PYTHONPATH": str(ROOT / "runner")}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "0\n"
    loading = (ROOT / "runner/eval_gate/cli/main.py").read_text().partition("def _load_and_run(")[2]
    assert loading.index("protect_memory()") < loading.index("import run_program")


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="Linux only")
def test_finding_5__our_own_environment__is_no_file_that_we_can_be_told_to_read(project) -> None:
    """A system prompt is read by us and sent to where the same configuration says."""
    there = "/proc/self/environ"
    configure(project, evals=["evals/x.golden.json"])
    with agent() as running:
        model = ("--provider", "openai-compatible", "--model", "m", "--base-url", f"{running.url}/v1")
        gate(project, "run", *model, "--max-retries", "0", "--system-prompt", there, **SECRETS)
        assert running.requests, "a person may name any file"
        assert not [one for one in running.requests if b"canary" in one.body]
        target = {"name": "m", "provider": "openai-compatible", "model": "m", "baseUrl": running.url}
        (project / "link.md").symlink_to(there)
        for path in (there, "link.md", "../x.md"):
            configure(project, systemPromptPath=path)
            done = gate(project, "run", *model, **SECRETS)
            assert (done.returncode, "is outside of the repository" in done.stderr) == (2, True)
            configure(project, targets=[target | {"system_prompt_path": path}])
            done = gate(project, "run", **SECRETS)
            assert (done.returncode, "is outside of the repository" in done.stderr) == (2, True)


@as_root
def test_finding_5__worker_for_patterns__has_nothing_of_ours_in_its_environment() -> None:
    code = "import asyncio; from eval_gate.text.javascript.regex import PatternMatcher\n"
    code += "async def main():\n m = PatternMatcher(); await m.search('a', 'a')\n"
    code += " print(open(f'/proc/{m._worker.pid}/environ').read()); await m.aclose()\nasyncio.run(main())"
    environment = ENVIRONMENT | {"PYTHONPATH": str(ROOT / "runner")} | SECRETS
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert "PATH=" in done.stdout
    assert "canary" not in done.stdout
