"""Scores that vary by themselves are no drop, and a drop is found among them."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.config.policy import FailOn, Policy
from eval_gate.gate.evidence.noise import chance_of_drop, student_tail
from eval_gate.model.comparison import Outcome, ScoreRecord
from eval_gate.results.baseline import Baseline
from eval_gate.results.ledger import ledger_of
from tests.support.graded import make_graded, make_graded_baseline, make_graded_run
from tests.support.verdicts import judge_against

CASES, NOISE, RUNS = 50, 0.05, 10
POLICY = Policy(frozenset({FailOn.REGRESSIONS}), pass_score=0.3, max_score_drop=0.1)


@pytest.mark.parametrize(
    ("t", "free", "chance"),
    [
        (0.0, 1, 0.5),
        (0.0, 10, 0.5),
        (1.0, 1, 0.25),
        (6.314, 1, 0.05),
        (2.920, 2, 0.05),
        (1.812, 10, 0.05),
        (2.228, 10, 0.025),
        (2.764, 10, 0.01),
        (4.144, 10, 0.001),
        (1.697, 30, 0.05),
        (2.581, 1000, 0.005),
        (1.6449, 1_000_000, 0.05),
    ],
)
def test_student_tail__tables__are_met(t, free, chance) -> None:
    """Critical values as printed in any table, to their last digit."""
    assert student_tail(t, free) == pytest.approx(chance, rel=0.004)


@given(st.floats(-50, 50), st.integers(1, 5000))
def test_student_tail__other_sign__is_the_other_side(t, free) -> None:
    assert student_tail(t, free) + student_tail(-t, free) == pytest.approx(1)


@given(st.floats(-30, 30), st.floats(0, 5), st.integers(1, 2000))
def test_student_tail__further_out__is_never_likelier(t, more, free) -> None:
    assert 0 <= student_tail(t + more, free) <= student_tail(t, free) + 1e-12


@given(st.floats(0, 8))
def test_student_tail__one_and_two_degrees__have_closed_forms(t) -> None:
    assert student_tail(t, 1) == pytest.approx(0.5 - math.atan(t) / math.pi, abs=1e-9)
    assert student_tail(t, 2) == pytest.approx(0.5 - t / (2 * math.sqrt(2 + t * t)), abs=1e-9)


@pytest.mark.parametrize(
    ("record", "here", "chance"),
    [
        (ScoreRecord(runs=1, mean=0.9, spread=0.0, free=0), 0.1, None),
        (ScoreRecord(runs=2, mean=0.9, spread=0.1, free=1), 0.9 - 0.1 * math.sqrt(1.5), 0.25),
        (ScoreRecord(runs=9, mean=0.9, spread=0.0, free=40), 0.9, 1.0),
        (ScoreRecord(runs=9, mean=0.9, spread=0.0, free=40), 0.8, 0.0),
        (ScoreRecord(runs=10, mean=0.8, spread=0.05, free=10), 0.8, 0.5),
        (ScoreRecord(runs=10, mean=0.8, spread=0.05, free=10), 0.8 - 1.812 * 0.05 * math.sqrt(1.1), 0.05),
    ],
    ids=["one run", "two runs", "steady", "steady and lower", "as ever", "by the table"],
)
def test_chance_of_drop__record_and_score__is_that_of_one_more_observation(record, here, chance) -> None:
    found = chance_of_drop(record, here)
    assert found is None if chance is None else found == pytest.approx(chance, rel=0.004)


def graded(random: Random, means: list[float]) -> list:
    return [make_graded(f"c{at}", min(max(random.gauss(mean, NOISE), 0.0), 0.999)) for at, mean in enumerate(means)]


def branch(random: Random, means: list[float]) -> Baseline:
    runs = [
        make_graded_baseline(graded(random, means), run_id=f"main-{day}", timestamp=f"2026-11-{19 - day:02}T10:00:00Z")
        for day in range(RUNS)
    ]
    return Baseline(runs[0], "main", ledger=ledger_of(runs))


@pytest.mark.slow
def test_max_score_drop__nothing_changed__is_red_in_at_most_two_of_a_hundred() -> None:
    """Against one run alone most of them would be red: two grades of 50 cases differ by a tenth somewhere."""
    red = naive = worlds = 0
    for number in range(12):
        random = Random(f"noise/{number}")
        means = [random.uniform(0.6, 0.85) for _ in range(CASES)]
        main = branch(random, means)
        for _ in range(12):
            judged = judge_against(make_graded_run(graded(random, means)), main, POLICY)
            red += judged.verdict.outcome is not Outcome.PASS
            naive += any((one.score_change or 0) < -0.1 for one in judged.comparison.changes)
            worlds += 1
    assert red <= 0.02 * worlds
    assert naive > 0.9 * worlds


@pytest.mark.slow
def test_max_score_drop__one_case_lost_three_tenths__is_found() -> None:
    found = worlds = 0
    for number in range(5):
        random = Random(f"drop/{number}")
        means = [random.uniform(0.6, 0.85) for _ in range(CASES)]
        main, lost = branch(random, means), [means[0] - 0.3, *means[1:]]
        for _ in range(8):
            judged = judge_against(make_graded_run(graded(random, lost)), main, POLICY)
            found += "max-score-drop" in [reason.code for reason in judged.verdict.reasons]
            worlds += 1
    assert found >= 0.95 * worlds


@pytest.mark.parametrize(
    "case",
    [make_graded("a", 2 / 3), make_graded("a", 1 / 7), make_graded("a", trials=(2 / 3, 2 / 3, 0.6))],
    ids=["two thirds", "a seventh", "trials"],
)
def test_max_score_drop__none_allowed_and_the_same_score__is_no_drop(case) -> None:
    """A ledger keeps four decimals of two thirds."""
    runs = [
        make_graded_baseline([case], run_id=f"main-{day}", timestamp=f"2026-11-{19 - day:02}T10:00:00Z")
        for day in range(3)
    ]
    main = Baseline(runs[0], "main", ledger=ledger_of(runs))
    judged = judge_against(make_graded_run([case]), main, replace(POLICY, max_score_drop=0.0))
    assert "max-score-drop" not in [reason.code for reason in judged.verdict.reasons]
