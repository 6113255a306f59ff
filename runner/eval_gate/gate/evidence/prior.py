"""What is known of a case before it is run: how often it fails for no reason, by its own record and its suite's.

The share of failures of a case is taken as a Beta distribution. Its two numbers read as executions seen before:
so many passes, so many failures. The record of the case is added to them, and the number of failures among the next
executions is then beta-binomial (Pólya's urn; Skellam 1948, Journal of the Royal Statistical Society B 10, 257-261).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from eval_gate.model.grounds import Counts

LEAST_FAILURE_RATE: Final = 0.02
"""No suite is believed to be steadier, however long its record: the next outage is not in it."""
LEAST_STRENGTH: Final = 5.0
MOST_STRENGTH: Final = 30.0
"""In executions. More would let the suite's rate outweigh what a case's own twenty runs say."""
_RATE_WEIGHT: Final = 10.0
_AGAIN_WEIGHT: Final = 5.0
"""How many executions, and how many failures, the prior of an unknown suite is worth beside the suite's own record."""
_BROKEN_AFTER: Final = 3


@dataclass(frozen=True, slots=True)
class Prior:
    """As many passes and failures as if seen before; both above 0."""

    passes: float
    failures: float

    def after(self, record: Counts) -> Prior:
        """With the record of one case added."""
        return Prior(self.passes + record.passes, self.failures + record.failures)

    def moved_to(self, pass_rate: float) -> Prior:
        """As strong a belief in another pass rate, strictly between 0 and 1."""
        strength = self.passes + self.failures
        return Prior(strength * pass_rate, strength * (1 - pass_rate))

    @property
    def pass_rate(self) -> float:
        """The share of passes to be expected, 0 to 1: the mean of the beta distribution."""
        return self.passes / (self.passes + self.failures)

    def log_chance(self, here: Counts) -> float:
        """Natural logarithm of the chance of these results in one given order. All orders have the same."""
        return _log_beta(self.passes + here.passes, self.failures + here.failures) - _log_beta(
            self.passes, self.failures
        )

    def chance_of_failures(self, here: Counts) -> float:
        """The chance of at least so many failures among so many executions: the beta-binomial upper tail."""
        runs = here.runs
        tail = (Counts(passes=runs - failures, failures=failures) for failures in range(here.failures, runs + 1))
        return min(1.0, math.fsum(math.exp(_log_orders(counts) + self.log_chance(counts)) for counts in tail))


UNKNOWN: Final = Prior(9.0, 1.0)
"""Of a suite nobody has seen: a case may fail one time in ten for no reason, worth ten executions."""


def learned(records: Iterable[Counts]) -> Prior:
    """The prior of a suite, from the records of its cases, by moments.

    Two rates tell a suite where everything flakes a little from one where a few cases flake a lot: how often any case
    fails, and how often a case that failed once fails in another run. For a Beta distribution with mean failure rate f
    and strength s the second is g = (f s + 1) / (s + 1), so s = (1 - g) / (g - f) (Skellam 1948).

    Both are mixed with the unknown suite's, so that a short record says little. A case that has failed every time, and
    at least three times, is broken and not flaky: it is left out.
    """
    known = [record for record in records if record.passes or 0 < record.runs < _BROKEN_AFTER]
    executions = sum(record.runs for record in known)
    if not executions:
        return UNKNOWN
    failures = sum(record.failures for record in known)
    repeated = [record for record in known if record.runs > 1]
    chances = sum(record.failures for record in repeated)
    again = math.fsum(record.failures * (record.failures - 1) / (record.runs - 1) for record in repeated)
    rate = (failures + _RATE_WEIGHT * (1 - UNKNOWN.pass_rate)) / (executions + _RATE_WEIGHT)
    rate = max(rate, LEAST_FAILURE_RATE)
    unknown_again = (UNKNOWN.failures + 1) / (UNKNOWN.passes + UNKNOWN.failures + 1)
    rate_again = (again + _AGAIN_WEIGHT * unknown_again) / (chances + _AGAIN_WEIGHT)
    strength = (1 - rate_again) / (rate_again - rate) if rate_again > rate else MOST_STRENGTH
    strength = min(max(strength, LEAST_STRENGTH), MOST_STRENGTH)
    return Prior(strength * (1 - rate), strength * rate)


def _log_beta(first: float, second: float) -> float:
    return math.lgamma(first) + math.lgamma(second) - math.lgamma(first + second)


def _log_orders(counts: Counts) -> float:
    """The logarithm of the number of orders in which these results can come."""
    return math.lgamma(counts.runs + 1) - math.lgamma(counts.passes + 1) - math.lgamma(counts.failures + 1)
