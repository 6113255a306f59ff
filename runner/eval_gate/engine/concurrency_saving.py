"""What a run of one case at a time would have saved with several: computed by replaying its times in a larger pool."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Final

from eval_gate.config.settings import SUGGESTED_CONCURRENCY
from eval_gate.engine.trials import TrialJob
from eval_gate.model.case import CaseKey, EvalCase
from eval_gate.model.run_totals import ConcurrencySaving
from eval_gate.struct import FrozenStruct

MIN_AGENT_S: Final = 10.0
"""Seconds of all executions from which more concurrency saves noticeable time."""
MIN_CASES: Final = 10
"""Cases that depend on no other, below which there is little to run at the same time."""
MIN_SAVED_SHARE: Final = 0.25
"""Share of the run that has to be saved: one long case, or cases that wait for each other, keep most of the time."""


class _TimedExecution(FrozenStruct):
    """Duration of one execution with its scoring, in seconds. Executions of one `chain` run one after the other."""

    seconds: float
    chain: tuple[str, int] | None


class SequentialTimes:
    """Times of executions that ran one at a time because no concurrency is set."""

    def __init__(self) -> None:
        self._pools: list[list[_TimedExecution]] = []
        self._independent_cases: set[CaseKey] = set()

    def begin_pool(self) -> None:
        """Begin a pool of executions: it starts when all executions of the one before are over."""
        self._pools.append([])

    def add(self, job: TrialJob, seconds: float) -> None:
        """Add an execution of the current pool, in the order of their starts."""
        case = job.case
        chain = (case.suite, job.trial) if _holds_folder(case) else None
        if chain is None:
            self._independent_cases.add(case.key)
        self._pools[-1].append(_TimedExecution(seconds, chain))

    def compute_saving(self, wall_s: float) -> ConcurrencySaving | None:
        """Compute what more concurrency would have saved of a run of `wall_s` seconds; None if that is little.

        What is not an execution of a pool, such as re-runs, takes as long as it took.
        """
        spent_s = sum(one.seconds for pool in self._pools for one in pool)
        if spent_s < MIN_AGENT_S or len(self._independent_cases) < MIN_CASES:
            return None
        replayed_s = sum(_simulate_pool(pool, SUGGESTED_CONCURRENCY) for pool in self._pools)
        expected_s = max(wall_s - spent_s, 0.0) + replayed_s
        if expected_s > (1 - MIN_SAVED_SHARE) * wall_s:
            return None
        return ConcurrencySaving(SUGGESTED_CONCURRENCY, wall_s, expected_s)


def _holds_folder(case: EvalCase) -> bool:
    """Whether a case holds the folder of its suite, so that the next one waits for it."""
    return case.dependent or case.uses_files


def _simulate_pool(executions: Iterable[_TimedExecution], concurrency: int) -> float:
    """Seconds that a pool of workers takes for executions that are started in this order.

    An execution that waits for the one before it in its chain keeps its worker, as it does in a run.
    """
    free_at = [0.0] * concurrency
    chains: dict[tuple[str, int], float] = {}
    for one in executions:
        start = heapq.heappop(free_at)
        if one.chain is None:
            end = start + one.seconds
        else:
            chains[one.chain] = end = max(start, chains.get(one.chain, 0.0)) + one.seconds
        heapq.heappush(free_at, end)
    return max(free_at)
