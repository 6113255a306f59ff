"""A waiver names a case of the configuration, or of results that have no eval file; another one is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.integration.test_integration_run import gate, write_suite
from tests.support.agents import agent

FILE = ".eval-gate/waivers.yaml"
TODAY = datetime.now(UTC).date()
JUNIT = '<testsuite name="s"><testcase classname="bot" name="refund"><failure>no</failure></testcase></testsuite>'


def waive(folder: Path, *words: str) -> CompletedProcess[str]:
    return gate(folder, "waive", *words, "--reason", "known", "--until", "7d")


def write_waiver(folder: Path, case: str, *more: str, days: int = 7) -> None:
    lines = [f'  - case: "{case}"', "    reason: known", f"    until: {TODAY + timedelta(days=days)}", *more]
    (folder / ".eval-gate").mkdir(exist_ok=True)
    (folder / FILE).write_text("\n".join(["waivers:", *lines, ""]))


@pytest.mark.contract("accepting.known-cases")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("gs-0001",), '"gs-0001": no eval file has a case "gs-0001" (did you mean "gs-001"?)'),
        (("gs-001", "refund-*"), '"refund-*": no eval file has a case "refund-*"'),
        (
            ("gs-001", "--suite", "evals/wether.golden.json"),
            'no eval file matches "evals/wether.golden.json" (did you mean "evals/weather.golden.json"?)',
        ),
        (("gs-001", "--suite", "evals/other.*"), '"gs-001": no eval file has a case "gs-001"'),
    ],
    ids=["misspelt", "glob", "suite", "another suite"],
)
def test_waive__case_that_no_eval_file_has__is_refused_and_nothing_is_written(tmp_path, words, said) -> None:
    write_suite(tmp_path, 3)
    write_suite(tmp_path, 1, name="other.golden.json")
    done = waive(tmp_path, *words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "error[waive-failed]: there is nothing to waive" in done.stderr
    assert said in done.stderr
    assert not (tmp_path / FILE).exists()


@pytest.mark.parametrize("words", [("gs-002",), ("gs-00*",), ("gs-002", "--suite", "evals/weather*")])
def test_waive__case_that_only_the_configuration_has__is_written(tmp_path, words) -> None:
    """Whatever the newest run selected: one waiver file serves all jobs."""
    write_suite(tmp_path, 3)
    with agent() as running:
        gate(tmp_path, "run", "--agent-endpoint", running.url, "--case", "gs-000")
    done = waive(tmp_path, *words)
    assert (done.returncode, "warning" in done.stderr) == (0, False), done.stderr


def test_waive__case_that_was_deleted_since_the_newest_run__is_refused(tmp_path) -> None:
    write_suite(tmp_path, 3)
    with agent() as running:
        gate(tmp_path, "run", "--agent-endpoint", running.url)
    write_suite(tmp_path, 2)
    assert waive(tmp_path, "gs-002").returncode == 2


def test_waive__case_of_a_run_beside_the_configuration__is_known_by_its_run(tmp_path) -> None:
    write_suite(tmp_path, 1)
    more = [{"id": "slow-1", "input": {"message": "x"}, "expect": {"responseContains": ["ok"]}}]
    (tmp_path / "slow.golden.json").write_text(json.dumps(more))
    assert waive(tmp_path, "slow-1").returncode == 2
    with agent() as running:
        gate(tmp_path, "run", "slow.golden.json", "--agent-endpoint", running.url)
    assert waive(tmp_path, "slow-1").returncode == 0


@pytest.mark.contract("accepting.known-cases")
@pytest.mark.parametrize("with_evals", [False, True])
def test_waive__case_of_another_tool__is_known_by_its_stored_results(tmp_path, with_evals) -> None:
    if with_evals:
        write_suite(tmp_path, 1)
    (tmp_path / "junit.xml").write_text(JUNIT)
    assert gate(tmp_path, "check", "junit.xml").returncode == 1
    done = waive(tmp_path, "refunds")
    assert (done.returncode, '(did you mean "refund"?)' in done.stderr) == (2, True), done.stderr
    assert (
        "hint: name a case of an eval file; to waive a case of another tool, run `eval-gate check` first" in done.stderr
    )
    assert waive(tmp_path, "refund").returncode == 0
    assert gate(tmp_path, "check", "junit.xml").returncode == 0


@pytest.mark.contract("accepting.known-cases")
def test_waiver__results_of_another_tool_are_configured_and_not_stored__is_a_warning(tmp_path) -> None:
    write_suite(tmp_path, 1)
    (tmp_path / "eval-gate.yaml").write_text("resultsFormat: junit\n")
    said = 'no eval file has a case "refund"; results of another tool may have it'
    done = waive(tmp_path, "refund")
    assert (done.returncode, f"warning: case names not checked: {said}" in done.stderr) == (0, True), done.stderr
    done = gate(tmp_path, "validate")
    assert (done.returncode, f"warning: {FILE}:2: {said}" in done.stderr) == (0, True), done.stderr
    (tmp_path / "junit.xml").write_text(JUNIT.replace("refund", "order"))
    gate(tmp_path, "check", "junit.xml")
    done = gate(tmp_path, "validate")
    assert (done.returncode, f'{FILE}:2: no eval file has a case "refund"' in done.stderr) == (2, True), done.stderr


def test_waive__neither_eval_files_nor_results__is_written_with_a_warning(tmp_path) -> None:
    done = waive(tmp_path, "refund")
    assert done.returncode == 0, done.stderr
    assert "warning: case names not checked: no eval files and no results in evals/results" in done.stderr


@pytest.mark.contract("accepting.known-cases")
def test_validate__waiver_for_no_case__is_a_problem_with_its_line__and_in_a_run_a_warning(tmp_path) -> None:
    write_suite(tmp_path, 3)
    write_waiver(tmp_path, "gs-0001")
    for paths in ((), ("evals/weather.golden.json",)):
        done = gate(tmp_path, "validate", *paths)
        assert done.returncode == 2, done.stdout
        assert f'{FILE}:2: no eval file has a case "gs-0001" (did you mean "gs-001"?)' in done.stderr
    with agent() as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url)
    assert done.returncode == 0
    assert f"{FILE}:2: `gs-0001` matches no case of this run" in " ".join(done.stdout.split())


@pytest.mark.parametrize(("case", "days"), [("gs-001", 7), ("gs-0*", 7), ("gone", -3)], ids=["id", "glob", "expired"])
def test_validate__waiver_for_a_case_of_the_configuration_or_expired__is_no_problem(tmp_path, case, days) -> None:
    """Also where only one of its eval files is checked."""
    write_suite(tmp_path, 3)
    write_suite(tmp_path, 1, name="other.golden.json")
    write_waiver(tmp_path, case, days=days)
    for paths in ((), ("evals/other.golden.json",)):
        done = gate(tmp_path, "validate", *paths)
        assert done.returncode == 0, done.stderr


def test_validate__waiver_of_a_suite_that_is_no_eval_file__is_a_warning(tmp_path) -> None:
    """It may be one of another tool, whose results are only where that tool ran."""
    write_suite(tmp_path, 1)
    write_waiver(tmp_path, "refund", '    suite: "s"')
    done = gate(tmp_path, "validate")
    assert done.returncode == 0, done.stderr
    assert f'warning: {FILE}:2: no eval file matches "s"' in done.stderr


def test_validate__waiver_file_that_is_invalid__is_a_problem(tmp_path) -> None:
    write_suite(tmp_path, 1)
    write_waiver(tmp_path, "gs-000", "    author: Kim")
    done = gate(tmp_path, "validate")
    assert (done.returncode, f"{FILE}:5: waivers[0].author: unknown key" in done.stderr) == (2, True), done.stderr
