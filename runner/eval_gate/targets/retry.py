"""The one retry policy: when a try is repeated, after how long, and how often."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from pydantic import Field

from eval_gate.model.base import Frozen
from eval_gate.model.conversation import Response
from eval_gate.targets.base import TargetError
from eval_gate.targets.deadline import waits_after

T = TypeVar("T")


class RetryPolicy(Frozen):
    """Exponential delays with jitter, in milliseconds. `Retry-After` wins when it asks for longer, up to the cap."""

    max_retries: int = Field(2, ge=0, le=20)
    initial_delay_ms: float = Field(250, ge=0)
    max_delay_ms: float = Field(60_000, ge=0)
    backoff_factor: float = Field(2, ge=1)
    retryable_status_codes: frozenset[int] = frozenset({429, 502, 503, 504})

    def delay_s(self, failures: int, asked_s: float | None = None) -> float:
        """Seconds before the next try, after so many that broke; a quarter more or less, and never above the cap."""
        exponential = self.initial_delay_ms * self.backoff_factor ** min(failures - 1, 64)
        jittered = exponential * random.uniform(0.75, 1.25)  # noqa: S311 (spreads load, guards nothing)
        return min(max(jittered, (asked_s or 0.0) * 1000), self.max_delay_ms) / 1000


async def with_retries(call: Callable[[], Awaitable[Response]], policy: RetryPolicy) -> Response:
    """The same for a whole response: its `attempts` count every try."""
    response, attempts = await retried(call, policy)
    return response if attempts == 1 else response.model_copy(update={"attempts": attempts})


async def retried(call: Callable[[], Awaitable[T]], policy: RetryPolicy) -> tuple[T, int]:
    """Call until it succeeds, breaks for good, or the retries are used up; the last TargetError is raised.

    The caller's own time limit ends it at any moment. Beside the result it gives how many tries were made.
    """
    try:
        return await call(), 1
    except TargetError as error:
        if not error.retryable or policy.max_retries == 0:
            raise
        first = error
    return await _again(call, policy, first)


async def _again(call: Callable[[], Awaitable[T]], policy: RetryPolicy, first: TargetError) -> tuple[T, int]:
    """The second try and those after it. Only now the library is imported: a run without trouble pays nothing."""
    from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

    def wait(state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        waits_after(error)
        asked = error.retry_after_s if isinstance(error, TargetError) else None
        return policy.delay_s(state.attempt_number, asked)

    made = [first]  # the first try has already been made: its failure is what the first wait answers to

    async def once() -> T:
        if made:
            raise made.pop()
        waits_after(None)
        return await call()

    retrying = AsyncRetrying(
        stop=stop_after_attempt(policy.max_retries + 1),
        wait=wait,
        retry=retry_if_exception(lambda error: isinstance(error, TargetError) and error.retryable),
        reraise=True,
    )
    result: T = await retrying(once)
    return result, int(retrying.statistics["attempt_number"])
