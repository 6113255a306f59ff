"""`run` against several targets: real processes, one run after the other, and a table of what came of it."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.integration.test_integration_run import ENVIRONMENT, PROGRAM, ROOT, gate, wait_until, write_suite
from tests.support.agents import agent, unused_port

TARGETS = """\
targets:
- {name: good, provider: mock, response: "ok, gladly"}
- {name: bad, provider: mock, response: "no"}
- {name: keyless, provider: openai, model: gpt-4o, api_key: "${{ NOBODY_SET_THIS }}"}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write_suite(tmp_path, 2)
    write_suite(tmp_path, 1, "any.golden.json", responseNonEmpty=True)
    (tmp_path / "targets.yaml").write_text(TARGETS)
    return tmp_path


def side_by_side(folder: Path, *arguments: str, names: tuple[str, ...] = ("good", "bad"), **environment: str):
    chosen = [part for name in names for part in ("--target", name)]
    return gate(folder, "run", *chosen, *arguments, **environment)


def runs(folder: Path) -> list[dict]:
    """The records of all runs, oldest first."""
    files = (folder / "evals" / "results").glob("*/run.json")
    return [json.loads(file.read_text()) for file in sorted(files, key=lambda file: file.stat().st_mtime_ns)]


def words(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_targets__two__have_a_record_each_and_a_table(project) -> None:
    done = side_by_side(project, "--report", "md", "--report", "html=out/page.html", "--report", "json")
    assert done.returncode == 1, done.stderr
    table = words(done.stdout)
    assert ["case", "good", "bad"] in table
    same = table.index(["gs-000", "(evals/any.golden.json)", "pass", "pass"])
    assert table.index(["≠", "gs-001", "pass", "fail"]) < same
    assert ["passed", "3", "of", "3", "1", "of", "3"] in table
    assert ["gate", "passed", "failed"] in table
    assert done.stdout.splitlines()[-1] == "2 targets, 3 cases: 2 differ   exit 1"
    assert [run["target"]["name"] for run in runs(project)] == ["good", "bad"]
    assert [run["verdict"]["outcome"] for run in runs(project)] == ["passed", "failed"]
    results = project / "evals" / "results"
    assert (results / "matrix.md").read_text().startswith("# Targets side by side — 2 targets, 3 cases: 2 differ")
    assert "<!doctype html>" in (project / "out" / "page.html").read_text()
    made = json.loads((results / "matrix.json").read_text())
    assert [target["runId"] for target in made["targets"]] == [run["runId"] for run in runs(project)]
    again = gate(project, "report", made["targets"][1]["runId"], "--format", "console")
    assert "GATE FAILED" in again.stdout


def test_targets__json__is_the_table_alone_on_standard_output(project) -> None:
    made = json.loads(side_by_side(project, "--json").stdout)
    assert [target["name"] for target in made["targets"]] == ["good", "bad"]
    assert [[cell["status"] for cell in case["cells"]] for case in made["cases"]] == [
        ["passed", "failed"],
        ["passed", "failed"],
        ["passed", "passed"],
    ]


def test_targets__all_pass__exits_0(project) -> None:
    listed = "targets:\n- {name: one, provider: mock, response: ok}\n- {name: two, provider: mock, response: ok}\n"
    (project / "targets.yaml").write_text(listed)
    done = side_by_side(project, names=("one", "two"))
    assert (done.returncode, "2 targets, 3 cases: no differences   exit 0" in done.stdout) == (0, True)


def test_targets__one_cannot_be_reached__the_others_are_shown(project) -> None:
    gone = f"- {{name: gone, provider: http, url: 'http://127.0.0.1:{unused_port()}/chat'}}\n"
    (project / "targets.yaml").write_text(TARGETS + gone)
    done = side_by_side(project, "--max-retries", "0", names=("gone", "good"))
    assert done.returncode == 3, done.stderr
    assert ["gate", "inconclusive", "passed"] in words(done.stdout)
    assert side_by_side(project, "--max-retries", "0", names=("gone", "bad")).returncode == 1


def test_targets__what_breaks_the_second_run__does_not_take_the_first_away(project) -> None:
    """The snapshot is there for the first run, and gone before the second."""
    command = "test -e seen && exit 1; touch seen; echo '{}'"
    done = side_by_side(project, "--snapshot-command", command)
    assert done.returncode == 3, done.stderr
    assert ["gate", "passed", "not", "run"] in words(done.stdout)
    assert "bad: gate not run: " in done.stdout
    assert [run["target"]["name"] for run in runs(project)] == ["good"]


REFUSED = {
    "resume": (["--resume", "x"], "--resume continues one run"),
    "export": (["--export", "agentv=x.jsonl"], "--export writes the results of one run"),
    "junit": (["--report", "junit"], "--report junit: not available for a comparison of several targets"),
    "one-run": (["--baseline", "targets.yaml"], "one run cannot be the baseline of several targets"),
    "run-id": (["--baseline", "11111111-2222-4333-8444-555555555555"], "one run cannot be the baseline"),
    "endpoint": (["--agent-endpoint", "http://127.0.0.1:1/"], "a run evaluates one target"),
    "unknown": (["--target", "god"], 'unknown target "god" in targets.yaml (did you mean "good"?)'),
    "keyless": (["--target", "keyless"], "the variable NOBODY_SET_THIS is not set"),
    "twice": (["--target", "good"], '"good" is named twice'),
    "many": ([part for number in range(10) for part in ("--target", f"t{number}")], "12 targets are too many"),
}


@pytest.mark.parametrize(("arguments", "said"), REFUSED.values(), ids=REFUSED)
def test_targets__what_belongs_to_one_run__is_refused_before_anything_is_run(project, arguments, said) -> None:
    done = side_by_side(project, *arguments)
    assert done.returncode == 2, done.stdout
    assert said in done.stderr
    assert runs(project) == []


def test_targets__baseline_of_a_folder_of_runs__is_the_newest_of_the_same_target(project) -> None:
    assert side_by_side(project, "--baseline", "latest", "--fail-on", "regressions").returncode == 0
    first = {run["target"]["name"]: run["runId"] for run in runs(project)}
    done = side_by_side(project, "--baseline", "latest", "--fail-on", "regressions")
    assert done.returncode == 0, done.stdout
    assert {run["target"]["name"]: run["baselineRunId"] for run in runs(project)[2:]} == first
    (project / "targets.yaml").write_text(TARGETS.replace("ok, gladly", "no"))
    worse = side_by_side(project, "--baseline", "evals/results", "--fail-on", "regressions")
    assert worse.returncode == 1
    assert "good: gate failed: 2 cases that usually pass failed" in worse.stdout
    assert "bad: gate passed" in worse.stdout


@pytest.mark.slow
def test_targets__interrupted__ends_all_and_shows_what_there_is(project) -> None:
    async def never(exchange) -> None:
        del exchange

    with agent(never) as running:
        slow = f"- {{name: slow, provider: http, url: '{running.url}'}}\n"
        (project / "targets.yaml").write_text(TARGETS + slow)
        process = subprocess.Popen(
            [*PROGRAM, "run", "--target", "good", "--target", "slow", "--target", "bad"],
            cwd=project,
            env=ENVIRONMENT | {"PYTHONPATH": str(ROOT / "runner")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        wait_until(lambda: running.requests)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=20)
    assert process.returncode == 130, errors
    assert ["gate", "passed", "inconclusive", "not", "run"] in words(output)
    assert "bad: gate not run: the comparison ended first" in output
    assert [run["target"]["name"] for run in runs(project)] == ["good", "slow"]


AGENTV = """\
execution: {{ targets: {targets} }}
tests:
  - {{ id: greets, input: Hello., assertions: [{{ type: contains, value: ok }}] }}
"""


def write_agentv(folder: Path, **targets: str) -> Path:
    """A project of AgentV files of these names, each with its targets, and no other evals."""
    (folder / "evals").mkdir()
    for name, listed in targets.items():
        (folder / "evals" / f"{name}.eval.yaml").write_text(AGENTV.format(targets=listed))
    (folder / "targets.yaml").write_text(TARGETS)
    return folder


@pytest.mark.contract("agentv.today.targets")
def test_targets__several_in_an_agentv_file__have_a_record_each_and_a_table(tmp_path) -> None:
    project = write_agentv(tmp_path, a="[good, bad]")
    done = gate(project, "run")
    assert done.returncode == 1, done.stdout + done.stderr
    assert ["≠", "greets", "pass", "1.00", "fail", "0.00"] in words(done.stdout)
    assert done.stdout.splitlines()[-1] == "2 targets, 1 case: 1 differs   exit 1"
    assert [run["target"]["name"] for run in runs(project)] == ["good", "bad"]


@pytest.mark.contract("agentv.today.targets")
def test_targets__one_chosen_beside_several_of_a_file__is_the_only_one(tmp_path) -> None:
    project = write_agentv(tmp_path, a="[good, bad]")
    done = gate(project, "run", "--target", "good")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [run["target"]["name"] for run in runs(project)] == ["good"]


@pytest.mark.parametrize(
    ("targets", "arguments", "says"),
    [
        ({"a": "[good, bad]", "b": "[good]"}, (), "the eval files do not all ask for the same targets"),
        ({"a": "[good, bad]", "b": "[bad, good]"}, (), "the eval files do not all ask for the same targets"),
        ({"a": "[good, good]"}, (), '"good" is named twice'),
        ({"a": "[good, nobody]"}, (), "nobody"),
        ({"a": "[good, bad]"}, ("--export", "agentv=out.jsonl"), "--export writes the results of one run"),
    ],
)
def test_targets__several_that_are_no_table__are_refused_before_any_run(tmp_path, targets, arguments, says) -> None:
    project = write_agentv(tmp_path, **targets)
    done = gate(project, "run", *arguments)
    assert (done.returncode, says in done.stderr) == (2, True), done.stderr
    assert runs(project) == []
