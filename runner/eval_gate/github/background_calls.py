"""Background calls and time limits: most of a step's time is spent waiting for GitHub."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from threading import Thread
from typing import TypeVar

from eval_gate.github.failure import FailureKind, GitHubError

T = TypeVar("T")


def start_in_background(work: Callable[[], T], name: str) -> Future[T]:
    """Do it in a thread of its own. What comes of it, an exception too, comes out where the result is asked for.

    Nothing can interrupt it, and nothing waits for it: a thread that is left alone ends with the process. What is
    repeated as a part of something greater (`call_with_retries`) is so in there too.
    """
    outcome: Future[T] = Future()
    context = copy_context()

    def run_work() -> None:
        try:
            outcome.set_result(context.run(work))
        except BaseException as error:  # noqa: BLE001 (whatever it is, it is raised where the result is asked for)
            outcome.set_exception(error)

    Thread(target=run_work, name=name, daemon=True).start()
    return outcome


def call_with_timeout(seconds: float, doing: str, call: Callable[[], T]) -> T:
    """Run the call in the background, and return its result within `seconds`.

    Raises GitHubError `unreachable` if the call takes longer, and whatever the call raises. A call that takes too
    long is abandoned, because nothing can interrupt it.
    """
    outcome = start_in_background(call, doing)
    try:
        return outcome.result(seconds)
    except TimeoutError:
        if outcome.done():  # the call's own, or it came in this very moment
            return outcome.result()
        raise GitHubError(FailureKind.UNREACHABLE, doing, f"no complete response within {seconds:g} s") from None
