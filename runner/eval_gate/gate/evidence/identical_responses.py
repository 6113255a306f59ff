"""Re-runs whose responses equal the first failure's byte for byte; reported, counted as usual.

Three things look like that: a cache in front of the model, an agent without chance in it (temperature 0, a seed), and a
case that is dead and repeats its words. They look the same from outside. Not counting such re-runs once lost three dead
cases for each false alarm that it avoided: behind a cache the gate is the plain rule either way, and only a re-run that
passes the cache helps (`targets.isolation`).
"""

from __future__ import annotations

from typing import Final

from eval_gate.model.evidence import Repeats
from eval_gate.model.execution import Status
from eval_gate.model.result import CaseResult

CACHE_SPEEDUP: Final = 5
"""Speed-up from which a repeated response is from a cache."""
MIN_FIRST_MS: Final = 200
"""Shortest time of a first response: a faster one may have been slow for any reason, such as a busy machine."""


def find_repeats(case: CaseResult) -> Repeats | None:
    """Describe the re-runs of a case if all of them repeat the first failure; else return None.

    A case that ran first may have waited for the agent to start, so its first execution is slow without any cache.
    """
    trials = case.list_executions()
    first, reruns = trials[: len(trials) - case.reruns], trials[len(trials) - case.reruns :]
    failed = next((one for one in first if one.status is Status.FAILED), None)
    if not reruns or failed is None or any(one.status is Status.PASSED for one in first):
        return None
    if not all(one.repeats_first_failure for one in reruns):
        return None
    slowest = max(one.duration_ms for one in reruns)
    cached = not case.ran_first and failed.duration_ms >= MIN_FIRST_MS and slowest * CACHE_SPEEDUP < failed.duration_ms
    return Repeats(slowest_ms=slowest, first_ms=failed.duration_ms, cached=cached)
