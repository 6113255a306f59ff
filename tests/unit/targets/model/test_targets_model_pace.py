"""How a rate limit slows requests down, and that waiting for it counts against nobody."""

from __future__ import annotations

import asyncio
import time

import pytest

from eval_gate.targets.deadline import collect_waits, track_case_limit
from eval_gate.targets.model.model_client import ConcurrencyLimiter


async def most_at_once(pace: ConcurrencyLimiter, count: int) -> int:
    """How many of so many requests are in flight together."""
    here = most = 0

    async def one() -> None:
        nonlocal here, most
        async with pace.hold_slot():
            here += 1
            most = max(most, here)
            await asyncio.sleep(0.005)
            here -= 1

    await asyncio.gather(*(one() for _ in range(count)))
    return most


def test_pace__no_refusal__all_at_once_and_nothing_to_say() -> None:
    pace = ConcurrencyLimiter(8)
    assert asyncio.run(most_at_once(pace, 20)) == 8
    assert pace.notice is None


@pytest.mark.slow
def test_pace__refused__half_as_many_never_none_and_it_says_so() -> None:
    async def go() -> list[int]:
        pace = ConcurrencyLimiter(8)
        found = []
        for _ in range(6):
            pace.note_refusal(None)
            found.append(await most_at_once(pace, 12))
        assert pace.notice == "the provider limited the rate 6 times (429), concurrent requests were reduced to 1 of 8"
        return found

    assert asyncio.run(go()) == [4, 2, 1, 1, 1, 1]


def test_pace__answers_after_a_refusal__grow_back_to_the_most() -> None:
    async def go() -> int:
        pace = ConcurrencyLimiter(4)
        pace.note_refusal(None)
        for _ in range(40):
            pace.note_success()
        return await most_at_once(pace, 12)

    assert asyncio.run(go()) == 4


@pytest.mark.slow
def test_pace__asked_to_wait__nobody_begins_before_and_no_time_limit_runs() -> None:
    async def go() -> tuple[float, float]:
        pace = ConcurrencyLimiter(2)
        pace.note_refusal(0.3)
        started = time.monotonic()
        with collect_waits() as waits:
            async with asyncio.timeout(0.1) as limit:
                with track_case_limit(limit):
                    async with pace.hold_slot():
                        pass
        return time.monotonic() - started, sum(waits)

    took, waited = asyncio.run(go())
    assert took >= 0.29
    assert waited >= 0.29


def test_pace__cancelled_while_waiting__gives_its_place_back() -> None:
    async def go() -> int:
        pace = ConcurrencyLimiter(1)
        async with pace.hold_slot():
            waiting = asyncio.create_task(most_at_once(pace, 1))
            await asyncio.sleep(0.01)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        return await most_at_once(pace, 3)

    assert asyncio.run(go()) == 1
