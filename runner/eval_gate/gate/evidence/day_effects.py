"""How much whole runs of the branch differ: good and bad days, estimated from its history.

The test of all cases takes cases to be independent. They are not where a provider has a bad day, a judge a strict one,
or where cases of one template fail together: then all failures of a run come and go at once, which no case can show. It
shows in how many cases fail in each run: if cases were independent, these sums would vary as the history of each case
lets expect, and if they vary by more, whole runs differ.

Each run is believed to multiply failures by a factor of its own, with mean 1. How far these factors spread is not
known: some spreads are weighed against each other by how well they explain the sums (of negative binomial
distributions; Greenwood and Yule 1920, Journal of the Royal Statistical Society 83, 255-279), and none at all is
believed most. So a history that is calm, or short, widens the test by little, and one that has seen bad days widens it
as far as they go.

How many of the others failed at first then tells which day a run is on: by Bayes' rule, from what the history says of
one more day and from first executions only, which are there before anything is run again. Of a single case "nothing has
changed" then means that it fails as often as on such a day, so that a bad day is not many single regressions. A day
never makes a case steadier than its history, and where the history shows no differences between days nothing of that
counts: how many failed is then left to the test of all cases.

What they move (`benchmarks/verdict/without.py`, without → with): a bad day, failures × 3, two seen (5 %), red 41.7 →
8.7 ± 7.6 %, (2 %) 17.4 → 4.3 ± 5.2 %; the branch itself lost 10 points in its newest run, red 70.0 → 28.2 ± 9.4 %. What
that costs: 10 points lost after a bad newest run (5 %), found 53.6 → 30.9 ± 6.6 %. Of these, that single cases know of
the day: 13.0 → 8.7 ± 1.9 %, and 37.3 → 28.2 ± 3.3 %.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from statistics import median
from typing import Final

from eval_gate.gate.evidence.execution_groups import sum_logs
from eval_gate.gate.evidence.flakiness import CaseRun
from eval_gate.gate.evidence.prior import DayFactors
from eval_gate.model.evidence import NO_EXECUTIONS, BranchRun, Counts
from eval_gate.struct import FrozenStruct

DAY_VARIANCES: Final = (0.0, 1 / 1024, 1 / 256, 1 / 64, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0)
"""Variances of the factor by which a run multiplies failures: from 3 % more or less to days of five times as many."""
CALM_WEIGHT: Final = 0.7
"""Prior weight of no differences between runs."""
SLIGHT_WEIGHT: Final = 0.05
"""Prior weight of each slight variance (below 1/16), which only suites of thousands of cases distinguish from none."""
_LARGE_WEIGHT: Final = (1.0 - CALM_WEIGHT - 3 * SLIGHT_WEIGHT) / (len(DAY_VARIANCES) - 4)
_VARIANCE_WEIGHTS: Final = (CALM_WEIGHT, *[SLIGHT_WEIGHT] * 3, *[_LARGE_WEIGHT] * (len(DAY_VARIANCES) - 4))
MIN_RUNS: Final = 5
_LEVELS: Final = tuple(math.exp(-1.2 + 0.1 * step) for step in range(23))
"""Factors by which the mean of all runs may be wrong."""
_FACTORS: Final = tuple(math.exp(-2.5 + 0.05 * step) for step in range(104))
"""Factors that represent a spread: from a twelfth to fourteen."""
FACTOR_STEPS: Final = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0)
"""Factors of a day that are distinguished; every other factor counts as the nearest one."""
_MIN_WEIGHT: Final = 1e-7
_MIN_SHARE: Final = 1e-4
"""Smallest weight of a day's factor; factors with less are left out."""
_NO_VARIANCE: Final = 1e-3
_BAD_FACTOR: Final = 2.0
"""Smallest multiple of the usual failures on a bad day."""
_MIN_BAD_FAILURES: Final = 3
"""Smallest number of failures on a bad day: fewer are one or two flaky cases."""
_MAX_BAD_CHANCE: Final = 0.02
"""Largest chance of that many failures on a usual day."""
_MAX_FAILURES: Final = 10**9
"""Maximum failures of a run: a stored result with more is not from this program."""
_FEW_FAILURES: Final = 50.0
"""Below it the chance of a number of failures is added up, and from there on taken from the normal distribution."""


class DayEffects(FrozenStruct):
    """Factors by which one more run may multiply failures, with weights. The rest to 1 is that of no difference."""

    runs: int = 0
    factors: tuple[tuple[float, float], ...] = ()

    @property
    def calm_weight(self) -> float:
        """The weight of no differences."""
        return max(1.0 - math.fsum(weight for _, weight in self.factors), 0.0)

    @property
    def has_effects(self) -> bool:
        """Whether the history shows that runs differ: that they do not is believed half as much as before it."""
        return self.calm_weight < CALM_WEIGHT / 2

    @property
    def mishap_chance(self) -> float:
        """The chance that this is the first run with a mishap that none of the others had (Laplace's rule)."""
        return 1.0 / (self.runs + 2)

    def widen_chance(self, chance: float, failures: float, mean: float, variance: float) -> float:
        """Compute the chance of at least `failures` failures over all days that the branch may have.

        `chance`, `mean` and `variance` are those if days do not differ. A day multiplies the part of the failures that
        varies like rare events (Poisson), and the part that does not vary stays.
        """
        if variance <= 0.0:
            return chance
        rare = failures - (mean - variance)
        other = math.fsum(weight * _compute_poisson_tail(rare, variance * factor) for factor, weight in self.factors)
        return max(chance, self.calm_weight * chance + other)


def build_run_days(
    cases: Iterable[tuple[Sequence[tuple[int, CaseRun]], int]], runs: int, trial_share: float = 0.0
) -> tuple[BranchRun, ...]:
    """Build the whole-run figures of the newest `runs` runs, newest first.

    `cases` are the runs of one case, each with its place, and how many cases have the same history. Failures vary more
    by `trial_share`, the correlation of two trials in one run. A case that also failed its re-runs was broken in that
    run, which says nothing about the day.
    """
    sums = [[0.0, 0.0, 0.0] for _ in range(runs)]
    for case_runs, number in cases:
        usable = [(at, first) for at, one in case_runs if at < runs and (first := _count_unless_broken(one)).executions]
        executions = sum(first.executions for _, first in usable)
        failures = sum(first.failures for _, first in usable)
        if not 0 < failures < executions:
            continue  # what always does the same says nothing about days
        rate = failures / executions
        variance = failures * (executions - failures) / (executions * (executions - 1))
        for at, first in usable:
            sums[at][0] += number * first.failures
            sums[at][1] += number * first.executions * rate
            sums[at][2] += number * first.executions * variance * (1.0 + (first.executions - 1) * trial_share)
    return tuple(
        BranchRun(failures=round(failures), expected=round(mean, 4), variance=round(variance, 4))
        for failures, mean, variance in sums
    )


def join_rounds(groups: Iterable[str], runs: Sequence[BranchRun]) -> tuple[BranchRun, ...]:
    """Join the figures of each run with those of its warm-up rounds; `groups` names the run that each one is of."""
    days: dict[str, list[BranchRun]] = {}
    for group, run in zip(groups, runs, strict=False):
        days.setdefault(group, []).append(run)
    return tuple(
        BranchRun(
            failures=sum(run.failures for run in day),
            expected=round(math.fsum(run.expected for run in day), 4),
            variance=round(math.fsum(run.variance for run in day), 4),
        )
        for day in days.values()
    )


def _count_unless_broken(one: CaseRun) -> Counts:
    broken = one.reruns.executions and one.all.executions == one.all.failures
    return NO_EXECUTIONS if broken else one.first


@lru_cache(maxsize=64)
def learn_day_effects(days: tuple[BranchRun, ...]) -> DayEffects:
    """Learn from `days`, newest first, how much whole runs differ; fewer than five would only hide a drop."""
    if len(days) < MIN_RUNS:
        return DayEffects(len(days))
    logs = [
        math.log(belief)
        + sum_logs([math.fsum(_compute_log_chance(day, level, spread) for day in days) for level in _LEVELS])
        for spread, belief in zip(DAY_VARIANCES, _VARIANCE_WEIGHTS, strict=True)
    ]
    whole = sum_logs(logs)
    return DayEffects(len(days), _distribute_weights([math.exp(one - whole) for one in logs], len(days)))


def estimate_day(cases: Iterable[tuple[Counts, Counts]], days: DayEffects) -> DayFactors:
    """Estimate by how much this day multiplies failures, in `FACTOR_STEPS`; one failure, of a suspect, is left out.

    `cases` are the executions of each case in its history, at least one, and its first executions in this run.
    """
    kinds = Counter((history.without_agent_errors, first.without_agent_errors) for history, first in cases)
    rates = [(first, history.failures / history.executions, number) for (history, first), number in kinds.items()]
    failures = sum(first.failures * number for first, _, number in rates) - 1
    mean = math.fsum(first.executions * rate * number for first, rate, number in rates)
    variance = math.fsum(first.executions * rate * (1 - rate) * number for first, rate, number in rates)
    if variance <= 0.0 or failures <= mean:
        return ()
    rare = failures - (mean - variance)
    likely = [(1.0, math.log(max(days.calm_weight, _MIN_SHARE)) + _compute_log_poisson(rare, variance))]
    likely += [
        (factor, math.log(weight) + _compute_log_poisson(rare, variance * factor)) for factor, weight in days.factors
    ]
    most = max(log for _, log in likely)
    weights = [0.0] * len(FACTOR_STEPS)
    for factor, log in likely:
        weights[_find_nearest_step(factor)] += math.exp(log - most)
    whole = math.fsum(weights)
    shares = [(step, weight / whole) for step, weight in zip(FACTOR_STEPS, weights, strict=True)]
    day = tuple((step, share) for step, share in shares if share >= _MIN_SHARE)
    return day if any(step > 1.0 for step, _ in day) else ()


def _find_nearest_step(factor: float) -> int:
    return min(range(len(FACTOR_STEPS)), key=lambda at: abs(math.log(FACTOR_STEPS[at] / factor)))


def _compute_log_poisson(failures: float, mean: float) -> float:
    """Compute the logarithm of a Poisson chance, without the term that does not depend on the mean."""
    return failures * math.log(mean) - mean


def find_bad_days(days: Sequence[BranchRun]) -> tuple[BranchRun, ...]:
    """Find the runs that failed far more than most, for the reports. They decide nothing."""
    if not days or max(day.failures for day in days) > _MAX_FAILURES:
        return ()
    level = median(day.failures / max(day.expected, _NO_VARIANCE) for day in days)
    return tuple(day for day in days if _is_bad_day(day, max(day.expected * level, _NO_VARIANCE)))


def _is_bad_day(day: BranchRun, usual: float) -> bool:
    enough = day.failures >= max(_MIN_BAD_FAILURES, _BAD_FACTOR * usual)
    return enough and _compute_poisson_tail(day.failures, usual) <= _MAX_BAD_CHANCE


def _compute_log_chance(day: BranchRun, level: float, spread: float) -> float:
    """Compute the log chance of a day's failures as rare events, shifted where they vary less than those."""
    failures = max(day.failures - day.expected + day.variance, 0.0)
    mean = max(day.variance, _NO_VARIANCE) * level
    if not spread:
        return failures * math.log(mean) - mean - math.lgamma(failures + 1)
    shape = 1 / spread
    orders = math.lgamma(failures + shape) - math.lgamma(shape) - math.lgamma(failures + 1)
    return orders + shape * math.log(shape / (shape + mean)) + failures * math.log(mean / (shape + mean))


def _distribute_weights(weights: Sequence[float], runs: int) -> tuple[tuple[float, float], ...]:
    """Convert weights of gamma variances to weights of one more run's factors, relative to the mean of `runs` runs."""
    sums = [0.0] * len(_FACTORS)
    for spread, weight in zip(DAY_VARIANCES[1:], weights[1:], strict=True):
        for at, share in enumerate(_discretize_gamma(spread * (1 + 1 / runs))):
            sums[at] += weight * share
    return tuple((factor, weight) for factor, weight in zip(_FACTORS, sums, strict=True) if weight > _MIN_WEIGHT)


@lru_cache(maxsize=512)
def _discretize_gamma(variance: float) -> tuple[float, ...]:
    shape = 1 / variance
    logs = [shape * (math.log(factor) - factor) for factor in _FACTORS]
    most = max(logs)
    densities = [math.exp(one - most) for one in logs]
    whole = math.fsum(densities)
    return tuple(one / whole for one in densities)


def _compute_poisson_tail(number: float, mean: float) -> float:
    """Compute the chance of at least `number` rare events; it need not be whole (the incomplete gamma function)."""
    if number <= 0.0:
        return 1.0
    if number >= _FEW_FAILURES:  # Wilson and Hilferty 1931
        away = 3 * math.sqrt(number) * ((mean / number) ** (1 / 3) - 1 + 1 / (9 * number))
        return math.erfc(-away / math.sqrt(2)) / 2
    term = math.exp(number * math.log(mean) - mean - math.lgamma(number + 1))
    total, at = term, number
    while term > total * 1e-12 or at < mean:
        at += 1
        term *= mean / at
        total += term
    return min(total, 1.0)


NO_DAY_EFFECTS: Final = learn_day_effects(())
