"""A bounded pool of workers over one list of jobs, on one event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

Job = TypeVar("Job")

ROOM: Final = 1.3
"""How much further apart than the least: what is just far enough meets again at the next hiccup."""
MOST_GAP_S: Final = 0.005
LOOKS: Final = 16
"""After so many starts, what they have cost is looked up ever more seldom: to ask the system costs as much as a tenth
of a case, and the mean changes less and less."""
BUSY: Final = 0.8
"""Share of the time that this process computes, from which on it is itself what jobs wait for."""


async def work_through(
    jobs: Iterable[Job], concurrency: int, work: Callable[[Job], Awaitable[None]], stop: asyncio.Event
) -> None:
    """Run `work` on every job, at most `concurrency` at once, started in order.

    Returns when all are done, or at once when `stop` is set: what is in flight is cancelled then, because an
    unfinished case is not a result. An exception from `work` is a defect; it ends the pool and is raised.
    """
    queue = iter(jobs)
    start = _Pace()

    async def worker() -> None:
        for job in queue:
            await start.next()
            if stop.is_set():
                return
            await work(job)

    async def cancel_when_stopped(workers: list[asyncio.Task[None]]) -> None:
        await stop.wait()
        for task in workers:
            task.cancel()

    workers = [asyncio.create_task(worker()) for _ in range(concurrency)]
    watch = asyncio.create_task(cancel_when_stopped(workers))
    try:
        # an exception that is no cancellation comes out of here, and the finally below ends the others
        await asyncio.gather(*workers)
    except asyncio.CancelledError:
        if not stop.is_set():
            raise
    finally:
        for task in workers:
            task.cancel()
        watch.cancel()
        await asyncio.gather(*workers, watch, return_exceptions=True)


class _Pace:
    """Keeps starts as far apart as this process needs for one job. Costs nothing while they are so by themselves.

    Jobs that start in the same moment come back in the same moment and then wait for each other here, which would be
    measured as the target's latency (10 ms at 50 in flight, and it never dissolves by itself).
    """

    def __init__(self) -> None:
        self._clock = asyncio.get_running_loop().time
        self._began = self._latest = self._clock()
        self._used_before = time.process_time()
        self._used = 0.0
        self._starts = 0
        self._next_look = 1

    async def next(self) -> None:
        """Return when it is this caller's turn."""
        now = self._clock()
        self._starts += 1
        if self._starts >= self._next_look:
            self._used = time.process_time() - self._used_before
            self._next_look = self._starts + 1 + self._starts // LOOKS
        used = self._used
        if used > BUSY * (now - self._began):
            return  # the process is the bottleneck, or has only just begun: keeping starts apart would only cost more
        self._latest = max(now, self._latest + min(ROOM * used / self._starts, MOST_GAP_S))
        if self._latest > now:
            await asyncio.sleep(self._latest - now)
