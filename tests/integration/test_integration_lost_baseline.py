"""A change takes away what it would be compared with, on the command line: that is not "no baseline yet"."""

from __future__ import annotations

import json
import re
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.integration.test_integration_latest import ONE, OTHER, TWO, write
from tests.support.agents import Exchange, agent
from tests.support.program import gate


@pytest.fixture
def project(tmp_path):
    write(tmp_path, "a.golden.json", ONE, TWO)
    write(tmp_path, "b.golden.json", OTHER)
    return tmp_path


def configure(folder: Path, **settings: object) -> None:
    usual = {"baseline": "latest", "failOn": ["regressions"], "reruns": 0}
    (folder / "eval-gate.yaml").write_text(
        json.dumps({key: value for key, value in (usual | settings).items() if value is not None})
    )


def run(folder: Path, *arguments: str, bad: str = "") -> subprocess.CompletedProcess[str]:
    async def answer(exchange: Exchange) -> None:
        exchange.answer({"response": "BAD" if exchange.json["message"] == bad else "ok", "toolCalls": []})

    with agent(answer) as running:
        return gate(folder, "run", *arguments, "--agent-endpoint", running.url, CI="true")


def text(done: subprocess.CompletedProcess[str]) -> str:
    return " ".join(done.stdout.split())


def test_another_output_dir__a_case_that_passes_there_fails__is_inconclusive_and_names_both(project) -> None:
    configure(project)
    for _ in range(3):
        assert run(project).returncode == 0
    configure(project, outputDir="other")
    done = run(project, bad="q1")
    assert done.returncode == 3, done.stdout
    assert "results folder `evals/results` → `other`" in text(done)
    assert "1 case that passes there fails here" in text(done)
    assert re.search(r"name the results once: `--baseline evals/results/[0-9a-f-]{36}`", text(done)), done.stdout
    green = run(project)
    assert (green.returncode, "results folder `evals/results` → `other`" in text(green)) == (0, True), green.stdout


def test_another_output_dir_is_typed__is_inconclusive(project) -> None:
    configure(project)
    assert run(project).returncode == 0
    assert run(project, "--output-dir", "other/results", bad="q1").returncode == 3


def test_results_are_outside_of_the_repository__the_folder_beside_is_found(project) -> None:
    inner = project / "repository"
    write(inner, "a.golden.json", ONE, TWO)
    configure(inner)
    assert run(inner, "--output-dir", "../results").returncode == 0
    done = run(inner, "--output-dir", "../other", bad="q1")
    assert (done.returncode, "results folder `../results` → `../other`" in text(done)) == (3, True), done.stdout


def test_baseline_is_no_longer_configured__is_inconclusive(project) -> None:
    configure(project)
    for _ in range(2):
        assert run(project).returncode == 0
    configure(project, baseline=None)
    done = run(project, bad="q1")
    assert (done.returncode, "→ `none`, so nothing is compared" in text(done)) == (3, True), done.stdout


def test_baseline_was_never_configured__passes(project) -> None:
    configure(project, baseline=None)
    assert run(project).returncode == 0
    assert run(project, bad="q1").returncode == 0


def test_a_part_is_run_first_and_then_all__a_case_that_passed_in_the_part_fails__is_inconclusive(project) -> None:
    configure(project)
    assert run(project, "evals/a.golden.json").returncode == 0
    done = run(project, bad="q1")
    assert (done.returncode, "selection `evals/a.golden.json` → `all cases`" in text(done)) == (3, True), done.stdout


def test_a_part_is_run_first_and_then_all__a_case_that_the_part_does_not_have_fails__passes(project) -> None:
    configure(project)
    assert run(project, "evals/a.golden.json").returncode == 0
    assert run(project, bad="q3").returncode == 0


def test_other_cases_in_another_folder__no_baseline_yet(project) -> None:
    other = project / "sales"
    write(other, "s.golden.json", OTHER | {"id": "s1", "input": {"message": "other"}})
    configure(other)
    assert run(other).returncode == 0
    configure(project)
    done = run(project, bad="q1")
    assert (done.returncode, "→" in text(done)) == (0, False), done.stdout


def test_another_tag_is_chosen__is_inconclusive(project) -> None:
    configure(project)
    write(project, "a.golden.json", ONE | {"tags": ["smoke"]}, TWO)
    assert run(project, "--tag", "smoke").returncode == 0
    write(project, "a.golden.json", ONE | {"tags": ["quick"]}, TWO)
    done = run(project, "--tag", "quick", bad="q1")
    assert (done.returncode, "selection `smoke` → `quick`" in text(done)) == (3, True), done.stdout


def test_shards_are_given_up__is_inconclusive(project) -> None:
    configure(project)
    for shard in ("1/2", "2/2"):
        assert run(project, "--shard", shard).returncode == 0
    done = run(project, bad="q1")
    assert (done.returncode, "selection `shard " in text(done)) == (3, True), done.stdout


def test_file_and_id_of_the_case_have_other_names_too__is_found_by_prompt_and_expectation(project) -> None:
    configure(project)
    assert run(project).returncode == 0
    configure(project, outputDir="other", evals=["checks"])
    (project / "evals/a.golden.json").unlink()
    (project / "checks").mkdir()
    (project / "checks/z.golden.json").write_text(json.dumps([ONE | {"id": "new"}]))
    done = run(project, bad="q1")
    assert (done.returncode, "1 case that passes there fails here: new" in text(done)) == (3, True), done.stdout


@pytest.mark.parametrize("fail_on", ["regressions,removed", "regressions,changed"])
def test_case_is_removed_or_weakened_with_its_results_folder__is_inconclusive_where_that_blocks(
    project, fail_on
) -> None:
    configure(project)
    assert run(project).returncode == 0
    configure(project, outputDir="other", failOn=fail_on.split(","))
    write(project, "a.golden.json", *([TWO] if "removed" in fail_on else [ONE | {"expect": {}}, TWO]))
    done = run(project, bad="q1")
    assert (done.returncode, "1 setup change would fail the gate here" in text(done)) == (3, True), done.stdout


def test_results_of_another_tool_are_stored_elsewhere__is_inconclusive(project) -> None:
    configure(project)
    row = {"suite": "s", "id": "c1", "status": "passed", "input": "q", "expected": "e"}
    (project / "rows.jsonl").write_text(json.dumps(row))
    first = gate(project, "check", "rows.jsonl", CI="true")
    assert first.returncode == 0, first.stderr
    configure(project, outputDir="other")
    (project / "rows.jsonl").write_text(json.dumps(row | {"status": "failed"}))
    done = gate(project, "check", "rows.jsonl", CI="true")
    assert (done.returncode, "results folder `evals/results` → `other`" in text(done)) == (3, True), done.stdout


def test_failure_is_waived__passes(project) -> None:
    configure(project)
    assert run(project).returncode == 0
    configure(project, outputDir="other")
    (project / ".eval-gate").mkdir()
    until = (datetime.now(UTC) + timedelta(days=5)).date().isoformat()
    waived = f'waivers:\n- case: c1\n  reason: "known"\n  until: "{until}"\n'
    (project / ".eval-gate/waivers.yaml").write_text(waived)
    done = run(project, bad="q1")
    assert (done.returncode, "results folder `evals/results` → `other`" in text(done)) == (0, True), done.stdout


def test_case_is_waived_there_and_not_here__is_inconclusive_until_it_passes(project) -> None:
    configure(project)
    for _ in range(3):
        assert run(project).returncode == 0
    (project / ".eval-gate").mkdir()
    until = (datetime.now(UTC) + timedelta(days=5)).date().isoformat()
    waivers = project / ".eval-gate/waivers.yaml"
    waivers.write_text(f'waivers:\n- case: c1\n  reason: "known"\n  until: "{until}"\n')
    for _ in range(2):
        assert run(project, bad="q1").returncode == 0
    configure(project, outputDir="other")
    assert run(project, bad="q1").returncode == 0
    configure(project, outputDir="third")
    waivers.unlink()
    done = run(project, bad="q1")
    assert (done.returncode, "1 case that is waived there fails here: c1" in text(done)) == (3, True), text(done)
    assert run(project).returncode == 0


def test_nothing_would_be_compared_anyway__says_nothing(project) -> None:
    configure(project, failOn=["failures"])
    assert run(project).returncode == 0
    configure(project, failOn=["failures"], outputDir="other")
    done = run(project)
    assert (done.returncode, "→" in text(done)) == (0, False), done.stdout


def targets(folder: Path, **answers: str) -> None:
    listed = [{"name": name, "provider": "mock", "response": answer} for name, answer in answers.items()]
    configure(folder, targets=listed)


def run_targets(folder: Path, *names: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return gate(folder, "run", *(word for name in names for word in ("--target", name)), CI="true", **settings)


@pytest.mark.parametrize("reference", ["latest", "evals/results"])
def test_both_targets_are_renamed__is_inconclusive_and_names_them(project, reference) -> None:
    targets(project, a="ok", b="ok")
    assert run_targets(project, "a", "b").returncode == 0
    targets(project, c="BAD", d="BAD")
    done = gate(project, "run", "--target", "c", "--target", "d", "--baseline", reference, CI="true")
    assert done.returncode == 3, done.stdout
    assert "c: gate inconclusive: the target b is now c, so nothing is compared" in text(done), done.stdout


def test_further_target_beside_the_others__is_new(project) -> None:
    targets(project, a="ok", b="ok")
    assert run_targets(project, "a", "b").returncode == 0
    targets(project, a="ok", b="ok", new="BAD")
    assert run_targets(project, "a", "b", "new").returncode == 0
