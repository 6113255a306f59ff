"""Values that differ look different beside each other, and on the side of a limit where they are."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from eval_gate.evaluators.agent_evals.table import format_value
from eval_gate.reports.wording.numbers import format_percent, format_points
from eval_gate.text.distinct_values import (
    format_distinct_decimals,
    format_distinct_numbers,
    format_distinct_values,
    format_value_and_limit,
)

SHARES = st.floats(0, 1)


@pytest.mark.parametrize(
    ("value", "limit", "digits", "shown"),
    [
        (0.9, 0.9, 1, ("90.0", "90.0")),
        (0.87, 0.9, 1, ("87.0", "90.0")),
        (0.9996, 1.0, 1, ("99.96", "100.0")),
        (0.99951, 0.9996, 1, ("99.95", "99.96")),
        (0.204, 0.2, 0, ("20.4", "20")),
        (0.204, 0.2025, 0, ("20.4", "20.25")),
        (1.2 - 1, 0.2, 0, ("20", "20")),
    ],
)
def test_beside_limit__value__is_on_its_side_of_the_limit(value, limit, digits, shown) -> None:
    assert format_value_and_limit(round(value, 15), limit, digits, scale=100) == shown


@given(SHARES, st.integers(0, 1000).map(lambda number: number / 1000))
def test_beside_limit__any_share__never_looks_otherwise_than_it_is(value, limit) -> None:
    assume(value == limit or abs(value - limit) > 1e-12)
    shown, most = map(float, format_value_and_limit(value, limit, 1, scale=100))
    assert (shown < most, shown > most) == (value < limit, value > limit)


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9))
def test_numbers_apart__any_two__look_the_same_only_where_they_are(one, other) -> None:
    for shown in (
        format_distinct_numbers(one, other),
        format_distinct_decimals(one, other, 2),
    ):
        assume(one == other or abs(one - other) > 1e-12)
        assert (shown[0] == shown[1]) == (one == other) or {one, other} == {0.0, -0.0}


@pytest.mark.parametrize(
    ("one", "other", "shown"),
    [
        (2**53, 2**53 + 1, ("9007199254740992", "9007199254740993")),
        ("\u00e9", "e\u0301", ('"\\u00e9"', '"e\\u0301"')),
        ("a" * 300 + "b", "a" * 300 + "c", ("…" + "a" * 20 + 'b"', "…" + "a" * 20 + 'c"')),
        ([1], [2], ("[1]", "[2]")),
        (1, 1.0, ("1", "1")),
    ],
    ids=["digits", "composed", "far-behind", "different", "the-same"],
)
def test_values_apart__two__look_different_where_they_are(one, other, shown) -> None:
    found = format_distinct_values(one, other, format_value if one != "\u00e9" else lambda _: "é", 120)
    assert found == shown


@given(SHARES)
def test_percent__any_share__is_all_or_none_only_where_it_is(share) -> None:
    assert (format_percent(share) == "100.0 %") == (share == 1)
    assert (format_percent(share) == "0.0 %") == (share == 0) or share < 1e-15


def test_points__small_difference__is_one() -> None:
    assert (format_points(0.9996, 1.0), format_points(0.5, 0.5), format_points(0.5, 0.475)) == (
        "+0.04 pp",
        "0.0 pp",
        "−2.5 pp",
    )
