"""A limit on the whole of a call: who sends a byte now and then is never silent, and never done."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from threading import Thread
from typing import TypeVar

from eval_gate.github.failure import GitHubError, Kind

T = TypeVar("T")


def within(seconds: float, doing: str, call: Callable[[], T]) -> T:
    """What the call gives. Raises GitHubError `unreachable` where it takes longer, and what the call raises.

    A call that takes too long is left alone in a thread that ends with the process: nothing can interrupt it.
    """
    outcome: Future[T] = Future()
    around = copy_context()

    def work() -> None:
        try:
            outcome.set_result(around.run(call))
        except BaseException as error:  # noqa: BLE001 (whatever it is, it is raised where the call was made)
            outcome.set_exception(error)

    Thread(target=work, name=doing, daemon=True).start()
    try:
        return outcome.result(seconds)
    except TimeoutError:
        if outcome.done():  # it is the call's own
            raise
        raise GitHubError(Kind.UNREACHABLE, doing, f"no whole answer within {seconds:g} s") from None
