"""The smallest loss of all cases that is found: what its figures depend on, and what they cost."""

from collections import Counter

import pytest

from eval_gate.gate.evidence.reruns import Confirmation
from eval_gate.gate.power.cases import CaseGroup, CaseGroups
from eval_gate.gate.power.chances import Losses, Tree
from eval_gate.gate.power.sight import sight_of
from eval_gate.model.grounds import CaseRecord, Counts
from tests.support.bounds import within_cpu
from tests.support.histories import learned


def steady(number: int, *, flaky: int = 0, trials: int = 1) -> CaseGroups:
    """So many cases after ten runs, and so many that failed in one to nine of them."""
    flakes = [Counts(passes=9 - at % 9, failures=at % 9 + 1) for at in range(flaky)]
    counts = [(Counts(passes=10), number), *Counter(flakes).items()]
    kinds = tuple(CaseGroup(CaseRecord(counts=one, newest=Counts(passes=1)), many) for one, many in counts)
    prior = learned(kind.record.counts for kind in kinds for _ in range(min(kind.number, 1_000)))
    return CaseGroups(kinds, Confirmation(number + flaky, prior), 10, trials)


def losses(cases: CaseGroups) -> Losses:
    return Losses(cases, [Tree(kind, cases) for kind in cases.kinds])


@pytest.mark.slow
@pytest.mark.parametrize("trials", [1, 3])
def test_found__a_larger_loss__is_found_more_often(trials) -> None:
    known = losses(steady(60, flaky=5, trials=trials))
    found = [known.chance_of_red(points) for points in (0, 4, 8, 16, 32)]
    assert found == sorted(found)
    # no case is believed to fail less than one time in fifty, and these never did: to expect that is a small loss
    assert found[0] < (0.06 if trials == 1 else 0.12)
    assert found[-1] > 0.95


@pytest.mark.slow
def test_smallest__one_point_less__is_not_found_often_enough() -> None:
    known = losses(steady(60, flaky=5))
    smallest = known.smallest()
    assert smallest is not None
    assert known.chance_of_red(smallest) >= 0.9 > known.chance_of_red(smallest - 1)


def test_smallest__more_cases_or_trials__is_smaller() -> None:
    few, many, tried = (sight_of(one).loss for one in (steady(40), steady(400), steady(40, trials=3)))
    assert few is not None
    assert many is not None
    assert tried is not None
    assert many < tried < few


@pytest.mark.slow
def test_sight__a_hundred_thousand_cases__costs_little_more_than_a_hundred() -> None:
    assert sight_of(steady(100, flaky=9)).loss is not None
    with within_cpu(5.0, "a hundred thousand cases"):
        assert sight_of(steady(100_000, flaky=900, trials=3)).loss is not None


def test_sight__the_same_cases_again__is_not_worked_out_again() -> None:
    sight_of.cache_clear()
    assert sight_of(steady(40)) is sight_of(steady(40))
    assert sight_of.cache_info().misses == 1
    assert sight_of(steady(41)) is not sight_of(steady(40))
