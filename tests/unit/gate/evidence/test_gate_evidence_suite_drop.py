"""All cases together beside the record, on any day that the branch has."""

from collections import Counter
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_gate.gate.evidence.day_effects import DayEffects, learn_day_effects
from eval_gate.gate.evidence.suite.failures import Stratum, compute_suite_finding
from eval_gate.gate.evidence.suite_drop import run_suite_test
from eval_gate.model.evidence import BranchRun, Counts
from tests.support.bounds import within_cpu
from tests.support.sizes import size

ALIKE = DayEffects(runs=10**9)
"""Of a branch whose runs are known not to differ."""
CALM = learn_day_effects(
    tuple(BranchRun(failures=one, expected=2, variance=2) for one in (2, 3, 1, 2, 2, 4, 2, 0, 2, 2))
)
RESTLESS = learn_day_effects(
    tuple(BranchRun(failures=one, expected=4, variance=4) for one in (2, 9, 1, 2, 11, 4, 2, 0, 7, 2))
)


def stratum(history: str, here: str) -> Stratum:
    return Stratum.from_counts(*(Counts(passes=side.count("P"), failures=side.count("F")) for side in (history, here)))


def ways(one: Stratum) -> list[int]:
    """How many failures fall on this run, in every way in which they can fall on all."""
    places = combinations(range(one.total_runs), one.total_failures)
    return [sum(place < one.runs for place in way) for way in places]


MANY = st.tuples(st.text("PF", min_size=2, max_size=5), st.sampled_from("PF"))


@pytest.mark.slow
@pytest.mark.contract("verdict.suite", "verdict.suite.trade-offs")
@settings(max_examples=size(60))
@given(st.lists(MANY, min_size=1, max_size=5))
def test_whole_finding__two_questions__is_the_share_of_all_ways_in_which_one_is_so_rare(cases) -> None:
    """By enumeration: the chance of each sum in every way, and how often the smaller one is as small as here."""
    strata = [stratum(history, here) for history, here in cases]
    steady = [at for at, one in enumerate(strata) if one.is_steady]
    every = list(product(*map(ways, strata)))
    sums = Counter(sum(way) for way in every)
    of_steady = Counter(sum(way[at] for at in steady) for way in every)

    def tail(counted: Counter[int], seen: int) -> float:
        return sum(times for value, times in counted.items() if value >= seen) / len(every)

    def rarer(way: tuple[int, ...]) -> float:
        both = len(steady) < len(strata) and any(one.variance for one in strata if not one.is_steady)
        asked = both and any(strata[at].variance for at in steady)
        return min(tail(sums, sum(way)), tail(of_steady, sum(way[at] for at in steady)) if asked else 1.0)

    here = rarer(tuple(one.failures for one in strata))
    exact = sum(rarer(way) <= here * (1 + 1e-9) for way in every) / len(every)
    found = run_suite_test(strata, ALIKE)
    assert found.chance == pytest.approx(max(exact, here), rel=1e-6) or (here >= 0.5 and found.chance <= exact + 1e-9)


@pytest.mark.contract("verdict.suite.trade-offs")
def test_whole_finding__some_cases_broke_while_others_were_fixed__is_a_drop_of_those_that_seldom_fail() -> None:
    worse = [stratum("P" * 9, "F")] * 6 + [stratum("P" * 9, "P")] * 14
    mended = [stratum("FPPFPPFPP", "P")] * 19 + [stratum("FPPFPPFPP", "F")]
    others = [stratum("P" * 9, "P")] * 60
    alone, both = run_suite_test([*worse, *others], CALM), run_suite_test([*worse, *mended, *others], CALM)
    assert alone.is_drop
    assert not alone.steady_cases_only
    assert both.is_drop
    assert (both.steady_cases_only, both.cases, both.failures) == (True, 80, 6)
    assert compute_suite_finding([*worse, *mended, *others]).chance > 0.05


@pytest.mark.contract("verdict.suite")
@pytest.mark.parametrize(("failing", "dropped"), [(2, False), (4, False), (5, True), (20, True)])
def test_whole_finding__never_failed_before__forgives_what_a_mishap_explains(failing, dropped) -> None:
    """Four of 100 are what a mishap of one in fifty brings one time in seven; after ten runs one may be the first."""
    strata = [stratum("P" * 10, "F")] * failing + [stratum("P" * 10, "P")] * (100 - failing)
    broken = [stratum("F" * 10, "F")] * 30
    assert compute_suite_finding(strata).is_drop
    assert run_suite_test(strata, CALM).is_drop is dropped
    assert run_suite_test(strata + broken, CALM).is_drop is dropped


def test_whole_finding__a_longer_record_without_a_mishap__makes_it_less_likely() -> None:
    strata = [stratum("P" * 10, "F")] * 5 + [stratum("P" * 10, "P")] * 95
    chances = [run_suite_test(strata, DayEffects(runs=runs)).chance for runs in (0, 1, 5, 20)]
    assert chances == sorted(chances, reverse=True)
    assert chances[0] > 0.02 > chances[-1]


def flaking(failing: int) -> list[Stratum]:
    """A hundred cases of which about two usually fail, and so many here."""
    usual = [stratum("P" * 9, "F")] * failing + [stratum("P" * 8 + "F", "P")] * 18
    return usual + [stratum("P" * 9, "P")] * (82 - failing)


@pytest.mark.contract("verdict.record.bad-days")
def test_whole_finding__days_of_the_branch_differ_as_much__is_excused() -> None:
    calm, restless = run_suite_test(flaking(10), CALM), run_suite_test(flaking(10), RESTLESS)
    assert calm.is_drop
    assert (calm.is_run_variation, calm.chance_if_runs_equal) == (False, None)
    assert not restless.is_drop
    assert restless.is_run_variation
    assert restless.chance_if_runs_equal is not None
    assert restless.chance_if_runs_equal <= restless.limit < restless.chance
    assert calm.chance < restless.chance
    assert run_suite_test(flaking(40), RESTLESS).is_drop


@pytest.mark.contract("verdict.order")
@given(st.lists(MANY, max_size=12), st.randoms(use_true_random=False))
def test_whole_finding__another_order__is_the_very_same_finding(cases, random) -> None:
    strata = [stratum(history, here) for history, here in cases]
    assert run_suite_test(random.sample(strata, len(strata)), RESTLESS) == run_suite_test(strata, RESTLESS)


@pytest.mark.contract("verdict.monotone")
@given(st.lists(MANY, min_size=1, max_size=12), st.data())
def test_whole_finding__a_failure_instead_of_a_pass__is_never_likelier(cases, data) -> None:
    at = data.draw(st.integers(0, len(cases) - 1))
    worse = [*cases[:at], (cases[at][0], "F"), *cases[at + 1 :]]
    before, after = (run_suite_test([stratum(*one) for one in some], RESTLESS) for some in (cases, worse))
    if before.is_drop:
        assert after.is_drop


@pytest.mark.slow
@pytest.mark.parametrize("rate", [20, 200])
def test_whole_finding__a_hundred_thousand_cases__takes_a_second(rate) -> None:
    """One in so many fails at first, and one in ten has failed before."""
    strata = [
        stratum("P" * 8 + ("F" if at % 10 == 0 else "P") + ("FFF" if at % 50 == 0 else "PPP"), "PF"[at % rate == 0])
        for at in range(100_000)
    ]
    with within_cpu(1.5, "a hundred thousand cases"):
        assert run_suite_test(strata, RESTLESS).cases > 0
