"""The smallest loss of all cases that is found: what its figures depend on, and what they cost."""

from collections import Counter

import pytest

from eval_gate.gate.evidence.rerun_decision import RerunCriteria
from eval_gate.gate.power.case_groups import CaseGroup, CaseGroups
from eval_gate.gate.power.detection_power import compute_detection_power
from eval_gate.gate.power.loss_detection import ExecutionTree, LossSimulation
from eval_gate.model.evidence import CaseHistorySummary, Counts
from tests.support.bounds import within_cpu
from tests.support.histories import learned


def steady(number: int, *, flaky: int = 0, trials: int = 1) -> CaseGroups:
    """So many cases after ten runs, and so many that failed in one to nine of them."""
    flakes = [Counts(passes=9 - at % 9, failures=at % 9 + 1) for at in range(flaky)]
    counts = [(Counts(passes=10), number), *Counter(flakes).items()]
    kinds = tuple(CaseGroup(CaseHistorySummary(counts=one, newest_run=Counts(passes=1)), many) for one, many in counts)
    prior = learned(kind.history.counts for kind in kinds for _ in range(min(kind.number, 1_000)))
    return CaseGroups(kinds, RerunCriteria(number + flaky, prior, trials=trials), 10)


def losses(cases: CaseGroups) -> LossSimulation:
    return LossSimulation(cases, [ExecutionTree(kind, cases) for kind in cases.groups])


@pytest.mark.slow
@pytest.mark.parametrize("trials", [1, 3])
def test_found__a_larger_loss__is_found_more_often(trials) -> None:
    known = losses(steady(60, flaky=5, trials=trials))
    found = [known.compute_red_chance(points) for points in (0, 4, 8, 16, 32)]
    assert found == sorted(found)
    # no case is believed to fail less than one time in fifty, and these never did: to expect that is a small loss
    assert found[0] < (0.06 if trials == 1 else 0.12)
    assert found[-1] > 0.95


@pytest.mark.slow
def test_smallest__one_point_less__is_not_found_often_enough() -> None:
    known = losses(steady(60, flaky=5))
    smallest = known.find_smallest_loss()
    assert smallest is not None
    assert known.compute_red_chance(smallest) >= 0.9 > known.compute_red_chance(smallest - 1)


def test_smallest__more_cases_or_trials__is_smaller() -> None:
    few, many, tried = (
        compute_detection_power(one).smallest_loss for one in (steady(40), steady(400), steady(40, trials=3))
    )
    assert few is not None
    assert many is not None
    assert tried is not None
    assert many < tried < few


@pytest.mark.slow
def test_sight__a_hundred_thousand_cases__costs_little_more_than_a_hundred() -> None:
    assert compute_detection_power(steady(100, flaky=9)).smallest_loss is not None
    with within_cpu(5.0, "a hundred thousand cases"):
        assert compute_detection_power(steady(100_000, flaky=900, trials=3)).smallest_loss is not None


def test_sight__the_same_cases_again__is_not_worked_out_again() -> None:
    compute_detection_power.cache_clear()
    assert compute_detection_power(steady(40)) is compute_detection_power(steady(40))
    assert compute_detection_power.cache_info().misses == 1
    assert compute_detection_power(steady(41)) is not compute_detection_power(steady(40))
