"""The loop on one's own machine (9 of what was wrong)."""

from __future__ import annotations

import pytest

from tests.support.world import World, expect


@pytest.fixture
def loop(empty) -> World:
    """A run that passed, in the results folder."""
    empty.here("PPPP", baseline="")
    return empty


def again(loop: World, letters: str, **options: str):
    return loop.here(letters, baseline="latest", **options)


@pytest.mark.parametrize("reruns", ["0", "6"])
def test_red_run_then_latest__is_red_again_until_it_is_fixed(loop, reruns) -> None:
    first = again(loop, "FPPP", reruns=reruns)
    expect(first, 1, "1 regression", regression=[0])
    for _ in range(2):
        seen = again(loop, "FPPP", reruns=reruns)
        expect(seen, 1, "1 regression", regression=[0])
        assert seen.json["baselineRunId"] == first.json["baselineRunId"]
    expect(again(loop, "PPPP", reruns=reruns), 0, "no regressions")


def test_waive_on_the_command_line__makes_the_next_run_green(loop) -> None:
    again(loop, "FPPP")
    done = loop.gate("waive", "gs-000", "--reason", "the tool moves, #481", "--until", "3d")
    assert done.returncode == 0, done.stderr
    seen = again(loop, "FPPP")
    expect(seen, 0, "1 regression waived", says=["the tool moves, #481"], regression=[0])
    # and it is still what it was: no run with an accepted failure makes it a known one
    assert again(loop, "FPPP").classes["gs-000"] in {"regression", "still_failing"}


def test_run_then_compare_of_that_run__no_flags__agree(loop) -> None:
    """Whatever run exits with, compare of that run exits with: the rules are in the record."""
    seen = again(loop, "FPPP")
    assert loop.compare("latest", baseline="latest").same == seen.same


def test_first_run_ever__nothing_to_compare_with__says_so(empty) -> None:
    seen = empty.here("FPPP", baseline="latest")
    assert (seen.code, seen.json["comparison"]) == (0, None), seen.text
    assert "no baseline" in seen.title
    assert seen.reasons == ["no-baseline"]


def test_zero_cases__is_refused_before_anything_is_asked(empty) -> None:
    (empty.folder / "evals").mkdir()
    (empty.folder / "evals" / "weather.golden.json").write_text("[]")
    empty.cases = [{}]
    done = empty.run("P", "--report", "md=report.md")
    assert (done.returncode, empty.script.asked) == (2, []), done.stdout
    assert "error[" in done.stderr


def test_zero_cases_are_chosen__is_refused_before_anything_is_asked(loop) -> None:
    done = loop.run("PPPP", "--case", "nothing-*")
    assert (done.returncode, loop.script.asked) == (2, []), done.stdout
    assert "nothing-*" in done.stderr


def test_outage_is_the_newest_local_run__latest_is_the_one_before(loop) -> None:
    again(loop, "CCCC", reruns="0")
    seen = again(loop, "FPPP")
    expect(seen, 1, "1 regression", regression=[0])
