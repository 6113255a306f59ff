"""Whether the score of one case fell by more than it varies by itself.

A judge does not give the same grade twice. How much the score of one case varies from run to run is taken from its own
history and those of all graded cases: the more the cases differ in that, the more its own counts (a variance that is
moderated as by Smyth 2004, Statistical Applications in Genetics and Molecular Biology 3, 3). A score here is held
against the mean of its own history: Student's t for one more observation, one-sided.

After one run nothing is known of that. Then it is taken from how all scores differ from that run, by their median,
which a few cases that fell do not move. It takes for granted that most cases vary equally and are as they were.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final, NamedTuple

from eval_gate.model.comparison import ScoreHistory

MIN_DIFFERENCES: Final = 10
"""Fewest cases that show how scores vary if there is one run of history; with fewer, every fall counts as it is."""
_NORMAL: Final = 1.4826
"""The standard deviation of a normal distribution, in medians of the distances from its middle."""
_EFFICIENCY: Final = 0.37
"""How much such a median knows, compared with the standard deviation of as many values."""
_NO_VARIANCE: Final = 1e-12
"""A history's scores have four decimals: what varies by less than this does not vary."""
_MIN_PRIOR_FREE: Final = 4.0
_STEPS: Final = 300
_TINY: Final = 1e-300
_CLOSE: Final = 1e-12


class ScoreVariance(NamedTuple):
    """Variance of one case's scores: sum of squares and degrees of freedom."""

    squares: float
    free: int


class PooledVariance(NamedTuple):
    """Mean variance over all graded cases, and how much it says of any single case.

    The latter is in degrees of freedom too: infinite if all cases have the same variance.
    """

    variance: float = 0.0
    free: int = 0
    prior_degrees: float = math.inf

    def estimate_spread(self, own: ScoreVariance) -> tuple[float, int]:
        """Estimate the standard deviation of one case's scores from run to run, and its degrees of freedom.

        0 degrees of freedom mean that nothing is known.
        """
        if math.isinf(self.prior_degrees) or not self.free:
            return math.sqrt(self.variance), self.free
        free = self.prior_degrees + own.free
        variance = (self.prior_degrees * self.variance + own.squares) / free
        return math.sqrt(variance), max(min(int(free), self.free), 1)


def pool_variances(cases: Iterable[ScoreVariance]) -> PooledVariance:
    """Pool the score variances of all graded cases; the order of the cases does not matter."""
    usable_cases = [case for case in cases if case.free]
    free = sum(case.free for case in usable_cases)
    if not free:
        return PooledVariance()
    variance = math.fsum(case.squares for case in usable_cases) / free
    if variance < _NO_VARIANCE:
        return PooledVariance(0.0, free)
    # of normal scores the square of a variance is, on average, (free + 2) / free of what it would be without chance
    square = math.fsum(case.squares**2 / (case.free + 2) for case in usable_cases) / free
    uneven = square / variance**2 - 1
    return PooledVariance(variance, free, _MIN_PRIOR_FREE + 2 / uneven if uneven > 0 else math.inf)


def estimate_difference_spread(differences: Sequence[float]) -> tuple[float, int]:
    """Estimate the standard deviation of scores, and its degrees of freedom, from one difference per case.

    Each difference is the one between a case's score in this run and its only score in the history. Both values are
    0 if there are too few differences.
    """
    if len(differences) < MIN_DIFFERENCES:
        return 0.0, 0
    middle = median(differences)
    off = _NORMAL * median(abs(one - middle) for one in differences)
    return off / math.sqrt(2), int(_EFFICIENCY * (len(differences) - 1))


def compute_drop_chance(scores: ScoreHistory, current: float) -> float | None:
    """Compute the chance of a score up to `current` if nothing has changed; None if its variation is unknown."""
    if scores.degrees_of_freedom < 1:
        return None
    drop = scores.mean - current
    if scores.spread <= 0:
        return 1.0 if drop <= 0 else 0.0
    error = scores.spread * math.sqrt(1 + 1 / scores.runs)
    return compute_student_tail(drop / error, scores.degrees_of_freedom)


def compute_student_tail(t: float, free: int) -> float:
    """Compute the chance that a Student variable with `free` degrees of freedom is at least `t`.

    It uses the regularised incomplete beta function (Abramowitz and Stegun 26.5.27, 26.7.1).
    """
    half = _compute_incomplete_beta(free / 2, 0.5, free / (free + t * t)) / 2
    return half if t >= 0 else 1 - half


def _compute_incomplete_beta(a: float, b: float, x: float) -> float:
    if x <= 0 or x >= 1:
        return min(max(x, 0.0), 1.0)
    if x > (a + 1) / (a + b + 2):
        return 1 - _compute_incomplete_beta(b, a, 1 - x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) * _compute_continued_fraction(a, b, x) / a


def _compute_continued_fraction(a: float, b: float, x: float) -> float:
    """Compute the continued fraction of the incomplete beta function with Lentz's method."""
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > _TINY else _TINY)
    value = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 + term * d
            d = 1 / (d if abs(d) > _TINY else _TINY)
            c = 1 + term / c
            c = c if abs(c) > _TINY else _TINY
            value *= c * d
        if abs(c * d - 1) < _CLOSE:
            break
    return value
