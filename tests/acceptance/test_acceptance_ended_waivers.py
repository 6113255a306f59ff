"""A permission ends: what a waiver, a quarantine or allowedRegressions let pass counts again on main."""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.github import zipped
from tests.support.world import GATE, World, as_options, expect, words

FAIL_ON = ("--fail-on", "regressions")
GOOD, BROKEN = "PPPPPPPP", "FPPPPPPP"


def run_main(made: World, letters: str, **options: str):
    """The next run of main, which is compared with the one before it."""
    given = GATE | {"--output-dir": made.MAIN, "--baseline": "latest", "--report": "md=report.md"} | as_options(options)
    done = made.run(letters, *words(given))
    folder = made.folder / made.MAIN
    return made.seen(done, folder / json.loads((folder / "latest.json").read_text())["path"])


def end_waivers(made: World) -> str:
    """Let the permissions of the newest run end yesterday, in the file and in main's history; return the day."""
    return end_permissions([made.folder / ".eval-gate" / "waivers.yaml", *(made.folder / made.MAIN).rglob("*.json")])


def end_permissions(files: Iterable[Path]) -> str:
    """Let every permission in these files end yesterday; return the day."""
    day = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
    for file in files:
        if file.is_file():
            times = file.stat()
            file.write_text(re.sub(r'(until"?: ?)"\d{4}-\d\d-\d\d"', rf'\1"{day}"', file.read_text()))
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))  # by which runs are told apart
    return day


@pytest.mark.parametrize(("kind", "word"), [("waivers", "waived"), ("quarantine", "quarantined")])
def test_permission_ends__case_fails_as_before__main_is_red_until_it_is_fixed(world, kind, word) -> None:
    made = world(f"{GOOD}*4")
    made.accept(0, kind=kind)
    assert run_main(made, BROKEN).code == 0
    assert run_main(made, BROKEN).code == 0
    day = end_waivers(made)
    seen = run_main(made, BROKEN)
    expect(seen, 1, "1 regression", first="regressions", regression=[0])
    assert f"{word} until {day}, still failing" in seen.report.lower()
    assert f"{word} until {day}, still failing" in " ".join(seen.text.split())
    expect(run_main(made, BROKEN), 1, "1 regression", regression=[0])
    newest = seen.json["runId"]
    base = f"{made.MAIN}/{seen.json['baselineRunId']}"
    again = made.compare(f"{made.MAIN}/{newest}", *FAIL_ON, baseline=base)
    assert (again.code, again.json["verdict"]) == (1, seen.json["verdict"]), "a stored run keeps its verdict"
    assert run_main(made, GOOD).code == 0
    assert run_main(made, GOOD).code == 0


def test_permission_is_taken_back_early__main_is_red_and_later_pull_requests_are_not(world) -> None:
    made = world(f"{GOOD}*4")
    made.accept(0)
    assert run_main(made, BROKEN).code == 0
    (made.folder / ".eval-gate" / "waivers.yaml").unlink()
    pull = made.here(BROKEN)
    expect(pull, 1, "1 regression", regression=[0])
    assert "taken back here" in pull.report, "whoever takes the waiver away has to fix the case"
    expect(run_main(made, BROKEN), 1, "1 regression", regression=[0])
    expect(made.here(BROKEN), 0, "no regressions", still_failing=[0])


def test_permission_has_ended__pull_request_names_the_case_and_is_green(world) -> None:
    made = world(f"{GOOD}*4")
    made.accept(0)
    assert run_main(made, BROKEN).code == 0
    day = end_waivers(made)
    seen = made.here(BROKEN)
    expect(seen, 0, "1 case broken before this change", still_failing=[0])
    assert f"waived until {day}, still failing" in seen.report.lower()
    expect(made.here("FFPPPPPP"), 1, "1 regression", regression=[1], still_failing=[0])


def test_allowed_regressions__are_allowed_for_one_run(world) -> None:
    made = world(f"{GOOD}*4")
    assert run_main(made, BROKEN, allowed_regressions="1").code == 0
    again = run_main(made, BROKEN, allowed_regressions="1")
    assert again.code == 0, "it is allowed again"
    expect(
        made.here("FFPPPPPP", allowed_regressions="1"),
        0,
        "1 regression",
        regression=[1],
        still_failing=[0],
    )
    expect(run_main(made, BROKEN), 1, "1 regression", regression=[0])


def test_waived_case_is_edited__it_stays_what_it_was_let_pass_as(world) -> None:
    made = world(f"{GOOD}*4")
    made.accept(0)
    assert run_main(made, BROKEN).code == 0
    end_waivers(made)
    made.cases[0]["input"]["message"] += " "
    made.write()
    expect(run_main(made, BROKEN), 1, "1 regression", regression=[0])


def test_waived_case_was_flaky_before__quarantine_ends__is_no_regression(world) -> None:
    made = world("PPPPPPPP FPPPPPPP PPPPPPPP FPPPPPPP PPPPPPPP FPPPPPPP PPPPPPPP")
    made.accept(0, kind="quarantine")
    assert run_main(made, BROKEN).code == 0
    end_waivers(made)
    assert run_main(made, "F(P)PPPPPPP").code == 0


def waive_on_main(action, days: int = 3) -> Path:
    """Waive case 0 on main, which breaks it then; return the waiver file."""
    action.main(f"{GOOD}*4")
    file = Path(action.job.workspace) / ".eval-gate" / "waivers.yaml"
    file.parent.mkdir(exist_ok=True)
    until = datetime.now(UTC).date() + timedelta(days=days)
    file.write_text(f'waivers:\n- case: gs-000\n  reason: "known"\n  until: "{until}"\n')
    action.main(f"{BROKEN}*2")
    return file


def test_push_to_main__after_a_waiver_in_the_file_has_ended__is_red(action) -> None:
    file = waive_on_main(action)
    fork = action.pull(head_repo="mallory/bot", user="mallory")
    seen = action.here(BROKEN, fork)
    assert (seen.code, seen.classes["gs-000"]) == (0, "still_failing"), "whose waivers do not count, nor take one back"
    assert action.ended.outputs["verdict"] == "passed", action.ended.log
    file.unlink()
    action.main(BROKEN)
    assert (action.ended.outputs["verdict"], action.ended.outputs["regressions"]) == ("failed", "1"), action.ended.log
    expect(action.here(BROKEN), 0, "no regressions", still_failing=[0])


@pytest.mark.parametrize("named", ["a folder", "a run"])
def test_push_to_main__baseline_is_named__after_a_waiver_has_ended__is_red_and_pull_requests_are_not(
    action, named
) -> None:
    file = waive_on_main(action)
    stored, newest = Path(action.job.workspace) / "stored", action.github.state.archives[-1]
    with zipfile.ZipFile(io.BytesIO(newest.zip_bytes)) as archive:
        archive.extractall(stored)
    day = end_permissions([file, *stored.rglob("*.json")])
    files = {one.relative_to(stored).as_posix(): one.read_bytes() for one in stored.rglob("*") if one.is_file()}
    newest.zip_bytes, newest.digest = zipped(files), None
    baseline = "stored" if named == "a folder" else str(newest.run_id)
    expect(action.here(BROKEN, baseline=baseline), 0, "1 case broken before this change", still_failing=[0])
    action.main(BROKEN, baseline=baseline)
    assert (action.ended.outputs["verdict"], action.ended.outputs["regressions"]) == ("failed", "1"), action.ended.log
    assert f"waived until {day}, still failing" in " ".join(action.ended.log.lower().split())


@pytest.mark.parametrize(
    ("name", "event"), [("schedule", {"schedule": "17 3 * * *"}), ("workflow_dispatch", {"ref": "refs/heads/main"})]
)
def test_run_of_main__by_schedule_or_by_hand__after_a_waiver_is_removed__is_red(action, name, event) -> None:
    file = waive_on_main(action)
    file.unlink()
    action.job.begin_run(event=name)
    action.script.begin(BROKEN)
    ended = action.job.step(name, event, {"agent-endpoint": action.script.url} | action._given({}))
    assert (ended.outputs["verdict"], ended.outputs["regressions"]) == ("failed", "1"), ended.log


def test_merge_queue__after_a_waiver_is_removed__is_red_for_the_group_that_removes_it_only(action) -> None:
    file = waive_on_main(action)
    file.unlink()
    removing = action.in_queue(BROKEN)
    assert (removing.code, removing.outputs["regressions"]) == (1, "1"), removing.log
    action.main(BROKEN)
    later = action.in_queue(BROKEN)
    assert (later.code, later.outputs["regressions"]) == (0, "0"), later.log


@pytest.mark.parametrize("kind", ["waivers", "quarantine"])
def test_permission_lasts__case_has_no_score_in_a_run__is_not_taken_back(world, kind) -> None:
    made = world(f"{GOOD}*4")
    made.accept(0, kind=kind)
    assert run_main(made, BROKEN).code == 0
    expect(made.here("CPPPPPPP"), 0, "no regressions", still_failing=[0])
    assert run_main(made, "CPPPPPPP").code == 0
    assert run_main(made, BROKEN).code == 0
    end_waivers(made)
    expect(run_main(made, BROKEN), 1, "1 regression", regression=[0])


def test_agent_error_is_waived__permission_ends__counts_until_the_case_passes(world) -> None:
    made = world(f"{GOOD}*4")
    made.accept(0)
    assert run_main(made, "CPPPPPPP").code == 0
    assert run_main(made, "CPPPPPPP").code == 0
    day = end_waivers(made)
    expect(made.here("CPPPPPPP"), 0, "no regressions", still_errored=[0])
    seen = run_main(made, "CPPPPPPP")
    expect(seen, 1, "1 regression", first="regressions", regression=[0])
    assert f"waived until {day}, still failing" in " ".join(seen.text.split())
    assert run_main(made, GOOD).code == 0


def test_history_is_lost__runs_alone_say_what_was_permitted(world) -> None:
    made = world(f"{GOOD}*4")
    made.accept(0)
    assert run_main(made, BROKEN).code == 0
    end_waivers(made)
    for file in (made.folder / made.MAIN).rglob("history.json"):
        file.unlink()
    expect(run_main(made, BROKEN), 1, "1 regression", regression=[0])


def test_history_says_nothing_of_a_permission__the_run_itself_does(world) -> None:
    made = world(f"{GOOD}*4")
    made.accept(0)
    assert run_main(made, BROKEN).code == 0
    end_waivers(made)
    for file in (made.folder / made.MAIN).rglob("history.json"):
        history = json.loads(file.read_text())
        for run in history["runs"]:
            run.pop("permittedRegressions", None)
        file.write_text(json.dumps(history))
    expect(run_main(made, BROKEN), 1, "1 regression", regression=[0])


@pytest.mark.parametrize("kind", ["waivers", "quarantine"])
def test_results_get_another_name_while_a_permission_lasts__it_ends_all_the_same(world, kind) -> None:
    made = world(f"{GOOD}*4")
    made.accept(0, kind=kind)
    assert run_main(made, BROKEN).code == 0
    made.MAIN = "renamed"
    assert run_main(made, BROKEN).code == 0, "there is no baseline under the new name"
    assert run_main(made, BROKEN).code == 0
    end_waivers(made)
    expect(run_main(made, BROKEN), 1, "1 regression", regression=[0])
    assert run_main(made, GOOD).code == 0
    assert run_main(made, GOOD).code == 0


GRADED = {"pass_score": "0.5", "max_score_drop": "0.05"}


@pytest.fixture
def graded(empty) -> World:
    """Four cases with 0.8 and 0.9 by turns on main, where the score of the first one falls under a waiver."""
    empty.write_graded(4)
    empty.main("8989*2 9898*2", "--pass-score", "0.5")
    empty.accept(0)
    assert run_main(empty, "5989", **GRADED).code == 0
    return empty


def test_lower_score_is_waived__waiver_ends__main_is_red_until_the_score_is_back(graded) -> None:
    assert run_main(graded, "5989", **GRADED).code == 0, "the waiver lasts"
    day = end_waivers(graded)
    expect(graded.here("5989", **GRADED), 0, "no regressions")
    seen = run_main(graded, "5989", **GRADED)
    expect(seen, 1, "score", first="max-score-drop")
    assert f"waived until {day}, still lower" in " ".join(seen.text.split()).lower()
    assert run_main(graded, "5989", **GRADED).code == 1, "a red run makes it no better"
    assert run_main(graded, "8989", **GRADED).code == 0
    assert run_main(graded, "8989", **GRADED).code == 0


def test_lower_score_is_waived__waiver_is_removed__who_removes_it_is_red(graded) -> None:
    (graded.folder / ".eval-gate" / "waivers.yaml").unlink()
    expect(graded.here("5989", **GRADED), 1, "score", first="max-score-drop")
    assert run_main(graded, "5989", **GRADED).code == 1
    expect(graded.here("5989", **GRADED), 0, "no regressions")
