"""What main itself lost, flaked or mended, and how far the record goes back (2 and 5 of what was wrong)."""

from __future__ import annotations

import io
import json
import zipfile

import pytest

from tests.support.world import expect

EIGHT = "PPPPPPPP"
FAIL_ON = ("--fail-on", "regressions")


@pytest.mark.parametrize("newest", ["FPPPPPPP", "FFFPPPPP", "FFFFFFFF"], ids=["1 case", "3 cases", "all cases"])
def test_mains_newest_run_lost_cases__innocent_pull_request__is_green_and_says_who_broke_them(world, newest) -> None:
    lost = range(newest.count("F"))
    seen = world(f"{EIGHT}*4 {newest}").here(newest)
    expect(seen, 0, "no regressions", still_failing=lost)
    since = {seen.change(number)["caseHistory"]["brokenSince"]["runId"] for number in lost}
    assert since == {seen.json["baselineRunId"]}
    assert [suite["regressions"] for suite in seen.json["suites"]] == [[]]
    assert "passed in the baseline" not in seen.text


def test_main_mended_a_case_that_had_failed__it_fails_here__is_flaky_and_nothing_says_that_main_fails(world) -> None:
    seen = world("PPPPPPPP FPPPPPPP*4 PPPPPPPP").here("FPPPPPPP")
    expect(seen, 0, "1 flaky case fails", still_failing=[0], says=["passed 2 of 6 in the history", "67 % of the time"])
    assert "1 does not pass (1 flaky before this change)" in seen.report
    assert "in the baseline too" not in seen.text + seen.report
    assert "newest run" not in seen.report


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_main_broke_a_case__every_later_pull_request__says_since_when(world, runs) -> None:
    seen = world(f"{EIGHT}*5 FPPPPPPP*{runs}").here("FPPPPPPP")
    since = seen.change(0)["caseHistory"]["brokenSince"]["runId"][:8]
    expect(seen, 0, "1 case broken before this change", still_failing=[0])
    assert f"Broken on the default branch since `{since}`" in seen.report


def test_main_lost_a_case__the_pull_request_loses_another__only_that_one_is_its_own(world) -> None:
    expect(world(f"{EIGHT}*4 FFFPPPPP").here("FFFFPPPP"), 1, "1 regression", regression=[3], still_failing=[0, 1, 2])


def test_main_lost_a_case_and_the_pull_request_mends_it__is_a_new_pass(world) -> None:
    seen = world(f"{EIGHT}*4 FPPPPPPP").here(EIGHT)
    assert (seen.code, seen.classes["gs-000"]) == (0, "new_pass"), seen.text
    expect(seen, 0, "no regressions", says=["new pass"], new_pass=[0])


@pytest.mark.slow
@pytest.mark.parametrize("before", ["FPPPPPPP*3", "PPPPPPPP FPPPPPPP*4", "PPPPPPPP*5 FPPPPPPP*4"])
def test_main_mended_a_case_in_its_newest_run__the_pull_request_breaks_it_again__is_red(world, before) -> None:
    """Seven passes in that run say that the case is fixed there; one could be luck."""
    made = world(before)
    made.main(EIGHT, "--baseline", made.MAIN)
    expect(made.here("FPPPPPPP"), 1, "1 regression", regression=[0])


@pytest.mark.slow
def test_main_failed_a_case__it_passes_now_and_then_here__is_flaky_and_no_new_pass(world) -> None:
    seen = world("FPPPPPPP*4").here("P(PPF)PPPPPPP")
    expect(seen, 0, "no regressions", flaky=[0])
    assert len(seen.json["suites"][0]["cases"][0]["trials"]) == 4, "it is not run again once it has failed"


@pytest.mark.slow
def test_many_cases_are_mended__a_dozen_of_them_is_run_again(world) -> None:
    seen = world("F" * 14 + "P" * 14 + "*2").here("P" * 28)
    expect(seen, 0, "no regressions", new_pass=range(14))
    executions = [len(case["trials"]) for case in seen.json["suites"][0]["cases"]]
    assert executions == [7] * 12 + [1] * 16


def test_baseline_passed_by_a_flake__case_that_mostly_fails__is_still_failing(world) -> None:
    seen = world("FPPPPPPP*4 F(P)PPPPPPP").here("FPPPPPPP")
    expect(seen, 0, "no regressions", still_failing=[0])


def test_case_flakes_here__recovers_when_it_is_run_again__is_not_sure_and_does_not_block(world) -> None:
    seen = world(f"{EIGHT}*4").here("F(P)PPPPPPP")
    expect(seen, 0, "no regressions", inconclusive=[0])


def test_case_flakes_here__fail_on_flaky__blocks(world) -> None:
    seen = world(f"{EIGHT}*4").here("F(P)PPPPPPP", "--fail-on", "flaky")
    expect(seen, 1, "flaky", first="flaky", inconclusive=[0])


def test_main_flaked_once_and_recovered__the_pull_request_breaks_the_case__is_red(world) -> None:
    expect(world(f"{EIGHT}*4 F(P)PPPPPPP").here("FPPPPPPP"), 1, "1 regression", regression=[0])


def test_whole_suite_drops__no_case_alone_shows_it__is_red_by_all_cases_together(world) -> None:
    """Each failing case recovers when it is run again; all of them together do not."""
    seen = world(f"{EIGHT}*4").here("F(P)F(P)F(P)F(P)F(P)PPP")
    assert (seen.code, seen.json["comparison"]["suiteFinding"]["failures"]) == (1, 5), seen.text
    expect(seen, 1, "5 cases failed at first", regression=range(5))
    assert {seen.change(number)["grounds"]["kind"] for number in range(5)} == {"suite_drop"}
    assert "4 runs in the history are too few to know earlier bad days." in " ".join(seen.text.split())


@pytest.mark.parametrize(("fails", "code"), [(8, 1), (3, 0)])
def test_trials__every_case_loses_one_of_five__is_red_by_all_cases_together(empty, fails, code) -> None:
    """No case fails more often than it passes, and none is run again."""
    empty.main(EIGHT, "--trials", "5")
    seen = empty.here("F(PPPP)" * fails + "P" * (8 - fails), trials="5")
    assert [seen.json["comparison"]["suiteFinding"][name] for name in ("failures", "executions")] == [fails, 40]
    title = "the whole suite fails more than usual" if code else "no regressions"
    expect(seen, code, title, flaky=range(fails))
    why = "suite_drop" if code else "mixed"
    assert {seen.change(number)["grounds"]["kind"] for number in range(fails)} == {why}
    assert ("does not block" in seen.report) is (code == 0)
    assert seen.json["verdict"] == empty.compare("latest", *FAIL_ON).json["verdict"]


# --- in a pull request


def test_pull_request_that_left_main_nine_runs_ago__has_the_whole_record_from_one_artifact(action, github) -> None:
    fork_point = action.main("PPPP*4")[-1]
    pull = action.pull()
    action.main("PFPP*9")
    before = len(github.requests("GET", r"/artifacts/\d+/zip$"))
    seen = action.here("FPPP", pull)
    expect(seen, 1, "1 regression", regression=[0])
    assert seen.ended.outputs["baseline-sha"] == fork_point
    assert seen.change(0)["grounds"]["history"] == {"passes": 4, "failures": 0, "agentErrors": 0}
    assert "0 of 4 on main" in seen.report
    assert len(github.requests("GET", r"/artifacts/\d+/zip$")) == before + 1
    # what main broke after the pull request had left it is none of its record
    assert seen.change(1)["caseHistory"]["counts"]["failures"] == 0


def test_pull_request_from_mains_tip__after_thirteen_runs__knows_all_of_them(action) -> None:
    action.main("PPPP*6 F(P)PPP PPPP*6")
    seen = action.here("FPPP")
    expect(seen, 1, "1 regression", regression=[0])
    assert seen.change(0)["grounds"]["history"]["passes"] == 12
    assert seen.change(0)["grounds"]["history"]["failures"] == 1
    ledger = json.loads(zipfile.ZipFile(io.BytesIO(action.artifact())).read("history.json"))
    assert len(ledger["runs"]) == 14


def test_pull_request__main_lost_cases_in_its_newest_run__is_green_and_names_the_commit(action) -> None:
    *_, broken = action.main("PPPP*3 FPPP")
    seen = action.here("FPPP")
    expect(seen, 0, "no regressions", still_failing=[0])
    assert seen.change(0)["caseHistory"]["brokenSince"]["sha"] == broken
    assert broken[:7] in seen.report
