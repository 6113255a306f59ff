"""How refusals lower the requests in flight for good, and that waiting for a slot counts against nobody."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from eval_gate.targets.base import RetryPolicy, TargetError, TargetFault
from eval_gate.targets.deadline import collect_waits, track_case_limit
from eval_gate.targets.retry import LoadLimiter, Turn, call_with_retries
from tests.support.virtual_time import VirtualTime

QUICK = RetryPolicy(initial_delay_ms=0, max_retries=2)


def refused(status: int = 429, retry_after_s: float | None = None, *, retryable: bool = True) -> TargetError:
    return TargetError(
        f"HTTP {status}", fault=TargetFault.REFUSED, status=status, retryable=retryable, retry_after_s=retry_after_s
    )


def refuse(limiter: LoadLimiter, *errors: TargetError) -> None:
    for error in errors:
        limiter.note_refusal(error, Turn(limiter.limit))


async def most_at_once(limiter: LoadLimiter, count: int) -> int:
    """How many of so many requests are in flight together."""
    here = most = 0

    async def one() -> None:
        nonlocal here, most
        async with limiter.hold_slot():
            here += 1
            most = max(most, here)
            await asyncio.sleep(0.005)
            here -= 1

    await asyncio.gather(*(one() for _ in range(count)))
    return most


class Crowded:
    """A target that answers `room` requests at the same time and refuses the others."""

    def __init__(self, room: int, status: int = 429) -> None:
        self.room, self.status = room, status
        self.here = self.refusals = 0

    async def ask(self) -> str:
        if self.here >= self.room:
            await asyncio.sleep(0)
            self.refusals += 1
            raise refused(self.status)
        self.here += 1
        await asyncio.sleep(0.005)
        self.here -= 1
        return "ok"


async def ask_all(ask: Callable[[], Awaitable[str]], limiter: LoadLimiter, count: int) -> list[str | Exception]:
    """All at the same time, as a pool of that size asks them."""
    asked = [call_with_retries(ask, QUICK, limiter) for _ in range(count)]
    found = await asyncio.gather(*asked, return_exceptions=True)
    return [one if isinstance(one, Exception) else one[0] for one in found]


def test_limiter__no_refusal__nothing_waits_and_nothing_to_say() -> None:
    limiter = LoadLimiter(4)
    assert asyncio.run(most_at_once(limiter, 20)) == 20
    assert limiter.notice is None


def test_limiter__of_a_provider__holds_from_the_start() -> None:
    limiter = LoadLimiter(8, of_provider=True)
    assert asyncio.run(most_at_once(limiter, 20)) == 8
    assert limiter.notice is None


def test_limiter__refused__half_as_many_never_none_and_it_says_so() -> None:
    async def go() -> list[int]:
        limiter = LoadLimiter(7)
        found = []
        for _ in range(4):
            refuse(limiter, refused())
            found.append(await most_at_once(limiter, 12))
        assert limiter.notice == "answered 429 to 4 requests: concurrency was lowered from 7 to 1"
        return found

    assert asyncio.run(go()) == [3, 1, 1, 1]


def test_limiter__responses_after_a_refusal__do_not_raise_it_again() -> None:
    async def go() -> int:
        limiter = LoadLimiter(4)
        refuse(limiter, refused())
        await most_at_once(limiter, 40)
        return await most_at_once(limiter, 12)

    assert asyncio.run(go()) == 2


@pytest.mark.parametrize("status", [429, 503, 529])
def test_limiter__statuses_of_too_much_load__lower_it(status) -> None:
    limiter = LoadLimiter(4)
    refuse(limiter, refused(status))
    assert limiter.limit == 2
    assert limiter.notice == f"answered {status} to 1 request: concurrency was lowered from 4 to 2"


@pytest.mark.parametrize(
    "error", [refused(500), refused(502), refused(429, retryable=False)], ids=["500", "502", "a spent budget"]
)
def test_limiter__other_errors__change_nothing(error) -> None:
    limiter = LoadLimiter(4)
    refuse(limiter, error)
    assert (limiter.limit, limiter.notice) == (4, None)


def test_limiter__several_refused_at_once__are_one_reason_to_lower_it() -> None:
    limiter = LoadLimiter(16)
    begun = Turn(limiter.limit)
    assert [limiter.note_refusal(refused(), begun) for _ in range(5)] == [True] * 5
    assert limiter.limit == 8
    assert not limiter.note_refusal(refused(500), begun)


def test_limiter__one_at_a_time__says_429_and_leaves_503_to_its_case() -> None:
    one = LoadLimiter(1)
    refuse(one, refused(503))
    assert one.notice is None
    refuse(one, refused(429), refused(429))
    assert one.notice == "answered 429 and 503 to 3 requests"


@pytest.mark.parametrize("status", [429, 503])
def test_retries__target_takes_two_at_once__every_request_is_answered_in_the_end(status) -> None:
    async def go() -> tuple[list[str | Exception], int, str | None]:
        target, limiter = Crowded(2, status), LoadLimiter(32)
        found = await ask_all(target.ask, limiter, 32)
        before = target.refusals
        await ask_all(target.ask, limiter, 32)
        return found, target.refusals - before, limiter.notice

    found, later, notice = asyncio.run(go())
    assert found == ["ok"] * 32
    assert later == 0
    assert notice is not None
    assert notice.endswith("lowered from 32 to 2")


def test_retries__target_refuses_everything__ends_after_the_retries_at_the_lowest_limit() -> None:
    async def go() -> tuple[list[str | Exception], int]:
        target, limiter = Crowded(0), LoadLimiter(4)
        found = await ask_all(target.ask, limiter, 1)
        return found, target.refusals

    found, refusals = asyncio.run(go())
    assert isinstance(found[0], TargetError)
    assert refusals == 2 + 1 + QUICK.max_retries  # 4 to 2, 2 to 1, then as the policy says


def test_retries__policy_without_retries__is_not_tried_again_and_still_lowers() -> None:
    async def go() -> tuple[int, int]:
        target, limiter = Crowded(0), LoadLimiter(4)
        with pytest.raises(TargetError):
            await call_with_retries(target.ask, RetryPolicy(max_retries=0), limiter)
        return target.refusals, limiter.limit

    assert asyncio.run(go()) == (1, 2)


def test_limiter__agent_asks_one_case_to_wait__the_others_do_not() -> None:
    async def go() -> list[float]:
        limiter = LoadLimiter(2)
        refuse(limiter, refused(retry_after_s=3_600))
        with collect_waits() as waits:
            assert await most_at_once(limiter, 1) == 1
        return waits

    assert max(asyncio.run(go())) < 60


@pytest.mark.slow
def test_limiter__provider_asks_to_wait__nobody_begins_before_and_no_time_limit_runs(monkeypatch) -> None:
    async def go() -> tuple[float, float]:
        limiter = LoadLimiter(2, of_provider=True)
        refuse(limiter, refused(retry_after_s=0.3))
        started = time.monotonic()
        with collect_waits() as waits:
            async with asyncio.timeout(0.1) as limit:
                with track_case_limit(limit):
                    async with limiter.hold_slot():
                        pass
        return time.monotonic() - started, sum(waits)

    took, waited = VirtualTime(monkeypatch).run(go())
    assert (took, waited) == (pytest.approx(0.3), pytest.approx(0.3))


def test_limiter__cancelled_while_waiting__gives_its_place_back() -> None:
    async def go() -> int:
        limiter = LoadLimiter(1, of_provider=True)
        async with limiter.hold_slot():
            waiting = asyncio.create_task(most_at_once(limiter, 1))
            await asyncio.sleep(0.01)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        return await most_at_once(limiter, 3)

    assert asyncio.run(go()) == 1
