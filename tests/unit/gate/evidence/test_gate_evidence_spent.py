"""What is spent on harmless runs, in truth: suites of two kinds of cases, added up exactly and not drawn."""

from __future__ import annotations

import math

import pytest

from eval_gate.gate.evidence.prior import learn_prior
from eval_gate.gate.evidence.rerun_decision import RerunCriteria, RerunStep, Suspicion
from eval_gate.gate.evidence.thresholds import (
    ExecutionLimits,
    compute_error_share,
    compute_history_share,
    compute_thresholds,
)
from eval_gate.model.evidence import Counts

RUNS, CONFIRM, ALPHA = 10, 12, 0.05
FLAKY = [0.2 + 0.3 * (at + 0.5) / 60 for at in range(60)]
"""The rates of a fifth of the cases; the others never fail."""


def records_of(cases: int) -> dict[tuple[int, int], float]:
    """How many cases there are of each record, on average."""
    each = cases / 5 / len(FLAKY)
    found = {
        (RUNS - failures, failures): each
        * math.fsum(math.comb(RUNS, failures) * rate**failures * (1 - rate) ** (RUNS - failures) for rate in FLAKY)
        for failures in range(RUNS + 1)
    }
    found[RUNS, 0] += cases * 4 / 5
    return found


def red(confirmation: RerunCriteria, history: Counts, rate: float) -> float:
    """The chance that a case with this record and rate is called a regression."""

    def after(passes: int, failures: int) -> float:
        here = Counts(passes=passes, failures=failures)
        step = confirmation.decide_next_step(Suspicion.REGRESSION, history, here, CONFIRM + 1 - here.executions)
        if step is not RerunStep.AGAIN:
            return float(step is RerunStep.CONFIRMED)
        return rate * after(passes, failures + 1) + (1 - rate) * after(passes + 1, failures)

    return rate * after(0, 1)


@pytest.mark.slow
@pytest.mark.contract("verdict.targets")
@pytest.mark.parametrize(("cases", "most"), [(20, 0.025), (100, 0.02), (500, 0.013), (2_000, 0.013)])
def test_confirmation__solid_and_flaky_cases__single_ones_are_red_in_few_harmless_runs(cases, most) -> None:
    histories = records_of(cases)
    prior = learn_prior(histories)
    asked = compute_thresholds(prior, tuple(histories.items()), ExecutionLimits(CONFIRM), ALPHA)
    confirmation = RerunCriteria(cases, prior, ALPHA, CONFIRM, asked)
    chance = 0.0
    for passes, failures in histories:
        history = Counts(passes=passes, failures=failures)
        if passes:
            of_such = [
                math.comb(RUNS, failures) * rate**failures * (1 - rate) ** passes * red(confirmation, history, rate)
                for rate in FLAKY
            ]
            chance += cases / 5 / len(FLAKY) * math.fsum(of_such)
    assert 0.002 <= chance <= most


SOLID_AND_FLAKY = ((0.01, 0.8), (0.3, 0.2))


@pytest.mark.contract("verdict.targets")
@pytest.mark.parametrize("cases", [20, 100, 500])
@pytest.mark.parametrize("runs", [1, 2, 3, 5, 8])
def test_confirmation__fewer_than_ten_runs__harmless_runs_are_seldom_red_and_dead_cases_are_found(cases, runs) -> None:
    def count(rate: float, share: float) -> dict[tuple[int, int], float]:
        return {
            (runs - at, at): cases * share * math.comb(runs, at) * rate**at * (1 - rate) ** (runs - at)
            for at in range(runs + 1)
        }

    kinds = [(rate, count(rate, share)) for rate, share in SOLID_AND_FLAKY]
    histories = {history: sum(known[history] for _, known in kinds) for history in kinds[0][1]}
    prior = learn_prior(histories)
    asked = compute_thresholds(prior, tuple(histories.items()), ExecutionLimits(CONFIRM), ALPHA)
    confirmation = RerunCriteria(cases, prior, ALPHA, CONFIRM, asked)
    chance = math.fsum(
        number * red(confirmation, Counts(passes=passes, failures=failures), rate)
        for rate, known in kinds
        for (passes, failures), number in known.items()
        if passes
    )
    assert chance <= 0.026
    assert red(confirmation, Counts(passes=runs), 1.0) == 1.0


@pytest.mark.parametrize(
    ("histories", "part"),
    [
        ({(1, 0): 90, (0, 1): 10}, 0.1),
        ({(3, 0): 50, (2, 1): 50}, 0.3),
        ({(10, 0): 1}, 1.0),
        ({(0, 0): 5}, 1.0),
        ({(20, 0): 5, (1, 0): 5, (0, 0): 90}, 1.0),
    ],
)
def test_of_history__fewer_than_ten_executions__spend_as_many_tenths(histories, part) -> None:
    assert compute_history_share(histories.items()) == pytest.approx(part)


@pytest.mark.parametrize(("cases", "part"), [(0, 1.0), (1, 1.0), (100, 1.0), (225, 2 / 3), (400, 0.5), (10**6, 0.5)])
def test_of_size__more_cases__spend_less_and_half_at_least(cases, part) -> None:
    assert compute_error_share(cases) == pytest.approx(part)
