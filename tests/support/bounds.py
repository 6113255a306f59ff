"""Bounds that a busy machine does not move: CPU time that ends what takes too long, and peaks of a process."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class TooSlowError(BaseException):  # so that nothing that catches what is wrong with a text catches this
    """The work was ended in the middle, so that a test of something quadratic does not take as long as it."""


@contextmanager
def within_cpu(seconds: float, what: str = "") -> Iterator[None]:
    """Raises TooSlowError in what runs inside as soon as it computed for so long. Waiting costs nothing."""

    def end(_signal: int, _frame: FrameType | None) -> None:
        raise TooSlowError(f"{what}: more than {seconds:g} s of computing")

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    except TooSlowError as slow:
        # anew: a signal may come between two lines, and pytest cannot show a traceback that begins there
        raise TooSlowError(*slow.args) from None
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
