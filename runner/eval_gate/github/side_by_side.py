"""Work beside other work: most of a step's time beside its cases is spent waiting for GitHub."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def begin(work: Callable[[], T], name: str) -> Future[T]:
    """Do it in a thread of its own. What comes of it, an exception too, comes out where the result is asked for.

    Nothing can interrupt it, and nothing waits for it: a thread that is left alone ends with the process. What is
    repeated as a part of something greater (`Client.repeated`) is so in there too.
    """
    outcome: Future[T] = Future()
    around = copy_context()

    def done() -> None:
        try:
            outcome.set_result(around.run(work))
        except BaseException as error:  # noqa: BLE001 (whatever it is, it is raised where the result is asked for)
            outcome.set_exception(error)

    Thread(target=done, name=name, daemon=True).start()
    return outcome
