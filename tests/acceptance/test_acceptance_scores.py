"""Graded cases: engine and verdict count alike, a drop of a score is more than noise (4 and 12 of what was wrong)."""

from __future__ import annotations

import pytest

from tests.support.world import World, expect

GRADED = "8989*2 9898*2"


@pytest.fixture
def graded(empty) -> World:
    """Four cases with 0.8 and 0.9 by turns on main; from 0.8 on they pass."""
    empty.write_graded(4)
    empty.main(GRADED, "--pass-score", "0.8")
    return empty


def test_graded_case_near_the_pass_score__dips_once__its_reruns_decide(graded) -> None:
    """0.9 is a pass for the engine as for the verdict: nothing is run again for ever, and nothing is left open."""
    seen = graded.here("7(9)989", pass_score="0.8")
    expect(seen, 0, "no regressions", inconclusive=[0])
    assert graded.script.asked.count(0) <= 5


def test_graded_case__is_below_the_pass_score_ever_after__is_a_regression(graded) -> None:
    seen = graded.here("3989", pass_score="0.8")
    expect(seen, 1, "1 regression", regression=[0])


def test_graded_cases__wobble_above_the_pass_score__nothing_is_run_again(graded) -> None:
    seen = graded.here("9898", pass_score="0.8")
    expect(seen, 0, "no regressions")
    assert sorted(graded.script.asked) == [0, 1, 2, 3]


def test_graded_run__compared_again__says_the_same(graded) -> None:
    first = graded.here("7(9)389", pass_score="0.8")
    again = graded.compare()
    assert first.same == again.same
    assert first.title == again.title


def test_max_score_drop__noise_only__passes(graded) -> None:
    expect(graded.here("8989", pass_score="0.8", max_score_drop="0.05"), 0, "no regressions")


def test_max_score_drop__a_score_that_was_never_so_low__fails(graded) -> None:
    seen = graded.here("5989", pass_score="0.5", max_score_drop="0.05")
    expect(seen, 1, "score", first="max-score-drop")
