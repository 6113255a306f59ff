"""Whether a score fell by more than it varies by itself.

A judge does not give the same grade twice. How much the grades of one case vary from run to run is taken from the
records of all graded cases together (the pooled standard deviation), and a score here is held against the mean of its
own record: Student's t for one more observation, one-sided.
"""

from __future__ import annotations

import math
from typing import Final

from eval_gate.model.comparison import ScoreRecord

_STEPS: Final = 300
_TINY: Final = 1e-300
_CLOSE: Final = 1e-12


def chance_of_drop(record: ScoreRecord, here: float) -> float | None:
    """The chance of a score at least so low when nothing has changed; None where nothing is known of how it varies."""
    if record.free < 1:
        return None
    drop = record.mean - here
    if record.spread <= 0:
        return 1.0 if drop <= 0 else 0.0
    error = record.spread * math.sqrt(1 + 1 / record.runs)
    return student_tail(drop / error, record.free)


def student_tail(t: float, free: int) -> float:
    """The chance that a Student variable with so many degrees of freedom is at least `t`.

    By the regularised incomplete beta function (Abramowitz and Stegun 26.5.27, 26.7.1).
    """
    half = _incomplete_beta(free / 2, 0.5, free / (free + t * t)) / 2
    return half if t >= 0 else 1 - half


def _incomplete_beta(a: float, b: float, x: float) -> float:
    if x <= 0 or x >= 1:
        return min(max(x, 0.0), 1.0)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) * _fraction(a, b, x) / a


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by Lentz's method."""
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
