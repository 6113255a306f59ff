"""Wait until a target is ready, and report the waiting to the progress display."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from eval_gate.targets.base import TargetError

_FIRST_PAUSE_S: Final = 0.1
_MAX_PAUSE_S: Final = 1.0
"""Maximum seconds between two checks."""
_SILENT_WAIT_S: Final = 1.0
"""Seconds of waiting that are not reported."""
_REPORTER: ContextVar[Callable[[str], None] | None] = ContextVar("say", default=None)


@contextmanager
def report_waiting_to(say: Callable[[str], None]) -> Iterator[None]:
    """Inside, `say` gets the words about waiting."""
    token = _REPORTER.set(say)
    try:
        yield
    finally:
        _REPORTER.reset(token)


def report_waiting(words: str) -> None:
    """Pass words about a wait to the reporter of this context, if it has one."""
    say = _REPORTER.get()
    if say is not None:
        say(words)


async def wait_until_ready(look: Callable[[], Awaitable[None]], seconds: float, what: str) -> None:
    """Repeat `look` until it raises no TargetError, for at most `seconds`. Progress names `what` is waited for."""
    began, pause, is_reported = time.monotonic(), _FIRST_PAUSE_S, False
    while True:
        try:
            return await look()
        except TargetError as error:
            waited = time.monotonic() - began
            if waited >= seconds:
                if seconds:
                    error.message += f" (waited {seconds:g} s)"
                raise
            if not is_reported and waited >= min(_SILENT_WAIT_S, seconds / 2):
                is_reported = True
                hint = f" ({error.hint})" if error.hint else ""
                report_waiting(f"waiting for {what}, up to {seconds:g} s: {error.message}{hint}")
        await asyncio.sleep(min(pause, max(seconds - (time.monotonic() - began), 0.01)))
        pause = min(pause * 1.5, _MAX_PAUSE_S)
