"""Bounded pool of workers over one list of jobs, on one event loop."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextvars import ContextVar
from typing import Any, Final, Generic, TypeVar

Job = TypeVar("Job")
_Result = TypeVar("_Result")

RESUME_FIRST_FROM: Final = 10
"""Jobs in progress from which on waiting jobs come before new ones, so that begun jobs end."""
GAP_FACTOR: Final = 1.3
"""Factor on the least gap between starts: at the least gap, they coincide again at the next delay."""
MAX_GAP_S: Final = 0.005
CPU_CHECK_SPACING: Final = 16
"""Starts after which the used CPU time is read less and less often: a reading costs as much as a tenth of a case, and
the mean changes less and less."""
BUSY_CPU_SHARE: Final = 0.8
"""Share of the time that this process computes, from which on it is itself what jobs wait for."""


_CURRENT_SLOTS: ContextVar[_WorkerSlots[Any] | None] = ContextVar("places", default=None)
"""Slots of the pool in which the current task runs."""


async def run_jobs(
    jobs: Iterable[Job], concurrency: int, work: Callable[[Job], Awaitable[None]], stop: asyncio.Event
) -> None:
    """Run `work` on every job, at most `concurrency` at once, started in order.

    Work that gives way (`yield_slot`) is not at work meanwhile, and another job is begun in its place.

    Returns when all are done, or at once when `stop` is set: what is in flight is cancelled then, because an
    unfinished case is not a result. An exception from `work` is a defect; it ends the pool and is raised.
    """
    places = _WorkerSlots(jobs, work, stop, concurrency)
    token = _CURRENT_SLOTS.set(places)

    async def cancel_when_stopped() -> None:
        await stop.wait()
        places.cancel()

    watch = asyncio.create_task(cancel_when_stopped())
    try:
        for _ in range(concurrency):
            places.start_worker()
        # an exception that is no cancellation comes out of here, and the finally below ends the others
        await places.wait_for_workers()
    except asyncio.CancelledError:
        if not stop.is_set():
            raise
    finally:
        _CURRENT_SLOTS.reset(token)
        places.cancel()
        watch.cancel()
        await asyncio.gather(*places.workers, watch, return_exceptions=True)


async def await_unless_stopped(work: Coroutine[Any, Any, _Result], stop: asyncio.Event) -> _Result | None:
    """Return the result of `work`; None if `stop` is set first, which cancels it."""
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for task in (working, stopping):
            task.cancel()
        await asyncio.gather(working, stopping, return_exceptions=True)


async def yield_slot(seconds: float = 0.0) -> None:
    """Let other jobs of the pool go first, and return when it is this one's turn again, after so long at the earliest.

    First come jobs that have not begun, as far as not too many are under way, then those that gave way before.
    """
    places = _CURRENT_SLOTS.get()
    if places is None:
        await asyncio.sleep(seconds)
    else:
        await places.yield_slot(seconds)


class _WorkerSlots(Generic[Job]):
    """Limited slots for concurrent work. A worker can yield its slot to another and get one back later."""

    def __init__(
        self, jobs: Iterable[Job], work: Callable[[Job], Awaitable[None]], stop: asyncio.Event, number: int
    ) -> None:
        self.workers: set[asyncio.Task[None]] = set()
        self._queue = iter(jobs)
        self._work = work
        self._stop = stop
        self._start = _StartPacer()
        self._ended = asyncio.Event()
        """Set when a worker is done, also one that was begun after the wait for the others."""
        self._under_way = 0
        self._most = max(number, RESUME_FIRST_FROM)
        self._free = 0
        """Free slots: no job was left to start."""
        self._back: deque[asyncio.Future[None]] = deque()
        """Jobs that gave up their slot and may continue, in order."""

    def start_worker(self) -> None:
        worker = asyncio.create_task(self._run_worker())
        worker.add_done_callback(lambda _: self._ended.set())
        self.workers.add(worker)

    def cancel(self) -> None:
        """Cancel all workers, and begin no more; a worker may finish at that moment.

        `asyncio.wait_for` has its answer then, and says nothing of the cancellation.
        """
        self._queue = iter(())
        self._back.clear()
        for worker in self.workers:
            worker.cancel()

    async def wait_for_workers(self) -> None:
        """Wait for the last worker. Raises the exception of a worker."""
        while self.workers:
            await self._ended.wait()
            self._ended.clear()
            finished = {worker for worker in self.workers if worker.done()}
            self.workers -= finished
            for worker in finished:
                worker.result()

    async def yield_slot(self, seconds: float) -> None:
        self.start_worker()
        if seconds:
            await asyncio.sleep(seconds)
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._back.append(turn)
        await turn

    async def _run_worker(self) -> None:
        while not self._hand_over_slot():
            try:
                job = next(self._queue)
            except StopIteration:
                if not self._hand_over_slot(late=True):
                    self._free += 1
                return
            self._under_way += 1
            await self._start.wait_turn()
            if self._stop.is_set():
                return
            await self._work(job)
            self._under_way -= 1

    def _hand_over_slot(self, *, late: bool = False) -> bool:
        """Hand the slot to a worker that yielded, if enough jobs run or none is left; return whether one took it."""
        if not self._back or not (late or self._under_way >= self._most):
            return False
        self._back.popleft().set_result(None)
        return True


class _StartPacer:
    """Pacer of starts: jobs that start together finish together, and waiting here would count as target latency."""

    # such waits took 10 ms with 50 concurrent jobs, and they never resolve by themselves
    def __init__(self) -> None:
        self._clock = asyncio.get_running_loop().time
        self._began = self._latest = self._clock()
        self._used_before = time.process_time()
        self._used = 0.0
        self._starts = 0
        self._next_look = 1

    async def wait_turn(self) -> None:
        current_s = self._clock()
        self._starts += 1
        if self._starts >= self._next_look:
            self._used = time.process_time() - self._used_before
            self._next_look = self._starts + 1 + self._starts // CPU_CHECK_SPACING
        used = self._used
        if used > BUSY_CPU_SHARE * (current_s - self._began):
            return  # the process is the bottleneck, or has only just begun: keeping starts apart would only cost more
        self._latest = max(current_s, self._latest + min(GAP_FACTOR * used / self._starts, MAX_GAP_S))
        if self._latest > current_s:
            await asyncio.sleep(self._latest - current_s)
