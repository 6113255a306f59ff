"""Retries of requests to a target, its concurrency limit, and rate limits that several machines share.

Requests at the same time are halved when the target refuses, for the rest of the run: it would refuse again at the same
load, and each refusal uses up a retry of a case.

Machines that share a limit know only its refusals. Each halves its rate after a refusal and adds the same small amount
every second, so that all of them converge to equal shares (Chiu and Jain 1989).
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final, NamedTuple, TypeVar

from msgspec import structs
from pydantic import BaseModel

from eval_gate.model.conversation import Response
from eval_gate.struct import replace
from eval_gate.targets.base import OVERLOAD_STATUSES, RetryPolicy, TargetError
from eval_gate.targets.deadline import note_retry_wait, pause_case_clock

T = TypeVar("T")
MAX_TRIES: Final = 20
"""Maximum attempts of one request that is refused because of a rate limit."""
TOO_MANY_REQUESTS: Final = 429
MIN_RATE: Final = 1 / 60
"""Minimum requests in a second, whatever the number of refusals."""
ASSUMED_RATE: Final = 4.0
"""Assumed responses in a second if fewer had arrived before the first refusal, which is then due to chance."""
RATE_STEP: Final = 2.0
"""Requests in a second that are added every second: the same for all machines, so that their shares become equal."""
MAX_GROWTH: Final = 0.25
"""Maximum growth of a rate after one response: if responses take seconds, a whole step would exceed the limit."""
HOLD_S: Final = 1.0
"""Seconds in which further refusals are ignored: most limits count by the second or longer."""
MAX_PAUSE_S: Final = 60.0
RECENT_S: Final = 60.0


class RateLimiter:
    """Rate limiter of one target in this process. Without a limit, inactive until a refusal."""

    def __init__(self, most: float | None = None) -> None:
        """`most`: tries a second that may begin here; None for any number."""
        self._most = most
        self._limit = most
        self._due = 0.0
        self._not_before = 0.0
        self._decreased = float("-inf")
        self._refusals = 0
        self._lowest: float | None = None
        self._waited = False
        self._second = 0
        self._counts = [0, 0]
        self._last_success = float("-inf")

    async def wait_for_turn(self) -> float:
        """Wait until a try may begin; the time at which it does, by the loop's clock."""
        clock = asyncio.get_running_loop().time
        while self._limit is not None:
            current_s = clock()
            start = max(current_s, self._due, self._not_before)
            self._due = start + 1 / self._limit
            if start <= current_s:
                break
            self._waited = True
            with pause_case_clock():
                await asyncio.sleep(start - current_s)
            if clock() >= self._not_before:  # another request may have been refused meanwhile
                break
        return clock()

    def note_success(self) -> None:
        """Raise the rate by a step for a try that succeeded, once for each second in which the limit delayed one."""
        self._last_success = current_s = asyncio.get_running_loop().time()
        self._count_responses(current_s)[1] += 1
        if self._limit is not None and self._waited:
            grown = self._limit + min(RATE_STEP / self._limit, MAX_GROWTH * self._limit)
            self._limit = min(grown, self._most or float("inf"))
            self._waited = False

    def note_refusal(self, began: float, retry_after_s: float | None) -> bool:
        """Lower the rate after a refusal, and return whether the target responded in the last minute.

        If it did, the refusal is only a matter of pace. `began` is the time at which the refused try began, by the
        clock of the event loop. `retry_after_s` is the time that the target asks for, in seconds.

        The rate is halved. Without a limit, it starts at half of the responses per second. No try begins before the
        requested time, which counts up to 60 s. Only the first refusal of a window of one second lowers the rate,
        whatever else was in flight.
        """
        current_s = asyncio.get_running_loop().time()
        self._refusals += 1
        if began >= self._decreased + HOLD_S:
            rate = self._limit if self._limit is not None else max(*self._count_responses(current_s), ASSUMED_RATE)
            self._limit = max(rate / 2, MIN_RATE)
            self._lowest = min(self._lowest or self._limit, self._limit)
            self._decreased = current_s
        pause = min(retry_after_s or 0.0, MAX_PAUSE_S)
        self._not_before = max(self._not_before, current_s + pause)
        limit = self._limit or ASSUMED_RATE
        # machines that wait for the same time do not send at the same moment
        spread_s = random.uniform(0, 1 / limit)  # noqa: S311 (spreads load, guards nothing)
        self._due = max(self._due, self._not_before + spread_s)
        return current_s - self._last_success <= RECENT_S

    @property
    def notice(self) -> str | None:
        """What the provider refused, for the result; None if nothing."""
        if self._lowest is None:
            return None
        times = "once" if self._refusals == 1 else f"{self._refusals} times"
        rate = f"{self._lowest * 60:,.0f} requests a minute"
        return f"the provider limited the rate {times} (429): this shard was reduced to {rate}"

    def _count_responses(self, current_s: float) -> list[int]:
        """Count the responses of the second before this one, and of this one."""
        second = int(current_s)
        if second != self._second:
            self._counts = [self._counts[1] if second == self._second + 1 else 0, 0]
            self._second = second
        return self._counts


def build_shard_limiter(per_minute: float | None, shards: int) -> RateLimiter | None:
    """Build the limiter for a shard's share of `per_minute`; without a limit, only several shards need one."""
    if per_minute is None:
        return RateLimiter() if shards > 1 else None
    return RateLimiter(per_minute / 60 / shards)


class Turn(NamedTuple):
    """Beginning of one request: the limit of requests at the same time then, and the time by the event loop's clock."""

    limit: int
    began: float = 0.0


class LoadLimiter:
    """Limiter of the requests to one target. Waiting for a turn does not count toward the time limit of a case."""

    def __init__(self, most: int = 1, *, of_provider: bool = False) -> None:
        """`most`: requests at the same time.

        The pool of workers bounds the requests to an agent, so nothing is limited here before the first refusal. A
        provider of models (`of_provider`) also answers judges, which have no pool: `most` holds from the start. It
        counts all requests together: the time that it asks for (`Retry-After`) holds for all of them.
        """
        self._most = most
        self.limit = most
        """The number of requests at the same time that the target gets now."""
        self.rate: RateLimiter | None = None
        """Pace of a target whose limit other machines share."""
        self._of_provider = self._is_active = of_provider
        self._in_flight = 0
        self._refusals: Counter[int] = Counter()
        """Number of refused requests by HTTP status."""
        self._not_before = 0.0
        self._changed = asyncio.Condition()

    @asynccontextmanager
    async def hold_slot(self) -> AsyncIterator[Turn]:
        """Hold one of the slots, once one is free and a pause is over."""
        if self._is_active:
            with pause_case_clock():
                async with self._changed:
                    await self._changed.wait_for(lambda: self._in_flight < self.limit)
        self._in_flight += 1
        try:
            if self._is_active:
                with pause_case_clock():
                    await self._wait_until_allowed()
            yield Turn(self.limit, await self.rate.wait_for_turn() if self.rate else 0.0)
        finally:
            self._in_flight -= 1
            if self._is_active:
                async with self._changed:
                    self._changed.notify_all()

    def note_success(self) -> None:
        """Note a try that succeeded."""
        if self.rate:
            self.rate.note_success()

    def note_refusal(self, error: TargetError, turn: Turn) -> bool:
        """Halve the limit if the target refused a request because of its load, which passes.

        A request that began under a higher limit than today's says nothing about today's. With a pace, a 429 lowers
        only this. Return whether the next try is made under a lower limit than this one, or later than others.
        """
        if self.rate and error.status == TOO_MANY_REQUESTS:
            return self.rate.note_refusal(turn.began, error.retry_after_s)
        if error.status not in OVERLOAD_STATUSES or not error.retryable:  # such as a spent budget, which is a 429 too
            return False
        self._is_active = True
        self._refusals[error.status] += 1
        if turn.limit == self.limit:
            self.limit = max(self.limit // 2, 1)
        if self._of_provider and error.retry_after_s:
            current_s = asyncio.get_running_loop().time()
            self._not_before = max(self._not_before, current_s + min(error.retry_after_s, MAX_PAUSE_S))
        return self.limit < turn.limit

    def list_notices(self, who: str) -> tuple[str, ...]:
        """List what the target, called `who`, refused and what followed."""
        pace = self.rate.notice if self.rate else None
        return (*((f"{who} {self.notice}",) if self.notice else ()), *((pace,) if pace else ()))

    @property
    def notice(self) -> str | None:
        """What the target refused and what followed, without its name; None for nothing.

        A single 503 in a run of one case at a time is nothing but the error of its case.
        """
        lowered = self.limit < self._most
        if not (lowered or TOO_MANY_REQUESTS in self._refusals):
            return None
        count = self._refusals.total()
        statuses = " and ".join(map(str, sorted(self._refusals)))
        message = f"answered {statuses} to {count:,} request{'' if count == 1 else 's'}"
        return f"{message}: concurrency was lowered from {self._most} to {self.limit}" if lowered else message

    async def _wait_until_allowed(self) -> None:
        remaining_s = self._not_before - asyncio.get_running_loop().time()
        if remaining_s > 0:
            await asyncio.sleep(remaining_s)
            await self._wait_until_allowed()  # meanwhile, another request may have been refused


def build_retry_policy(settings: BaseModel, max_retries: int | None = None) -> RetryPolicy:
    """Build the retry policy of a target. `max_retries` from the command line takes precedence."""
    own = settings.model_dump(include=set(RetryPolicy.__struct_fields__), exclude_none=True)
    policy: RetryPolicy = structs.replace(RetryPolicy(), **own)
    return policy if max_retries is None else replace(policy, max_retries=max_retries)


async def respond_with_retries(
    call: Callable[[], Awaitable[Response]],
    policy: RetryPolicy,
    limiter: LoadLimiter,
    *,
    only_unprocessed: bool = False,
) -> Response:
    """As `call_with_retries`, for a whole response: its `attempts` count every try. Raises TargetError."""
    response, attempts = await call_with_retries(call, policy, limiter, only_unprocessed=only_unprocessed)
    return response if attempts == 1 else replace(response, attempts=attempts)


async def call_with_retries(
    call: Callable[[], Awaitable[T]],
    policy: RetryPolicy,
    limiter: LoadLimiter,
    *,
    only_unprocessed: bool = False,
) -> tuple[T, int]:
    """Call until it succeeds, fails for good, or the retries are used up. Return the result and the number of tries.

    `only_unprocessed`: repeat no request that the target may have taken in, because it would then remember it twice.
    Raises the last TargetError. A refusal at a higher load than the next try's is not counted as a failure.
    """
    tries, failures = 0, 0
    while True:
        tries += 1
        try:
            async with limiter.hold_slot() as turn:
                result = await call()
        except TargetError as error:
            is_lower = limiter.note_refusal(error, turn)
            if not (is_lower and policy.max_retries and tries < MAX_TRIES):
                failures += 1
            may_repeat = error.retryable and (error.was_surely_not_processed or not only_unprocessed)
            if not may_repeat or failures > policy.max_retries:
                raise
            note_retry_wait(error)
            delay_s = policy.compute_delay_s(max(failures, 1), error.retry_after_s)
        else:
            limiter.note_success()
            return result, tries
        await asyncio.sleep(delay_s)
        note_retry_wait(None)
