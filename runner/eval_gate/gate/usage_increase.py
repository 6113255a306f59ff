"""Increase of latency, cost and tokens of the typical case against the baseline. Pure.

Two runs of the same agent never take equally long, so totals are not compared: one slow case would decide. What counts
is the median over cases of the current value divided by the baseline's, and it counts as too much only when a sign test
is sure that more than half of the cases are above the limit (one in a hundred; Conover, Practical Nonparametric
Statistics, 3.4). With fewer than seven cases nothing can be that sure, and the rule says so instead of guessing.

A value that only the baseline has may be anything now: if the median would be above the limit with endless values, it
is unknown whether the typical case costs too much.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from statistics import median
from typing import Final

from eval_gate.model.comparison import Comparison
from eval_gate.model.execution_usage import measure_execution
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.struct import FrozenStruct

SIGN_TEST_LIMIT: Final = 0.01
"""The accepted chance of calling an increase too much where none is."""


class UsageIncrease(FrozenStruct):
    """Increase of one kind of usage: the median over cases of current divided by baseline value.

    It is infinite if the typical case costs nothing in the baseline and something in this run.
    """

    cases: int
    ratio: float | None
    chance: float
    """Chance of that many cases above the limit if the median is not."""
    exceeds_limit: bool
    """The typical case costs more than allowed, and a sign test is sure of it."""
    missing_cases: int = 0
    """Cases whose cost only the baseline has."""
    unknown: bool = False
    """Whether these cases are so numerous that the typical case may exceed the limit or not."""


UsagePairs = tuple[tuple[float, float | None], ...]
"""The baseline's and the current value of every case that both runs have; None if this run has no value."""


def compute_increase(pairs: UsagePairs, most: float) -> UsageIncrease:
    """Whether the typical case costs more than `most` (0.2 is 20 %) above the baseline."""
    ratios = [_compute_ratio(baseline, current) for baseline, current in pairs if current is not None]
    lacking = sum(current is None for _, current in pairs)
    unknown = lacking > 0 and median([*ratios, *[math.inf] * lacking]) > 1 + most
    if not ratios:
        return UsageIncrease(0, None, 1.0, exceeds_limit=False, missing_cases=lacking, unknown=unknown)
    above = sum(ratio > 1 + most for ratio in ratios)
    chance = _compute_sign_test_chance(above, len(ratios))
    typical = median(ratios)
    is_above = typical > 1 + most and chance <= SIGN_TEST_LIMIT
    return UsageIncrease(
        len(ratios), typical, chance, exceeds_limit=is_above, missing_cases=lacking, unknown=unknown and not is_above
    )


def _compute_ratio(baseline: float, current: float) -> float:
    """Compute the usage compared with the baseline: infinity if something that used nothing now uses something."""
    if baseline > 0:
        return current / baseline
    return math.inf if current > 0 else 1.0


def _compute_sign_test_chance(above: int, cases: int) -> float:
    """Compute the chance of at least `above` heads in `cases` throws of a fair coin."""
    return float(Fraction(sum(math.comb(cases, heads) for heads in range(above, cases + 1)), 2**cases))


def pair_values(
    comparison: Comparison, run: RunResult, baseline: RunResult, measure: Callable[[CaseResult], float | None]
) -> UsagePairs:
    """Pair the values of every case that both runs scored with the same fingerprint, as `measure` has them.

    A case with a recorded response took nothing, and has no current value.
    """
    new, old = run.index_cases(), baseline.index_cases()
    both = (one.key for one in comparison.changes if one.change.is_compared and one.key in new and one.key in old)
    measured = ((measure(old[key]), measure(new[key]), new[key].details.replayed) for key in both)
    return tuple(
        (old_value, value)
        for old_value, value, replayed in measured
        if old_value is not None and (value is not None or not replayed)
    )


def get_latency_ms(case: CaseResult) -> float | None:
    """Milliseconds of one execution; None where unknown, and of a replayed answer, which took none."""
    return None if case.details.replayed else measure_execution(case).duration_ms or None


def get_cost_usd(case: CaseResult) -> float | None:
    """US dollars of one execution, judges left out; None where unknown or replayed."""
    return None if case.details.replayed else measure_execution(case).cost_usd


def count_tokens(case: CaseResult) -> float | None:
    """Tokens of one execution, both ways; None where unknown."""
    usage = measure_execution(case).usage
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    return usage.input_tokens + usage.output_tokens or None
