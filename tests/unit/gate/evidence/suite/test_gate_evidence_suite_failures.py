"""The suite as a whole against its record."""

import math
from collections import Counter
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_gate.gate.evidence.suite.failures import (
    Stratum,
    compute_chance_at_rate,
    compute_deviation,
    compute_suite_finding,
    is_conspicuous,
)
from eval_gate.model.evidence import Counts
from tests.support.sizes import size

SMALL = st.builds(Stratum, *[st.integers(0, 2)] * 4, share=st.just(0.0))
STRATA = st.lists(st.builds(Stratum, *[st.integers(0, 6)] * 4, share=st.just(0.0)), max_size=12)


def stratum(history: str, here: str) -> Stratum:
    return Stratum.from_counts(*(Counts(passes=side.count("P"), failures=side.count("F")) for side in (history, here)))


def by_enumeration(strata: list[Stratum]) -> float:
    """Every way in which each case's failures can fall on its executions, all as likely."""
    ways = [
        [
            sum(place < one.runs for place in places)
            for places in combinations(range(one.total_runs), one.total_failures)
        ]
        for one in strata
    ]
    seen = sum(one.failures for one in strata)
    sums = [sum(way) for way in product(*ways)]
    return sum(total >= seen for total in sums) / len(sums)


@pytest.mark.slow
@pytest.mark.contract("verdict.suite")
@settings(max_examples=size(60))
@given(st.lists(SMALL.filter(lambda one: one.runs and one.total_runs > one.runs), max_size=3))
def test_suite_finding__few_cases__is_the_share_of_all_ways(strata) -> None:
    assert compute_suite_finding(strata).chance == pytest.approx(by_enumeration(strata))


@pytest.mark.contract("verdict.suite")
@pytest.mark.parametrize(("worse", "better"), [(5, 0), (8, 2), (10, 10), (0, 4), (25, 9)])
def test_suite_finding__one_execution_on_each_side__is_the_exact_mcnemar_test(worse, better) -> None:
    strata = [stratum("P", "F")] * worse + [stratum("F", "P")] * better + [stratum("P", "P"), stratum("F", "F")] * 7
    changed = worse + better
    tail = sum(math.comb(changed, more) for more in range(worse, changed + 1)) / 2**changed
    assert compute_suite_finding(strata).chance == pytest.approx(tail)


def test_suite_finding__one_case__is_fishers_exact_test() -> None:
    # the lady tasting tea: three of four right, one time in 70/17
    assert compute_suite_finding([stratum("FPPP", "FFFP")]).chance == pytest.approx(17 / 70)


def test_suite_finding__published_example__has_its_exact_value() -> None:
    # Agresti, Categorical Data Analysis: penicillin in rabbits, five doses, at once against 1.5 hours later; the exact
    # conditional test gives S = 16 and 0.03994 for both sides of a symmetric distribution
    cured_and_died_at_once = [(0, 6), (3, 3), (6, 0), (5, 1), (2, 0)]
    cured_and_died_later = [(0, 5), (0, 6), (2, 4), (6, 0), (5, 0)]
    strata = [
        Stratum(later[1], later[0], once[1], once[0])
        for once, later in zip(cured_and_died_at_once, cured_and_died_later, strict=True)
    ]
    found = compute_suite_finding(strata)
    assert (found.cases, found.failures, found.expected) == (5, 16, 13.0)
    assert 2 * found.chance == pytest.approx(0.03994, abs=5e-6)


@pytest.mark.slow
@pytest.mark.parametrize("failing", [470, 500, 520, 540])
def test_suite_finding__many_cases__agrees_with_the_normal_distribution(failing) -> None:
    strata = [stratum("P" * 9 + "F", "F")] * failing + [stratum("P" * 8 + "FF", "P")] * (2_700 - failing)
    strata += [stratum("P" * 10, "P")] * 100
    found = compute_suite_finding(strata)
    spread = math.sqrt(sum(one.variance for one in strata))
    normal = math.erfc((found.failures - 0.5 - found.expected) / spread / math.sqrt(2)) / 2
    assert found.chance == pytest.approx(normal, rel=0.15)
    assert compute_deviation(strata) == pytest.approx((found.failures - found.expected) / spread)
    assert is_conspicuous(strata) == (compute_deviation(strata) > 2)


@pytest.mark.slow
def test_suite_finding__more_cases_than_are_added_up_exactly__joins_on_without_a_jump() -> None:
    """The same relative drop at ten times the size, on both sides of where the normal distribution takes over."""
    chances = []
    for cases in (5_300, 5_700, 6_000, 6_400):
        expected = cases * 2 / 11
        failing = round(expected + 2.3 * math.sqrt(cases * 2 / 11 * 9 / 11))
        strata = [stratum("P" * 9 + "F", "F")] * failing + [stratum("P" * 8 + "FF", "P")] * (cases - failing)
        chances.append(compute_suite_finding(strata).chance)
    assert max(chances) / min(chances) < 1.3


def test_suite_finding__nothing_to_compare__nothing_has_dropped() -> None:
    for strata in ([], [stratum("", "F")], [stratum("P", "")], [stratum("PPP", "P")] * 50):
        found = compute_suite_finding(strata)
        assert (found.chance, found.is_drop, found.failures) == (1.0, False, 0)


@pytest.mark.contract("verdict.suite")
def test_suite_finding__a_little_worse_everywhere__is_seen_though_no_case_shows_it() -> None:
    strata = [stratum("P" * 10, "F")] * 10 + [stratum("P" * 10, "P")] * 88 + [stratum("P" * 9 + "F", "P")] * 2
    found = compute_suite_finding(strata)
    assert found.is_drop
    assert found.failures == 10
    assert found.expected == pytest.approx(12 / 11)
    assert not compute_suite_finding(strata, limit=1e-12).is_drop


def test_by_rate__six_of_a_hundred__is_the_binomial_tail() -> None:
    strata = Counter([stratum("P" * 10, "F")] * 6 + [stratum("P" * 10, "P")] * 94)
    tail = 1 - sum(math.comb(100, more) * 0.02**more * 0.98 ** (100 - more) for more in range(6))
    assert compute_chance_at_rate(strata, 0.02) == pytest.approx(tail)


def test_by_rate__several_executions__is_of_all_of_cases_that_mostly_pass() -> None:
    """Three executions each here; a case that passes half of the time is not one that mostly passes."""
    passing = [stratum("P" * 10, "PPF")] * 4 + [stratum("P" * 10, "PPP")] * 30
    even = [stratum("PF" * 5, "FFF")] * 4
    tail = 1 - sum(math.comb(102, more) * 0.02**more * 0.98 ** (102 - more) for more in range(4))
    assert compute_chance_at_rate(Counter(passing), 0.02) == pytest.approx(tail)
    assert compute_chance_at_rate(Counter(passing + even), 0.02) == pytest.approx(tail)


@pytest.mark.parametrize("cases", [2_000, 20_000])
def test_by_rate__very_many_cases__is_added_up_to_its_end(cases) -> None:
    """Where the most likely number is far above the failures, the first chances are negligible and the sum is not."""
    strata = Counter([stratum("P" * 10, "F")] + [stratum("P" * 10, "P")] * (cases - 1))
    assert compute_chance_at_rate(strata, 0.05) == pytest.approx(1.0)


@pytest.mark.slow
@pytest.mark.contract("verdict.order")
@given(STRATA, st.randoms(use_true_random=False))
def test_suite_finding__another_order__is_the_very_same_finding(strata, random) -> None:
    shuffled = random.sample(strata, len(strata))
    assert compute_suite_finding(shuffled) == compute_suite_finding(strata)


@pytest.mark.contract("verdict.monotone")
@given(STRATA.filter(bool), st.data())
def test_suite_finding__a_failure_instead_of_a_pass__is_never_likelier(strata, data) -> None:
    at = data.draw(st.sampled_from([place for place, one in enumerate(strata) if one.passes] or [-1]))
    if at < 0:
        return
    one = strata[at]
    worse = [*strata[:at], one._replace(passes=one.passes - 1, failures=one.failures + 1), *strata[at + 1 :]]
    assert compute_suite_finding(worse).chance <= compute_suite_finding(strata).chance * (1 + 1e-9)


def test_suite_finding__ten_thousand_cases_of_many_trials__goes_by_the_normal_distribution() -> None:
    strata = [Stratum(1990 - at % 50, 10 + at % 50, 99 - (at % 4 > 0), 1 + (at % 4 > 0)) for at in range(10_000)]
    found = compute_suite_finding(strata)
    spread = math.sqrt(sum(one.variance for one in strata))
    assert found.chance == pytest.approx(math.erfc((17_500 - 0.5 - found.expected) / spread / math.sqrt(2)) / 2)
    assert 0.01 < found.chance < 1
