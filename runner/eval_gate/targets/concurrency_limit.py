"""Limit of the requests to one target at the same time: halved when the target refuses, for the rest of the run.

A target that refused once refuses again at the same load. So the limit does not grow back: a run that tries would be
refused again and again, and each refusal uses up a retry of a case.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from eval_gate.targets.base import OVERLOAD_STATUSES, TargetError
from eval_gate.targets.deadline import pause_case_clock
from eval_gate.targets.rate_limit import MAX_PAUSE_S, TOO_MANY_REQUESTS

_MIN_REQUESTS: Final = 1


class ConcurrencyLimiter:
    """Limit of requests in flight to one target. Waiting for a slot does not count toward the time limit of a case."""

    def __init__(self, most: int, *, of_provider: bool = False) -> None:
        """`most`: requests at the same time.

        The pool of workers bounds the requests to an agent, so nothing is limited here before the first refusal. A
        provider of models (`of_provider`) also answers judges, which have no pool: `most` holds from the start. It
        counts all requests together: the time that it asks for (`Retry-After`) holds for all of them.
        """
        self._most = most
        self._limit = most
        self._of_provider = self._is_active = of_provider
        self._in_flight = 0
        self._refusals: Counter[int] = Counter()
        """Number of refused requests by HTTP status."""
        self._not_before = 0.0
        self._changed = asyncio.Condition()

    @property
    def limit(self) -> int:
        """The number of requests at the same time that the target gets now."""
        return self._limit

    @asynccontextmanager
    async def hold_slot(self) -> AsyncIterator[int]:
        """Hold one of the slots, once one is free and a pause is over; yields the limit at its begin."""
        if self._is_active:
            with pause_case_clock():
                await self._wait_for_slot()
        self._in_flight += 1
        try:
            if self._is_active:
                with pause_case_clock():
                    await self._wait_until_allowed()
            yield self._limit
        finally:
            self._in_flight -= 1
            if self._is_active:
                async with self._changed:
                    self._changed.notify_all()

    def note_refusal(self, error: TargetError, limit_at_begin: int) -> bool:
        """Halve the limit if the target refused a request because of its load, which passes.

        `limit_at_begin` is what `hold_slot` yielded for that request. A request that began under a higher limit than
        today's says nothing about today's. Return whether the next try is made under a lower limit than this one.
        """
        if error.status not in OVERLOAD_STATUSES or not error.retryable:  # such as a spent budget, which is a 429 too
            return False
        self._is_active = True
        self._refusals[error.status] += 1
        if limit_at_begin == self._limit:
            self._limit = max(self._limit // 2, _MIN_REQUESTS)
        if self._of_provider and error.retry_after_s:
            now = asyncio.get_running_loop().time()
            self._not_before = max(self._not_before, now + min(error.retry_after_s, MAX_PAUSE_S))
        return self._limit < limit_at_begin

    @property
    def notice(self) -> str | None:
        """What the target refused and what followed, without its name; None if there is nothing to say.

        A single 503 in a run of one case at a time is nothing but the error of its case.
        """
        lowered = self._limit < self._most
        if not (lowered or TOO_MANY_REQUESTS in self._refusals):
            return None
        count = self._refusals.total()
        statuses = " and ".join(map(str, sorted(self._refusals)))
        said = f"answered {statuses} to {count:,} request{'' if count == 1 else 's'}"
        return f"{said}: concurrency was lowered from {self._most} to {self._limit}" if lowered else said

    async def _wait_for_slot(self) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self._in_flight < self._limit)

    async def _wait_until_allowed(self) -> None:
        left = self._not_before - asyncio.get_running_loop().time()
        if left > 0:
            await asyncio.sleep(left)
            await self._wait_until_allowed()  # meanwhile, another request may have been refused
