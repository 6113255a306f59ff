"""Chance of the executions of one case in one run, which share a part of the case's variance.

The rate of a case in one run is drawn from a Beta distribution around the case's own rate. How far it spreads is the
share of the run: the correlation of two executions in it (beta-binomial; Skellam 1948, Journal of the Royal Statistical
Society B 10, 257-261). Trials share it. Re-runs come later: they belong to the same draw with some chance, and else are
independent of it and of each other, so that two shares say everything (`RunShare`). With a share of 0 executions are
independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from eval_gate.model.evidence import NO_EXECUTIONS, Counts, RunShare

RunShares = tuple[RunShare, ...]
"""Possible shares with their weights, which sum to 1; empty if executions are independent."""
_NO_CHANCE: Final = -1e9


class ExecutionGroup(NamedTuple):
    """Passes and failures of one case in one run: of its first executions, and of its re-runs."""

    passes: int
    failures: int
    rerun_passes: int = 0
    rerun_failures: int = 0

    @classmethod
    def from_counts(cls, first: Counts, reruns: Counts = NO_EXECUTIONS) -> ExecutionGroup:
        """Build the group of these counts."""
        return cls(first.passes, first.failures, reruns.passes, reruns.failures)


def compute_trial_share(shares: RunShares) -> float:
    """Compute the mean correlation of two first executions of a case in one run."""
    return math.fsum(one.trials * one.weight for one in shares)


def compute_log_group_chance(rate: float, group: ExecutionGroup, shares: RunShares) -> float:
    """Natural logarithm of the chance of one order of these results, of a case that fails at `rate` (0 to 1)."""
    passes, failures, rerun_passes, rerun_failures = group
    if not shares or not 0.0 < rate < 1.0:
        return compute_log_run_chance(rate, 0.0, passes + rerun_passes, failures + rerun_failures)
    logs = []
    for one in shares:
        same_draw = one.reruns / one.trials if one.trials > 0 else 0.0
        if same_draw > 0.0:
            joint = compute_log_run_chance(rate, one.trials, passes + rerun_passes, failures + rerun_failures)
            logs.append(math.log(one.weight * same_draw) + joint)
        if same_draw < 1.0:
            separate = compute_log_run_chance(rate, one.trials, passes, failures)
            separate += compute_log_run_chance(rate, 0.0, rerun_passes, rerun_failures)
            logs.append(math.log(one.weight * (1.0 - same_draw)) + separate)
    return sum_logs(logs)


def sum_logs(logs: Sequence[float]) -> float:
    """Compute the logarithm of the sum of numbers that have these logarithms."""
    most = max(logs)
    return most + math.log(math.fsum(math.exp(log - most) for log in logs))


def compute_log_run_chance(rate: float, share: float, passes: int, failures: int) -> float:
    """Compute the logarithm of the chance of one order of results that all share one draw of the rate."""
    if not 0.0 < rate < 1.0:
        return 0.0 if not (passes if rate else failures) else _NO_CHANCE
    if share <= 0.0 or passes + failures < 2:
        return passes * math.log1p(-rate) + failures * math.log(rate)
    worth = (1.0 - share) / share
    return (
        _compute_log_rise(worth * rate, failures)
        + _compute_log_rise(worth * (1.0 - rate), passes)
        - _compute_log_rise(worth, passes + failures)
    )


def _compute_log_rise(start: float, steps: int) -> float:
    return math.lgamma(start + steps) - math.lgamma(start) if steps else 0.0
