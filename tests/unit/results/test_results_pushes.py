"""The small ledger of a change's pushes: what is kept, and what of a file is believed."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from eval_gate.config.policy import Policy
from eval_gate.errors import GateError
from eval_gate.results.baseline import Baseline
from eval_gate.results.pushes import MAX_PUSHES, PUSHES_NAME, Pushes, pushes_before, pushes_bytes, read_pushes
from eval_gate.results.write import write_result
from tests.support.results import FILE, make_baseline_run, make_run
from tests.support.verdicts import judge_against


def pushed(number: int, **cases: str):
    return make_run(cases, run_id=f"push-{number}")


def after(*runs) -> Pushes:
    pushes = Pushes(pull_request=7, gate="gate.yml.gate")
    for run in runs:
        pushes = pushes.with_run(run)
    return pushes


def kept(pushes: Pushes) -> dict[str, str]:
    return {case_id: case.runs for cases in pushes.ledger.suites.values() for case_id, case in cases.items()}


def test_with_run__several_pushes__keeps_the_cases_that_failed_on_any_from_then_on() -> None:
    pushes = after(
        pushed(1, a="passed", b="passed"), pushed(2, a="failed", b="passed"), pushed(3, a="passed", b="passed")
    )
    assert [run.run_id for run in pushes.ledger.runs] == ["push-3", "push-2", "push-1"]
    assert kept(pushes) == {"a": "0P 0F -"}
    assert (pushes.pull_request, pushes.gate) == (7, "gate.yml.gate")


def test_with_run__more_pushes_than_count__keeps_the_newest() -> None:
    runs = [pushed(number, a="failed" if number < 2 else "passed", b="failed") for number in range(MAX_PUSHES + 3)]
    pushes = after(*runs)
    assert [run.run_id for run in pushes.ledger.runs] == [run.run_id for run in runs[: -MAX_PUSHES - 1 : -1]]
    assert kept(pushes) == {"b": " ".join(["0F"] * MAX_PUSHES)}


def test_with_run__failed_in_its_baseline_too__is_not_held_against_the_change() -> None:
    """Main had broken it. The next push may be merged with a main that has repaired it."""
    baseline = make_baseline_run({"a": "failed", "b": "passed"})
    push = judge_against(pushed(1, a="failed", b="failed"), Baseline(baseline, "main"), Policy())
    assert kept(after(push)) == {"b": "0F"}


def test_with_run__the_same_run_again__changes_nothing() -> None:
    once = after(pushed(1, a="failed"))
    assert once.with_run(pushed(1, a="failed")) == once


def test_read__what_was_written__is_the_same() -> None:
    pushes = after(pushed(1, a="failed"), pushed(2, a="passed"))
    assert read_pushes(pushes_bytes(pushes), "it") == pushes


def test_bytes__too_many_cases__holds_none(monkeypatch) -> None:
    pushes = after(pushed(1, a="failed"))
    monkeypatch.setattr("eval_gate.results.pushes.MAX_PUSHES_BYTES", 100)
    assert read_pushes(pushes_bytes(pushes), "it") == Pushes(pull_request=7, gate="gate.yml.gate")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"schemaVersion": 2}',
        b'{"pullRequest": "many"}',
        b'{"ledger": {"runs": [{"runId": 1}]}}',
        b'{"ledger": {"suites": {"a": {"c": {"runs": "0X"}}}}}',
        b'{"ledger": {"suites": {"a": {"c": {"runs": "7F"}}}}}',
        b"\xff",
    ],
)
def test_read__damaged__says_where_and_what_to_do(data) -> None:
    with pytest.raises(GateError, match="artifact 7 does not say what earlier pushes saw") as caught:
        read_pushes(data, "artifact 7")
    assert caught.value.code == "pushes-corrupt"
    assert caught.value.hint


def test_read__larger_than_it_may_be__is_refused(monkeypatch) -> None:
    monkeypatch.setattr("eval_gate.results.pushes.MAX_PUSHES_BYTES", 3)
    with pytest.raises(GateError, match="larger than 3 bytes"):
        read_pushes(b"{  }", "it")


# --- by name


def stored(folder: Path, *runs) -> Pushes:
    pushes = after(*runs)
    write_result(folder, runs[-1], pushes)
    return pushes


@pytest.mark.parametrize("form", ["id", "folder", "file", "zip"])
def test_before__run_with_its_pushes__are_they(tmp_path, form) -> None:
    pushes = stored(tmp_path, pushed(1, a="failed"), pushed(2, a="passed"))
    folder, packed = tmp_path / "push-2", tmp_path / "push.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for file in folder.iterdir():
            archive.write(file, file.name)
    named = {"id": "push-2", "folder": str(folder), "file": str(folder / "run.json"), "zip": str(packed)}
    assert pushes_before(named[form], tmp_path) == pushes


@pytest.mark.parametrize("packed", [False, True])
def test_before__run_of_which_nothing_travels__is_the_first_push(tmp_path, packed) -> None:
    write_result(tmp_path, pushed(1, a="failed"))
    reference = "push-1"
    if packed:
        reference = str(tmp_path / "push.zip")
        with zipfile.ZipFile(reference, "w") as archive:
            archive.write(tmp_path / "push-1" / "run.json", "run.json")
    found = pushes_before(reference, tmp_path)
    assert [run.run_id for run in found.ledger.runs] == ["push-1"]
    assert list(found.ledger.suites) == [FILE]


@pytest.mark.parametrize("packed", [False, True])
def test_before__damaged__is_an_error_and_no_absence(tmp_path, packed) -> None:
    stored(tmp_path, pushed(1, a="failed"))
    file, reference = tmp_path / "push-1" / PUSHES_NAME, "push-1"
    file.write_bytes(b"{")
    if packed:
        reference = str(tmp_path / "push.zip")
        with zipfile.ZipFile(reference, "w") as archive:
            for one in file.parent.iterdir():
                archive.write(one, one.name)
    with pytest.raises(GateError) as caught:
        pushes_before(reference, tmp_path)
    assert caught.value.code == "pushes-corrupt"


def test_before__no_such_run__is_an_error(tmp_path) -> None:
    with pytest.raises(GateError) as caught:
        pushes_before("nobody", tmp_path)
    assert caught.value.code == "baseline-not-found"
