"""Stored results, in every form they are kept in."""

import json
import zipfile

import pytest

from runner.engine.store import write_result
from runner.errors import GateError
from runner.gate.baseline import Baseline, NoBaseline
from runner.gate.stored import extract, find_baseline, read_archive, read_run, runs_in
from runner.model.comparison import Unmeasured
from tests.support.results import RUN_ID, make_run

OLDER, NEWER, BROKEN = (f"{digit * 8}-2222-4333-8444-555555555555" for digit in "123")


@pytest.fixture
def results(tmp_path):
    write_result(tmp_path, make_run({"a": "passed"}, run_id=OLDER, timestamp="2026-11-01T00:00:00Z"))
    write_result(tmp_path, make_run({"a": "failed"}, run_id=NEWER, timestamp="2026-11-02T00:00:00Z"))
    write_result(tmp_path, make_run({"a": "not_run"}, run_id=BROKEN, timestamp="2026-11-03T00:00:00Z"))
    return tmp_path


def zipped(folder, *entries: tuple[str, bytes]):
    file = folder / "artifact.zip"
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return str(file)


def test_read_run__every_form__leads_to_the_run(results) -> None:
    folder = results / OLDER
    forms = [
        OLDER,
        str(folder),
        str(folder / "run.json"),
        zipped(results, ("run.json", (folder / "run.json").read_bytes())),
    ]
    assert [read_run(form, results).run_id for form in forms] == [OLDER] * 4


def test_read_run__folder_of_runs__is_the_newest_complete_one(results) -> None:
    assert read_run(str(results), results).run_id == NEWER


def test_read_run__latest__is_the_newest_of_all_and_as_a_baseline_the_newest_complete(results) -> None:
    assert read_run("latest", results).run_id == BROKEN
    found = find_baseline("latest", results)
    assert isinstance(found, Baseline)
    assert found.result.run_id == NEWER


def test_runs_in__two_of_the_same_second__the_later_written_comes_first(tmp_path) -> None:
    for run_id in (NEWER, OLDER):
        write_result(tmp_path, make_run({"a": "passed"}, run_id=run_id))
    assert [run.run_id for run in runs_in(tmp_path)] == [OLDER, NEWER]


def test_runs_in__folder__is_all_of_them_newest_first(results) -> None:
    assert [run.run_id for run in runs_in(results)] == [BROKEN, NEWER, OLDER]


def test_read_run__foreign_suite_result__is_a_run_of_one_suite(tmp_path) -> None:
    foreign = {
        "runId": "r1",
        "timestamp": "2026-01-01T00:00:00Z",
        "tier": "golden",
        "toolName": "get_weather",
        "metadata": {"toolVersion": "1.0.0"},
        "stalenessWarnings": [],
        "cases": [
            {"id": "a", "description": "", "passed": True, "durationMs": 5},
            {"id": "b", "description": "", "passed": False, "durationMs": 5, "error": "x"},
        ],
        "summary": {"totalCases": 2, "passed": 1, "failed": 1, "skippedAssertions": 0, "totalDurationMs": 10},
        "regressions": [],
        "newPasses": [],
    }
    (tmp_path / "r.json").write_text(json.dumps(foreign))
    run = read_run(str(tmp_path / "r.json"), tmp_path)
    assert [case.status.value for case in run.suites[0].cases] == ["passed", "failed"]
    assert (run.run_id, run.summary.pass_rate, run.complete) == ("r1", 0.5, True)


def test_find_baseline__none_named__is_an_absence_with_a_reason(tmp_path) -> None:
    assert find_baseline(None, tmp_path) == NoBaseline("not-asked-for", "no baseline was named")


def test_find_baseline__latest_before_the_first_run__is_an_absence_and_not_a_mistake(tmp_path) -> None:
    found = find_baseline("latest", tmp_path / "results")
    assert found == NoBaseline("none-yet", f"there is no complete run in {tmp_path / 'results'} yet")


def test_find_baseline__newest_run_was_an_outage__is_the_measured_one_before_it_and_names_both(tmp_path) -> None:
    write_result(tmp_path, make_run({"a": "passed", "b": "passed"}, run_id=OLDER, timestamp="2026-11-01T00:00:00Z"))
    outage = make_run({"a": "error", "b": "error"}, run_id=NEWER, timestamp="2026-11-02T00:00:00Z")
    write_result(tmp_path, outage)
    for reference in ("latest", str(tmp_path)):
        found = find_baseline(reference, tmp_path)
        assert isinstance(found, Baseline)
        assert found.result.run_id == OLDER
        assert found.unmeasured == (Unmeasured(run_id=NEWER, sha=outage.git.sha, judged=0, cases=2),)


def test_find_baseline__only_an_outage__is_no_baseline(tmp_path) -> None:
    write_result(tmp_path, make_run({"a": "error"}, run_id=OLDER))
    found = find_baseline("latest", tmp_path)
    assert isinstance(found, NoBaseline)
    assert "could half of the cases be judged" in found.reason
    with pytest.raises(GateError, match="could half of the cases be judged") as caught:
        find_baseline(str(tmp_path), tmp_path)
    assert caught.value.code == "baseline-not-found"


def test_find_baseline__named__keeps_what_was_named(results) -> None:
    found = find_baseline(OLDER, results)
    assert isinstance(found, Baseline)
    assert found.source == OLDER


@pytest.mark.contract("baseline.not-found")
@pytest.mark.parametrize("reference", ["nope", "../etc/passwd", "/nowhere/run.json", ""])
def test_read_run__nothing_there__is_a_usage_error(results, reference) -> None:
    with pytest.raises(GateError) as caught:
        read_run(reference, results / "none") if reference == "" else read_run(reference, results)
    assert (caught.value.code, caught.value.exit_code) in {("baseline-not-found", 2), ("baseline-corrupt", 2)}


def test_read_run__nearly_a_run_id__says_which(results) -> None:
    with pytest.raises(GateError, match=f'did you mean "{OLDER}"'):
        read_run(OLDER[:-1], results)


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("[1]", "baseline-corrupt", "expected a mapping"),
        ("{", "baseline-corrupt", "not valid JSON"),
        ('{"schemaVersion": 2}', "baseline-schema", "newer version"),
        ('{"schemaVersion": 1}', "baseline-corrupt", "not a run record"),
        ("{}", "baseline-corrupt", "not a run record"),
    ],
)
def test_read_run__file_that_is_none__says_what_is_wrong(tmp_path, text, code, said) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(GateError, match=said) as caught:
        read_run(str(tmp_path / "run.json"), tmp_path)
    assert caught.value.code == code


def test_read_run__unknown_keys_of_a_later_version__are_ignored(results) -> None:
    file = results / OLDER / "run.json"
    record = json.loads(file.read_text()) | {"later": {"a": 1}}
    file.write_text(json.dumps(record))
    assert read_run(OLDER, results).run_id == OLDER


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([("../run.json", b"{}")], "leads out of the archive"),
        ([("/run.json", b"{}")], "leads out of the archive"),
        ([("a\\..\\run.json", b"{}")], "leads out of the archive"),
        ([("C:run.json", b"{}")], "leads out of the archive"),
        ([("a/run.json", b"{}"), ("b/run.json", b"{}")], "2 entries are called run.json"),
        ([("x.json", b"{}")], "0 entries are called run.json"),
        ([("run.json", b"{")], "not valid JSON"),
    ],
)
def test_read_run__hostile_archive__is_refused(tmp_path, entries, said) -> None:
    with pytest.raises(GateError, match=said):
        read_run(zipped(tmp_path, *entries), tmp_path)


def test_read_run__archive_that_explodes__is_refused_without_unpacking_it(tmp_path) -> None:
    file = tmp_path / "bomb.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("run.json", b" " * 70_000_000)
    with pytest.raises(GateError, match="larger than"):
        read_run(str(file), tmp_path)


def test_run_record__written_and_read__is_the_same(results) -> None:
    run = make_run({"a": "passed", "b": "failed"}, run_id=RUN_ID)
    write_result(results, run)
    assert read_run(RUN_ID, results) == run


def test_extract__a_link_at_its_place__is_not_written_through(tmp_path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        packed.writestr("answers.jsonl", "x")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "answers.jsonl").symlink_to(tmp_path / "elsewhere")
    assert not extract(tmp_path / "a.zip", "answers.jsonl", tmp_path / "results" / "answers.jsonl", 10)
    assert not (tmp_path / "elsewhere").exists()
    assert extract(tmp_path / "a.zip", "answers.jsonl", tmp_path / "new" / "answers.jsonl", 10)
    assert not extract(tmp_path / "a.zip", "other.jsonl", tmp_path / "new" / "other.jsonl", 10)


def test_read_archive__very_many_names__is_refused_before_they_are_read(tmp_path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        for number in range(10_001):
            packed.writestr(str(number), "")
    with pytest.raises(GateError, match="more than 10,000 entries"):
        read_archive(tmp_path / "a.zip", "artifact 1")
