"""Cases of an Agent Evals suite that work on each other's files: what comes before one is part of its measure."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.integration.test_integration_agent_evals import KEY, case, suite
from tests.integration.test_integration_run import gate, record
from tests.support.agents import Exchange, agent
from tests.support.model_server import openai_answer

pytestmark = pytest.mark.slow  # the libraries of the vendors take a second to load

TOOLS = ["readFile", "writeFile", "deleteFile"]
BLOCKING = ("--baseline", "latest", "--fail-on", "regressions, changed")


@dataclass
class FileAgent:
    """Does what a prompt says (`write NAME`, `delete NAME`), but for what it has forgotten; remembers its prompts."""

    forgotten: set[str] = field(default_factory=set)
    forgotten_once: set[str] = field(default_factory=set)
    """What it forgets the next time, and never again."""
    gone: set[str] = field(default_factory=set)
    """Prompts to which the service has no answer."""
    prompts: list[str] = field(default_factory=list)
    url: str = ""

    async def handle(self, exchange: Exchange) -> None:
        messages = exchange.json["messages"]
        prompt = next(one["content"] for one in messages if one["role"] == "user")
        if messages[-1]["role"] == "user":
            self.prompts.append(prompt)
        if prompt in self.gone:
            exchange.answer({"error": {"message": "gone"}}, "400 Bad Request")
            return
        verb, _, name = prompt.partition(" ")
        forgets = prompt in self.forgotten | self.forgotten_once
        self.forgotten_once.discard(prompt)
        done = messages[-1]["role"] == "tool" or forgets or verb not in {"write", "delete"}
        given = {"path": name} | ({"content": "x"} if verb == "write" else {})
        call = openai_answer(None, [("call_1", "writeFile" if verb == "write" else "deleteFile", given)])
        exchange.answer(openai_answer("Done.") if done else call)


@contextmanager
def file_agent() -> Iterator[FileAgent]:
    made = FileAgent()
    with agent(made.handle) as running:
        made.url = f"http://127.0.0.1:{running.port}/v1"
        yield made


def asserting(case_id: str, prompt: str, kind: str = "contains", **fields: str) -> dict:
    return case(case_id, prompt=prompt, assertions=[{"type": kind, **(fields or {"value": "Done"})}])


WRITES = asserting("writes", "write a.txt", "fileExists", path="a.txt")
DELETES = asserting("deletes", "delete a.txt", "fileNotExists", path="a.txt")
SAYS = asserting("says", "say")


def with_cases(folder: Path, *cases: dict, tools: list[str] = TOOLS) -> None:
    (folder / "suites").mkdir(exist_ok=True)
    (folder / "suites" / "s.json").write_text(suite("s", *cases, tools=tools))


def run(folder: Path, model: FileAgent, *options: str):
    base = ("run", "suites", "--provider", "openai-compatible", "--model", "m", "--base-url", model.url)
    return gate(folder, *base, *options, **KEY)


@pytest.mark.contract("agent_evals.run.cases_before")
@pytest.mark.parametrize(
    "bent",
    [
        [DELETES, WRITES, SAYS],
        [WRITES, asserting("new", "delete ./a.txt"), DELETES, SAYS],
        [asserting("writes", "write b.txt", "fileExists", path="b.txt"), DELETES, SAYS],
    ],
    ids=["reordered", "a new case does it", "the case before asks for something else"],
)
def test_run__other_cases_before_one_that_breaks__is_said_and_blocks(tmp_path, bent) -> None:
    with file_agent() as model:
        with_cases(tmp_path, WRITES, DELETES, SAYS)
        assert run(tmp_path, model, *BLOCKING[2:]).returncode == 0
        same = run(tmp_path, model, *BLOCKING)
        assert same.returncode == 0, same.stdout + same.stderr
        model.forgotten.add("delete a.txt")
        with_cases(tmp_path, *bent)
        done = run(tmp_path, model, *BLOCKING)
    assert done.returncode == 1, done.stdout + done.stderr
    (said,) = [line for line in done.stdout.splitlines() if "after other cases" in line]
    assert "now run" in said
    assert "deletes" in said


@pytest.mark.contract("agent_evals.run.cases_before")
def test_run__chosen_by_name_without_the_cases_before__is_said_and_blocks(tmp_path) -> None:
    with file_agent() as model:
        with_cases(tmp_path, WRITES, DELETES, SAYS)
        assert run(tmp_path, model, *BLOCKING[2:]).returncode == 0
        model.forgotten.add("delete a.txt")
        done = run(tmp_path, model, *BLOCKING, "--case", "deletes")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "now runs after other cases: `deletes`" in done.stdout
    assert "only 1 of 3 cases are selected, so files that the other cases write are missing" in " ".join(
        done.stdout.split()
    )


@pytest.mark.contract("agent_evals.run.cases_before")
def test_run__other_order_of_cases_that_change_no_file__is_no_change(tmp_path) -> None:
    with file_agent() as model:
        with_cases(tmp_path, SAYS, asserting("asks", "ask"), tools=["readFile"])
        assert run(tmp_path, model, *BLOCKING[2:]).returncode == 0
        with_cases(tmp_path, asserting("asks", "ask"), SAYS, asserting("new", "new"), tools=["readFile"])
        done = run(tmp_path, model, *BLOCKING)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "other cases" not in done.stdout


@pytest.mark.contract("agent_evals.run.resume")
def test_resume__in_the_middle_of_a_suite__runs_all_of_it_anew(tmp_path) -> None:
    with file_agent() as model:
        with_cases(tmp_path, WRITES, DELETES)
        model.gone.add("delete a.txt")
        broke = run(tmp_path, model)
        assert broke.returncode == 1, broke.stdout + broke.stderr
        model.gone.clear()
        model.forgotten.add("delete a.txt")
        model.prompts.clear()
        done = run(tmp_path, model, "--resume", record(tmp_path)["runId"])
    assert model.prompts == ["write a.txt", "delete a.txt"]
    assert done.returncode == 1, done.stdout + done.stderr


def test_resume__the_suites_agent_is_another__runs_all_anew_and_says_so(tmp_path) -> None:
    with file_agent() as model:
        with_cases(tmp_path, SAYS, asserting("more", "more"), tools=["readFile"])
        model.gone.add("more")
        run(tmp_path, model, *BLOCKING)
        model.gone.clear()
        model.prompts.clear()
        with_cases(tmp_path, SAYS, asserting("more", "more"), tools=["listFiles"])
        done = run(tmp_path, model, *BLOCKING, "--resume", record(tmp_path)["runId"])
        assert sorted(model.prompts) == ["more", "say"]
        assert "because the setup changed: agent of suite suites/s.json: tools readFile → listFiles" in " ".join(
            done.stdout.split()
        )
        with_cases(tmp_path, SAYS, asserting("more", "more"), tools=["readFile"])
        again = run(tmp_path, model, *BLOCKING)
    assert again.returncode == 0, again.stdout
    said = "agent of suite `suites/s.json`: `tools` `listFiles` → `readFile` (2 cases): `says`, `more`"
    assert said in " ".join(again.stdout.split())


@pytest.mark.contract("agent_evals.run.cases_before")
def test_rerun_and_failing__case_in_the_middle__run_the_cases_before_it_too(tmp_path) -> None:
    with file_agent() as model:
        with_cases(tmp_path, WRITES, DELETES, SAYS)
        model.forgotten.add("delete a.txt")
        done = run(tmp_path, model, "--fail-on", "failures")
        assert done.returncode == 1, done.stdout + done.stderr
        (line,) = [line for line in done.stdout.splitlines() if line.startswith("rerun:")]
        arguments = shlex.split(line.removeprefix("rerun:"))[1:]
        for again in (arguments, [*arguments[: arguments.index("--case")], "--failing"]):
            model.prompts.clear()
            done = gate(tmp_path, *again, **KEY)
            assert done.returncode == 1, done.stdout + done.stderr
            assert model.prompts == ["write a.txt", "delete a.txt"]
    assert {one["id"]: one["status"] for one in record(tmp_path)["suites"][0]["cases"]} == {
        "writes": "passed",
        "deletes": "failed",
    }


CONFIRMED = ("--reruns", "6", "--baseline", "latest", "--fail-on", "regressions")


@pytest.mark.contract("agent_evals.run.again")
def test_run__one_wrong_response__is_run_again_with_the_cases_before_it_and_passes(tmp_path) -> None:
    with file_agent() as model:
        with_cases(tmp_path, WRITES, DELETES, SAYS)
        assert run(tmp_path, model, *CONFIRMED[:2]).returncode == 0
        model.forgotten_once.add("delete a.txt")
        model.prompts.clear()
        done = run(tmp_path, model, *CONFIRMED)
    assert done.returncode == 0, done.stdout + done.stderr
    again = len(model.prompts[3:]) // 2
    assert again >= 1
    assert model.prompts[3:] == ["write a.txt", "delete a.txt"] * again
    writes, deletes, says = record(tmp_path)["suites"][0]["cases"]
    assert [len(one["trials"]) for one in (writes, deletes, says)] == [1, again + 1, 1]
    assert (writes["preparatoryExecutions"], deletes["reruns"]) == (again, again)
    assert "each re-run included the case before it" in " ".join(done.stdout.split())


@pytest.mark.contract("agent_evals.run.again")
def test_run__wrong_every_time__is_a_regression_after_its_re_runs(tmp_path) -> None:
    with file_agent() as model:
        with_cases(tmp_path, WRITES, DELETES, SAYS)
        assert run(tmp_path, model, *CONFIRMED[:2]).returncode == 0
        model.forgotten.add("delete a.txt")
        done = run(tmp_path, model, *CONFIRMED)
    assert done.returncode == 1, done.stdout + done.stderr
    deletes = record(tmp_path)["suites"][0]["cases"][1]
    assert [one["status"] for one in deletes["trials"]] == ["failed"] * (deletes["reruns"] + 1)
    assert deletes["reruns"] >= 2
    assert "each re-run included the case before it" in " ".join(done.stdout.split())


def test_agent__files_are_what_the_prompts_say(tmp_path) -> None:
    with file_agent() as model:
        with_cases(tmp_path, WRITES, DELETES, SAYS)
        done = run(tmp_path, model)
    assert (done.returncode, model.prompts) == (0, ["write a.txt", "delete a.txt", "say"])
    assert json.dumps(record(tmp_path)["summary"]["passed"]) == "3"
