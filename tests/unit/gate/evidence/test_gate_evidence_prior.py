"""What is known of a case before it is run."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.gate.evidence.prior import DEFAULT_PRIOR, MIN_FAILURE_RATE, RATES, Prior, learn_prior
from eval_gate.model.evidence import Counts
from tests.support.histories import learned

COUNTS = st.builds(Counts, passes=st.integers(0, 20), failures=st.integers(0, 20))


def counts(letters: str) -> Counts:
    return Counts(passes=letters.count("P"), failures=letters.count("F"))


@given(st.floats(0.5, 30), st.floats(0.5, 30), st.text("PF", max_size=8))
def test_log_chance__any_results__are_those_of_one_after_the_other(passes, failures, letters) -> None:
    prior = Prior.from_counts(passes, failures)
    chance = 1.0
    for at, letter in enumerate(letters):
        rate = prior.add_history(counts(letters[:at])).pass_rate
        chance *= rate if letter == "P" else 1 - rate
    assert math.exp(prior.compute_log_chance(counts(letters))) == pytest.approx(chance, rel=1e-9)


@given(COUNTS)
def test_chance_of_failures__of_all_numbers__is_one_together(here) -> None:
    assert DEFAULT_PRIOR.compute_failure_chance(Counts(passes=here.executions)) == pytest.approx(1)
    assert 0 <= DEFAULT_PRIOR.compute_failure_chance(here) <= 1


def test_chance_of_failures__many_trials__has_no_overflow() -> None:
    assert DEFAULT_PRIOR.compute_failure_chance(Counts(passes=1500, failures=0)) == pytest.approx(1)
    assert 0 < DEFAULT_PRIOR.compute_failure_chance(Counts(failures=1500)) < 1e-20


@pytest.mark.contract("verdict.prior")
def test_learned__nothing_known__one_time_in_ten() -> None:
    assert learned([]) == learned([Counts()]) == DEFAULT_PRIOR
    assert DEFAULT_PRIOR.pass_rate == pytest.approx(0.9, abs=0.02)


@pytest.mark.contract("verdict.prior")
def test_learned__solid_and_flaky_cases__are_two_kinds() -> None:
    prior = learned([counts("P" * 10)] * 80 + [counts("PPPPPPPFFF")] * 20)
    shares = dict(zip(RATES, prior.weights, strict=True))
    assert sum(share for rate, share in shares.items() if rate <= 0.05) > 0.7
    assert sum(share for rate, share in shares.items() if rate >= 0.2) > 0.1
    # so that one that never failed is taken for a solid one, and one that did for a flaky one
    assert prior.add_history(counts("P" * 10)).pass_rate > 0.96
    assert prior.add_history(counts("PPPPPPPPFF")).pass_rate < 0.8


def test_learned__never_a_failure__still_may_fail() -> None:
    assert 1 - learned([counts("P" * 20)] * 1000).pass_rate >= MIN_FAILURE_RATE


def test_learned__one_run_of_a_small_suite__says_little() -> None:
    assert learned([counts("P")] * 3).pass_rate < 0.95


def test_learned__broken_cases__are_not_taken_for_flaky_ones() -> None:
    steady = [counts("P" * 10)] * 70
    assert learned(steady + [counts("F" * 10)] * 30) == learned(steady)


@given(st.lists(COUNTS, max_size=30))
def test_learned__any_records__is_a_prior_whatever_the_order(histories) -> None:
    prior = learned(histories)
    assert math.fsum(prior.weights) == pytest.approx(1)
    assert min(prior.weights) > 0
    assert learned(histories[::-1]) == prior


def test_learned__two_failures_and_nothing_else__may_be_flaky_and_three_are_broken() -> None:
    steady = [counts("PPPPPPPPPF")] * 20 + [counts("P" * 10)] * 10
    assert learned([*steady, counts("FFF")]) == learned(steady)
    assert learned([*steady, counts("FF")]).pass_rate < learned(steady).pass_rate


@pytest.mark.contract("verdict.prior")
def test_learned__cases_that_never_fail_beside_flaky_ones__as_many_flaky_ones_as_there_are() -> None:
    """Solid cases are not lucky ones that fail one time in fifty: else what seldom failed would be their bad luck."""
    runs, flaky = 10, [0.2 + 0.3 * at / 99 for at in range(100)]
    chances = {f: sum(math.comb(runs, f) * p**f * (1 - p) ** (runs - f) for p in flaky) for f in range(runs + 1)}
    histories = {(runs - failures, failures): number for failures, number in chances.items()}
    histories[runs, 0] += 400
    prior = learn_prior(histories)
    flaking = math.fsum(weight for rate, weight in zip(RATES, prior.weights, strict=True) if rate >= 0.14)
    assert flaking == pytest.approx(0.2, abs=0.02)
    # and among those that never failed some are flaky: four failures in a row are as likely as they are in truth
    truth = sum(p**4 * (1 - p) ** runs for p in flaky) / histories[runs, 0]
    believed = math.exp(prior.add_history(Counts(passes=runs)).compute_log_chance(Counts(failures=4)))
    assert believed == pytest.approx(truth, rel=0.1)
    # one that failed once is no solid one
    after = prior.add_history(Counts(passes=runs - 1, failures=1))
    assert sum(weight for rate, weight in zip(RATES, after.weights, strict=True) if rate >= 0.14) > 0.4
