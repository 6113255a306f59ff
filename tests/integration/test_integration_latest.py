"""What `latest` means: a run of all that is run here, of the same target. Eval paths of a command line are a choice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.test_integration_run import gate, record
from tests.support.agents import Exchange, agent

ONE = {"id": "c1", "input": {"message": "q1"}, "expect": {"responseContains": ["ok"]}}
TWO = {"id": "c2", "input": {"message": "q2"}, "expect": {"responseContains": ["ok"]}}
OTHER = {"id": "d1", "input": {"message": "q3"}, "expect": {"responseContains": ["ok"]}}
FAIL_ON = "regressions,changed,removed"


def write(folder: Path, name: str, *cases: object) -> None:
    file = folder / "evals" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(cases))


@pytest.fixture
def project(tmp_path):
    """Two eval files in the default folder."""
    write(tmp_path, "a.golden.json", ONE, TWO)
    write(tmp_path, "b.golden.json", OTHER)
    return tmp_path


def run(folder: Path, *arguments: str, bad: str = ""):
    async def answer(exchange: Exchange) -> None:
        says = "BAD" if exchange.json["message"] == bad else "ok"
        exchange.answer({"response": says, "toolCalls": []})

    with agent(answer) as running:
        return gate(folder, "run", *arguments, "--agent-endpoint", running.url, "--fail-on", FAIL_ON)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ((ONE | {"expect": {"responseContains": ["A"]}}, TWO), "c1"),
        ((TWO,), "was removed"),
        ((ONE | {"id": "renamed"}, TWO), "renamed"),
    ],
    ids=["weaker", "removed", "renamed"],
)
def test_latest__only_one_file_was_run_since__is_the_run_of_all_files(project, changed, said) -> None:
    assert run(project).returncode == 0
    whole = record(project)["runId"]
    assert run(project, "evals/b.golden.json", "--baseline", "latest").returncode == 0
    assert record(project)["partial"] is True
    assert record(project)["selections"][0]["paths"] == ["evals/b.golden.json"]
    write(project, "a.golden.json", *changed)
    done = run(project, "--baseline", "latest", bad="q1")
    assert record(project)["baselineRunId"] == whole
    assert done.returncode == 1, done.stdout
    assert said in " ".join(done.stdout.split())


def test_baseline__named_and_of_one_file__says_that_the_others_have_no_result_in_it(project) -> None:
    assert run(project, "evals/b.golden.json").returncode == 0
    done = run(project, "--baseline", record(project)["runId"])
    assert "the baseline has selected cases only: 2 of 3 cases are not in it" in " ".join(done.stdout.split())


def test_failing__only_one_file_was_run_since__is_what_failed_in_the_others(project) -> None:
    assert run(project, bad="q1").returncode == 0
    assert run(project, "evals/b.golden.json").returncode == 0
    assert run(project, "--failing", bad="q1").returncode == 0
    assert [case["id"] for suite in record(project)["suites"] for case in suite["cases"]] == ["c1"]


@pytest.mark.slow
def test_latest__the_same_paths_again__is_the_newest_of_everything_or_of_these_paths(project) -> None:
    write(project, "smoke/c.golden.json", ONE | {"id": "e1"}, ONE | {"id": "e2"})
    ids = {}
    for name, arguments in {
        "smoke": ("evals/smoke",),
        "again": ("evals/smoke/",),
        "chosen": ("evals/smoke", "--case", "e1"),
        "file": ("evals/b.golden.json",),
        "whole": ("evals",),
        "last": ("evals/smoke",),
    }.items():
        assert run(project, *arguments, "--baseline", "latest").returncode == 0
        made = record(project)
        ids[name] = made["runId"]
        ids[f"before {name}"] = made.get("baselineRunId")
    assert ids["before smoke"] is None
    assert ids["before again"] == ids["smoke"]
    assert ids["before chosen"] == ids["again"]
    assert ids["before file"] is None
    assert ids["before whole"] is None
    assert ids["before last"] == ids["whole"]


def test_paths__a_case_below_them_is_gone__is_removed(project) -> None:
    write(project, "smoke/c.golden.json", ONE, TWO)
    write(project, "smoke/d.golden.json", OTHER)
    assert run(project).returncode == 0
    (project / "evals/smoke/d.golden.json").unlink()
    done = run(project, "evals/smo*", "--baseline", "latest")
    assert done.returncode == 1
    assert "was removed" in " ".join(done.stdout.split())
    assert "3 of the baseline's 6 cases were not selected for this run" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("configuration", "paths"),
    [
        ("", ["evals"]),
        ("", ["./evals/*.golden.json"]),
        ("", ["evals/b.golden.json", "evals/a.golden.json"]),
        ("evals: [evals/b.golden.json]", []),
        ("evals: [evals/b.golden.json, nowhere]", ["evals/b.golden.json"]),
        ("evals: [nowhere]", ["evals/b.golden.json"]),
    ],
)
def test_paths__all_of_what_is_configured__are_no_choice(project, configuration, paths) -> None:
    (project / "eval-gate.yaml").write_text(configuration)
    (project / "evals" / "notes.json").write_text('{"no": "evals"}')
    assert run(project, *paths).returncode == 0
    assert record(project)["partial"] is False


def test_paths__no_default_folder__are_no_choice(project) -> None:
    (project / "evals").rename(project / "checks")
    assert run(project, "checks/b.golden.json").returncode == 0
    assert record(project)["partial"] is False


def test_latest__always_the_same_choice__is_the_newest_run_of_it(project) -> None:
    write(project, "a.golden.json", ONE | {"tags": ["smoke"]}, TWO)
    assert run(project, "--tag", "smoke", "--baseline", "latest").returncode == 0
    done = run(project, "--tag", "smoke", "--baseline", "latest", bad="q1")
    assert done.returncode == 1, done.stdout
    assert "REGRESSIONS (1): c1" in done.stdout


def targets(folder: Path, **answers: str) -> None:
    listed = [{"name": name, "provider": "mock", "response": answer} for name, answer in answers.items()]
    (folder / "eval-gate.yaml").write_text(json.dumps({"targets": listed, "failOn": ["regressions"]}))


def test_latest__runs_of_another_target_since__is_the_newest_of_its_own(project) -> None:
    targets(project, a="ok", b="BAD")
    assert gate(project, "run", "--target", "a").returncode == 0
    own = record(project)["runId"]
    assert gate(project, "run", "--target", "b", "--fail-on", "never").returncode == 0
    targets(project, a="BAD", b="BAD", new="BAD")
    done = gate(project, "run", "--target", "a", "--baseline", "latest")
    assert (done.returncode, record(project)["baselineRunId"]) == (1, own), done.stdout
    # one that was never run had another name before, or is compared with what there is
    assert gate(project, "run", "--target", "new", "--baseline", "latest").returncode == 0
    assert "the baseline evaluated another target: b" in json.dumps(record(project))


@pytest.mark.slow
def test_latest__one_of_several_targets_has_another_name__is_its_newest_run_under_the_old_one(project) -> None:
    targets(project, a="ok", b="ok")
    assert gate(project, "run", "--target", "a", "--target", "b").returncode == 0
    targets(project, a="ok", c="BAD")
    done = gate(project, "run", "--target", "a", "--target", "c", "--baseline", "latest")
    assert done.returncode == 1, done.stdout
    assert "c: gate failed: 3 cases that usually pass failed" in " ".join(done.stdout.split())
    targets(project, a="ok", b="ok", new="BAD")
    everybody = ("--target", "a", "--target", "b", "--target", "new")
    assert gate(project, "run", *everybody, "--baseline", "latest").returncode == 0


@pytest.mark.slow
def test_latest__one_file_against_several_targets__is_the_run_of_all_files(project) -> None:
    targets(project, x="ok", y="ok")
    both = ("--target", "x", "--target", "y")
    assert gate(project, "run", *both).returncode == 0
    whole = {one["target"]["name"]: one["runId"] for one in every_record(project)}
    assert gate(project, "run", *both, "evals/b.golden.json").returncode == 0
    assert gate(project, "run", *both, "--baseline", "latest").returncode == 0
    compared = {(one["target"]["name"], one["baselineRunId"]) for one in every_record(project)}
    assert set(whole.items()) <= compared


def every_record(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(file.read_text()) for file in (folder / "evals" / "results").glob("*/run.json")]


def test_paths__a_case_that_must_pass_is_left_out__could_not_decide(project) -> None:
    (project / "eval-gate.yaml").write_text("mustPass: [c1]\nstrict: true\n")
    assert run(project).returncode == 0
    done = run(project, "evals/b.golden.json", "--baseline", "latest")
    assert done.returncode == 3, done.stdout
    assert "1 must-pass case has no result in this run: c1" in " ".join(done.stdout.split())
