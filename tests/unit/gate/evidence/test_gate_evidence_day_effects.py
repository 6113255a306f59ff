"""How much whole runs of a branch differ from each other."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.gate.evidence.day_effects import (
    NO_DAY_EFFECTS,
    build_run_days,
    find_bad_days,
    join_rounds,
    learn_day_effects,
)
from eval_gate.gate.evidence.day_effects import _compute_poisson_tail as at_least
from eval_gate.gate.evidence.flakiness import CaseRun
from eval_gate.model.evidence import BranchRun, Counts

CALM = (2, 2, 1, 3, 2, 2, 4, 0, 2, 2)


def days(*failures: int) -> tuple[BranchRun, ...]:
    """Runs with so many failures, newest first, of cases that seldom fail."""
    mean = sum(failures) / len(failures)
    return tuple(BranchRun(failures=one, expected=mean, variance=mean) for one in failures)


def poisson(number: int, mean: float) -> float:
    """The chance of so many rare events, or more."""
    return 1 - math.fsum(math.exp(at * math.log(mean) - mean - math.lgamma(at + 1)) for at in range(number))


def chance(failures: int, *history: int, usual: float = 2.0) -> float:
    """Of so many failures after this record, where two of rare ones are usual."""
    return learn_day_effects(days(*history)).widen_chance(poisson(failures, usual), failures, usual, usual)


@pytest.mark.contract("verdict.record.bad-days")
def test_widened__the_record_has_seen_bad_days__lets_one_more_through() -> None:
    """Eight failures where two are usual: once in a thousand runs that do not differ."""
    assert poisson(8, 2.0) < 0.0012
    assert chance(8, *CALM) < 0.01
    bad = (2, 2, 8, 2, 2, 9, 2, 1, 2, 2)
    assert poisson(9, 3.2) < 0.01 < 0.02 < chance(9, *bad, usual=3.2)
    assert chance(16, *bad, usual=3.2) < 0.01


@pytest.mark.contract("verdict.record.bad-days")
def test_widened__a_longer_record_of_the_same_days__says_it_more_surely() -> None:
    bad, calm = (2, 9, 1, 2, 2), (2, 3, 1, 2, 2)
    assert chance(8, *bad * 1) < chance(8, *bad * 4)
    assert chance(8, *calm * 1) > chance(8, *calm * 4)


@pytest.mark.parametrize("history", [(), (2,), (2, 2), (0, 0, 0), CALM])
def test_widened__short_or_calm_record__costs_little(history) -> None:
    known = learn_day_effects(days(*history)) if history else NO_DAY_EFFECTS
    alike = poisson(9, 2.0)
    assert alike <= known.widen_chance(alike, 9, 2.0, 2.0) < 0.01
    assert known.runs == len(history)


def test_widened__thousands_of_cases__a_small_difference_of_days_counts() -> None:
    """200 of 10,000 usually fail, give or take 14 by chance; here the days make that 40."""
    restless = (200, 240, 165, 190, 235, 160, 205, 245, 180, 180)
    calm = (200, 214, 187, 195, 210, 190, 204, 206, 198, 196)
    assert chance(250, *calm, usual=200.0) < 0.01
    assert chance(250, *restless, usual=200.0) > 0.03
    assert chance(500, *restless, usual=200.0) < 0.001


@pytest.mark.contract("verdict.monotone")
@given(st.lists(st.integers(0, 30), min_size=2, max_size=12), st.integers(0, 60))
def test_widened__one_more_failure__is_never_likelier(history, failures) -> None:
    known = learn_day_effects(days(*history))
    usual = 3.0
    fewer, more = (known.widen_chance(poisson(at, usual), at, usual, usual) for at in (failures, failures + 1))
    assert more <= fewer * (1 + 1e-9) + 1e-12
    assert poisson(failures, usual) <= fewer <= 1 + 1e-9


@given(st.lists(st.integers(0, 30), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_learned__older_runs_in_another_order__say_the_same(history, random) -> None:
    shuffled = random.sample(history[1:], len(history) - 1)
    one, other = (learn_day_effects(days(history[0], *rest)) for rest in (history[1:], shuffled))
    assert one.calm_weight == pytest.approx(other.calm_weight)
    assert 0 <= one.calm_weight <= 1
    assert sum(weight for _, weight in one.factors) + one.calm_weight == pytest.approx(1.0)


def seen(*results: str) -> list[tuple[int, CaseRun]]:
    """A case in runs, newest first: the first execution, and behind a bar its re-runs."""

    def counts(letters: str) -> Counts:
        return Counts(
            passes=letters.count("P"), failures=len(letters) - letters.count("P"), agent_errors=letters.count("C")
        )

    sides = [one.partition("|") for one in results]
    return [(at, CaseRun(f"r{at}", counts(first), counts(again))) for at, (first, _, again) in enumerate(sides)]


def test_days_of__cases_that_flake__are_counted_beside_what_their_records_let_expect() -> None:
    found = build_run_days([(seen("F|PP", "P", "P", "P"), 3), (seen("P", "P", "F|FP", "F|P"), 1)], 4)
    assert [day.failures for day in found] == [3, 0, 1, 1]
    assert [day.expected for day in found] == [pytest.approx(3 / 4 + 2 / 4)] * 4
    assert [day.variance for day in found] == [pytest.approx(3 * 3 / 12 + 4 / 12, abs=1e-4)] * 4


def test_days_of__broken_crashed_or_always_the_same__says_nothing_about_a_day() -> None:
    nothing = build_run_days([(seen("P", "P", "P"), 9), (seen("F", "F", "F"), 9), (seen("C|CC", "P", "P"), 9)], 3)
    assert {(day.failures, day.expected, day.variance) for day in nothing} == {(0, 0.0, 0.0)}
    broken = build_run_days([(seen("F|FFF", "P", "F|PP", "P"), 1)], 4)
    assert [day.failures for day in broken] == [0, 0, 1, 0]
    assert [day.expected for day in broken] == [0.0, *[pytest.approx(1 / 3, abs=1e-4)] * 3]


@pytest.mark.parametrize(("number", "mean"), [(1, 0.3), (7, 2.0), (12, 30.0), (49, 40.0), (51, 40.0), (80, 100.0)])
def test_at_least__whole_numbers__is_the_poisson_tail(number, mean) -> None:
    assert at_least(number, mean) == pytest.approx(poisson(number, mean), rel=0.02)


def test_bad_days__stored_result_with_absurd_numbers__has_none() -> None:
    assert find_bad_days((BranchRun(failures=10**400, expected=1, variance=1), *days(2, 2, 2, 2))) == ()


def test_join_rounds__warm_up_of_one_run__is_one_day() -> None:
    runs = days(2, 3, 9, 1)
    joined = join_rounds(["r2", "r2", "r2", "r1"], runs)
    assert [(one.failures, one.expected) for one in joined] == [(14, 3 * runs[0].expected), (1, runs[0].expected)]
    assert learn_day_effects(joined * 2).runs == 4, "ten rounds of one run would pass for ten days"
