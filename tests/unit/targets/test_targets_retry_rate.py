"""What one shard may ask of a limit that it shares, and what it learns from being refused. Time is simulated."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from eval_gate.targets.base import RetryPolicy, TargetError, TargetFault
from eval_gate.targets.retry import MAX_PAUSE_S, LoadLimiter, RateLimiter, build_shard_limiter, call_with_retries


class Simulated(asyncio.SelectorEventLoop):
    """A loop whose clock stands still while something happens, and else is where the next thing happens."""

    now = 0.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:
            self.now = max(self.now, self._scheduled[0]._when)
        super()._run_once()


def simulated(what: Coroutine[Any, Any, Any]) -> float:
    """Carries it out; how many seconds that took."""
    loop = Simulated()
    try:
        loop.run_until_complete(what)
        return loop.now
    finally:
        loop.close()


class Limited:
    """A server with so many answers a second for everybody together, which are given 50 ms later."""

    def __init__(self, per_second: int, *, says: bool) -> None:
        self.per_second = per_second
        self.says = says
        self.second, self.left = -1, 0
        self.answers: list[int] = []
        self.refused = 0

    async def ask(self, who: int) -> str:
        now = asyncio.get_running_loop().time()
        if int(now) != self.second:
            self.second, self.left = int(now), self.per_second
        await asyncio.sleep(0.05)
        if self.left <= 0:
            self.refused += 1
            after = 1.0 if self.says else None
            raise TargetError("429", fault=TargetFault.REFUSED, status=429, retryable=True, retry_after_s=after)
        self.left -= 1
        self.answers.append(who)
        return "ok"


def paced(rate: RateLimiter) -> LoadLimiter:
    limiter = LoadLimiter()
    limiter.rate = rate
    return limiter


async def shard(server: Limited, who: int, cases: int, at_once: int, rate: RateLimiter) -> None:
    queue, limiter = iter(range(cases)), paced(rate)

    async def worker() -> None:
        for _ in queue:
            await call_with_retries(lambda: server.ask(who), RetryPolicy(), limiter)

    await asyncio.gather(*(worker() for _ in range(at_once)))


@pytest.mark.slow
@pytest.mark.parametrize("says", [True, False], ids=["with Retry-After", "without"])
@pytest.mark.parametrize("shards", [2, 8])
def test_rate__shards_share_a_limit_they_do_not_know__all_are_served_alike_and_it_is_used(shards, says) -> None:
    server, cases = Limited(40, says=says), 600

    async def all_of_them() -> None:
        await asyncio.gather(*(shard(server, who, cases, 10, RateLimiter()) for who in range(shards)))

    took = simulated(all_of_them())
    assert len(server.answers) == shards * cases
    half = server.answers[: len(server.answers) // 2]
    served = [half.count(who) for who in range(shards)]
    assert min(served) * 2 >= max(served), served
    assert server.refused < len(server.answers)
    assert took <= 2 * shards * cases / server.per_second


def test_rate__limit_is_known__each_of_two_begins_half_of_it() -> None:
    rate = build_shard_limiter(120, 2)
    assert rate is not None
    server = Limited(1000, says=True)
    assert simulated(shard(server, 0, 61, 10, rate)) == pytest.approx(60.05)


def test_share__one_machine_and_no_limit__is_no_pace_at_all() -> None:
    assert build_shard_limiter(None, 1) is None
    assert build_shard_limiter(None, 2) is not None


def test_rate__nothing_is_refused__nobody_waits() -> None:
    rate = RateLimiter()
    assert simulated(shard(Limited(1000, says=True), 0, 100, 100, rate)) == pytest.approx(0.05)
    assert rate.notice is None


def test_rate__refused_for_good__is_tried_as_often_as_the_policy_says() -> None:
    server = Limited(0, says=False)

    async def ask() -> None:
        with pytest.raises(TargetError):
            await call_with_retries(lambda: server.ask(0), RetryPolicy(max_retries=2), paced(RateLimiter()))

    simulated(ask())
    assert server.refused == 3


def test_rate__policy_without_retries__is_not_tried_again() -> None:
    server, rate = Limited(1, says=False), RateLimiter()

    async def ask() -> None:
        limiter = paced(rate)
        await call_with_retries(lambda: server.ask(0), RetryPolicy(), limiter)
        with pytest.raises(TargetError):
            await call_with_retries(lambda: server.ask(0), RetryPolicy(max_retries=0), limiter)

    simulated(ask())
    assert server.refused == 1


def test_rate__told_to_wait_for_a_year__waits_for_a_minute() -> None:
    rate = RateLimiter()

    async def wait() -> None:
        rate.note_refusal(await rate.wait_for_turn(), 31_536_000)
        await rate.wait_for_turn()

    assert MAX_PAUSE_S <= simulated(wait()) <= MAX_PAUSE_S + 2
