"""`eval-gate init` as a person uses it: what it writes, what it leaves alone, and that the result works."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.action.inputs import INPUTS
from eval_gate.cli.starter import file_texts, folder_contents
from eval_gate.cli.starter.evaluated_agent import AgentPlace, EvaluatedAgent
from eval_gate.cli.starter.file_writer import write_files
from eval_gate.config.settings import TargetChoice
from eval_gate.errors import ACTION_REF, GateError
from eval_gate.targets.build import find_flag_target
from eval_gate.targets.model.settings import ModelSettings, resolve_credentials
from tests.integration.test_integration_run import ROOT, gate, write_suite
from tests.support.agents import agent
from tests.unit.examples.test_examples_workflows import LINTERS, lint

FILES = Path(file_texts.__file__).with_name("files")
ALONE = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
"""git as on a machine where nobody has configured it."""
WORKFLOW = ".github/workflows/eval-gate.yml"
EVERYTHING = {WORKFLOW, "eval-gate.yaml", "evals/hello.golden.json", ".gitignore"}
FORMATS = {
    "tool-forge": {"evals/hello.golden.json"},
    "agentv": {"evals/hello.eval.yaml", "evals/checks/answers.py"},
    "agent-evals": {"evals/hello.json"},
}


def init(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return gate(folder, "init", *arguments, **ALONE)


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=folder, env=os.environ | ALONE, capture_output=True, check=True)


def files_in(folder: Path) -> dict[str, bytes]:
    """Every file of the folder, but for git's own, with what it holds."""
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and ".git" not in file.relative_to(folder).parts
    }


def workflow(folder: Path) -> dict:
    read = yaml.safe_load((folder / WORKFLOW).read_text())
    return read | {"on": read[True]}  # YAML 1.1 reads the key `on` as true


def gate_step(folder: Path) -> dict:
    steps = workflow(folder)["jobs"]["evals"]["steps"]
    return next(step for step in steps if step.get("uses") == f"eval-gate/eval-gate@{ACTION_REF}")


STRICT = {"strict": True}
USUAL = STRICT | {"concurrency": 4}


def config(folder: Path) -> dict:
    return yaml.safe_load((folder / "eval-gate.yaml").read_text())


def printed_commands(done: subprocess.CompletedProcess[str]) -> list[list[str]]:
    steps = done.stdout.partition("\nNext steps:\n")[2].splitlines()
    return [shlex.split(line) for line in steps if line.startswith("     ")]


def test_init__empty_folder__writes_everything_and_says_what_to_do_next(tmp_path, golden) -> None:
    done = init(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert set(files_in(tmp_path)) == EVERYTHING
    golden("init/empty.txt", done.stdout)
    assert config(tmp_path) == USUAL | {"evals": ["evals"], "agentEndpoint": "http://localhost:8080/chat"}
    assert gate_step(tmp_path)["with"] == {"agent-endpoint": "http://host.docker.internal:8080/chat"}
    assert workflow(tmp_path)["on"] == {
        "pull_request": None,
        "push": {"branches": ["main"]},
        "workflow_dispatch": None,
    }


def test_init__again__changes_nothing_and_says_so(tmp_path, golden) -> None:
    git(tmp_path, "init", "--initial-branch", "main")
    assert init(tmp_path).returncode == 0
    before = files_in(tmp_path)
    done = init(tmp_path)
    assert (done.returncode, done.stderr, files_in(tmp_path)) == (0, "", before)
    golden("init/again.txt", done.stdout)


@pytest.mark.parametrize("kind", FORMATS)
def test_init__fresh_folder__validates_without_a_warning_and_runs_as_printed(tmp_path, kind) -> None:
    with agent() as running:
        done = init(tmp_path, "--agent-endpoint", running.url, "--format", kind)
        assert done.returncode == 0, done.stderr
        assert set(files_in(tmp_path)) == EVERYTHING - FORMATS["tool-forge"] | FORMATS[kind]
        checked = gate(tmp_path, "validate", "--strict")
        assert checked.returncode == 0, checked.stderr
        assert checked.stdout.splitlines()[-1].endswith("in 1 suite: 0 problems, 0 warnings")
        assert ["eval-gate", "run"] in printed_commands(done)
        ran = gate(tmp_path, "run")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "GATE PASSED" in ran.stdout
    assert running.requests


@pytest.mark.parametrize("kind", FORMATS)
def test_init__fresh_folder__the_draft_command_that_it_names_works(tmp_path, kind) -> None:
    with agent() as running:
        done = init(tmp_path, "--agent-endpoint", running.url, "--format", kind)
        (tmp_path / "questions.txt").write_text("What is the weather in Lisbon?\n")
        (command,) = re.findall(r"`eval-gate (draft [^`]+)`", done.stdout)
        drafted = gate(tmp_path, *shlex.split(command))
        assert drafted.returncode == 0, drafted.stderr
    assert gate(tmp_path, "validate", "--strict").returncode == 0


@pytest.mark.parametrize("kind", FORMATS)
def test_init__agent_that_says_nothing__fails_the_example(tmp_path, kind) -> None:
    async def silent(exchange) -> None:
        exchange.answer({"response": " ", "toolCalls": []})

    with agent(silent) as running:
        init(tmp_path, "--agent-endpoint", running.url, "--format", kind)
        assert gate(tmp_path, "run").returncode == 1


def test_init__printed_commands__work_one_after_the_other(tmp_path) -> None:
    folder = tmp_path / "my agent"
    folder.mkdir()
    with agent() as running:
        done = init(tmp_path, "my agent", "--agent-endpoint", running.url)
        commands = printed_commands(done)
        assert commands[0] == ["cd", "my agent"]
        for program, *arguments in commands[1:]:
            if program == "eval-gate":
                assert gate(folder, *arguments).returncode == 0
            else:
                assert program == "git"
                git(folder, *arguments)
    held = subprocess.run(["git", "ls-files"], cwd=folder, capture_output=True, text=True, check=True)
    assert set(held.stdout.split()) == EVERYTHING
    left = subprocess.run(["git", "status", "--porcelain"], cwd=folder, capture_output=True, text=True, check=True)
    assert left.stdout == ""
    head = subprocess.run(["git", "branch", "--show-current"], cwd=folder, capture_output=True, text=True, check=True)
    assert [head.stdout.strip()] == workflow(folder)["on"]["push"]["branches"]


@pytest.mark.parametrize(
    ("before", "branch"),
    [
        ([("init", "--initial-branch", "trunk")], "trunk"),
        ([("init", "--initial-branch", "trunk"), ("commit", "--allow-empty", "--message", "one")], "trunk"),
        (
            [
                ("init", "--initial-branch", "main"),
                ("commit", "--allow-empty", "--message", "one"),
                ("checkout", "-b", "topic"),
            ],
            "main",
        ),
        (
            [
                ("init", "--initial-branch", "topic"),
                ("commit", "--allow-empty", "--message", "one"),
                ("branch", "prod"),
                ("config", "init.defaultBranch", "prod"),
            ],
            "prod",
        ),
        (
            [
                ("init", "--initial-branch", "main"),
                ("commit", "--allow-empty", "--message", "one"),
                ("update-ref", "refs/remotes/origin/release/1.x", "HEAD"),
                ("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/release/1.x"),
            ],
            "release/1.x",
        ),
    ],
    ids=["no-commit", "only-branch", "topic-checked-out", "configured", "remote"],
)
def test_init__repository__takes_its_default_branch(tmp_path, before, branch) -> None:
    for arguments in before:
        git(tmp_path, *arguments)
    assert init(tmp_path).returncode == 0
    assert workflow(tmp_path)["on"]["push"]["branches"] == [branch]


@pytest.mark.parametrize("branch", ["feature/a,b", "it's+one", "no", "1.10", "{x}", "a#b", "@x"])
def test_init__branch_with_an_odd_name__means_just_this_branch(tmp_path, branch) -> None:
    git(tmp_path, "init", "--initial-branch", branch)
    assert init(tmp_path).returncode == 0
    [pattern] = workflow(tmp_path)["on"]["push"]["branches"]
    assert re.sub(r"\\(.)", r"\1", pattern) == branch
    for linter in ("actionlint", "schema"):
        done = lint(linter, tmp_path / WORKFLOW)
        assert done.returncode == 0, done.stdout + done.stderr


WAYS = {
    "agent": ("--agent-endpoint", "http://127.0.0.1:9001/v2/ask"),
    "agent without a port": ("--agent-endpoint", "https://localhost/ask"),
    "agent elsewhere": ("--agent-endpoint", "https://staging.example:8443/ask"),
    "model": ("--provider", "openai", "--model", "gpt-4o"),
    "azure": ("--model", "azure:our-gpt"),
    "other provider": ("--model", "groq:llama-3.3-70b-versatile"),
    "suites": ("--format", "agent-evals"),
}


@pytest.mark.parametrize("way", WAYS)
def test_init__workflow__passes_the_linters_and_names_inputs_that_exist(tmp_path, way) -> None:
    assert init(tmp_path, *WAYS[way]).returncode == 0
    for linter in LINTERS:
        done = lint(linter, tmp_path / WORKFLOW)
        assert done.returncode == 0, done.stdout + done.stderr
    assert set(gate_step(tmp_path).get("with", {})) <= {one.name for one in INPUTS}
    assert workflow(tmp_path)["permissions"] == {}
    assert workflow(tmp_path)["jobs"]["evals"]["permissions"] == {
        "contents": "read",
        "actions": "read",
        "pull-requests": "write",
        "checks": "write",
    }


def test_init__agent_on_this_machine__is_started_and_reached_from_the_container(tmp_path) -> None:
    init(tmp_path, *WAYS["agent"])
    start, asked = workflow(tmp_path)["jobs"]["evals"]["steps"][1:3]
    assert "--host 0.0.0.0 --port 9001 " in start["run"]
    assert "http://localhost:9001/ " in start["run"]
    assert asked["with"] == {"agent-endpoint": "http://host.docker.internal:9001/v2/ask"}
    assert config(tmp_path)["agentEndpoint"] == "http://127.0.0.1:9001/v2/ask"
    assert "8080" not in (tmp_path / WORKFLOW).read_text()


def test_init__agent_elsewhere__is_not_started(tmp_path) -> None:
    init(tmp_path, *WAYS["agent elsewhere"])
    assert len(workflow(tmp_path)["jobs"]["evals"]["steps"]) == 2
    assert gate_step(tmp_path)["with"] == {"agent-endpoint": "https://staging.example:8443/ask"}
    assert config(tmp_path)["agentEndpoint"] == "https://staging.example:8443/ask"


def test_init__model__stands_in_the_configuration_and_its_key_comes_from_a_secret(tmp_path, golden) -> None:
    done = init(tmp_path, *WAYS["model"])
    golden("init/model.txt", done.stdout)
    assert config(tmp_path) == USUAL | {"evals": ["evals"], "provider": "openai", "model": "gpt-4o"}
    assert gate_step(tmp_path)["env"] == {"OPENAI_API_KEY": "${{ secrets.OPENAI_API_KEY }}"}
    assert "with" not in gate_step(tmp_path)
    assert gate(tmp_path, "validate", OPENAI_API_KEY="none").returncode == 0


@pytest.mark.slow
def test_init__model_on_a_server_of_ones_own__stands_in_the_configuration_with_its_address(tmp_path) -> None:
    said = ["--provider", "openai-compatible", "--model", "m"]
    without = init(tmp_path, *said)
    assert (without.returncode, sorted(tmp_path.iterdir())) == (2, [])
    assert "--base-url: is missing" in without.stderr
    with_key = init(tmp_path, *said, "--base-url", "http://me:pw@localhost:8000/v1")
    assert (with_key.returncode, sorted(tmp_path.iterdir())) == (2, [])
    assert "the model's URL has credentials" in with_key.stderr
    assert init(tmp_path, *said, "--base-url", "http://localhost:8000/v1").returncode == 0
    written = {"provider": "openai-compatible", "model": "m", "baseUrl": "http://localhost:8000/v1"}
    assert written.items() <= config(tmp_path).items()
    assert gate(tmp_path, "validate").returncode == 0


@pytest.mark.parametrize(
    "named",
    ["azure:m", "openai:m", "anthropic:m", "gemini:m", "google:m", "groq:m", "mistral:m", "deepseek:m", "openrouter:m"],
)
def test_init__keys_of_providers__are_those_that_a_run_reads(tmp_path, named) -> None:
    init(tmp_path, "--model", named)
    env = gate_step(tmp_path)["env"]
    chosen = find_flag_target(TargetChoice(model=named))
    assert chosen is not None
    assert isinstance(chosen.settings, ModelSettings)
    found_there = resolve_credentials(chosen.settings, dict.fromkeys(env, "some-value"))
    assert found_there.api_key == "some-value"


def test_init__evals_of_several_places__are_taken_into_the_configuration(tmp_path, golden) -> None:
    git(tmp_path, "init", "--initial-branch", "main")
    for service in ("services/a", "services/b"):
        (tmp_path / service).mkdir(parents=True)
        write_suite(tmp_path / service, 1)
    (tmp_path / "services/a/evals/deeper").mkdir()
    (tmp_path / "services/a/evals/deeper/more.golden.json").write_bytes(
        (tmp_path / "services/a/evals/weather.golden.json").read_bytes().replace(b"gs-000", b"gs-900")
    )
    (tmp_path / "services/tsconfig.base.json").write_text("{ // a remark\n}")
    (tmp_path / "data").mkdir()
    (tmp_path / "data/list.json").write_text('[{"id": 1}]')
    venv = tmp_path / "venv"
    venv.mkdir()
    (venv / "pyvenv.cfg").write_text("")
    write_suite(venv, 1)
    done = init(tmp_path)
    assert done.returncode == 0, done.stderr
    golden("init/several.txt", done.stdout)
    assert config(tmp_path) == USUAL | {
        "evals": ["services/a/evals", "services/b/evals"],
        "agentEndpoint": "http://localhost:8080/chat",
    }
    assert not (tmp_path / "evals").exists()
    assert gate(tmp_path, "validate").stdout.splitlines()[-1] == "3 cases in 3 suites: 0 problems, 0 warnings"


def misspelt(folder: Path) -> None:
    case = {"id": "a", "input": {"message": "hi"}, "expect": {"toolsCaled": ["search"]}}
    (folder / "evals").mkdir(exist_ok=True)
    (folder / "evals" / "search.golden.json").write_text(json.dumps([case]))


def test_init__a_key_that_is_misspelt_later__is_an_error_and_no_green_run(tmp_path) -> None:
    assert gate(tmp_path, "init").returncode == 0
    misspelt(tmp_path)
    done = gate(tmp_path, "run", "--agent-endpoint", "http://127.0.0.1:9/chat")
    assert (done.returncode, 'did you mean "toolsCalled"?' in done.stderr) == (2, True)


def test_init__broken_eval_in_evals__counts_as_an_eval(tmp_path) -> None:
    write_suite(tmp_path, 1).write_text("[{")
    done = init(tmp_path)
    assert "kept        evals: has evals" in done.stdout
    assert config(tmp_path)["evals"] == ["evals"]
    assert gate(tmp_path, "validate").returncode == 2


def test_init__results_of_runs__are_no_evals(tmp_path) -> None:
    with agent() as running:
        init(tmp_path, "--agent-endpoint", running.url)
        gate(tmp_path, "run")
    (tmp_path / "evals/hello.golden.json").unlink()
    assert "written     evals/hello.golden.json" in init(tmp_path).stdout


def test_init__agentv_evals_with_their_targets__leave_the_choice_to_these(tmp_path) -> None:
    (tmp_path / "checks").mkdir()
    (tmp_path / "checks/desk.yaml").write_text(
        "evalcases:\n  - {id: a, expected_outcome: Answers., input_messages: Hello}\n"
    )
    (tmp_path / "checks/targets.yaml").write_text("targets: [{name: default, provider: mock, judge_target: default}]\n")
    assert init(tmp_path).returncode == 0
    assert config(tmp_path) == STRICT | {"evals": ["checks"]}
    written = (tmp_path / "eval-gate.yaml").read_text()
    assert "described in checks/targets.yaml" in written
    assert "\n# concurrency: 4\n" in written, "a list has `workers` of its own"
    assert "eval-gate/eval-gate/host@" in (tmp_path / WORKFLOW).read_text(), "a target of the list may be a program"
    assert gate(tmp_path, "validate").returncode == 0


def test_init__agent_evals_suites__need_nobody_else(tmp_path) -> None:
    init(tmp_path, "--format", "agent-evals")
    (tmp_path / "eval-gate.yaml").unlink()
    (tmp_path / WORKFLOW).unlink()
    (tmp_path / "evals").rename(tmp_path / "suites")
    done = init(tmp_path)
    assert config(tmp_path) == USUAL | {"evals": ["suites"]}
    assert gate_step(tmp_path)["env"] == {"OPENAI_API_KEY": "${{ secrets.OPENAI_API_KEY }}"}
    assert "export OPENAI_API_KEY=..." in done.stdout
    assert gate(tmp_path, "validate").returncode == 0


def test_init__configuration_is_there__is_left_alone_and_believed(tmp_path) -> None:
    (tmp_path / "eval-gate.yml").write_text(
        "evals: [checks]\nagentEndpoint: http://localhost:7000/ask\noutputDir: out\n"
    )
    before = (tmp_path / "eval-gate.yml").read_bytes()
    done = init(tmp_path)
    assert done.returncode == 0
    assert set(files_in(tmp_path)) == {WORKFLOW, "eval-gate.yml", "checks/hello.golden.json", ".gitignore"}
    assert (tmp_path / "eval-gate.yml").read_bytes() == before
    assert gate_step(tmp_path)["with"] == {"agent-endpoint": "http://host.docker.internal:7000/ask"}
    assert (tmp_path / ".gitignore").read_text().splitlines()[-1] == "out/"
    assert "# eval-gate.yml says what to run." in (tmp_path / WORKFLOW).read_text()
    assert ["eval-gate", "run"] in printed_commands(done)


@pytest.mark.parametrize("before", ["concurrency: 2\n", "agentEndpoint: http://localhost:7000/ask\n"])
def test_init__configuration_of_a_person__is_kept_and_a_step_names_the_lines_that_it_lacks(tmp_path, before) -> None:
    (tmp_path / "eval-gate.yaml").write_text(before)
    done = init(tmp_path, *WAYS["model"])
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "eval-gate.yaml").read_text() == before
    assert "Name the target in your configuration:\n     provider: openai\n     model: gpt-4o\n" in done.stdout
    assert "with" not in gate_step(tmp_path)


def test_init__configuration_that_is_not_valid__writes_nothing(tmp_path) -> None:
    (tmp_path / "eval-gate.yaml").write_text("evalz: [evals]\n")
    done = init(tmp_path)
    assert done.returncode == 2
    assert 'eval-gate.yaml:1: evalz: unknown key (did you mean "evals"?)' in done.stderr
    assert set(files_in(tmp_path)) == {"eval-gate.yaml"}


@pytest.mark.parametrize(
    ("rules", "lacks"),
    [("node_modules/\n", True), ("evals/results\n", False), ("# evals/results/\n", True), ("", True)],
)
@pytest.mark.parametrize("repository", [True, False])
def test_init__gitignore_is_there__is_not_changed_and_it_says_what_is_missing(
    tmp_path, rules, lacks, repository
) -> None:
    if repository:
        git(tmp_path, "init")
    (tmp_path / ".gitignore").write_text(rules)
    done = init(tmp_path)
    assert (tmp_path / ".gitignore").read_text() == rules
    assert ("     echo evals/results/ >> .gitignore" in done.stdout) is lacks


def test_init__gitignore_with_a_wider_rule__lacks_nothing(tmp_path) -> None:
    git(tmp_path, "init")
    (tmp_path / ".gitignore").write_text("results\n")
    assert "echo" not in init(tmp_path).stdout


def test_init__below_the_root_of_a_repository__writes_no_workflow_and_says_why(tmp_path) -> None:
    git(tmp_path, "init")
    (tmp_path / "services/bot").mkdir(parents=True)
    done = init(tmp_path, "services/bot")
    assert done.returncode == 0
    assert set(files_in(tmp_path)) == {
        f"services/bot/{name}" for name in ("eval-gate.yaml", "evals/hello.golden.json", ".gitignore")
    }
    assert "only at the root of the repository: run `eval-gate init .`" in done.stdout
    assert init(tmp_path, "--format", "agentv").returncode == 0
    assert config(tmp_path)["evals"] == ["services/bot/evals"]


def test_init__without_a_workflow__writes_the_rest(tmp_path) -> None:
    done = init(tmp_path, "--no-workflow")
    assert set(files_in(tmp_path)) == EVERYTHING - {WORKFLOW}
    assert "workflow" not in done.stdout


def test_init__dry_run__shows_every_text_and_writes_nothing(tmp_path) -> None:
    done = init(tmp_path, "--dry-run")
    assert (done.returncode, files_in(tmp_path)) == (0, {})
    for name in EVERYTHING:
        assert f"would write  {name}\n" in done.stdout
        assert f"\n=== {name}\n" in done.stdout
    shown = done.stdout
    init(tmp_path)
    for text in files_in(tmp_path).values():
        assert text.decode() in shown
    assert init(tmp_path, "--dry-run", "--quiet").stdout.count("\n") == 4


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("nowhere",), "folder-not-found"),
        (("file",), "folder-not-found"),
        (("--agent-endpoint", "localhost:8080"), "invalid-url"),
        (("--agent-endpoint", "http://user:secret@agent.example/"), "invalid-url"),
        (("--agent-endpoint", "http://agent.example/?key=1"), "invalid-url"),
        (("--agent-endpoint", "http://agent.example/${{ secrets.A }}"), "invalid-url"),
        (("--agent-endpoint", "http://agent.example/\nx: y"), "invalid-url"),
        (("--agent-endpoint", "http://agent.example", "--model", "openai:gpt-4o"), "conflicting-targets"),
        (("--provider", "nobody", "--model", "m"), "invalid-targets"),
        (("--provider", "openai"), "invalid-targets"),
    ],
)
def test_init__wrong_arguments__are_an_error_and_nothing_is_written(tmp_path, arguments, code) -> None:
    (tmp_path / "file").write_text("")
    done = init(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"error[{code}]" in done.stderr
    assert "  hint: " in done.stderr
    assert "secret@" not in done.stderr
    assert set(files_in(tmp_path)) == {"file"}


def test_init__unknown_format__is_a_usage_error(tmp_path) -> None:
    done = init(tmp_path, "--format", "xml")
    assert (done.returncode, "agent-evals" in done.stderr, files_in(tmp_path)) == (2, True, {})


def test_init__link_out_of_the_folder__is_refused_with_every_obstacle(tmp_path, golden) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    folder.mkdir()
    (folder / ".github").symlink_to("../outside")
    (folder / "evals").write_text("a file where a folder should be")
    done = init(folder)
    assert (done.returncode, done.stdout) == (2, "")
    golden("init/refused.txt", done.stderr)
    assert list(outside.iterdir()) == []
    assert sorted(entry.name for entry in folder.iterdir()) == [".github", "evals"]
    assert init(folder, "--dry-run").returncode == 2


@pytest.mark.parametrize("link", [".github", ".github/workflows", "evals"])
@pytest.mark.parametrize("there", [True, False], ids=["leads-somewhere", "leads-nowhere"])
def test_init__any_folder_a_link_out__writes_nothing(tmp_path, link, there) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "inside"
    (folder / link).parent.mkdir(parents=True)
    if there:
        outside.mkdir()
    (folder / link).symlink_to(outside)
    done = init(folder)
    assert done.returncode == 2
    said = (f"{link} is a link to a place outside of the folder", "is outside of the working directory")
    assert any(words in done.stderr for words in said)
    assert files_in(folder) == {}
    assert not there or list(outside.iterdir()) == []


def test_init__link_inside_the_folder__is_followed(tmp_path) -> None:
    (tmp_path / "ci").mkdir()
    (tmp_path / ".github").symlink_to("ci")
    assert init(tmp_path).returncode == 0
    assert (tmp_path / "ci/workflows/eval-gate.yml").is_file()


def test_init__link_in_place_of_a_file__is_left_alone(tmp_path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside/.gitignore").symlink_to("../elsewhere")
    done = init(tmp_path / "inside")
    assert done.returncode == 0
    assert "kept        .gitignore: exists already" in done.stdout
    assert not (tmp_path / "elsewhere").exists()


def test_init__folder_that_is_a_link__is_written_to(tmp_path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert init(tmp_path, "link").returncode == 0
    assert set(files_in(tmp_path / "real")) == EVERYTHING


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only for root")
@pytest.mark.parametrize("locked", [".", ".github/workflows", "evals"])
def test_init__read_only_folder__writes_nothing(tmp_path, locked) -> None:
    place = tmp_path / locked
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o555)
    try:
        done = init(tmp_path)
    finally:
        place.chmod(0o755)
    assert done.returncode == 2
    assert "error[file-not-writable]" in done.stderr
    assert files_in(tmp_path) == {}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look into every folder")
def test_init__folder_that_cannot_be_looked_into__is_passed_over(tmp_path) -> None:
    (tmp_path / "database").mkdir(mode=0o000)
    try:
        assert init(tmp_path).returncode == 0
    finally:
        (tmp_path / "database").chmod(0o755)


@pytest.mark.parametrize("bad", ["n" * 300, "there", "there/below"])
def test_write_new__one_file_that_cannot_be_written__leaves_nothing_behind(tmp_path, bad) -> None:
    (tmp_path / "there").write_text("mine")
    with pytest.raises(GateError) as caught:
        write_files(tmp_path, {"a/b/first": "x", "second": "y", bad: "z"})
    assert (caught.value.code, caught.value.problems[0].file) == ("file-not-writable", bad)
    assert files_in(tmp_path) == {"there": b"mine"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["there"]


def test_evals_anywhere__more_files_than_are_looked_at__says_so(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(folder_contents, "MAX_FILES", 3)
    (tmp_path / "data").mkdir()
    for number in range(5):
        (tmp_path / f"data/{number}.json").write_text("{}")
    write_suite(tmp_path, 1)
    evals = folder_contents.find_all_evals(tmp_path)
    assert (evals.places, evals.complete) == (("evals",), False)


@given(st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1, max_size=3))
def test_config__any_places__are_read_back_as_they_are(places) -> None:
    for kind in (
        EvaluatedAgent(AgentPlace.DESCRIBED),
        EvaluatedAgent(AgentPlace.MODEL, provider=places[0], model=places[-1]),
    ):
        read = yaml.safe_load(file_texts.render_config(kind, places))
        assert read["evals"] == places
        assert (read.get("provider"), read.get("model")) == (kind.provider, kind.model)


def test_templates__actions_of_others__are_pinned_as_in_the_examples() -> None:
    example = (ROOT / "examples/workflows/agent-in-a-step.yml").read_text()
    for file in FILES.glob("*.yml"):
        pins = re.findall(r"uses: (?!eval-gate/)\S+ # \S+", file.read_text())
        assert pins
        assert all(pin in example for pin in pins)


@pytest.mark.parametrize("linter", LINTERS)
def test_templates__as_they_are__pass_the_linters(linter) -> None:
    done = lint(linter, *FILES.glob("*.yml"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_templates__schemas__take_them() -> None:
    import jsonschema

    from eval_gate.cli.repository.schema import build_document_schema

    files = {
        "eval-gate.yaml": "config",
        "hello.golden.json": "tool-forge",
        "hello.eval.yaml": "agentv",
        "hello.json": "agent-evals",
    }
    for name, kind in files.items():
        text = (FILES / name).read_text()
        jsonschema.validate(
            yaml.safe_load(text) if name.endswith("yaml") else json.loads(text), build_document_schema(kind)
        )


def test_help__names_the_command(tmp_path) -> None:
    assert "  init" in gate(tmp_path, "--help").stdout


def test_init__agent_that_is_a_command__is_run_from_the_folder(tmp_path) -> None:
    (tmp_path / "agent.py").write_text("import sys\nprint('hello', sys.argv[1])\n")
    command = "python3 agent.py {PROMPT}"
    assert gate(tmp_path, "init", "--agent-command", command).returncode == 0
    config = yaml.safe_load((tmp_path / "eval-gate.yaml").read_text())
    assert (config["targets"], config["target"]) == ("targets.yaml", "agent")
    (written,) = yaml.safe_load((tmp_path / "targets.yaml").read_text())["targets"]
    assert written == {"name": "agent", "provider": "cli", "command_template": command, "cwd": ".."}
    assert "agent-endpoint:" not in (tmp_path / WORKFLOW).read_text()
    assert gate(tmp_path, "validate").returncode == 0
    done = gate(tmp_path, "run")
    assert "hello" in json.dumps(json.loads(next(tmp_path.glob("evals/results/*/run.json")).read_text())), done.stderr
    assert "can't open file" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["python3 agent.py"], "has neither {PROMPT} nor {PROMPT_FILE}"),
        (
            ["python3 agent.py {PROMPT}", "--agent-endpoint", "http://localhost:9000"],
            "cannot be combined with agentEndpoint",
        ),
    ],
)
def test_init__command_that_cannot_be_the_agent__writes_nothing(tmp_path, arguments, said) -> None:
    done = gate(tmp_path, "init", "--agent-command", *arguments)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert not list(tmp_path.iterdir())


def test_init__command_beside_a_configuration__works_once_the_configuration_names_it(tmp_path) -> None:
    (tmp_path / "eval-gate.yaml").write_text("evals: [evals]\n")
    done = gate(tmp_path, "init", "--agent-command", "echo {PROMPT}")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "eval-gate.yaml").read_text() == "evals: [evals]\n"
    lines = [line.strip() for line in done.stdout.splitlines() if line.startswith("     target")]
    assert lines == ["targets: targets.yaml", "target: agent"]
    (tmp_path / "eval-gate.yaml").write_text("\n".join(["evals: [evals]", *lines, ""]))
    for program, *words in printed_commands(done):
        if program == "eval-gate":
            assert gate(tmp_path, *words).returncode == 0
    assert "Name the target" not in gate(tmp_path, "init", "--agent-command", "echo {PROMPT}").stdout
