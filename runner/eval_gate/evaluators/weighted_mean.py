"""Weighted mean of scores that is 1 only when every counted score is full.

Source: agentv evaluation spec, "Per-evaluator weights in top-level aggregation"; agentv behaviour 6.5.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from eval_gate.evaluators.base import EvaluatorScore

TOLERANCE: Final = 1e-9
"""Rounding error of a full score: 0.1 + 0.2 + 0.7 is 0.9999999999999999."""
_DIGITS: Final = 12
_BELOW_FULL: Final = math.nextafter(1.0, 0.0)


def is_full(score: float) -> bool:
    """Whether a score is 1, but for a rounding error."""
    return score >= 1.0 - TOLERANCE


def reaches_pass_score(score: float, pass_score: float | None) -> bool:
    """Whether a score reaches the pass score that an eval file sets; False if it sets none."""
    return pass_score is not None and score >= pass_score - TOLERANCE


def is_below_full(evaluation: EvaluatorScore) -> bool:
    """Whether this evaluator keeps the mean below 1, or fails the case whatever the mean is."""
    return evaluation.vetoed or not is_full(evaluation.score)


def compute_weighted_mean(weighted: Iterable[tuple[float, float]]) -> float:
    """Return the mean of (weight, score) pairs, or 0 if no weight is above 0.

    Weights are finite and not negative; scores are from 0 to 1. The tolerance applies to each score and never to
    the mean: a failed evaluator of a tiny weight still keeps the mean below 1.
    """
    counted = [(weight, score) for weight, score in weighted if weight > 0]
    if not counted:
        return 0.0
    scores = [score for _, score in counted]
    if all(is_full(score) for score in scores):
        return 1.0
    # scaled by a power of two, which changes no digit: the sum of huge weights stays finite
    exponent = math.frexp(max(weight for weight, _ in counted))[1]
    weights = [math.ldexp(weight, -exponent) for weight, _ in counted]
    products = (weight * score for weight, score in zip(weights, scores, strict=True))
    mean = round(math.fsum(products) / math.fsum(weights), _DIGITS)
    return min(max(mean, min(scores)), max(scores), _BELOW_FULL)
