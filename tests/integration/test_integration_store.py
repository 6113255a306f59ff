"""A store of baselines on the command line: main writes it, a merge request of another machine is compared with it."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from eval_gate import evaluate
from tests.integration.test_integration_run import record, write_suite
from tests.support.agents import agent
from tests.support.answers import fails_on
from tests.support.program import gate

MAIN = {"GITLAB_CI": "true", "CI_COMMIT_BRANCH": "main", "CI_DEFAULT_BRANCH": "main"}
MERGE_REQUEST = {"GITLAB_CI": "true", "CI_MERGE_REQUEST_IID": "7", "CI_DEFAULT_BRANCH": "main"}


def run(folder, store, environment, *broken: int):
    """A run in a new checkout, configured by its file."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    write_suite(folder)
    (folder / "eval-gate.yaml").write_text(f"baseline: latest\nstore: {store}\nfailOn: [regressions]\n")
    with agent(fails_on(*broken)) as running:
        return gate(folder, "run", "--agent-endpoint", running.url, **environment)


def check_two_machines(tmp_path, store, environment) -> None:
    """Run main and a merge request that breaks a case in checkouts of their own."""
    main = run(tmp_path / "a", store, MAIN | environment, 1)
    assert (main.returncode, f"stored: {store}/20" in main.stderr) == (0, True), main.stdout + main.stderr
    done = run(tmp_path / "b", store, MERGE_REQUEST | environment, 1, 2)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "REGRESSIONS (1): gs-002" in done.stdout
    assert "not stored: a pull request only reads" in done.stderr
    assert record(tmp_path / "b")["baselineRunId"] == record(tmp_path / "a")["runId"]
    assert gate(tmp_path / "b", "trend", **environment).returncode == 0
    badge = json.loads((tmp_path / "b/evals/results/trend/badge.json").read_text())
    assert badge["message"] == "83 % passing"  # of main, not 67 %


def test_store__main_and_merge_request__are_compared_across_machines(tmp_path) -> None:
    check_two_machines(tmp_path, tmp_path / "store", {})
    (file,) = (tmp_path / "store").iterdir()
    assert record(tmp_path / "a")["runId"] in file.name


def test_trend__of_a_store__has_the_runs_of_main_that_failed(tmp_path) -> None:
    store = tmp_path / "store"
    codes = [run(tmp_path / "a", store, MAIN, *broken).returncode for broken in ((), (1,), ())]
    run(tmp_path / "a", store, MERGE_REQUEST, 2)
    assert (codes, gate(tmp_path / "a", "trend").returncode) == ([0, 1, 0], 0)
    page = (tmp_path / "a/evals/results/trend/trend.html").read_text()
    assert sorted(re.findall(r'<td class="(passed|failed)">', page)) == ["failed", "passed", "passed"]
    absent = gate(tmp_path, "trend", "--store", str(tmp_path / "none"))
    assert (absent.returncode, "cannot be read: it does not exist" in absent.stderr) == (2, True), absent.stderr


@pytest.mark.parametrize(("broken", "code"), [((1,), 3), ((), 0)])
def test_store__that_cannot_be_read__is_no_missing_baseline(tmp_path, broken, code) -> None:
    done = run(tmp_path / "a", tmp_path / "store", MERGE_REQUEST, *broken)
    assert done.returncode == code, done.stdout
    assert not broken or "cannot be read: it does not exist" in " ".join(done.stdout.split())


def test_store__that_cannot_be_written__is_a_warning_and_the_verdict_stays(tmp_path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = run(tmp_path / "a", tmp_path / "file" / "store", MAIN)
    assert done.returncode == 0, done.stdout
    assert "warning: not stored, so later runs lack this one" in done.stderr


def test_evaluate__with_a_store__reads_and_writes_it_as_run_does(tmp_path, monkeypatch) -> None:
    for name in (*MAIN, *MERGE_REQUEST):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    write_suite(tmp_path)
    settings = {"baseline": "latest", "store": str(tmp_path / "store"), "store_write": True}
    first = evaluate("evals", lambda _request: "ok", output_dir="a", **settings)
    (file,) = (tmp_path / "store").iterdir()
    assert first.store_note == f"stored: {file}"
    second = evaluate("evals", lambda _request: "ok", output_dir="b", **settings)
    assert second.run.baseline_run_id == first.run.run_id
    assert evaluate("evals", lambda _request: "ok", output_dir="c").store_note is None
