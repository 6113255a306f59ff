"""A bounded pool of workers over one list of jobs, on one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

Job = TypeVar("Job")


async def work_through(
    jobs: Iterable[Job], concurrency: int, work: Callable[[Job], Awaitable[None]], stop: asyncio.Event
) -> None:
    """Run `work` on every job, at most `concurrency` at once, started in order.

    Returns when all are done, or at once when `stop` is set: what is in flight is cancelled then, because an
    unfinished case is not a result. An exception from `work` is a defect; it ends the pool and is raised.
    """
    queue = iter(jobs)

    async def worker() -> None:
        for job in queue:
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
