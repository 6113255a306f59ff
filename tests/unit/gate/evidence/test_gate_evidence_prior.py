"""What is known of a case before it is run."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.gate.evidence.prior import LEAST_FAILURE_RATE, LEAST_STRENGTH, MOST_STRENGTH, UNKNOWN, Prior, learned
from eval_gate.model.grounds import Counts

COUNTS = st.builds(Counts, passes=st.integers(0, 20), failures=st.integers(0, 20))


def counts(letters: str) -> Counts:
    return Counts(passes=letters.count("P"), failures=letters.count("F"))


def by_urn(prior: Prior, letters: str) -> Fraction:
    """Pólya's urn, drawn one by one."""
    passes, failures, chance = Fraction(prior.passes), Fraction(prior.failures), Fraction(1)
    for letter in letters:
        chance *= (passes if letter == "P" else failures) / (passes + failures)
        passes, failures = passes + (letter == "P"), failures + (letter == "F")
    return chance


@given(st.floats(0.5, 30), st.floats(0.5, 30), st.text("PF", max_size=8))
def test_log_chance__any_results__are_those_of_the_urn(passes, failures, letters) -> None:
    prior = Prior(passes, failures)
    assert math.exp(prior.log_chance(counts(letters))) == pytest.approx(float(by_urn(prior, letters)), rel=1e-9)


@pytest.mark.parametrize("failures", range(6))
def test_chance_of_failures__uniform_prior__every_number_is_as_likely(failures) -> None:
    assert Prior(1, 1).chance_of_failures(Counts(passes=5 - failures, failures=failures)) == pytest.approx(
        (6 - failures) / 6
    )


def test_chance_of_failures__many_trials__has_no_overflow() -> None:
    assert UNKNOWN.chance_of_failures(Counts(passes=1500, failures=0)) == pytest.approx(1)
    assert 0 < UNKNOWN.chance_of_failures(Counts(failures=1500)) < 1e-20


@pytest.mark.contract("verdict.prior")
def test_learned__nothing_known__one_time_in_ten() -> None:
    assert learned([]) == learned([Counts()]) == UNKNOWN
    assert UNKNOWN.pass_rate == 0.9


@pytest.mark.contract("verdict.prior")
def test_learned__everything_flakes_a_little__is_as_sure_as_it_may_be() -> None:
    # 500 cases at 5 %, ten runs each: binomial(10, 0.05) in whole cases
    prior = learned([counts("P" * 10)] * 299 + [counts("PPPPPPPPPF")] * 158 + [counts("PPPPPPPPFF")] * 38)
    assert prior.passes + prior.failures == pytest.approx(MOST_STRENGTH)
    assert prior.pass_rate == pytest.approx(0.95, abs=0.005)


def test_learned__a_few_cases_flake_a_lot__leaves_room_for_more_of_them() -> None:
    uneven = learned([counts("P" * 10)] * 80 + [counts("PPPPPPPFFF")] * 20)
    even = learned([counts("P" * 10)] * 40 + [counts("PPPPPPPPPF")] * 60)
    assert uneven.pass_rate == pytest.approx(even.pass_rate, abs=0.01)
    assert uneven.passes + uneven.failures < (even.passes + even.failures) / 3
    four = Counts(failures=4)
    clean = counts("P" * 10)
    assert uneven.after(clean).chance_of_failures(four) > even.after(clean).chance_of_failures(four)


def test_learned__never_a_failure__still_may_fail() -> None:
    prior = learned([counts("P" * 20)] * 1000)
    assert 1 - prior.pass_rate == pytest.approx(LEAST_FAILURE_RATE)
    assert prior.passes + prior.failures == pytest.approx(LEAST_STRENGTH, rel=0.02)


def test_learned__broken_cases__are_not_taken_for_flaky_ones() -> None:
    steady = [counts("P" * 10)] * 70
    assert learned(steady + [counts("F" * 10)] * 30) == learned(steady)


@given(st.lists(COUNTS, max_size=30))
def test_learned__any_records__is_a_prior_within_its_bounds_whatever_the_order(records) -> None:
    prior = learned(records)
    assert LEAST_STRENGTH * (1 - 1e-9) <= prior.passes + prior.failures <= MOST_STRENGTH * (1 + 1e-9)
    assert prior.passes > 0
    assert prior.failures > 0
    assert learned(records[::-1]) == prior


def test_learned__two_failures_and_nothing_else__may_be_flaky_and_three_are_broken() -> None:
    steady = [counts("PPPPPPPPPF")] * 20 + [counts("P" * 10)] * 10
    assert learned([*steady, counts("FFF")]) == learned(steady)
    assert learned([*steady, counts("FF")]).pass_rate < learned(steady).pass_rate
    assert learned([*steady, counts("F")]).pass_rate < learned(steady).pass_rate
