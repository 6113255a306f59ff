"""How many requests to a provider may be in flight: fewer after each refusal for its rate limit, slowly more again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from eval_gate.targets.deadline import not_counted

_LEAST: Final = 1.0
_MAX_PAUSE_S: Final = 60.0


class Pace:
    """Additive increase, multiplicative decrease, as TCP does it (Chiu and Jain 1989), and pauses when asked for."""

    def __init__(self, most: int) -> None:
        self._most = float(most)
        self._limit = float(most)
        self._lowest = float(most)
        self._in_flight = 0
        self._refused = 0
        self._free = asyncio.Condition()
        self._not_before = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """A place among those in flight; waits for one, and until a pause is over."""
        with not_counted():
            async with self._free:
                await self._free.wait_for(lambda: self._in_flight < max(self._limit, _LEAST))
                self._in_flight += 1
        try:
            with not_counted():
                await self._until_allowed()
            yield
        finally:
            self._in_flight -= 1
            await self._wake()

    def refused(self, retry_after_s: float | None) -> None:
        """The provider said that this was too much: half as many from now on, none before it allows."""
        self._refused += 1
        self._limit = max(self._limit / 2, _LEAST)
        self._lowest = min(self._lowest, self._limit)
        if retry_after_s:
            now = asyncio.get_running_loop().time()
            self._not_before = max(self._not_before, now + min(retry_after_s, _MAX_PAUSE_S))

    def note_success(self) -> None:
        """One more went well: about one more at once for every round of answers."""
        if self._limit < self._most:
            self._limit = min(self._limit + 1 / self._limit, self._most)

    @property
    def notice(self) -> str | None:
        """What became of it, for the result; None when no limit was met."""
        if not self._refused:
            return None
        times = "once" if self._refused == 1 else f"{self._refused} times"
        down = f", requests at once went down to {int(self._lowest)} of {int(self._most)}" if self._most > 1 else ""
        return f"the provider limited the rate {times} (429){down}"

    async def _until_allowed(self) -> None:
        left = self._not_before - asyncio.get_running_loop().time()
        if left > 0:
            await asyncio.sleep(left)
            await self._until_allowed()  # somebody else may have been refused meanwhile

    async def _wake(self) -> None:
        async with self._free:
            self._free.notify_all()
