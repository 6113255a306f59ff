"""The pool: bounded, in order, stoppable, honest about defects."""

import asyncio

import pytest

from eval_gate.engine.pool import work_through


def test_pool__many_jobs__at_most_so_many_at_once() -> None:
    now = most = 0

    async def work(job: int) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.001)
        now -= 1

    asyncio.run(work_through(range(30), 4, work, asyncio.Event()))
    assert most == 4


def test_pool__one_worker__keeps_the_order() -> None:
    seen = []

    async def work(job: int) -> None:
        await asyncio.sleep(0)
        seen.append(job)

    asyncio.run(work_through(range(10), 1, work, asyncio.Event()))
    assert seen == list(range(10))


def test_pool__stopped__cancels_what_is_in_flight_and_starts_nothing_more() -> None:
    begun, ended = [], []

    async def main() -> None:
        stop = asyncio.Event()

        async def work(job: int) -> None:
            begun.append(job)
            if job == 3:
                stop.set()
            await asyncio.sleep(0 if job < 3 else 60)
            ended.append(job)

        async with asyncio.timeout(5):
            await work_through(range(100), 2, work, stop)

    asyncio.run(main())
    assert len(begun) <= 5
    assert set(ended) <= {0, 1, 2}


def test_pool__defect_in_the_work__ends_the_pool_and_is_raised() -> None:
    async def work(job: int) -> None:
        if job == 2:
            raise ZeroDivisionError
        await asyncio.sleep(0 if job < 2 else 60)

    with pytest.raises(ZeroDivisionError):
        asyncio.run(asyncio.wait_for(work_through(range(5), 3, work, asyncio.Event()), 5))


def test_pool__cancelled_from_outside__is_cancelled() -> None:
    async def main() -> None:
        async def work(job: int) -> None:
            await asyncio.sleep(60)

        async with asyncio.timeout(0.01):
            await work_through(range(5), 2, work, asyncio.Event())

    with pytest.raises(TimeoutError):
        asyncio.run(main())
