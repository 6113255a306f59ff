"""The pool: bounded, in order, stoppable, honest about defects."""

import asyncio
from contextlib import suppress

import pytest

from eval_gate.engine.worker_pool import RESUME_FIRST_FROM, run_jobs, yield_slot


def test_pool__many_jobs__at_most_so_many_at_once() -> None:
    now = most = 0

    async def work(job: int) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.001)
        now -= 1

    asyncio.run(run_jobs(range(30), 4, work, asyncio.Event()))
    assert most == 4


def test_pool__one_worker__keeps_the_order() -> None:
    seen = []

    async def work(job: int) -> None:
        await asyncio.sleep(0)
        seen.append(job)

    asyncio.run(run_jobs(range(10), 1, work, asyncio.Event()))
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
            await run_jobs(range(100), 2, work, stop)

    asyncio.run(main())
    assert len(begun) <= 5
    assert set(ended) <= {0, 1, 2}


def test_pool__defect_in_the_work__ends_the_pool_and_is_raised() -> None:
    async def work(job: int) -> None:
        if job == 2:
            raise ZeroDivisionError
        await asyncio.sleep(0 if job < 2 else 60)

    with pytest.raises(ZeroDivisionError):
        asyncio.run(asyncio.wait_for(run_jobs(range(5), 3, work, asyncio.Event()), 5))


def test_pool__cancelled_from_outside__is_cancelled() -> None:
    async def main() -> None:
        async def work(job: int) -> None:
            await asyncio.sleep(60)

        async with asyncio.timeout(0.01):
            await run_jobs(range(5), 2, work, asyncio.Event())

    with pytest.raises(TimeoutError):
        asyncio.run(main())


def steps_of(jobs: int, concurrency: int, steps: int = 3, seconds: float = 0.0) -> list[tuple[int, int]]:
    """Job and step, in the order in which they were done, of jobs that give way between two steps."""
    seen, now = [], 0

    async def work(job: int) -> None:
        nonlocal now
        for step in range(steps):
            if step:
                now -= 1
                await yield_slot(seconds)
                now += 1
            else:
                now += 1
            assert now <= concurrency
            seen.append((job, step))
            await asyncio.sleep(0)
        now -= 1

    async def main() -> None:
        async with asyncio.timeout(10):
            await run_jobs(range(jobs), concurrency, work, asyncio.Event())

    asyncio.run(main())
    return seen


def test_pool__jobs_give_way__the_others_come_between() -> None:
    assert steps_of(3, 1) == [(job, step) for step in range(3) for job in range(3)]


def test_pool__a_job_alone_gives_way__goes_on_at_once() -> None:
    assert steps_of(1, 4) == [(0, 0), (0, 1), (0, 2)]


@pytest.mark.parametrize("concurrency", [1, 3, 20])
def test_pool__many_jobs_give_way__all_are_done_and_not_too_many_are_under_way(concurrency) -> None:
    seen = steps_of(60, concurrency)
    assert sorted(seen) == [(job, step) for job in range(60) for step in range(3)]
    begun, ended, most = 0, 0, 0
    for _, step in seen:
        begun, ended = begun + (step == 0), ended + (step == 2)
        most = max(most, begun - ended)
    assert most <= max(concurrency, RESUME_FIRST_FROM) + 1


@pytest.mark.slow
def test_pool__jobs_give_way_for_a_time__all_of_them_wait_at_once() -> None:
    steps = []

    async def work(job: int) -> None:
        steps.append(("waits", job))
        await yield_slot(0.5)
        steps.append(("is back", job))

    asyncio.run(run_jobs(range(40), 1, work, asyncio.Event()))
    assert steps == [(what, job) for what in ("waits", "is back") for job in range(40)]


def test_pool__stopped_while_a_job_gives_way__ends_at_once() -> None:
    async def main() -> None:
        stop = asyncio.Event()

        async def work(job: int) -> None:
            asyncio.get_running_loop().call_later(0.01, stop.set)
            await yield_slot(600)

        async with asyncio.timeout(5):
            await run_jobs(range(3), 1, work, stop)

    asyncio.run(main())


def test_pool__defect_after_another_gave_way__is_raised() -> None:
    async def work(job: int) -> None:
        if job:
            raise ZeroDivisionError
        await yield_slot()
        await asyncio.sleep(60)

    async def main() -> None:
        async with asyncio.timeout(5):
            await run_jobs(range(2), 1, work, asyncio.Event())

    with pytest.raises(ZeroDivisionError):
        asyncio.run(main())


def test_pool__work_is_done_when_it_is_cancelled__nobody_who_gave_way_goes_on() -> None:
    """What waits for an answer has it in the moment in which the run is stopped, and overhears being cancelled."""
    went_on = []

    async def main() -> None:
        stop = asyncio.Event()

        async def work(job: int) -> None:
            if job == 0:
                await yield_slot()
                went_on.append(job)
                return
            asyncio.get_running_loop().call_later(0.01, stop.set)
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)

        async with asyncio.timeout(5):
            await run_jobs(range(2), 1, work, stop)

    asyncio.run(main())
    assert went_on == []


def test_pool__defect_while_others_are_done__begins_nothing_more() -> None:
    begun = []

    async def work(job: int) -> None:
        begun.append(job)
        if job == 1:
            raise ZeroDivisionError
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0)

    async def main() -> None:
        async with asyncio.timeout(5):
            await run_jobs(range(9), 2, work, asyncio.Event())

    with pytest.raises(ZeroDivisionError):
        asyncio.run(main())
    assert 1 in begun
    assert set(begun) <= {0, 1}  # on a busy machine the first one may not have begun yet


def test_give_way__outside_of_a_pool__only_waits() -> None:
    asyncio.run(yield_slot())
