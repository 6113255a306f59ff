"""A limit on the whole of a call: who sends a byte now and then is never silent, and never done."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.github.side_by_side import begin

T = TypeVar("T")


def within(seconds: float, doing: str, call: Callable[[], T]) -> T:
    """What the call gives. Raises GitHubError `unreachable` where it takes longer, and what the call raises.

    A call that takes too long is left alone: nothing can interrupt it.
    """
    outcome = begin(call, doing)
    try:
        return outcome.result(seconds)
    except TimeoutError:
        if outcome.done():  # the call's own, or it came in this very moment
            return outcome.result()
        raise GitHubError(FailureKind.UNREACHABLE, doing, f"no whole answer within {seconds:g} s") from None
