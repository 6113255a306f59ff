"""Mean difference of paired scores, against counted signs, closed forms and published values."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.gate.evidence.paired_difference import (
    SCORE_STEPS,
    adjust_chances,
    compute_interval,
    compute_sign_chance,
)

DIFFERENCES = st.lists(st.one_of(st.sampled_from([0.0, 1.0, -1.0, 0.25, -0.5]), st.floats(-1, 1)), max_size=9)


def count_signs(differences: list[float]) -> float:
    """The same chance by looking at every assignment of signs."""
    steps = [round(one * SCORE_STEPS) for one in differences]
    sums = [abs(sum(map(math.prod, zip(signs, steps, strict=True)))) for signs in _all_signs(len(steps))]
    return sum(one >= abs(sum(steps)) for one in sums) / len(sums)


def _all_signs(number: int):
    return itertools.product((1, -1), repeat=number)


@given(DIFFERENCES)
def test_sign_chance__few_pairs__is_that_of_all_assignments(differences) -> None:
    assert compute_sign_chance(differences) == pytest.approx(count_signs(differences), rel=1e-12)


@given(DIFFERENCES, st.randoms(use_true_random=False), st.integers(0, 30))
def test_sign_chance__other_order_other_direction_or_equal_pairs__is_the_same(differences, order, equal) -> None:
    others = [-one for one in differences] + [0.0] * equal
    order.shuffle(others)
    assert compute_sign_chance(others) == compute_sign_chance(differences)


@pytest.mark.parametrize(("lost", "gained"), [(1, 0), (5, 0), (6, 0), (9, 2), (40, 22), (450, 400), (7, 7)])
def test_sign_chance__yes_or_no_scores__is_the_exact_test_of_mcnemar(lost, gained) -> None:
    number = lost + gained
    tail = sum(math.comb(number, k) for k in range(max(lost, gained), number + 1))
    found = compute_sign_chance([-1.0] * lost + [1.0] * gained + [0.0] * 50)
    assert found == pytest.approx(min(2 * tail / 2**number, 1.0), rel=1e-12)


@pytest.mark.parametrize("gained", [560, 600, 640])
def test_sign_chance__too_many_pairs_for_a_table__is_close_to_the_exact_one(gained) -> None:
    number = 1_100
    exact = 2 * sum(math.comb(number, k) for k in range(gained, number + 1)) / 2**number
    found = compute_sign_chance([1.0] * gained + [-1.0] * (number - gained))
    assert found != exact
    assert found == pytest.approx(exact, rel=0.08)


def test_sign_chance__darwin_s_maize__is_fisher_s() -> None:
    """Fisher, "The Design of Experiments" (1935), section 21: 1,726 of 32,768 are as large, in eighths of an inch."""
    eighths = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]
    assert compute_sign_chance([one / SCORE_STEPS for one in eighths]) == 1_726 / 32_768


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40))
def test_interval__any_pairs__holds_their_mean_within_one(differences) -> None:
    found = compute_interval(differences)
    if not any(differences):
        assert found is None
        return
    assert -1 <= found.low <= found.high <= 1
    mean = math.fsum(differences) / len(differences)
    assert found.low - 1e-9 <= mean <= found.high + 1e-9
    mirrored = compute_interval([-one for one in differences])
    assert (-mirrored.high, -mirrored.low) == pytest.approx((found.low, found.high))


@pytest.mark.parametrize(("lost", "gained", "pairs"), [(3, 0, 20), (12, 5, 100), (1, 1, 10)])
def test_interval__yes_or_no_scores__is_that_of_bonett_and_price(lost, gained, pairs) -> None:
    down, up = (lost + 1) / (pairs + 2), (gained + 1) / (pairs + 2)
    half = 1.959964 * math.sqrt((down + up - (up - down) ** 2) / (pairs + 2))
    found = compute_interval([-1.0] * lost + [1.0] * gained + [0.0] * (pairs - lost - gained))
    assert found == pytest.approx((up - down - half, up - down + half), abs=1e-6)


@pytest.mark.parametrize("spread", [0.02, 0.3])
@pytest.mark.parametrize("pairs", [10, 40])
def test_interval__repeated_samples__holds_the_true_difference_in_95_percent(spread, pairs) -> None:
    rng = random.Random(f"{spread} {pairs}")
    found = [compute_interval([rng.gauss(-0.1, spread) for _ in range(pairs)]) for _ in range(400)]
    assert sum(one.low <= -0.1 <= one.high for one in found) >= 400 * 0.93


@pytest.mark.parametrize(
    ("chances", "adjusted"),
    [
        ([], []),
        ([0.03], [0.03]),
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.5, 0.9], [1.0, 1.0]),
        ([0.02, 0.02], [0.04, 0.04]),
    ],
)
def test_adjustment__several_tests__is_that_of_holm(chances, adjusted) -> None:
    assert adjust_chances(chances) == pytest.approx(adjusted)


@given(st.lists(st.floats(0, 1), max_size=20))
def test_adjustment__any_chances__never_shrinks_them_and_keeps_their_order(chances) -> None:
    found = adjust_chances(chances)
    assert all(
        one <= more <= min(one * len(chances), 1.0) or more == one for one, more in zip(chances, found, strict=True)
    )
    ranks = sorted(range(len(chances)), key=chances.__getitem__)
    assert [found[at] for at in ranks] == sorted(found)
