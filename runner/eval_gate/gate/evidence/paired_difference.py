"""Mean difference of paired scores: sign-flip test, interval, and adjustment for several tests. Pure.

If nothing changed, each difference could as well have the other sign. The test counts the assignments of signs whose
sum is as far from zero as the observed one (Fisher's randomization test for pairs). The counts are exact: they are the
coefficients of a product of polynomials, one for each pair (Pagano and Tritchler 1983, "On Obtaining Permutation
Distributions in Polynomial Time"). For scores of 0 and 1 this is McNemar's exact test. Only tables that would take too
long are replaced by the normal distribution of the same variance, with a correction for the steps of the sums.

The interval adds one pair that lost and one that gained, each by the largest difference (Bonett and Price 2012,
"Adjusted Wald Confidence Interval for a Difference of Binomial Proportions Based on Paired Data"; for scores of 0 and 1
it is their interval). Without these pairs the interval of a few pairs is far too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

SCORE_STEPS: Final = 1_000
"""Steps of a score for the test: differences are rounded to a thousandth."""
_TABLE_BITS: Final = 1_000_000
"""Size of the largest exact table: 1,000 pairs of scores of 0 and 1, or about 60 of other scores. Takes 10 ms."""
_NORMAL_QUANTILE: Final = 1.959963984540054
"""97.5 % of a standard normal distribution are below."""


class Interval(NamedTuple):
    """Ends of a 95 % interval."""

    low: float
    high: float


def compute_sign_chance(differences: Sequence[float]) -> float:
    """Compute the two-sided chance of a sum at least as far from zero if each difference could have either sign."""
    steps = [round(one * SCORE_STEPS) for one in differences]
    sizes = [abs(one) for one in steps if one]
    if not sizes:
        return 1.0
    step = math.gcd(*sizes)
    sizes, total = [one // step for one in sizes], abs(sum(steps)) // step
    if not total:
        return 1.0
    if (sum(sizes) + 1) * (len(sizes) + 1) <= _TABLE_BITS:
        return _count_extreme_signs(sizes, total)
    # neighboring sums differ by two steps: the tail begins one step before the observed sum
    return math.erfc((total - 1) / math.sqrt(2 * sum(one * one for one in sizes)))


def _count_extreme_signs(sizes: Sequence[int], total: int) -> float:
    """Compute the share of all assignments of signs whose sum is at least `total`, or at most its negative."""
    # slot `n` of the table counts assignments whose negative differences add up to `n`: at most 2 ** len(sizes)
    slot = len(sizes) + 1
    table = 1
    for size in sizes:
        table += table << size * slot
    slots = (sum(sizes) - total) // 2 + 1  # negative differences that leave a sum of `total` or more
    # dividing by a slot of ones leaves the sum of the slots, as dividing by nine leaves a digit sum
    tail = (table & ((1 << slots * slot) - 1)) % ((1 << slot) - 1)
    return min(2 * tail / (1 << len(sizes)), 1.0)


def compute_interval(differences: Sequence[float]) -> Interval | None:
    """Compute the 95 % interval of the mean difference of scores from 0 to 1; None if no pair differs."""
    largest = max(map(abs, differences), default=0.0)
    if not largest:
        return None
    number = len(differences) + 2
    mean = math.fsum(differences) / number
    variance = (math.fsum(one * one for one in differences) + 2 * largest * largest) / number - mean * mean
    half = _NORMAL_QUANTILE * math.sqrt(variance / number)
    return Interval(max(mean - half, -1.0), min(mean + half, 1.0))


def adjust_chances(chances: Sequence[float]) -> list[float]:
    """Adjust the chances of several tests by Holm's method, in their order.

    If at most the adjusted ones up to 5 % count, one of all tests finds something by chance in at most 5 % of all runs.
    """
    adjusted, highest = [0.0] * len(chances), 0.0
    for rank, at in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        highest = max(highest, min((len(chances) - rank) * chances[at], 1.0))
        adjusted[at] = highest
    return adjusted
