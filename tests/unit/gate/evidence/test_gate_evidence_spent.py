"""What is spent on harmless runs, in truth: suites of two kinds of cases, added up exactly and not drawn."""

from __future__ import annotations

import math

import pytest

from eval_gate.gate.evidence.prior import learn_prior
from eval_gate.gate.evidence.rerun_decision import RerunCriteria, RerunStep, Suspicion
from eval_gate.gate.evidence.thresholds import ExecutionLimits, compute_error_share, compute_thresholds
from eval_gate.model.evidence import Counts

RUNS, CONFIRM, ALPHA = 10, 6, 0.05
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
@pytest.mark.parametrize(("cases", "most"), [(20, 0.025), (100, 0.02), (500, 0.0125), (2_000, 0.0125)])
def test_confirmation__solid_and_flaky_cases__single_ones_are_red_in_few_harmless_runs(cases, most) -> None:
    histories = records_of(cases)
    prior = learn_prior(histories)
    asked = compute_thresholds(prior, histories, ExecutionLimits(CONFIRM), ALPHA)
    confirmation = RerunCriteria(cases, prior, ALPHA, CONFIRM, asked.threshold, asked.all_failed_threshold)
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


@pytest.mark.parametrize(("cases", "part"), [(0, 1.0), (1, 1.0), (100, 1.0), (225, 2 / 3), (400, 0.5), (10**6, 0.5)])
def test_of_size__more_cases__spend_less_and_half_at_least(cases, part) -> None:
    assert compute_error_share(cases) == pytest.approx(part)
