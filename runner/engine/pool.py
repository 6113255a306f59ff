"""A bounded pool of workers over one list of jobs, on one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

Job = TypeVar("Job")

START_GAP_S: Final = 0.0005
"""Least time between two starts, in seconds: about what this process needs for one case.

Jobs that start in the same moment come back in the same moment and then wait for each other here, which would be
measured as the target's latency (10 ms at 50 in flight, and it never dissolves by itself).
"""


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
    """Keeps starts apart. Costs nothing while they are apart by themselves."""

    def __init__(self) -> None:
        self._clock = asyncio.get_running_loop().time
        self._latest = 0.0

    async def next(self) -> None:
        """Return when it is this caller's turn."""
        now = self._clock()
        self._latest = max(now, self._latest + START_GAP_S)
        if self._latest > now:
            await asyncio.sleep(self._latest - now)
