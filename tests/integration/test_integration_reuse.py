"""Suites whose measured files have not changed are not executed again: from the command line, with a counting agent."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eval_gate import evaluate
from tests.integration.test_integration_run import write_suite
from tests.support.agents import Agent, Exchange, agent, ok
from tests.support.git import commit_all
from tests.support.program import gate

MEASURES = """
measures:
  "evals/support*": ["agents/support/**"]
  "evals/billing*": ["agents/billing/**"]
  "evals/*": ["shared.lock"]
"""
CASES = 2


class Repository:
    """Two suites of two cases; each measures a folder of its own, and both a lock file."""

    def __init__(self, folder: Path, running: Agent) -> None:
        self.folder, self._agent = folder, running
        for name in ("support", "billing"):
            write_suite(folder, CASES, f"{name}.golden.json")
            self.write(f"agents/{name}/prompt.txt", f"You are {name}.")
        self.write("shared.lock", "1")
        self.write("eval-gate.yaml", MEASURES)

    def write(self, path: str, text: str) -> None:
        """Write a file of the repository."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def run(self, *options: str, baseline: str = "latest") -> subprocess.CompletedProcess[str]:
        """Run all evals, reusing what it may."""
        arguments = ["--agent-endpoint", self._agent.url, "--baseline", baseline, "--reuse", *options]
        return gate(self.folder, "run", *arguments)

    def count_requests(self, *options: str, code: int = 0) -> int:
        """Run all evals, and count the requests that the agent got for that."""
        before = len(self._agent.requests)
        done = self.run(*options)
        assert done.returncode == code, done.stdout + done.stderr
        return len(self._agent.requests) - before

    @property
    def result(self) -> dict:
        """The newest run result."""
        return json.loads(self.result_file.read_text())

    @property
    def result_file(self) -> Path:
        """The file of the newest run result."""
        results = self.folder / "evals/results"
        return results / json.loads((results / "latest.json").read_text())["path"]

    @property
    def reused(self) -> dict[str, str | None]:
        """The run that executed each suite of the newest run; None if that is the newest itself."""
        return {suite["evalFile"]: suite["reused"] and suite["reused"]["runId"] for suite in self.result["suites"]}


@contextmanager
def open_repository(folder: Path, answer=ok) -> Iterator[Repository]:
    with agent(answer) as running:
        yield Repository(folder, running)


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Repository]:
    """A repository whose suites were executed once, and passed."""
    with open_repository(tmp_path) as one:
        assert one.count_requests() == 2 * CASES
        yield one


def test_reuse__nothing_changed__sends_no_request_and_has_the_same_verdict(repository):
    first, connections = repository.result, repository._agent.connections

    done = repository.run()

    assert (done.returncode, repository._agent.connections) == (0, connections), "not even a health check"
    assert "running nothing: reusing 2 suites, because no measured file has changed" in done.stderr
    second = repository.result
    assert (second["verdict"]["outcome"], second["complete"]) == ("passed", True)
    assert set(repository.reused.values()) == {first["runId"]}
    assert second["reuse"]["savedExecutions"] == 2 * CASES
    counts = ("totalCases", "passed", "failed", "passRate")
    assert [second["summary"][name] for name in counts] == [first["summary"][name] for name in counts]
    assert second["summary"]["totalDurationMs"] == 0
    assert {suite["runId"] for suite in second["suites"]} == {second["runId"]}
    files = {file.name for file in repository.result_file.parent.iterdir()}
    assert {"run.json", "support.golden.json", "billing.golden.json", "history.json", "cases.jsonl"} <= files
    assert repository.count_requests() == 0
    assert set(repository.reused.values()) == {first["runId"]}, "the run that executed them"


@pytest.mark.parametrize(
    ("path", "text", "requests"),
    [
        ("agents/support/prompt.txt", "You are changed.", CASES),
        ("agents/support/new.txt", "", CASES),
        ("shared.lock", "2", 2 * CASES),
        ("agents/search/prompt.txt", "nobody measures this", 0),
        ("README.md", "# changed", 0),
    ],
)
def test_reuse__a_file_changed__executes_the_suites_that_measure_it(repository, path, text, requests):
    repository.write(path, text)

    assert repository.count_requests() == requests
    executed = [one["suite"] for one in repository.result["reuse"]["suites"] if one.get("reason") == "files_changed"]
    assert executed == [name for name, run in repository.reused.items() if run is None]
    assert len(executed) == requests // CASES
    assert [suite["evalFile"] for suite in repository.result["suites"]] == [
        "evals/billing.golden.json",
        "evals/support.golden.json",
    ]
    assert repository.count_requests() == 0, "the new state has been evaluated"


def test_reuse__without_the_option__executes_and_stores_what_a_later_run_can_reuse(tmp_path):
    with open_repository(tmp_path) as repository:
        for _ in range(2):
            assert repository.count_requests("--no-reuse") == 2 * CASES
        assert (repository.result["reuse"], set(repository.reused.values())) == (None, {None})
        assert repository.count_requests() == 0
        repository.write("eval-gate.yaml", "timeoutMs: 60000\n")
        assert repository.count_requests() == 2 * CASES
        assert (repository.result["reuse"], repository.result["evaluatedState"]) == (None, None), "no measures"


def test_reuse__failed_run__is_no_source_and_the_passed_one_before_it_is(tmp_path):
    broken = []

    async def answer(exchange: Exchange) -> None:
        exchange.answer({"response": "no" if broken else "ok", "toolCalls": []})

    with open_repository(tmp_path, answer) as repository:
        once = ("--reruns", "0")
        assert repository.count_requests(*once) == 2 * CASES
        passed = repository.result["runId"]
        repository.write("agents/support/prompt.txt", "changed")
        broken.append(True)
        assert [repository.count_requests(*once, code=1) for _ in range(2)] == [CASES, CASES]
        repository.write("agents/support/prompt.txt", "You are support.")
        assert repository.count_requests(*once) == 0
        assert set(repository.reused.values()) == {passed}
        repository.write("agents/support/prompt.txt", "changed")
        broken.clear()
        assert repository.count_requests(*once) == CASES
        assert repository.reused["evals/billing.golden.json"] == passed


def test_reuse__interrupted_run_is_resumed__executes_what_is_missing_and_reuses_nothing(repository):
    repository.write("agents/support/prompt.txt", "changed")
    assert repository.count_requests() == CASES
    run_id = repository.result["runId"]
    stored = repository.result | {"complete": False}
    repository.result_file.write_text(json.dumps(stored))

    assert repository.count_requests("--resume", run_id) == CASES, "the suite that was reused, and no other"
    assert repository.result["runId"] == run_id
    assert repository.result["reuse"]["off"] == "resumed"
    assert set(repository.reused.values()) == {None}


def test_reuse__several_targets__each_reuses_its_own_results(tmp_path):
    with open_repository(tmp_path) as repository, agent() as other:
        one, two = f"url: {repository._agent.url}, measures: [one.txt]", f"url: {other.url}"
        targets = f"targets:\n- {{name: one, provider: http, {one}}}\n- {{name: two, provider: http, {two}}}\n"
        repository.write("eval-gate.yaml", f"{MEASURES}{targets}")
        counts = []
        for content in ("1", "1", "2"):
            repository.write("one.txt", content)
            before = len(repository._agent.requests), len(other.requests)
            done = gate(tmp_path, "run", "--target", "one", "--target", "two", "--baseline", "latest", "--reuse")
            assert done.returncode == 0, done.stdout + done.stderr
            counts.append((len(repository._agent.requests) - before[0], len(other.requests) - before[1]))

    assert counts == [(4, 4), (0, 0), (4, 0)]


def test_reuse__python__always_executes(repository, monkeypatch):
    monkeypatch.chdir(repository.folder)
    before = len(repository._agent.requests)

    evaluation = evaluate(
        target=repository._agent.url, config="eval-gate.yaml", baseline="latest", reuse=True, reruns=0
    )

    assert len(repository._agent.requests) - before == 2 * CASES
    assert (evaluation.passed, evaluation.run.reuse) == (True, None)


def test_reuse__measured_file_changes_while_cases_run_and_is_set_back__executes_its_suite(tmp_path: Path) -> None:
    file = tmp_path / "agents/support/prompt.txt"

    async def edit(exchange: Exchange) -> None:
        await ok(exchange)
        file.write_text("You are support.")  # the same again

    with open_repository(tmp_path, edit) as repository:
        assert repository.count_requests() == 2 * CASES
        assert [one.get("problem") for one in repository.result["evaluatedState"]["suites"]] == [
            None,
            f"`{file.relative_to(tmp_path)}` was changed during the run",
        ]
        assert repository.count_requests() == CASES
        assert repository.result["reuse"]["suites"][1]["reason"] == "no_earlier_result", "no file differs"


def test_reuse__committed_result__is_not_reused(repository) -> None:
    assert repository.count_requests() == 0
    commit_all(repository.folder)
    assert repository.count_requests() == 2 * CASES


def test_reuse__run_that_was_resumed_with_other_files__is_of_no_state(repository) -> None:
    repository.write("agents/support/prompt.txt", "You are changed.")
    assert repository.count_requests("--resume", repository.result["runId"]) == 0, "all are from before"
    assert repository.count_requests() == 2 * CASES
