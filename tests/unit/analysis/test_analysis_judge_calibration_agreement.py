"""How well a judge agrees with people: Cohen's kappa, and how much a few labels leave open."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.analysis.judge_calibration import Agreement

COUNTS = st.integers(0, 60)


def test_kappa__a_table_from_the_textbook__is_0_4() -> None:
    table = Agreement(both_pass=20, false_passes=10, false_failures=5, both_fail=15)
    assert (table.compared_count, table.agreed_count, table.failed_by_people, table.passed_by_people) == (
        50,
        35,
        25,
        25,
    )
    assert table.kappa == pytest.approx(0.4)
    low, high = table.compute_kappa_interval()
    assert 0.1 < low < 0.25 < 0.55 < high < 0.65  # 0.4 and twice its error of 0.13, by the formula for large samples


def test_kappa__a_judge_that_always_says_good__is_0() -> None:
    assert Agreement(both_pass=90, false_passes=10).kappa == 0


def test_kappa__people_say_the_same_of_all__cannot_be_told() -> None:
    for table in (Agreement(both_pass=5), Agreement(both_fail=5), Agreement(3, 0, 2, 0), Agreement()):
        assert (table.kappa, table.compute_kappa_interval()) == (None, None)


def test_kappa_between__three_answers_without_a_difference__leave_much_open() -> None:
    few, many = Agreement(2, 0, 0, 1).compute_kappa_interval(), Agreement(200, 0, 0, 100).compute_kappa_interval()
    assert few[0] < 0.4
    assert many[0] > 0.95


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_kappa__any_table__lies_within_its_bounds_and_is_the_same_seen_from_the_other_side(a, b, c, d) -> None:
    table = Agreement(a, b, c, d)
    if table.kappa is None:
        return
    assert -1 <= table.kappa <= 1
    assert Agreement(d, c, b, a).kappa == pytest.approx(table.kappa)
