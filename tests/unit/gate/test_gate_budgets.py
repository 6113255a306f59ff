"""Time, money and tokens beside the baseline: the typical case, and never a guess."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.gate.budgets import increase


def pairs(*ratios: float):
    return tuple((100.0, 100.0 * ratio) for ratio in ratios)


@pytest.mark.contract("verdict.budgets")
@pytest.mark.parametrize(
    ("ratios", "over"),
    [
        ([1.5] * 7, True),
        ([1.5] * 6, False),
        ([1.5] * 8 + [1.0] * 2, False),
        ([1.5] * 30 + [1.0] * 10, True),
        ([1.0] * 40 + [50.0], False),
        ([1.19] * 50, False),
        ([1.21] * 50, True),
        ([], False),
    ],
    ids=[
        "seven of seven",
        "six are too few to be sure",
        "not sure",
        "most of many",
        "one slow case",
        "within the limit",
        "beyond it",
        "nothing to compare",
    ],
)
def test_increase__typical_case__is_over_only_when_that_is_sure(ratios, over) -> None:
    assert increase(pairs(*ratios), 0.2).over is over


def test_increase__seven_of_seven__has_the_chance_of_seven_heads() -> None:
    found = increase(pairs(*[2.0] * 7), 0.2)
    assert (found.cases, found.ratio, found.chance) == (7, 2.0, 1 / 128)


def test_increase__baseline_of_nothing__is_left_out() -> None:
    assert increase(((0.0, 5.0),) * 9, 0.2).cases == 0


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=40), st.floats(0, 2))
def test_increase__more_expensive_everywhere__is_never_milder(ratios, most) -> None:
    before = increase(pairs(*ratios), most)
    after = increase(pairs(*[ratio * 1.5 for ratio in ratios]), most)
    assert after.over >= before.over
