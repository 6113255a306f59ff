"""Stored results, in every form they are kept in."""

import json
import os
import shutil
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from eval_gate.config.policy import Policy
from eval_gate.errors import GateError
from eval_gate.model.comparison import CaseClass, ReasonCode, UnscoredRun
from eval_gate.model.evidence import GroundKind
from eval_gate.model.limits import RESULT_BYTES
from eval_gate.model.result import RunResult
from eval_gate.model.selection import CaseSelection
from eval_gate.results.baseline import NOT_REQUESTED, Baseline, NoBaseline
from eval_gate.results.history import build_history
from eval_gate.results.run_reader import (
    MAX_RUNS_READ,
    find_baseline,
    find_newest_passed,
    read_run,
    read_runs,
    require_baseline,
)
from eval_gate.results.run_times import compute_run_time
from eval_gate.results.run_writer import write_history, write_result
from eval_gate.struct import replace
from tests.support.results import RUN_ID, make_run, make_suite_result
from tests.support.verdicts import judge_against, make_executed

OLDER, NEWER, BROKEN = (f"{digit * 8}-2222-4333-8444-555555555555" for digit in "123")


def judged_run(status: str, run_id: str, day: int = 1, **fields) -> RunResult:
    """A run of one case that was judged on its own, as `eval-gate run` does it."""
    run = make_run({"a": status}, run_id=run_id, timestamp=f"2026-11-{day:02}T00:00:00Z", **fields)
    return judge_against(run, NOT_REQUESTED, Policy())


@pytest.fixture
def results(tmp_path):
    write_result(tmp_path, judged_run("passed", OLDER, 1))
    write_result(tmp_path, judged_run("failed", NEWER, 2))
    write_result(tmp_path, judged_run("not_run", BROKEN, 3))
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


@pytest.mark.contract("baseline.latest")
def test_latest__is_the_newest_of_all_and_as_a_baseline_the_newest_that_passed(results) -> None:
    assert read_run("latest", results).run_id == BROKEN
    found = find_baseline("latest", results)
    assert isinstance(found, Baseline)
    assert (found.result.run_id, found.exact_reference) == (OLDER, OLDER)


@pytest.mark.contract("baseline.latest")
def test_latest__history__is_every_complete_run_up_to_the_baseline(results) -> None:
    write_result(results, judged_run("passed", "green", 4))
    write_result(results, judged_run("failed", "red", 5))
    found = find_baseline("latest", results)
    assert [run.run_id for run in found.history.runs] == ["green", NEWER, OLDER]


@pytest.mark.contract("baseline.latest")
def test_latest__nothing_has_passed_yet__says_what_to_name_and_is_no_free_pass(tmp_path) -> None:
    write_result(tmp_path, judged_run("error", "outage", 1))
    assert not find_baseline("latest", tmp_path).unavailable
    write_result(tmp_path, judged_run("failed", NEWER, 2))
    found = find_baseline("latest", tmp_path)
    assert (found.code, found.unavailable) == ("no-passing-baseline", True)
    assert found.reason == (
        f"no run in {tmp_path} passed its gate yet: give the id of a run to compare with, such as {NEWER}, "
        "or start without a baseline and with --fail-on regressions"
    )


@pytest.mark.parametrize("fields", [{"partial": True}, {"complete": False}], ids=str)
def test_latest__run_of_chosen_cases_or_one_that_ended_early__is_not_it(tmp_path, fields) -> None:
    write_result(tmp_path, judged_run("passed", OLDER, 1))
    run = judged_run("passed", NEWER, 2)
    write_result(tmp_path, replace(run, **fields))
    assert find_baseline("latest", tmp_path).result.run_id == OLDER


@pytest.mark.parametrize(
    ("earlier", "here", "as_good"),
    [
        ({"tags": ["smoke"]}, {"tags": ["smoke"]}, True),
        ({"tags": ["smoke"]}, {"tags": ["smoke"], "cases": ["a*"]}, True),
        ({"tags": ["smoke"]}, {"cases": ["a*"]}, False),
        ({"tags": ["smoke"], "cases": ["a*"]}, {"tags": ["smoke"]}, False),
        ({"paths": ["evals/b"]}, {"paths": ["evals/b"], "keys": [{"suite": "evals/b/c.json", "caseId": "b"}]}, True),
        (
            {"paths": ["evals/b"], "keys": [{"suite": "evals/b/c.json", "caseId": "b"}]},
            {"paths": ["evals/b"], "keys": [{"suite": "evals/b/c.json", "caseId": "b"}]},
            False,
        ),
        ({"paths": ["evals/b"]}, {"paths": ["evals"]}, False),
        ({"tags": ["smoke"]}, None, False),
    ],
)
def test_latest__run_of_chosen_cases__is_it_for_a_run_of_no_others(tmp_path, earlier, here, as_good) -> None:
    write_result(tmp_path, judged_run("passed", OLDER, 1))
    chosen = {"partial": True, "selections": (msgspec.convert(earlier, CaseSelection),)}
    write_result(tmp_path, replace(judged_run("passed", NEWER, 2), **chosen))
    asked = (msgspec.convert(here, CaseSelection),) if here else ()
    for reference in ("latest", str(tmp_path)):
        found = find_baseline(reference, tmp_path, chosen=asked)
        assert found.result.run_id == (NEWER if as_good else OLDER)


def test_latest__many_red_runs_since__is_still_found(tmp_path) -> None:
    write_result(tmp_path, judged_run("passed", OLDER, 1))
    for number in range(MAX_RUNS_READ + 3):
        write_result(tmp_path, judged_run("failed", f"red-{number}", 2))
    found = find_baseline("latest", tmp_path)
    assert (found.result.run_id, len(found.history.runs)) == (OLDER, 1)


def test_baseline_of__latest__is_never_the_run_itself(results) -> None:
    assert require_baseline(read_run("latest", results), "latest", results).result.run_id == OLDER
    with pytest.raises(GateError, match=r"no run of agent in .* passed its gate yet") as caught:
        require_baseline(read_run(OLDER, results), "latest", results)
    assert caught.value.code == "baseline-not-found"


def test_find_baseline__folder_of_runs__may_be_red_and_says_which_it_was(results) -> None:
    found = find_baseline(str(results), results / "none")
    assert (found.result.run_id, found.exact_reference) == (NEWER, str(results / NEWER))
    assert [run.run_id for run in found.history.runs] == [NEWER, OLDER]


def test_runs_in__two_of_the_same_second__the_later_written_comes_first(tmp_path) -> None:
    for run_id in (NEWER, OLDER):
        write_result(tmp_path, make_run({"a": "passed"}, run_id=run_id))
    assert [run.run_id for run in read_runs(tmp_path)] == [OLDER, NEWER]


@pytest.mark.parametrize("ids", [(OLDER, NEWER), (NEWER, OLDER)])
def test_latest__two_that_passed_in_the_same_second__is_the_one_that_was_written_later(tmp_path, ids) -> None:
    """Whatever their names and in whatever order a folder lists them."""
    for number, run_id in enumerate(ids):
        write_result(tmp_path, judged_run("passed", run_id))
        os.utime(tmp_path / run_id / "run.json", ns=(number, number))
    assert find_baseline("latest", tmp_path).result.run_id == ids[1]
    assert read_run("latest", tmp_path).run_id == read_run(str(tmp_path), tmp_path).run_id == ids[1]
    history = find_baseline("latest", tmp_path, str(tmp_path)).history
    assert [run.run_id for run in history.runs] == [ids[1], ids[0]]


def test_latest__older_run_was_copied_here_later__is_still_the_older_one(tmp_path) -> None:
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    write_result(here, judged_run("passed", NEWER, 2))
    write_result(elsewhere, judged_run("passed", OLDER, 1))
    shutil.copytree(elsewhere / OLDER, here / OLDER, copy_function=shutil.copy)
    assert find_baseline("latest", here).result.run_id == NEWER


@pytest.mark.parametrize("clock", ["2020-01-01T00:00:00Z", "2026-01-01T00:00:00", "no time"])
def test_latest__what_was_made_last__is_the_newest_whatever_its_clock_said(tmp_path, clock) -> None:
    write_result(tmp_path, judged_run("passed", NEWER, 2))
    write_result(tmp_path, replace(judged_run("passed", OLDER, 1), timestamp=clock))
    for reference in ("latest", str(tmp_path)):
        assert find_baseline(reference, tmp_path).result.run_id == OLDER
        assert read_run(reference, tmp_path).run_id == OLDER


def test_latest__run_of_the_future__is_passed_over_and_said(tmp_path) -> None:
    ahead = replace(judged_run("passed", NEWER, 2), timestamp="2999-01-01T00:00:00Z")
    write_result(tmp_path, ahead)
    alone = find_baseline("latest", tmp_path)
    assert isinstance(alone, NoBaseline)
    assert alone.unavailable
    write_result(tmp_path, judged_run("passed", OLDER, 1))
    for reference in ("latest", str(tmp_path)):
        found = find_baseline(reference, tmp_path)
        assert isinstance(found, Baseline)
        assert (found.result.run_id, found.history.runs[0].run_id) == (OLDER, OLDER)
        (note,) = found.notes
        assert note.startswith(f"run {NEWER[:8]} has a timestamp in the future (2999-01-01T00:00:00Z)")
    assert read_run("latest", tmp_path).run_id == OLDER
    assert find_baseline(NEWER, tmp_path).result.run_id == NEWER  # somebody names it


@pytest.mark.parametrize(
    "text", ["", "no JSON", "[]", "{}", "[" * 9_000, '{"path": 5}', '{"path": "../elsewhere/run.json"}']
)
def test_latest__pointer_that_leads_nowhere__is_none(tmp_path, text) -> None:
    write_result(tmp_path, judged_run("passed", NEWER, 2))
    write_result(tmp_path, judged_run("passed", OLDER, 1))
    (tmp_path / "latest.json").write_text(text)
    assert find_baseline("latest", tmp_path).result.run_id == NEWER


def test_made_at__any_number_of_a_file_system__is_a_time() -> None:
    assert compute_run_time("2026-11-01T00:00:00Z", 10**30) == datetime(2026, 11, 1, tzinfo=UTC)
    assert compute_run_time("no time", 10**30).year == 1
    assert compute_run_time("no time", 0).year == 1970


def test_latest__time_after_the_file_was_written__is_not_believed(tmp_path) -> None:
    for number, (run_id, day) in enumerate([(NEWER, 3), (BROKEN, 1), (OLDER, 2)]):
        write_result(tmp_path, judged_run("passed", run_id, day))
        written = datetime(2026, 11, 1, number, tzinfo=UTC).timestamp()
        os.utime(tmp_path / run_id / "run.json", (written, written))
    (tmp_path / "latest.json").unlink()
    assert [run.run_id for run in read_runs(tmp_path)] == [OLDER, BROKEN, NEWER]


def test_read_run__folder_whose_newest_run_is_of_chosen_cases__is_the_newest_of_everything(tmp_path) -> None:
    write_result(tmp_path, judged_run("passed", OLDER, 1))
    write_result(tmp_path, judged_run("passed", NEWER, 2, partial=True))
    assert read_run(str(tmp_path), tmp_path).run_id == OLDER


def test_runs_in__folder__is_all_of_them_newest_first(results) -> None:
    assert [run.run_id for run in read_runs(results)] == [BROKEN, NEWER, OLDER]


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
    assert find_baseline(None, tmp_path) == NoBaseline(ReasonCode.BASELINE_NOT_REQUESTED, "no baseline was given")


def test_find_baseline__latest_before_the_first_run__is_an_absence_and_not_a_mistake(tmp_path) -> None:
    found = find_baseline("latest", tmp_path / "results")
    assert found == NoBaseline(
        ReasonCode.NO_RUN_YET, f"{tmp_path / 'results'} contains no complete run with scores yet"
    )


def test_find_baseline__newest_run_was_an_outage__is_the_measured_one_before_it_and_names_both(tmp_path) -> None:
    good = make_run({"a": "passed", "b": "passed"}, run_id=OLDER, timestamp="2026-11-01T00:00:00Z")
    outage = make_run({"a": "error", "b": "error"}, run_id=NEWER, timestamp="2026-11-02T00:00:00Z")
    for run in (good, outage):
        write_result(tmp_path, judge_against(run, NOT_REQUESTED, Policy()))
    for reference in ("latest", str(tmp_path)):
        found = find_baseline(reference, tmp_path)
        assert isinstance(found, Baseline)
        assert found.result.run_id == OLDER
        assert found.unscored_runs == (UnscoredRun(run_id=NEWER, sha=outage.git.sha, scored=0, cases=2),)


def test_find_baseline__only_an_outage__is_no_baseline(tmp_path) -> None:
    write_result(tmp_path, judge_against(make_run({"a": "error"}, run_id=OLDER), NOT_REQUESTED, Policy()))
    found = find_baseline("latest", tmp_path)
    assert isinstance(found, NoBaseline)
    assert "no complete run" in found.reason
    with pytest.raises(GateError, match="has scores for half of its cases") as caught:
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
    assert (caught.value.code, caught.value.exit_code) in {("baseline-not-found", 2), ("invalid-run-result", 2)}


def test_read_run__nearly_a_run_id__says_which(results) -> None:
    with pytest.raises(GateError, match=f'did you mean "{OLDER}"'):
        read_run(OLDER[:-1], results)


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("[1]", "invalid-run-result", "expected a mapping"),
        ("{", "invalid-run-result", "not valid JSON"),
        ('{"schemaVersion": 2}', "unsupported-run-result-version", "newer version"),
        ('{"schemaVersion": 1}', "invalid-run-result", "not a run result"),
        ("{}", "invalid-run-result", "not a run result"),
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


def test_read_run__what_an_earlier_version_knew_of_several_pushes__is_passed_over(results) -> None:
    run = make_run(make_suite_result([make_executed("a", "FFFF")]), run_id=BROKEN, reruns=6)
    write_result(results, judge_against(run, find_baseline(OLDER, results)))
    file, counts = results / BROKEN / "run.json", {"passes": 1, "failures": 2, "agentErrors": 0}
    record = json.loads(file.read_text())
    (change,) = record["comparison"]["changes"]
    change["earlier"] = [counts]
    change["grounds"] |= {"why": "pushes", "earlier": counts, "pushes": 1}
    file.write_text(json.dumps(record))
    (read,) = read_run(BROKEN, results).comparison.changes
    assert (read.change, read.grounds.kind) == (CaseClass.REGRESSION, GroundKind.EVIDENCE)
    assert find_baseline(str(file), results).result.run_id == BROKEN


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ([("../run.json", b"{}")], "points outside the archive"),
        ([("/run.json", b"{}")], "points outside the archive"),
        ([("a\\..\\run.json", b"{}")], "points outside the archive"),
        ([("C:run.json", b"{}")], "points outside the archive"),
        ([("a/run.json", b"{}"), ("b/run.json", b"{}")], "2 entries are named run.json"),
        ([("x.json", b"{}")], "0 entries are named run.json"),
        ([("run.json", b"{")], "not valid JSON"),
    ],
)
def test_read_run__hostile_archive__is_refused(tmp_path, held, said) -> None:
    with pytest.raises(GateError, match=said):
        read_run(zipped(tmp_path, *held), tmp_path)


@pytest.mark.slow
def test_read_run__archive_that_explodes__is_refused_without_unpacking_it(tmp_path) -> None:
    file = tmp_path / "bomb.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("run.json", b" " * (RESULT_BYTES + 1))
    with pytest.raises(GateError, match="larger than"):
        read_run(str(file), tmp_path)


def test_run_record__written_and_read__is_the_same(results) -> None:
    run = make_run({"a": "passed", "b": "failed"}, run_id=RUN_ID)
    write_result(results, run)
    assert read_run(RUN_ID, results) == run


def test_history__folder_without_runs__is_no_short_history_but_an_error(results, tmp_path) -> None:
    (tmp_path / "elsewhere" / "deeper").mkdir(parents=True)
    with pytest.raises(GateError, match="elsewhere contains no runs with a readable history"):
        find_baseline("latest", results, str(tmp_path / "elsewhere"))


def test_history__run_s_folder__is_the_history_that_travelled_with_it(results, tmp_path) -> None:
    ledger = build_history([judged_run("failed", "older", 1)])
    write_history(tmp_path / "elsewhere", "apart", ledger)
    write_result(tmp_path / "elsewhere", judged_run("passed", "apart", 5))
    found = find_baseline(OLDER, results, str(tmp_path / "elsewhere" / "apart"))
    assert found.history == ledger


def test_history__folder_that_is_not_called_after_its_run__stands_alone(results) -> None:
    """As an artifact that was unpacked somewhere: what lies beside it is of no concern to it."""
    (results / NEWER).rename(results / "downloaded")
    found = find_baseline(str(results / "downloaded"), results)
    assert [run.run_id for run in found.history.runs] == [NEWER]


def test_history__folder_that_knows_more_than_what_travelled__is_what_the_folder_knows(results) -> None:
    found = find_baseline(NEWER, results)
    assert [run.run_id for run in found.history.runs] == [NEWER, OLDER]


def test_history__all_older_runs_travelled__they_are_not_read(tmp_path) -> None:
    """Ten runs of a hundred thousand cases would take half a minute, and more memory than a runner has."""
    for day, name in enumerate((OLDER, NEWER, BROKEN), 1):
        run = judged_run("passed", name, day)
        write_history(
            tmp_path, name, find_baseline("latest", tmp_path).history.with_run(run) if day > 1 else build_history([run])
        )
        write_result(tmp_path, run)
    record = tmp_path / OLDER / "run.json"
    record.write_text(record.read_text().replace('"status": "passed"', '"status": "unheard of"'))
    for reference in ("latest", str(tmp_path), BROKEN):
        found = find_baseline(reference, tmp_path)
        assert [run.run_id for run in found.history.runs] == [BROKEN, NEWER, OLDER]


def test_history__an_older_run_did_not_travel__all_are_read_and_a_broken_one_is_an_error(results) -> None:
    write_history(results, NEWER, build_history([judged_run("failed", NEWER, 2)]))
    assert [run.run_id for run in find_baseline(str(results), results).history.runs] == [NEWER, OLDER]
    record = results / OLDER / "run.json"
    record.write_text(record.read_text().replace('"status": "passed"', '"status": "unheard of"'))
    with pytest.raises(GateError, match="not a run result"):
        find_baseline(str(results), results)


def test_find_baseline__what_it_was_compared_with__is_no_part_of_it(tmp_path) -> None:
    write_result(tmp_path, judged_run("passed", OLDER, 1))
    run = judge_against(make_run({"a": "passed"}, run_id=NEWER), find_baseline(OLDER, tmp_path), Policy())
    write_result(tmp_path, run)
    forms = [NEWER, "latest", str(tmp_path / NEWER), str(tmp_path)]
    forms.append(zipped(tmp_path, ("run.json", (tmp_path / NEWER / "run.json").read_bytes())))
    found = [find_baseline(form, tmp_path).result for form in forms]
    assert found == [replace(run, comparison=None)] * len(forms)
    assert [read_run(form, tmp_path) for form in forms] == [run] * len(forms)


def test_history__folder_that_knows_as_much_as_what_travelled__is_what_travelled(tmp_path) -> None:
    for name in ("before", OLDER):
        write_result(tmp_path / name, judged_run("passed", name, 1))
    write_history(tmp_path / OLDER, NEWER, build_history(read_runs(tmp_path / "before")))
    write_result(tmp_path / OLDER, judged_run("passed", NEWER, 2))
    found = find_baseline(str(tmp_path / OLDER / NEWER), tmp_path)
    assert [run.run_id for run in found.history.runs] == [NEWER, "before"]


def test_newest_passed__none_of_this_target__says_of_which() -> None:
    found = find_newest_passed(Path("nowhere"), target="desk")
    assert isinstance(found, NoBaseline)
    assert found.reason == "nowhere contains no complete run of desk with scores yet"


def test_read_run__name_that_no_file_can_have__is_a_run_that_is_not_there(tmp_path) -> None:
    for read in (lambda name: read_run(name, tmp_path), lambda name: find_baseline(name, tmp_path)):
        with pytest.raises(GateError) as raised:
            read("x" * 5_000)
        assert raised.value.code == "baseline-not-found"
