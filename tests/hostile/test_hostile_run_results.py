"""Records that somebody changed so that they contradict themselves: a gate never passes by the half that suits it.

Each is a real run's record, changed in one place, and judged by the command line.
"""

from __future__ import annotations

import copy
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import gate

ASK = ("--targets", "targets.yaml", "--target", "it", "--reruns", "2", "--fail-on", "regressions")
Change = Callable[[dict[str, Any]], None]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """Three passing runs in `main/`, and one in `here/` that fails every case, with re-runs."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "evals").mkdir()
    case = {"input": {"message": "ask"}, "expect": {"responseContains": ["ok"]}}
    (folder / "evals/a.golden.json").write_text(json.dumps([case | {"id": f"gs-{number}"} for number in range(4)]))
    answers(folder, "ok")
    for _ in range(3):
        assert gate(folder, "run", *ASK, "--output-dir", "main", "--baseline", "latest").returncode == 0
    answers(folder, "no")
    assert gate(folder, "run", *ASK, "--output-dir", "here", "--baseline", "main").returncode == 1
    return folder


@pytest.fixture
def runs(made, tmp_path) -> Path:
    return shutil.copytree(made, tmp_path / "made")


def answers(folder: Path, said: str) -> None:
    described = {"name": "it", "provider": "cli", "command_template": f"echo {said}"}
    (folder / "targets.yaml").write_text(json.dumps([described]))


def record_in(folder: Path, name: str) -> Path:
    return max((folder / name).glob("*/run.json"), key=lambda file: file.stat().st_mtime_ns)


def change(file: Path, how: Change) -> None:
    document = json.loads(file.read_text())
    how(document)
    file.write_text(json.dumps(document, indent=2))


def cases(document: dict[str, Any]) -> list[dict[str, Any]]:
    (suite,) = document["suites"]
    found: list[dict[str, Any]] = suite["cases"]
    return found


def twice(status: str) -> Change:
    """Every case once more behind the others, with this result."""

    def changed(document: dict[str, Any]) -> None:
        again = {"passed": status == "passed", "status": status, "error": None, "trials": [], "reruns": 0}
        cases(document).extend(copy.deepcopy([case | again for case in cases(document)]))
        document["summary"]["totalCases"] *= 2

    return changed


def without_cases(document: dict[str, Any]) -> None:
    document["suites"] = []


def other_executions(document: dict[str, Any]) -> None:
    for case in cases(document):
        case["trials"] = [case["trials"][0] | {"status": "passed"}] * 50 + case["trials"]


def re_runs_alone(document: dict[str, Any]) -> None:
    for case in cases(document):
        case["reruns"] = 99


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (twice("passed"), 'suites[0].cases[4]: the case "gs-0" appears twice, and only one can be compared'),
        (without_cases, "summary: counts 4 cases, but the result has 0"),
        (other_executions, 'the case "gs-0" is failed, but 50 of its 53 executions with a score passed'),
        (re_runs_alone, 'the case "gs-3" has 3 executions, fewer than its number of re-runs'),
    ],
    ids=["twice", "without cases", "other executions", "re-runs alone"],
)
def test_record_of_the_change__contradicts_itself__is_refused_by_name_and_place(runs, how, said) -> None:
    record = record_in(runs, "here")
    change(record, how)
    done = gate(runs, "compare", "main", str(record))
    assert (done.returncode, "error[invalid-run-result]" in done.stderr) == (2, True), done.stdout + done.stderr
    assert said in done.stderr


@pytest.mark.parametrize("how", [twice("failed"), without_cases], ids=["twice", "without cases"])
@pytest.mark.parametrize("reruns", ["0", "2"])
def test_baseline__contradicts_itself__is_refused_and_hides_no_regression(runs, how, reruns) -> None:
    baseline = record_in(runs, "main")
    change(baseline, how)
    (baseline.parent / "history.json").unlink()
    done = gate(runs, "run", *ASK[:4], "--reruns", reruns, "--output-dir", "again", "--baseline", str(baseline))
    assert (done.returncode, "error[invalid-run-result]" in done.stderr) == (2, True), done.stdout + done.stderr


def claims(document: dict[str, Any]) -> None:
    document["summary"] |= {"passed": 4, "failed": 0, "errored": 0, "passRate": 1.0}
    document["suites"][0]["summary"] |= {"passed": 4, "failed": 0}
    for case in cases(document):
        case["passed"] = True
    document["verdict"] |= {"outcome": "passed", "exitCode": 0}


def test_record_of_the_change__claims_to_have_passed__is_counted_anew_and_says_so(runs) -> None:
    record = record_in(runs, "here")
    change(record, lambda document: (claims(document), document.update(comparison=None, reruns=0))[0])
    done = gate(runs, "compare", "main", str(record), "--min-pass-rate", "0.9", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["summary"]["passed"], found["summary"]["failed"]) == (1, 0, 4), done.stderr
    assert [case["passed"] for case in cases(found)] == [False] * 4
    assert "the counts of the run result did not match its cases, so they were corrected" in found["warnings"]


def test_suite_of_any_runner__a_case_stands_twice__does_not_pass_by_the_second(runs) -> None:
    (suite,) = json.loads(record_in(runs, "here").read_text())["suites"]
    told = ("id", "description", "passed", "durationMs", "assertionsRun", "assertionsSkipped", "error", "details")
    plain = [{name: case[name] for name in told} for case in suite["cases"]]
    suite["cases"] = [*plain, *(case | {"passed": True, "error": None} for case in plain)]
    (runs / "suite.json").write_text(json.dumps(suite, indent=2))
    done = gate(runs, "compare", "main", "suite.json", "--fail-on", "regressions")
    assert (done.returncode, 'cases[4]: the case "gs-0" appears twice' in done.stderr) == (2, True), done.stdout


def test_suite_of_any_runner__says_passed_false_and_status_passed__has_failed(runs) -> None:
    (suite,) = json.loads(record_in(runs, "here").read_text())["suites"]
    for case in suite["cases"]:
        case |= {"passed": False, "status": "passed", "trials": [], "reruns": 0}
    (runs / "suite.json").write_text(json.dumps(suite))
    done = gate(runs, "compare", "main", "suite.json", "--fail-on", "failures")
    assert (done.returncode, "0 of 4 pass (baseline: 4 of 4)   4 do not pass" in done.stdout) == (1, True), (
        done.stdout + done.stderr
    )
    assert "passed when tried again" not in done.stdout


LedgerChange = Callable[[dict[str, Any]], None]


def words(said: str) -> LedgerChange:
    def changed(ledger: dict[str, Any]) -> None:
        for case in ledger["suites"]["evals/a.golden.json"].values():
            case["runs"] = said

    return changed


def other_yardsticks(ledger: dict[str, Any]) -> None:
    for case in ledger["suites"]["evals/a.golden.json"].values():
        case["fingerprints"] = ["0" * 16]


def no_cases(ledger: dict[str, Any]) -> None:
    ledger["suites"] = {}


@pytest.mark.parametrize(
    "how",
    [words("0F 0P*2"), words("-*3"), words(""), other_yardsticks, no_cases],
    ids=["failed", "without it", "nothing", "other yardsticks", "no cases"],
)
@pytest.mark.parametrize("history", [False, True], ids=["beside", "named"])
def test_history__says_another_thing_of_the_baseline_than_its_record__hides_no_regression(runs, how, history) -> None:
    baseline = record_in(runs, "main")
    ledger = baseline.with_name("history.json")
    assert json.loads(ledger.read_text())["suites"]["evals/a.golden.json"]["gs-0"]["runs"] == "0P*3"
    change(ledger, how)
    named: tuple[str, ...] = ()
    if history:
        named = ("--history", str(ledger.rename(runs / "other.json")))
    done = gate(runs, "run", *ASK, "--output-dir", "again", "--baseline", "main", *named)
    assert (done.returncode, "4 regressions" in done.stdout) == (1, True), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("said", "why"),
    [("0Q*3", '"0Q*3" is not a valid entry of a run'), ("7P*3", "a run names a fingerprint that does not exist")],
)
def test_history__words_that_are_none__are_refused_with_the_file_before_anything_is_asked(runs, said, why) -> None:
    ledger = record_in(runs, "main").with_name("history.json")
    change(ledger, words(said))
    done = gate(runs, "run", *ASK, "--output-dir", "again", "--baseline", "main")
    assert (done.returncode, (runs / "again").exists()) == (2, False)
    assert f"error[invalid-history]: {ledger.relative_to(runs)} is not a valid history: suites." in done.stderr
    assert why in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="there are no such pipes")
def test_folder_of_runs__holds_a_pipe_instead_of_a_record__is_an_error_and_nobody_waits(runs) -> None:
    (runs / "main/left").mkdir()
    os.mkfifo(runs / "main/left/run.json")
    done = gate(runs, "run", *ASK, "--output-dir", "again", "--baseline", "main")
    assert (done.returncode, "main/left/run.json" in done.stderr, "it is not a file" in done.stderr) == (2, True, True)


@pytest.mark.parametrize(
    ("how", "field"),
    [
        (lambda document: document.update(timestamp="2" * 1_000), "timestamp"),
        (lambda document: document.update(runId="r" * 1_000), "runId"),
        (lambda document: document.update(git={"sha": "a" * 1_000}), "git.sha"),
    ],
    ids=["timestamp", "run id", "commit"],
)
def test_baseline__head_with_words_of_any_length__is_refused_in_a_sentence(runs, how, field) -> None:
    baseline = record_in(runs, "main")
    change(baseline, how)
    done = gate(runs, "run", *ASK, "--output-dir", "again", "--baseline", str(baseline))
    assert (done.returncode, f"{field}: is longer than" in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr


def test_resume__record_that_names_another_run__does_not_go_on_with_its_journal(runs) -> None:
    record, other = record_in(runs, "here"), record_in(runs, "main").parent
    shutil.copytree(other, runs / "here" / other.name)
    change(record, lambda document: document.update(runId=other.name))
    done = gate(runs, "run", *ASK, "--output-dir", "here", "--baseline", "main", "--resume", record.parent.name)
    assert (done.returncode, "GATE PASSED" in done.stdout) == (2, False), done.stdout
    assert f"is the result of another run, {other.name}" in done.stderr


@pytest.mark.parametrize("tail", [-30, None], ids=["cut off", "with more behind it"])
def test_record__damaged__is_not_called_another_tools_results(runs, tail) -> None:
    record = record_in(runs, "main")
    text = json.dumps(json.loads(record.read_text()))
    record.write_text(text[:tail] if tail else text + "{}")
    done = gate(runs, "compare", str(record), str(record_in(runs, "here")))
    assert (done.returncode, "give another result" in done.stderr) == (2, True), done.stderr
    assert "another tool" not in done.stderr


@pytest.mark.parametrize(
    ("rest", "said"),
    [(b',"later": "\xff"}', "not UTF-8"), (b',"suites": []}', 'the key "suites" occurs twice in one object')],
)
def test_record__contradicts_itself_and_is_no_json_where_nobody_reads_it__is_told_and_is_no_crash(
    runs, rest, said
) -> None:
    record = record_in(runs, "here")
    change(record, re_runs_alone)
    record.write_bytes(record.read_bytes().rstrip().removesuffix(b"}") + rest)
    done = gate(runs, "compare", "main", str(record))
    assert (done.returncode, "error[invalid-run-result]" in done.stderr) == (2, True), done.stdout + done.stderr
    assert said in done.stderr
