"""Scores that vary by themselves are no drop, and a drop is found among them."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.config.policy import FailOn, Policy
from eval_gate.gate.evidence.suite.score_noise import (
    PooledVariance,
    ScoreVariance,
    compute_drop_chance,
    compute_student_tail,
    estimate_difference_spread,
    pool_variances,
)
from eval_gate.gate.rules import compute_score_drop
from eval_gate.model.comparison import CaseChange, CaseClass, Outcome, ScoreHistory
from eval_gate.results.baseline import Baseline
from eval_gate.results.history import build_history
from eval_gate.struct import replace
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
    assert compute_student_tail(t, free) == pytest.approx(chance, rel=0.004)


@given(st.floats(-50, 50), st.integers(1, 5000))
def test_student_tail__other_sign__is_the_other_side(t, free) -> None:
    assert compute_student_tail(t, free) + compute_student_tail(-t, free) == pytest.approx(1)


@given(st.floats(-30, 30), st.floats(0, 5), st.integers(1, 2000))
def test_student_tail__further_out__is_never_likelier(t, more, free) -> None:
    assert 0 <= compute_student_tail(t + more, free) <= compute_student_tail(t, free) + 1e-12


@given(st.floats(0, 8))
def test_student_tail__one_and_two_degrees__have_closed_forms(t) -> None:
    # the square of t is lost beside 1 where it is below a rounding, and with it up to half of such a t
    assert compute_student_tail(t, 1) == pytest.approx(0.5 - math.atan(t) / math.pi, abs=1e-8)
    assert compute_student_tail(t, 2) == pytest.approx(0.5 - t / (2 * math.sqrt(2 + t * t)), abs=1e-8)


@pytest.mark.parametrize(
    ("history", "here", "chance"),
    [
        (ScoreHistory(runs=1, mean=0.9, spread=0.0, degrees_of_freedom=0), 0.1, None),
        (ScoreHistory(runs=2, mean=0.9, spread=0.1, degrees_of_freedom=1), 0.9 - 0.1 * math.sqrt(1.5), 0.25),
        (ScoreHistory(runs=9, mean=0.9, spread=0.0, degrees_of_freedom=40), 0.9, 1.0),
        (ScoreHistory(runs=9, mean=0.9, spread=0.0, degrees_of_freedom=40), 0.8, 0.0),
        (ScoreHistory(runs=10, mean=0.8, spread=0.05, degrees_of_freedom=10), 0.8, 0.5),
        (
            ScoreHistory(runs=10, mean=0.8, spread=0.05, degrees_of_freedom=10),
            0.8 - 1.812 * 0.05 * math.sqrt(1.1),
            0.05,
        ),
    ],
    ids=["one run", "two runs", "steady", "steady and lower", "as ever", "by the table"],
)
def test_chance_of_drop__record_and_score__is_that_of_one_more_observation(history, here, chance) -> None:
    found = compute_drop_chance(history, here)
    assert found is None if chance is None else found == pytest.approx(chance, rel=0.004)


def graded(random: Random, means: list[float]) -> list:
    return [make_graded(f"c{at}", min(max(random.gauss(mean, NOISE), 0.0), 0.999)) for at, mean in enumerate(means)]


def branch(random: Random, means: list[float]) -> Baseline:
    runs = [
        make_graded_baseline(graded(random, means), run_id=f"main-{day}", timestamp=f"2026-11-{19 - day:02}T10:00:00Z")
        for day in range(RUNS)
    ]
    return Baseline(runs[0], "main", history=build_history(runs))


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
            red += judged.verdict.outcome is not Outcome.PASSED
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
    main = Baseline(runs[0], "main", history=build_history(runs))
    judged = judge_against(make_graded_run([case]), main, replace(POLICY, max_score_drop=0.0))
    assert "max-score-drop" not in [reason.code for reason in judged.verdict.reasons]


def test_pooled_variance__cases_that_vary_alike__say_the_same_of_each() -> None:
    pool = pool_variances([ScoreVariance(0.09, 9)] * 20)
    assert pool.estimate_spread(ScoreVariance(0.0, 0)) == pytest.approx((0.1, 180))
    assert pool.estimate_spread(ScoreVariance(0.09, 9)) == pytest.approx((0.1, 180))


def test_pooled_variance__few_noisy_cases__are_held_against_their_own_record_most() -> None:
    steady, noisy = ScoreVariance(0.0009, 9), ScoreVariance(0.09, 9)
    pool = pool_variances([noisy, *[steady] * 9])
    together = math.sqrt(pool.variance)
    assert pool.estimate_spread(steady)[0] < together < pool.estimate_spread(noisy)[0] < 0.1
    assert pool.estimate_spread(noisy)[1] < 20


@given(st.lists(st.builds(ScoreVariance, st.floats(0, 1), st.integers(0, 19)), max_size=30), st.randoms())
def test_pooled_variance__order_of_cases__does_not_matter(cases, random) -> None:
    assert pool_variances(random.sample(cases, len(cases))) == pool_variances(cases)


@given(
    st.lists(st.builds(ScoreVariance, st.floats(0, 1), st.integers(1, 19)), min_size=1, max_size=30), st.floats(0, 1)
)
def test_spread_of__a_case_that_varies_more__is_never_taken_for_a_steadier_one(cases, more) -> None:
    pool, own = pool_variances(cases), cases[0]
    assert pool.estimate_spread(own)[0] <= pool.estimate_spread(own._replace(squares=own.squares + more))[0]


def test_pooled_variance__nothing_or_nothing_that_varies__is_no_spread() -> None:
    assert pool_variances([]) == PooledVariance()
    assert pool_variances([ScoreVariance(0.0, 9)] * 3).estimate_spread(ScoreVariance(0.0, 9)) == (0.0, 27)


@pytest.mark.parametrize(
    ("differences", "spread", "free"),
    [
        ([0.1] * 9, 0.0, 0),
        ([-0.06] * 20, 0.0, 7),
        ([*[0.0] * 19, -0.9], 0.0, 7),
        ([0.1, -0.1] * 10, 1.4826 * 0.1 / math.sqrt(2), 7),
        ([*[0.1, -0.1] * 10, -0.9], 1.4826 * 0.2 / math.sqrt(2), 7),
    ],
    ids=["too few", "all fell", "one fell", "all vary", "all vary and one fell"],
)
def test_spread_of_differences__one_run_of_history__is_by_the_middle(differences, spread, free) -> None:
    assert estimate_difference_spread(differences) == (pytest.approx(spread), free)


def one_run(random: Random, means: list[float]) -> Baseline:
    run = make_graded_baseline(graded(random, means))
    return Baseline(run, "main", history=build_history([run]))


@pytest.mark.slow
def test_max_score_drop__one_run_of_history__is_red_in_at_most_two_of_a_hundred_and_says_what_it_assumes() -> None:
    red = 0
    for number in range(100):
        random = Random(f"one/{number}")
        means = [random.uniform(0.6, 0.85) for _ in range(CASES)]
        main = one_run(random, means)
        red += judge_against(make_graded_run(graded(random, means)), main, POLICY).verdict.outcome is not Outcome.PASSED
    assert red <= 2
    judged = judge_against(make_graded_run(graded(random, [means[0] - 0.5, *means[1:]])), main, POLICY)
    assert judged.verdict.reasons[0].message.endswith("because there is only one earlier run")
    assert judged.comparison.changes[1].score_history.from_one_run
    assert judge_against(judged, main, POLICY).verdict == judged.verdict


def test_max_score_drop__lower_and_not_counted__is_said_with_its_noise() -> None:
    means = [0.7 + (at % 5) / 50 for at in range(CASES)]
    then = make_graded_baseline({f"c{at}": mean for at, mean in enumerate(means)})
    here = {f"c{at}": mean + (0.05 if at % 2 else -0.05) - 0.1 * (at == 6) for at, mean in enumerate(means)}
    judged = judge_against(make_graded_run(here), Baseline(then, "main", history=build_history([then])), POLICY)
    assert judged.verdict.outcome is Outcome.PASSED
    (said,) = [note for note in judged.comparison.notes if "max-score-drop" in note]
    assert said.startswith("1 score is lower than in the baseline by more than 0.10, but may only vary")
    assert "(c6 is 0.15 lower and varies by 0.05 from run to run, estimated from all cases" in said


def test_max_score_drop__one_run_of_history_and_steady_scores__counts_every_fall() -> None:
    then = make_graded_baseline({f"c{at}": 0.8 for at in range(20)})
    main = Baseline(then, "main", history=build_history([then]))
    for fell, outcome in ((0.11, Outcome.FAILED), (0.1, Outcome.PASSED)):
        now = make_graded_run({f"c{at}": 0.8 - fell * (at == 0) for at in range(20)})
        assert judge_against(now, main, POLICY).verdict.outcome is outcome


@pytest.mark.slow
def test_max_score_drop__uneven_noise__is_red_in_at_most_two_of_a_hundred() -> None:
    """One case in five varies by 0.1, the others by nothing to speak of."""

    def uneven(random: Random) -> list:
        return [make_graded(f"c{at}", 0.7 + random.gauss(0, 0.005 if at % 5 else 0.1)) for at in range(CASES)]

    red = 0
    for number in range(10):
        random = Random(f"uneven/{number}")
        runs = [
            make_graded_baseline(uneven(random), run_id=f"main-{day}", timestamp=f"2026-11-{19 - day:02}T10:00:00Z")
            for day in range(RUNS)
        ]
        main = Baseline(runs[0], "main", history=build_history(runs))
        for _ in range(15):
            red += judge_against(make_graded_run(uneven(random)), main, POLICY).verdict.outcome is not Outcome.PASSED
    assert red <= 3


@pytest.mark.slow
def test_max_score_drop__a_case_fell_by_just_what_is_allowed__is_red_one_time_in_twenty() -> None:
    red = worlds = 0
    for number in range(8):
        random = Random(f"just/{number}")
        means = [random.uniform(0.6, 0.85) for _ in range(CASES)]
        main, lost = branch(random, means), [means[0] - 0.1, *means[1:]]
        for _ in range(12):
            red += (
                judge_against(make_graded_run(graded(random, lost)), main, POLICY).verdict.outcome is not Outcome.PASSED
            )
            worlds += 1
    assert red <= 0.1 * worlds


@given(st.floats(0, 1), st.floats(0, 0.5), st.integers(1, 20), st.sampled_from([0.0, 0.02, 0.1]), st.floats(0, 0.3))
def test_drop_of__a_larger_fall__is_never_milder_nor_more_noise_harder(score, less, runs, spread, most) -> None:
    def drop(score: float, spread: float) -> float:
        history = ScoreHistory(runs=runs, mean=0.8, spread=spread, degrees_of_freedom=30)
        change = CaseChange(
            suite="s", case_id="a", change=CaseClass.STILL_PASSING, score_change=0.0, score_history=history
        )
        return compute_score_drop(change, score, most, 0.0002)

    assert drop(score - less, spread) >= drop(score, spread)
    assert drop(score, spread + less) <= drop(score, spread)
