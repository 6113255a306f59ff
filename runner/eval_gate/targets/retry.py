"""Retry policy of all targets: which failures are retried, when, and how often."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Annotated, Final, TypeVar

from msgspec import Meta, structs
from pydantic import BaseModel

from eval_gate.model.base import Frozen
from eval_gate.model.conversation import Response
from eval_gate.struct import replace
from eval_gate.targets.base import TargetError
from eval_gate.targets.deadline import note_retry_wait
from eval_gate.targets.load_limits import LoadLimiter

T = TypeVar("T")
MAX_TRIES: Final = 20
"""Maximum attempts of one request that is refused because of a rate limit."""


class RetryPolicy(Frozen, kw_only=True):
    """Exponential delays with jitter, in milliseconds. `Retry-After` wins when it asks for longer, up to the cap."""

    max_retries: Annotated[int, Meta(ge=0, le=20)] = 2
    initial_delay_ms: Annotated[float, Meta(ge=0)] = 250
    max_delay_ms: Annotated[float, Meta(ge=0)] = 60_000
    backoff_factor: Annotated[float, Meta(ge=1)] = 2
    retryable_status_codes: frozenset[int] = frozenset({429, 502, 503, 504})

    def compute_delay_s(self, failures: int, retry_after_s: float | None = None) -> float:
        """Seconds before the next try, after so many that broke; a quarter more or less, and never above the cap."""
        exponential = self.initial_delay_ms * self.backoff_factor ** min(failures - 1, 64)
        jittered = exponential * random.uniform(0.75, 1.25)  # noqa: S311 (spreads load, guards nothing)
        return min(max(jittered, (retry_after_s or 0.0) * 1000), self.max_delay_ms) / 1000


def build_retry_policy(settings: BaseModel, max_retries: int | None = None) -> RetryPolicy:
    """Build the retry policy of a target. `max_retries` from the command line takes precedence."""
    own = settings.model_dump(include=set(RetryPolicy.__struct_fields__), exclude_none=True)
    policy: RetryPolicy = structs.replace(RetryPolicy(), **own)
    return policy if max_retries is None else replace(policy, max_retries=max_retries)


async def respond_with_retries(
    call: Callable[[], Awaitable[Response]], policy: RetryPolicy, limiter: LoadLimiter
) -> Response:
    """As `call_with_retries`, for a whole response: its `attempts` count every try. Raises TargetError."""
    response, attempts = await call_with_retries(call, policy, limiter)
    return response if attempts == 1 else replace(response, attempts=attempts)


async def call_with_retries(
    call: Callable[[], Awaitable[T]], policy: RetryPolicy, limiter: LoadLimiter
) -> tuple[T, int]:
    """Call until it succeeds, breaks for good, or the retries are used up; the last TargetError is raised.

    The caller's own time limit ends it at any moment. Beside the result it gives how many tries were made. What was
    refused at a higher load than the next try's is no failure.
    """
    tries, failures = 0, 0
    while True:
        tries += 1
        try:
            async with limiter.hold_slot() as turn:
                found = await call()
        except TargetError as error:
            is_lower = limiter.note_refusal(error, turn)
            if not (is_lower and policy.max_retries and tries < MAX_TRIES):
                failures += 1
            if not error.retryable or failures > policy.max_retries:
                raise
            note_retry_wait(error)
            delay_s = policy.compute_delay_s(max(failures, 1), error.retry_after_s)
        else:
            limiter.note_success()
            return found, tries
        await asyncio.sleep(delay_s)
        note_retry_wait(None)
