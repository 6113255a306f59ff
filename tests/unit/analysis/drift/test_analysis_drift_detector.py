"""The alarm's promise by enumeration and by seeded simulation: what is rare stays rare, whatever the noise is like."""

from __future__ import annotations

import math
from itertools import permutations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.analysis.drift.detector import MIN_RUNS_BEFORE, compute_rise_evidence


@pytest.mark.slow
@pytest.mark.parametrize("number", range(MIN_RUNS_BEFORE + 1, 8))
def test_evidence__every_order_of_the_runs__has_the_mean_of_as_many_places(number) -> None:
    totals = [compute_rise_evidence(order).total for order in permutations(range(number))]
    assert math.fsum(totals) / len(totals) == pytest.approx(number - MIN_RUNS_BEFORE)


def test_evidence__given_the_runs_before__is_one_more_on_average() -> None:
    """The next number is as likely to come to any place among those before: so an alarm may be looked for every day."""
    before = [3.0, 1.0, 4.0, 1.5, 9.0, 2.0]
    places = [0.0, 1.2, 1.7, 2.5, 3.5, 5.0, 10.0]
    after = [compute_rise_evidence([*before, number]).total for number in places]
    assert math.fsum(after) / len(after) == pytest.approx(compute_rise_evidence(before).total + 1)


@given(st.lists(st.integers(0, 3), min_size=3, max_size=30), st.data())
def test_evidence__ties__are_never_more_than_any_way_to_break_them(numbers, data) -> None:
    broken = [number + data.draw(st.floats(0, 0.9)) for number in numbers]
    assert compute_rise_evidence(numbers).total <= compute_rise_evidence(broken).total * (1 + 1e-9)


@given(st.lists(st.floats(0, 1e6), min_size=3, max_size=30))
def test_evidence__only_the_order_counts__no_measure_changes_it(numbers) -> None:
    assert (
        compute_rise_evidence([math.atan(number) for number in numbers]).total
        <= compute_rise_evidence(numbers).total * 1.001
    )


@given(st.integers(2, 40), st.integers(1, 20))
def test_evidence__all_the_same__is_none(number, value) -> None:
    assert compute_rise_evidence([value] * number).total < 2 * number


def test_evidence__a_plain_change__is_found_where_it_is() -> None:
    random = Random(1)
    found = compute_rise_evidence([*(random.random() for _ in range(15)), *(2 + random.random() for _ in range(8))])
    assert found.total > 10_000
    assert found.earliest <= found.place <= found.latest
    assert found.place == 15


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["normal", "heavy", "counts"])
def test_alarm__nothing_changes__comes_after_the_limit_on_average(noise) -> None:
    """Runs to the first alarm, cut at 60, of 200 branches: with a limit of 20 the mean is 20 or more by its error."""
    limit, most, lengths = 20.0, 60, []
    for number in range(200):
        random = Random(f"{noise}/{number}")
        draw = {
            "normal": lambda random=random: random.gauss(0, 1),
            "heavy": lambda random=random: math.tan(math.pi * (random.random() - 0.5)),
            "counts": lambda random=random: float(sum(random.random() < 0.05 for _ in range(100))),
        }[noise]
        numbers: list[float] = []
        while len(numbers) < most:
            numbers.append(draw())
            if compute_rise_evidence(numbers).total >= limit:
                break
        lengths.append(len(numbers))
    mean = sum(lengths) / len(lengths)
    error = math.sqrt(sum((one - mean) ** 2 for one in lengths)) / len(lengths)
    assert mean + 2 * error >= limit
