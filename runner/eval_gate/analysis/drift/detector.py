"""Detect a rise in a series of numbers without assumptions about their noise.

Without a change, every order of the runs is equally likely. The alternative, for every place of a possible change:
numbers since are larger more often than those before (Lehmann's alternatives, whose likelihood of an order of ranks has
a closed form, after Savage: once from the smallest number up, which tolerates small ones since, once from the largest
down, which tolerates large ones before). Without a change, each likelihood ratio has mean 1 at every run, and their sum
over all places has the number of runs as its mean (the procedure of Shiryaev and Roberts, with sequential ranks as by
Gordon and Pollak). So the sum reaches a limit c after c runs or more on average.

Savage 1956 (ranks of Lehmann's alternatives) · Gordon and Pollak 1995, "A robust surveillance scheme for stochastically
ordered alternatives" · Shin, Ramdas, Rinaldo, arXiv:2203.03532 ("E-detectors").
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

UPWARD: Final = (0.1, 0.02)
"""From the smallest up: how likely a new number is the next, against an old one."""
DOWNWARD: Final = (3.0, 10.0)
"""The same from the largest down. All of them have equal shares."""
MAX_RUNS_SINCE: Final = 25
"""Newest runs in which a change is looked for. More runs would not detect an older one."""
MIN_RUNS_BEFORE: Final = 2
"""Runs before a change, at least."""
LIKELY_SHARE: Final = 0.1
"""A place is in the range where its ratio is at least this share of the largest."""


class RiseEvidence(NamedTuple):
    """Evidence of a rise. `place` is the index of the first number after the likeliest change.

    The change may be anywhere from `earliest` to `latest`. All are 0 if there are too few numbers.
    """

    total: float
    place: int = 0
    earliest: int = 0
    latest: int = 0


def compute_rise_evidence(numbers: Sequence[float]) -> RiseEvidence:
    """Compute the evidence that the newest numbers are larger than the earlier ones.

    `numbers` is ordered from the oldest to the newest. The newer of two equal numbers counts as the smaller one, so
    equal numbers are never evidence.
    """
    number = len(numbers)
    order = sorted(range(number), key=lambda at: (numbers[at], -at))
    orders = math.lgamma(number + 1)
    ratios = {
        place: sum(math.exp(orders + one) for one in _iter_likelihoods(order, place)) / (len(UPWARD) + len(DOWNWARD))
        for place in range(max(MIN_RUNS_BEFORE, number - MAX_RUNS_SINCE), number)
    }
    if not ratios:
        return RiseEvidence(0.0)
    place = max(ratios, key=lambda at: ratios[at])
    likely = [at for at, ratio in ratios.items() if ratio >= LIKELY_SHARE * ratios[place]]
    return RiseEvidence(sum(ratios.values()), place, min(likely), max(likely))


def _iter_likelihoods(order: Sequence[int], place: int) -> Iterator[float]:
    for weight in UPWARD:
        yield _compute_log_likelihood(order, place, weight)
    for weight in DOWNWARD:
        yield _compute_log_likelihood(order[::-1], place, weight)


def _compute_log_likelihood(order: Sequence[int], place: int, weight: float) -> float:
    """Compute the log-likelihood of this order if the numbers from `place` on are new."""
    new = len(order) - place
    old = place
    logarithm, product = new * math.log(weight), 1.0
    # each next one is drawn from the remaining ones: an old number with weight 1, a new one with `weight`
    for at in order:
        product *= old + weight * new
        if product > 1e250:  # before a float ends
            logarithm -= math.log(product)
            product = 1.0
        if at >= place:
            new -= 1
        else:
            old -= 1
    return logarithm - math.log(product)
