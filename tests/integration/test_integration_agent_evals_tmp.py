"""`tmp/` of Agent Evals suites: the real one for the command, a fresh copy of it as part of a gate."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.integration.test_integration_agent_evals import KEY, agent_evals, case, report, suite
from tests.integration.test_integration_run import gate, record
from tests.support.model_server import model_server, openai_answer
from tests.support.traps import bare_repository

TOOLS = ["readFile", "writeFile", "listFiles", "deleteFile"]
DONE = openai_answer("Done.")
BASE = ("--base-url", "http://localhost:9/v1")


def calls(name: str, **params: str):
    return openai_answer(None, [("call_1", name, params)])


def holds(path: str, value: str) -> dict:
    return {"type": "fileContains", "path": path, "value": value}


def asserting(case_id: str, *assertions: dict) -> dict:
    return case(case_id, assertions=[*assertions])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A suite `s` is to be written; its tmp/ holds a fixture."""
    (tmp_path / "suites").mkdir()
    (tmp_path / "tmp" / "data").mkdir(parents=True)
    (tmp_path / "tmp" / "data" / "menu.txt").write_text("soup\n")
    return tmp_path


def with_suite(project: Path, *cases: dict, name: str = "s", tools: list[str] = TOOLS) -> None:
    (project / "suites" / f"{name}.json").write_text(suite(name, *cases, tools=tools))


def run(project: Path, server, *options: str):
    base = ("run", "suites", "--provider", "openai-compatible", "--model", "m", "--base-url", f"{server.url}/v1")
    return gate(project, *base, *options, **KEY)


def left(project: Path) -> list[Path]:
    return sorted(project.glob("evals/results/*/workspace-*.md"))


@pytest.mark.contract("agent_evals.files.tmp")
@pytest.mark.parametrize("place", ["tmp", "scratch/of mine"])
def test_command__fixture_in_tmp__is_seen_and_what_tools_write_stays(project, place) -> None:
    arguments = ("--all",)
    if place != "tmp":
        (project / place).parent.mkdir()
        (project / "tmp").rename(project / place)
        arguments = ("--all", "--tmp-dir", place)
    with_suite(
        project,
        asserting("reads", holds("data/menu.txt", "soup"), {"type": "contains", "value": "soup"}),
        asserting("writes", holds("data/new.txt", "salad"), {"type": "fileExists", "path": "data"}),
        asserting("finds", {"type": "fileNotExists", "path": "data/menu.txt"}, holds("data/new.txt", "salad")),
    )
    answers = (
        *(calls("readFile", path="data/menu.txt"), openai_answer("It says soup.")),
        *(calls("writeFile", path="data/new.txt", content="salad"), DONE),
        *(calls("deleteFile", path="data/menu.txt"), DONE),
    )
    with model_server(*answers) as server:
        done = agent_evals(project, *arguments, server=server)
        told = server.requests[1].body["messages"][-1]["content"]
    assert done.returncode == 0, done.stdout + done.stderr
    assert told == "soup\n"
    data = project / place / "data"
    assert {path.name: path.read_text() for path in data.iterdir()} == {"new.txt": "salad"}


@pytest.mark.contract("agent_evals.files.tmp")
@pytest.mark.slow
def test_command__second_run__finds_what_the_first_left(project) -> None:
    with_suite(project, asserting("c", holds("log.txt", "first")))
    with model_server(calls("writeFile", path="log.txt", content="first"), DONE, DONE) as server:
        codes = [agent_evals(project, "--all", server=server).returncode for _ in range(2)]
    assert codes == [0, 0]


@pytest.mark.contract("agent_evals.files.tmp")
@pytest.mark.slow
def test_command__tmp_full_of_other_things__is_no_reason_to_fail(project) -> None:
    for number in range(1_200):
        (project / "tmp" / "data" / f"{number}.bin").write_bytes(b"\xff" * 10)
    (project / "tmp" / "huge.bin").write_bytes(b"\0" * 12_000_000)
    with_suite(project, asserting("c", holds("data/menu.txt", "soup"), holds("new.txt", "x")))
    with model_server(calls("writeFile", path="new.txt", content="x"), DONE) as server:
        done = agent_evals(project, "--all", server=server)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.contract("agent_evals.files.tmp")
@pytest.mark.parametrize("path", ["agent-evals/latest.json", "Agent-Evals/./LATEST.json", "agent-evals/reports/x.json"])
def test_command__tool_would_write_over_results__is_refused(project, path) -> None:
    with_suite(project, case("c", "not allowed"))
    with model_server(calls("writeFile", path=path, content="{}"), openai_answer("It is not allowed.")) as server:
        done = agent_evals(project, "--all", server=server)
        told = server.requests[1].body["messages"][-1]["content"]
    assert done.returncode == 0, done.stdout + done.stderr
    assert told == "Error: Path belongs to the results of this run."
    assert json.loads((project / "tmp" / "agent-evals" / "latest.json").read_text())["path"]
    assert report(project)["summary"]["passed"] == 1


@pytest.mark.contract("agent_evals.files.tmp", "agent_evals.files.traversal")
@pytest.mark.slow
def test_command__tool_would_write_into_the_record__is_refused(project) -> None:
    with_suite(project, case("c", "x"), case("d", "x"))
    with model_server(openai_answer("x")) as server:
        assert agent_evals(project, "--all", server=server).returncode == 0
    (earlier,) = [path for path in (project / "tmp" / "agent-evals").iterdir() if (path / "run.json").is_file()]
    before = (earlier / "run.json").read_bytes()
    with model_server(
        calls("writeFile", path=f"agent-evals/{earlier.name}/run.json", content="{}"), openai_answer("x")
    ) as server:
        assert agent_evals(project, "--all", server=server).returncode == 0
        assert server.requests[1].body["messages"][-1]["content"].startswith("Error: Path belongs to the results")
    assert (earlier / "run.json").read_bytes() == before


@pytest.mark.contract("agent_evals.files.tmp", "agent_evals.files.traversal")
def test_command__link_in_tmp__is_not_followed(project) -> None:
    (project / "secret.txt").write_text("soup")
    (project / "tmp" / "way").symlink_to(project / "secret.txt")
    with_suite(project, asserting("c", holds("way", "soup")))
    with model_server(calls("readFile", path="way"), DONE) as server:
        done = agent_evals(project, "--all", "--verbose", server=server)
        assert server.requests[1].body["messages"][-1]["content"] == "Error: Symlink paths are not allowed."
    assert done.returncode == 1
    assert "Symlink paths are not allowed." in done.stdout


@pytest.mark.contract("agent_evals.files.tmp")
@pytest.mark.slow
def test_command__several_models__each_begin_with_a_copy_and_tmp_is_as_it_was(project) -> None:
    with_suite(project, asserting("c", {"type": "fileNotExists", "path": "data/menu.txt"}))
    answers = (calls("deleteFile", path="data/menu.txt"), DONE) * 2
    with model_server(*answers) as server:
        done = agent_evals(project, "--all", "--model", "gpt-5-mini", "--model", "gpt-5", server=server)
        told = [asked.body["messages"][-1]["content"] for asked in server.requests[1::2]]
    assert done.returncode == 0, done.stdout + done.stderr
    assert told == ["Deleted tmp/data/menu.txt"] * 2
    assert (project / "tmp" / "data" / "menu.txt").read_text() == "soup\n"


@pytest.mark.contract("agent_evals.files.tmp")
def test_run__each_suite__begins_with_a_fresh_copy_and_tmp_is_as_it_was(project) -> None:
    deletes = asserting("c", {"type": "fileNotExists", "path": "data/menu.txt"}, holds("new.txt", "x"))
    still = asserting("d", holds("new.txt", "x"), {"type": "fileNotExists", "path": "data/menu.txt"})
    for name in ("one", "two"):
        with_suite(project, deletes, still, name=name)
    one = (calls("deleteFile", path="data/menu.txt"), calls("writeFile", path="new.txt", content="x"), DONE, DONE)
    with model_server(*one, *one) as server:
        done = run(project, server)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [(path.name, path.read_text()) for path in (project / "tmp").rglob("*") if path.is_file()] == [
        ("menu.txt", "soup\n")
    ]
    assert left(project) == []


@pytest.mark.contract("agent_evals.files.left")
def test_run__case_fails__what_it_left_is_kept_beside_the_record_and_named(project) -> None:
    with_suite(project, asserting("good", holds("data/menu.txt", "soup")), asserting("bad", holds("new.txt", "salad")))
    fenced = "```\n[x](http://evil)\n````\n"
    with model_server(DONE, calls("writeFile", path="new.txt", content=fenced), DONE) as server:
        done = run(project, server)
    assert done.returncode == 1, done.stdout + done.stderr
    (file,) = left(project)
    (said,) = [one for one in record(project)["suites"][0]["cases"][1]["warnings"] if "artifacts" in one]
    assert said == f"workspace artifacts are kept next to the run result: {file.name} (1 file)"
    assert f"bad: {said}" in done.stdout
    text = file.read_text()
    assert f"`````\n{fenced}`````" in text
    assert "menu.txt" not in text
    assert "1 more file did not change." in text


@pytest.mark.contract("agent_evals.files.left")
@pytest.mark.slow
def test_run__answers_are_not_stored__nothing_is_kept_of_files_either(project) -> None:
    with_suite(project, asserting("bad", holds("new.txt", "salad")))
    with model_server(calls("writeFile", path="new.txt", content="soup"), DONE) as server:
        done = run(project, server, "--keep-responses", "none")
    assert done.returncode == 1, done.stdout + done.stderr
    assert left(project) == []


@pytest.mark.contract("agent_evals.files.left")
@pytest.mark.slow
def test_run__what_is_left_holds_secrets__they_are_masked(project) -> None:
    with_suite(project, asserting("bad", holds("new.txt", "salad")))
    content = f"the key is {KEY['OPENAI_API_KEY']}, the number 4711-0815"
    (project / "eval-gate.yaml").write_text("redact: ['\\d{4}-\\d{4}']\n")
    with model_server(calls("writeFile", path="0815-4711.txt", content=content), DONE) as server:
        done = gate(project, "run", "suites", OPENAI_BASE_URL=f"{server.url}/v1", **KEY)
    assert done.returncode == 1, done.stdout + done.stderr
    (file,) = left(project)
    text = file.read_text()
    assert "the key is ***, the number ***" in text
    assert "4711" not in text + file.name


@pytest.mark.contract("agent_evals.files.tmp", "agent_evals.files.traversal")
@pytest.mark.slow
def test_run__links_and_results_in_tmp__are_not_copied(project) -> None:
    with_suite(project, asserting("c", {"type": "contains", "value": "Done"}))
    with model_server(DONE) as server:
        assert agent_evals(project, "--all", server=server).returncode == 0
    (project / "secret.txt").write_text("x")
    (project / "tmp" / "way").symlink_to(project / "secret.txt")
    with model_server(calls("listFiles", path=""), calls("listFiles", path="agent-evals"), DONE) as server:
        done = run(project, server)
        told = [asked.body["messages"][-1]["content"] for asked in server.requests[1:]]
    assert done.returncode == 0, done.stdout + done.stderr
    assert told == ["Contents of tmp:\n[dir] agent-evals\n[dir] data", "tmp/agent-evals is empty"]
    assert "tmp/way is not copied for agents: Symlink paths are not allowed." in done.stdout


@pytest.mark.contract("agent_evals.files.tmp")
@pytest.mark.slow
def test_run__too_much_in_tmp__is_said_before_anything_is_asked(project) -> None:
    (project / "tmp" / "huge.bin").write_bytes(b"\0" * 12_000_000)
    with_suite(project, asserting("c", {"type": "contains", "value": "Done"}))
    with model_server(DONE) as server:
        done = run(project, server)
        assert server.requests == []
    assert done.returncode == 2, done.stdout + done.stderr
    assert "tmp cannot be copied for agents" in done.stderr


@pytest.mark.contract("agent_evals.files.tmp")
@pytest.mark.slow
def test_run__agents_without_tools__do_not_look_at_tmp(project) -> None:
    (project / "tmp" / "huge.bin").write_bytes(b"\0" * 12_000_000)
    with_suite(project, case("c", "Done"), tools=[])
    with model_server(DONE) as server:
        done = run(project, server)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("path", "code"), [("data/menu.txt", 1), ("data/soup.txt", 0)])
def test_run__agent_without_tools__its_folder_is_looked_at_all_the_same(project, path, code) -> None:
    """What was not looked at is not known to be missing."""
    with_suite(project, asserting("c", {"type": "fileNotExists", "path": path}), tools=[])
    with model_server(DONE) as server:
        done = run(project, server)
    assert done.returncode == code, done.stdout + done.stderr


@pytest.mark.contract("agent_evals.files.tmp")
@pytest.mark.parametrize("tools", [[], ["readFile"]])
def test_command__agent_that_writes_nothing__what_lies_in_tmp_decides_without_a_warning(project, tools) -> None:
    there = asserting("there", {"type": "fileExists", "path": "data/menu.txt"}, holds("data/menu.txt", "soup"))
    with_suite(project, there, asserting("gone", {"type": "fileExists", "path": "data/no.txt"}), tools=tools)
    with model_server(DONE, DONE) as server:
        done = agent_evals(project, "--all", server=server)
    assert done.returncode == 1, done.stdout + done.stderr
    assert [one["status"] for one in report(project)["suites"][0]["cases"]] == ["pass", "fail"]
    assert "no tool that writes" not in done.stdout + done.stderr


@pytest.mark.contract("agent_evals.files.tmp")
def test_run__in_a_checkout__only_what_git_tracks_is_copied(project) -> None:
    """Else a note that an earlier run of the command has left would let an agent pass that writes none."""
    (project / ".gitignore").write_text("/tmp/*.log\n")
    for command in (["init", "-q"], ["add", "tmp/data"]):
        subprocess.run(["git", *command], cwd=project, check=True)
    for number in range(700):
        (project / "tmp" / f"{number}.log").touch()
    (project / "tmp" / "data" / "left.txt").write_text("by an earlier run")
    gone = {"type": "fileNotExists", "path": "data/left.txt"}
    with_suite(project, asserting("c", holds("data/menu.txt", "soup"), gone))
    with model_server(calls("listFiles", path=""), DONE) as server:
        done = run(project, server)
        assert server.requests[1].body["messages"][-1]["content"] == "Contents of tmp:\n[dir] data"
    assert done.returncode == 0, done.stdout + done.stderr
    assert "files that git does not track in tmp are not copied for agents, such as" in done.stdout


@pytest.mark.contract("agent_evals.files.tmp", "agent_evals.files.traversal")
@pytest.mark.slow
def test_run__tracked_link__is_not_followed(project) -> None:
    (project / "secret.txt").write_text("x")
    (project / "tmp" / "way").symlink_to(project / "secret.txt")
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", *command], cwd=project, check=True)
    with_suite(project, asserting("c", {"type": "fileNotExists", "path": "way"}))
    with model_server(DONE) as server:
        done = run(project, server)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tmp/way is not copied for agents: Symlink paths are not allowed." in done.stdout


@pytest.mark.contract("agent_evals.files.tmp")
@pytest.mark.parametrize("checkout", [False, True])
def test_run__name_that_is_no_text__is_left_out_and_said(project, checkout) -> None:
    (project / "tmp" / os.fsdecode(b"odd\xff")).touch()
    if checkout:
        for command in (["init", "-q"], ["add", "."]):
            subprocess.run(["git", *command], cwd=project, check=True)
    with_suite(project, asserting("c", {"type": "contains", "value": "Done"}))
    with model_server(DONE) as server:
        done = run(project, server)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "is not copied for agents" in done.stdout


@pytest.mark.contract("agent_evals.files.tmp")
@pytest.mark.slow
def test_run__tmp_is_made_to_look_like_a_repository__git_starts_nothing_that_it_names(project, tmp_path) -> None:
    """With our keys: what a pull request commits as tmp/HEAD, tmp/config and so on is a repository to git."""
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    bare_repository(project / "tmp", f"env > {tmp_path}/ran")
    subprocess.run(["git", "add", "tmp/data"], cwd=project, check=True)
    with_suite(project, asserting("c", holds("data/menu.txt", "soup")))
    with model_server(calls("listFiles", path=""), DONE) as server:
        done = run(project, server)
        assert server.requests[1].body["messages"][-1]["content"] == "Contents of tmp:\n[dir] data"
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.contract("agent_evals.files.tmp")
@pytest.mark.slow
def test_run__fixture_in_tmp_changes__is_said_of_cases_that_pass_and_they_are_still_compared(project) -> None:
    """Else a pull request commits the file that its agent does not write any more."""
    wanted = {"type": "fileExists", "path": "report.txt"}
    with_suite(project, asserting("writes", wanted), asserting("says", {"type": "contains", "value": "Done"}))
    again = ("--baseline", "latest", "--fail-on", "changed, regressions")
    good = (calls("writeFile", path="report.txt", content="x"), DONE, DONE)
    with model_server(*good, *good, DONE, openai_answer("No.")) as server:
        assert run(project, server, "--fail-on", "changed, regressions").returncode == 0
        same = run(project, server, *again)
        assert same.returncode == 0, same.stdout + same.stderr
        (project / "tmp" / "report.txt").write_text("x")
        done = run(project, server, *again)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 cases that pass in the baseline have a changed prompt" in done.stdout
    assert "1 regression" in done.stdout


@pytest.mark.contract("agent_evals.files.tmp")
@pytest.mark.slow
def test_run__too_many_folders_in_a_tracked_tmp__is_said_before_anything_is_asked(project) -> None:
    for number in range(300):
        (project / "tmp" / str(number)).mkdir()
        (project / "tmp" / str(number) / "file").touch()
    for command in (["init", "-q"], ["add", "tmp"]):
        subprocess.run(["git", *command], cwd=project, check=True)
    with_suite(project, asserting("c", {"type": "contains", "value": "Done"}))
    with model_server(DONE) as server:
        done = run(project, server)
        assert server.requests == []
    assert done.returncode == 2, done.stdout + done.stderr
    assert "There are more than 500 files and folders." in done.stderr


def test_validate_strict__suite_whose_agent_may_only_read_or_delete__is_refused_only_where_nothing_can_happen(
    project,
) -> None:
    gone = {"type": "fileNotExists", "path": "data/menu.txt"}
    with_suite(project, asserting("a", gone), tools=["deleteFile"])
    done = gate(project, "validate", "suites", "--strict", "--provider", "openai-compatible", "--model", "m", *BASE)
    assert (done.returncode, "always" in done.stderr) == (0, False), done.stderr
    with_suite(project, asserting("a", gone, holds("data/menu.txt", "soup")), tools=["readFile"])
    done = gate(project, "validate", "suites", "--strict", "--provider", "openai-compatible", "--model", "m", *BASE)
    assert (done.returncode, "always" in done.stderr) == (0, False), done.stderr
    with_suite(project, asserting("a", {"type": "fileNotExists", "path": "new.txt"}), tools=["readFile"])
    done = gate(project, "validate", "suites", "--strict", "--provider", "openai-compatible", "--model", "m", *BASE)
    assert done.returncode == 2
    assert "the agent has no tool that writes files: this always holds" in done.stderr
