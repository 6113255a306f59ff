"""Prior of a case: how often it fails without a change, learned from its and its suite's history.

A suite has more than one kind of case: most are solid, some flake. So the belief is how many cases there are of each of
some fixed failure rates, learned from all histories at once: the mixture that makes them likely (nonparametric maximum
likelihood: Kiefer and Wolfowitz 1956, Annals of Mathematical Statistics 27, 887-906; Efron 2016, Biometrika 103, 1-20),
held back by a few imaginary cases without executions. The history of a case then says which kind it may be.

What it moves (`benchmarks/verdict/without.py`, without it → with it): a case fails four times in five, found 50.4 →
77.4 ± 4.4 %; every other time, 6.2 → 24.8 ± 3.4 %. With one Beta distribution in place of the mixture, 6.3 % of the
pull requests of usual days are red in place of 2.4 ± 0.6 %.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from eval_gate.gate.evidence.execution_groups import ExecutionGroup, RunShares, compute_log_group_chance, sum_logs
from eval_gate.model.evidence import NO_EXECUTIONS, Counts
from eval_gate.struct import FrozenStruct, replace

MIN_FAILURE_RATE: Final = 0.02
"""No suite is believed to be steadier, however long its history: the next outage is not in it."""
RATES: Final = (MIN_FAILURE_RATE, 0.035, 0.05, 0.07, 0.1, 0.14, 0.2, 0.27, 0.35, 0.44, 0.54, 0.65, 0.77, 0.88, 0.95)
"""The failure rates that cases can have, in rising order; the last is that of a dead case."""
STEADY_RATE: Final = 0.001
"""That of cases which next to never fail. They are believed to fail at the least rate from now on, but did not before.

Else many solid cases would have to be lucky ones, what failed once or twice would pass for their bad luck, and of the
flaky cases too few, and none that seldom fail, were believed to be there.
"""
UNSEEN_CASES: Final = 1.0
"""How many cases of an unknown suite are added to those in the history, for what no history has shown."""
_BROKEN_AFTER: Final = 3
_LEARNING_STEPS: Final = 40
_MIN_WEIGHT: Final = 1e-200
_ALL_RATES: Final = (STEADY_RATE, *RATES)
_LOG_PASS_RATES: Final = tuple(math.log1p(-rate) for rate in _ALL_RATES)
_LOG_FAILURE_RATES: Final = tuple(math.log(rate) for rate in _ALL_RATES)


DayFactors = tuple[tuple[float, float], ...]
"""Factors of at least 1 by which one day may multiply failures, with weights; empty if days do not differ."""


class Prior(FrozenStruct):
    """Distribution of a case's failure rate over the fixed `RATES`.

    Of the cases with the lowest rate, the share `steady` (0 to 1) has failed even less so far (`STEADY_RATE`).
    `shares` say how much the executions of one run belong together; one in the history is worth `history_worth`
    independent ones.
    """

    weights: tuple[float, ...]
    steady: float = 0.0
    shares: RunShares = ()
    history_worth: float = 1.0

    @classmethod
    def from_counts(cls, passes: float, failures: float) -> Prior:
        """Build the prior of that many observed passes and failures: a Beta distribution in the steps of `RATES`."""
        return cls(_discretize_beta(passes, failures, RATES))

    def add_history(self, counts: Counts) -> Prior:
        """With the history of one case added."""
        return _add_history(self, counts.passes * self.history_worth, counts.failures * self.history_worth)

    def adjust_to_day(self, day: DayFactors) -> Prior:
        """Return the prior for a day that multiplies failures by these factors. This prior itself does not change."""
        return _adjust_to_day(self, day) if day else self

    @property
    def pass_rate(self) -> float:
        """The share of passes to be expected, 0 to 1."""
        return 1.0 - math.fsum(weight * rate for weight, rate in zip(self.weights, RATES, strict=True))

    def compute_log_chance(self, first: Counts, reruns: Counts = NO_EXECUTIONS) -> float:
        """Natural logarithm of the chance of these results of one run in one given order. All orders have the same."""
        likely = compute_log_rate_chances(ExecutionGroup.from_counts(first, reruns), self.shares)
        return sum_logs([math.log(weight) + log for weight, log in zip(self.weights, likely, strict=True)])

    def compute_failure_chance(self, first: Counts, reruns: Counts = NO_EXECUTIONS) -> float:
        """Compute the chance of at least as many failures among as many executions."""
        failed, tail = first.failures + reruns.failures, []
        for early in range(first.executions + 1):
            for late in range(max(failed - early, 0), reruns.executions + 1):
                one = Counts(passes=first.executions - early, failures=early)
                other = Counts(passes=reruns.executions - late, failures=late)
                orders = _compute_log_orders(one) + _compute_log_orders(other)
                tail.append(math.exp(orders + self.compute_log_chance(one, other)))
        return min(1.0, math.fsum(tail))


@lru_cache(50_000)
def compute_log_rate_chances(group: ExecutionGroup, shares: RunShares) -> tuple[float, ...]:
    """Compute the log-chance of one order of these results of one run, at each of `RATES`."""
    return tuple(compute_log_group_chance(rate, group, shares) for rate in RATES)


def _compute_log_chances(passes: float, failures: float) -> list[float]:
    """Compute the log chance of these results in one given order: of steady cases, then at each of `RATES`."""
    return [
        passes * log_pass + failures * log_fail
        for log_pass, log_fail in zip(_LOG_PASS_RATES, _LOG_FAILURE_RATES, strict=True)
    ]


def _discretize_beta(passes: float, failures: float, rates: Sequence[float]) -> tuple[float, ...]:
    """Compute the shares of these rates under a Beta distribution; `rates` is in rising order."""
    edges = [0.0, *((low + high) / 2 for low, high in itertools.pairwise(rates)), 1.0]
    return _normalize_logs(
        [
            (passes - 1) * math.log1p(-rate) + (failures - 1) * math.log(rate) + math.log(high - low)
            for rate, (low, high) in zip(rates, itertools.pairwise(edges), strict=True)
        ]
    )


def _normalize_logs(logs: list[float]) -> tuple[float, ...]:
    most = max(logs)
    parts = [max(math.exp(log - most), _MIN_WEIGHT) for log in logs]
    total = math.fsum(parts)
    return tuple(part / total for part in parts)


def _compute_log_orders(counts: Counts) -> float:
    """Compute the logarithm of the number of orders in which these results can come."""
    return math.lgamma(counts.executions + 1) - math.lgamma(counts.passes + 1) - math.lgamma(counts.failures + 1)


_DEFAULT_COUNTS: Final = (9.0, 1.0)
DEFAULT_PRIOR: Final = Prior.from_counts(*_DEFAULT_COUNTS)
"""Prior of a suite without history: a case fails one time in ten by chance, with the weight of ten executions."""
_DEFAULT_WEIGHTS: Final = _discretize_beta(*_DEFAULT_COUNTS, _ALL_RATES)


def learn_prior(histories: Mapping[tuple[int, int], float], history_worth: float = 1.0) -> Prior:
    """Learn the prior of a suite, by expectation-maximization in a few steps.

    `histories` maps passes and failures to numbers of cases. A case that has failed every time, and at least three
    times, is broken and not flaky, so it is left out.
    """
    unbroken = {
        (passes, failures): number
        for (passes, failures), number in histories.items()
        if passes or 0 < failures < _BROKEN_AFTER
    }
    if not unbroken:
        return DEFAULT_PRIOR
    chances = []
    for (passes, failures), number in sorted(unbroken.items()):
        logs = _compute_log_chances(passes * history_worth, failures * history_worth)
        most = max(logs)
        chances.append((number, [math.exp(log - most) for log in logs]))
    weights = learn_weights(_DEFAULT_WEIGHTS, chances, _LEARNING_STEPS)
    return replace(_build_prior(weights), history_worth=history_worth)


def learn_weights(
    start: Sequence[float], chances: Sequence[tuple[float, Sequence[float]]], steps: int
) -> Sequence[float]:
    """Learn how many cases have which rate, from numbers of cases and their chances at each of the rates.

    `start` are the weights of a case without executions.
    """
    weights, number = start, sum(many for many, _ in chances) + UNSEEN_CASES
    for _ in range(steps):
        sums = [UNSEEN_CASES * weight for weight in start]
        for many, likely in chances:
            joint = [weight * chance for weight, chance in zip(weights, likely, strict=True)]
            factor = many / sum(joint)
            sums = [one + factor * other for one, other in zip(sums, joint, strict=True)]
        weights = [one / number for one in sums]
    return weights


def _build_prior(weights: Sequence[float]) -> Prior:
    """Build a prior from the shares of steady cases and of each of `RATES`."""
    steady, least, *rest = weights
    return Prior((steady + least, *rest), steady / (steady + least))


@lru_cache(2_000)
def _adjust_to_day(prior: Prior, day: DayFactors) -> Prior:
    """Multiply failure rates by a day's factors; a rate between two of `RATES` is split so that the mean is right."""
    weights = [0.0] * len(RATES)
    for factor, share in day:
        for weight, rate in zip(prior.weights, RATES, strict=True):
            day_rate = min(rate * factor, RATES[-1])
            above = bisect_left(RATES, day_rate)
            part = (RATES[above] - day_rate) / (RATES[above] - RATES[above - 1]) if above else 0.0
            weights[above] += share * weight * (1 - part)
            weights[above - 1] += share * weight * part
    total = math.fsum(weights)
    return replace(prior, weights=tuple(max(one / total, _MIN_WEIGHT) for one in weights), steady=0.0)


@lru_cache(20_000)
def _add_history(prior: Prior, passes: float, failures: float) -> Prior:
    least, *rest = prior.weights
    weights = (least * prior.steady, least * (1 - prior.steady), *rest)
    chances = _compute_log_chances(passes, failures)
    logs = [math.log(max(weight, _MIN_WEIGHT)) + log for weight, log in zip(weights, chances, strict=True)]
    posterior = _build_prior(_normalize_logs(logs))
    return replace(prior, weights=posterior.weights, steady=posterior.steady)
