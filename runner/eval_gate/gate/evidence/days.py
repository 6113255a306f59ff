"""How much whole runs of a branch differ from each other: its good and bad days, as its own runs show them.

The test of all cases takes cases to be independent. They are not where a provider has a bad day, a judge a strict one,
or where cases of one template fail together: then all failures of a run come and go at once, which no case can show. It
shows in how many cases fail in each run: if cases were independent, these sums would vary as the record of each case
lets expect, and if they vary by more, whole runs differ.

Each run is believed to multiply failures by a factor of its own, with mean 1. How far these factors spread is not
known: some spreads are weighed against each other by how well they explain the sums (of negative binomial
distributions; Greenwood and Yule 1920, Journal of the Royal Statistical Society 83, 255-279), and none at all is
believed most. So a record that is calm, or short, widens the test by little, and one that has seen bad days widens it
as far as they go.

How many of the others failed at first then tells which day a run is on: by Bayes' rule, from what the record says of
one more day and from first executions only, which are there before anything is run again. Of a single case "nothing has
changed" then means that it fails as often as on such a day, so that a bad day is not many single regressions. A day
never makes a case steadier than its record, and where the record shows no differences between days nothing of that
counts: how many failed is then left to the test of all cases.

What they move (`benchmarks/verdict/without.py`, without → with): a bad day, failures × 3, two seen (5 %), red 41.7 →
8.7 ± 7.6 %, (2 %) 17.4 → 4.3 ± 5.2 %; the branch itself lost 10 points in its newest run, red 70.0 → 28.2 ± 9.4 %. What
that costs: 10 points lost beside a bad newest run (5 %), found 53.6 → 30.9 ± 6.6 %. Of these, that single cases know of
the day: 13.0 → 8.7 ± 1.9 %, and 37.3 → 28.2 ± 3.3 %.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from statistics import median
from typing import TYPE_CHECKING, Final

from eval_gate.gate.evidence.bars import bars_of
from eval_gate.gate.evidence.flakiness import CaseSeen
from eval_gate.gate.evidence.prior import Day
from eval_gate.gate.evidence.reruns import Confirmation
from eval_gate.model.grounds import NO_RUNS, Counts, RunDay
from eval_gate.struct import FrozenStruct, replace

if TYPE_CHECKING:
    from eval_gate.gate.evidence.settle import CaseFacts  # which needs to know of days

SPREADS: Final = (0.0, 1 / 1024, 1 / 256, 1 / 64, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0, 2.0)
"""Variances of the factor by which a run multiplies failures: from 3 % more or less to days of five times as many."""
CALM: Final = 0.7
"""How much of the belief is in no differences at all before anything is known."""
SLIGHT: Final = 0.05
"""And in each of the slight ones (below 1/16), which only suites of thousands of cases can tell from none."""
_LARGE: Final = (1.0 - CALM - 3 * SLIGHT) / (len(SPREADS) - 4)
_BELIEVED: Final = (CALM, *[SLIGHT] * 3, *[_LARGE] * (len(SPREADS) - 4))
LEAST_RUNS: Final = 5
_LEVELS: Final = tuple(math.exp(-1.2 + 0.1 * step) for step in range(23))
"""By how much the mean of all runs may be off."""
_FACTORS: Final = tuple(math.exp(-2.5 + 0.05 * step) for step in range(104))
"""The factors between which a spread is shared out: from a twelfth to fourteen."""
STEPS: Final = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 9.0, 14.0)
"""The factors of a day that are told apart; each other one counts as the one next to it."""
_LEAST_WEIGHT: Final = 1e-7
_LEAST_SHARE: Final = 1e-4
"""Of a day: factors that are believed less are left out."""
_NO_VARIANCE: Final = 1e-3
_BAD: Final = 2.0
"""How many times the usual failures a bad day has, at least."""
_BAD_FAILURES: Final = 3
"""And how many failures: fewer are a flake or two."""
_BAD_LIMIT: Final = 0.02
"""And the chance up to which so many are rare on a usual day."""
_MOST_FAILURES: Final = 10**9
"""No run has more: a stored result that says so was not made by this program."""
_FEW_FAILURES: Final = 50.0
"""Below it the chance of a number of failures is added up, and from there on taken from the normal distribution."""


class Days(FrozenStruct):
    """What a record says about the days of a branch. `runs` are the runs that say it.

    `factors` are those by which one more run may multiply failures, beside those of the record, each with its weight;
    what is left to 1 is that of no difference.
    """

    runs: int = 0
    factors: tuple[tuple[float, float], ...] = ()

    @property
    def calm(self) -> float:
        """The weight of no differences."""
        return max(1.0 - math.fsum(weight for _, weight in self.factors), 0.0)

    @property
    def differ(self) -> bool:
        """Whether the record shows that runs differ: that they do not is believed half as much as before it."""
        return self.calm < CALM / 2

    @property
    def hiccup(self) -> float:
        """The chance that this is the first run with a mishap that none of the others had (Laplace's rule)."""
        return 1.0 / (self.runs + 2)

    def widened(self, chance: float, failures: float, mean: float, variance: float) -> float:
        """The chance of so many failures on any of these days; `chance` is the one where days do not differ.

        `mean` and `variance` are those of the failures then. On another day they are multiplied: as far as they vary
        like rare events they are rare events (Poisson), and what does not vary stays.
        """
        if variance <= 0.0:
            return chance
        rare = failures - (mean - variance)
        other = math.fsum(weight * _at_least(rare, variance * factor) for factor, weight in self.factors)
        return max(chance, self.calm * chance + other)


def days_of(cases: Iterable[tuple[Sequence[tuple[int, CaseSeen]], int]], runs: int) -> tuple[RunDay, ...]:
    """The days of so many runs, newest first.

    Of every case (or so many of a kind) there is what each of the runs saw of it, with the run's place. A case that
    failed its re-runs too was broken in that run, which says nothing about the day: that run of it is left out.
    """
    sums = [[0.0, 0.0, 0.0] for _ in range(runs)]
    for seen, number in cases:
        usable = [(at, first) for at, one in seen if at < runs and (first := _not_broken(one)).runs]
        executions = sum(first.runs for _, first in usable)
        failures = sum(first.failures for _, first in usable)
        if not 0 < failures < executions:
            continue  # what always does the same says nothing about days
        rate = failures / executions
        variance = failures * (executions - failures) / (executions * (executions - 1))
        for at, first in usable:
            sums[at][0] += number * first.failures
            sums[at][1] += number * first.runs * rate
            sums[at][2] += number * first.runs * variance
    return tuple(
        RunDay(failures=round(failures), expected=round(mean, 4), variance=round(variance, 4))
        for failures, mean, variance in sums
    )


def _not_broken(one: CaseSeen) -> Counts:
    everything = one.all.answered
    return NO_RUNS if one.again.runs and everything.runs == everything.failures else one.first.answered


@lru_cache(maxsize=64)
def learned_days(days: tuple[RunDay, ...]) -> Days:
    """What these runs say, newest first; fewer than five say too little, and would only hide a drop."""
    if len(days) < LEAST_RUNS:
        return Days(len(days))
    logs = [
        math.log(belief) + _log_sum([math.fsum(_log_chance(day, level, spread) for day in days) for level in _LEVELS])
        for spread, belief in zip(SPREADS, _BELIEVED, strict=True)
    ]
    whole = _log_sum(logs)
    return Days(len(days), _shared_out([math.exp(one - whole) for one in logs], len(days)))


def on_this_day(confirmation: Confirmation, cases: Iterable[CaseFacts], days: Days) -> Confirmation:
    """How cases are confirmed on the day that these show, those that are suspects left out by one failure each."""
    if not days.differ or not confirmation.confirm:
        return confirmation
    known = [case for case in cases if case.in_whole and case.record.counts.runs]
    day = day_of(known, days)
    if not day:
        return confirmation
    records = Counter((case.record.counts.passes, case.record.counts.failures) for case in known)
    asked = bars_of(
        confirmation.prior, records, confirmation.cases, confirmation.executions, confirmation.error_rate, day
    )
    if asked is None:
        return replace(confirmation, day=day)
    return replace(confirmation, day=day, sure=asked.sure, every=asked.every)


def day_of(cases: Iterable[CaseFacts], days: Days) -> Day:
    """By how much this day multiplies failures, in `STEPS`; none where it surely does not.

    Of a suspect only the others may say it, so one failure is left out.
    """
    kinds = Counter(
        (case.record.counts.answered, case.first.answered) for case in cases if case.record.counts.answered.runs
    )
    rates = [(first, record.failures / record.runs, number) for (record, first), number in kinds.items()]
    failures = sum(first.failures * number for first, _, number in rates) - 1
    mean = math.fsum(first.runs * rate * number for first, rate, number in rates)
    variance = math.fsum(first.runs * rate * (1 - rate) * number for first, rate, number in rates)
    if variance <= 0.0 or failures <= mean:
        return ()
    rare = failures - (mean - variance)
    likely = [(1.0, math.log(max(days.calm, _LEAST_SHARE)) + _log_rare(rare, variance))]
    likely += [(factor, math.log(weight) + _log_rare(rare, variance * factor)) for factor, weight in days.factors]
    most = max(log for _, log in likely)
    weights = [0.0] * len(STEPS)
    for factor, log in likely:
        weights[_nearest(factor)] += math.exp(log - most)
    whole = math.fsum(weights)
    shares = [(step, weight / whole) for step, weight in zip(STEPS, weights, strict=True)]
    day = tuple((step, share) for step, share in shares if share >= _LEAST_SHARE)
    return day if any(step > 1.0 for step, _ in day) else ()


def _nearest(factor: float) -> int:
    return min(range(len(STEPS)), key=lambda at: abs(math.log(STEPS[at] / factor)))


def _log_rare(failures: float, mean: float) -> float:
    """Of so many rare events, but for what does not depend on the mean."""
    return failures * math.log(mean) - mean


def bad_days(days: Sequence[RunDay]) -> tuple[RunDay, ...]:
    """The runs that failed far more than most: what people are told of bad days. It decides nothing."""
    if not days or max(day.failures for day in days) > _MOST_FAILURES:
        return ()
    level = median(day.failures / max(day.expected, _NO_VARIANCE) for day in days)
    return tuple(day for day in days if _is_bad(day, max(day.expected * level, _NO_VARIANCE)))


def _is_bad(day: RunDay, usual: float) -> bool:
    enough = day.failures >= max(_BAD_FAILURES, _BAD * usual)
    return enough and _at_least(day.failures, usual) <= _BAD_LIMIT


def _log_chance(day: RunDay, level: float, spread: float) -> float:
    """Of its failures as rare events around the mean: what varies less than rare events do is shifted to them."""
    failures = max(day.failures - day.expected + day.variance, 0.0)
    mean = max(day.variance, _NO_VARIANCE) * level
    if not spread:
        return failures * math.log(mean) - mean - math.lgamma(failures + 1)
    shape = 1 / spread
    orders = math.lgamma(failures + shape) - math.lgamma(shape) - math.lgamma(failures + 1)
    return orders + shape * math.log(shape / (shape + mean)) + failures * math.log(mean / (shape + mean))


def _shared_out(weights: Sequence[float], runs: int) -> tuple[tuple[float, float], ...]:
    """The weights of the spreads as weights of factors: of one more run, beside the mean of so many (a gamma each)."""
    sums = [0.0] * len(_FACTORS)
    for spread, weight in zip(SPREADS[1:], weights[1:], strict=True):
        for at, share in enumerate(_gamma(spread * (1 + 1 / runs))):
            sums[at] += weight * share
    kept = [(factor, weight) for factor, weight in zip(_FACTORS, sums, strict=True) if weight > _LEAST_WEIGHT]
    return tuple(kept)


@lru_cache(maxsize=512)
def _gamma(variance: float) -> tuple[float, ...]:
    shape = 1 / variance
    logs = [shape * (math.log(factor) - factor) for factor in _FACTORS]
    most = max(logs)
    densities = [math.exp(one - most) for one in logs]
    whole = math.fsum(densities)
    return tuple(one / whole for one in densities)


def _at_least(number: float, mean: float) -> float:
    """The chance of at least so many rare events; `number` need not be whole (the incomplete gamma function)."""
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


def _log_sum(logs: Sequence[float]) -> float:
    most = max(logs)
    return most + math.log(math.fsum(math.exp(one - most) for one in logs))


NOTHING_KNOWN: Final = learned_days(())
"""Of a branch without a record."""
