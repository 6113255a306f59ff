"""Signal handling: cancel asynchronous work on the first signal, exit at once on the second.

A handler that raised in the middle of the event loop would do so anywhere: just behind the start of a program, say,
before anybody knows of it who could end it. So there the first signal cancels, and elsewhere it is raised; another one
ends the process at once, by the exit code of a signal. None comes between a program and our knowing of it.

Python answers a signal amid the answer to another one, and that amid a third: a thousand deep, and it breaks off with
an error of its own. So every handler notes first that it answers, and one that comes meanwhile does next to nothing.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final, NoReturn, TypeVar

from eval_gate.errors import TerminatedError

Done = TypeVar("Done")
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
RUNNING_GROUPS: Final = set[int]()
"""The groups of programs that run, by their leaders' numbers, from the start until a leader's number is given back."""
FINAL_ACTIONS: Final = set[Callable[[], object]]()
"""What is done where we end at once, and takes moments: a terminal is given its cursor back."""
_SIGNAL_EXIT_BASE: Final = 128
"""What `ExitCode.INTERRUPTED` and `TERMINATED` are more than their signals' numbers."""


class _SignalState:
    """Signals received so far. Python delivers them to the main thread only, between any two instructions."""

    held = 0
    """Of how many parts that are done as a whole the main thread is amid."""
    waiting = 0
    """The last one that came meanwhile; 0 for none."""
    several = False
    """Whether it was not the only one."""
    enough = False
    """Whether the next one ends us at once: it would come in the middle of what the first one has us do."""


def handle_signal(number: int, _frame: FrameType | None = None) -> None:
    """Answer a signal, as soon as nothing is amid that has to be done as a whole: a handler.

    The first one is raised as KeyboardInterrupt or TerminatedError, and another one ends us at once.
    """
    if _SignalState.held:
        _SignalState.several = _SignalState.waiting != 0
        _SignalState.waiting = number
        return
    if _SignalState.enough:
        _exit_at_once(number)
    _SignalState.enough = True
    raise TerminatedError if number == signal.SIGTERM else KeyboardInterrupt


def _exit_at_once(number: int) -> NoReturn:
    _SignalState.held += 1  # and what comes from here on is not answered any more
    _kill_programs()
    for do in tuple(FINAL_ACTIONS):
        with suppress(Exception):
            do()
    os._exit(_SIGNAL_EXIT_BASE + number)


def run_async(work: Coroutine[Any, Any, Done]) -> Done:
    """Run it to its end, as `asyncio.run` does. Raises KeyboardInterrupt, or TerminatedError, where a signal ended it.

    The first signal cancels it, as asyncio's own handler of SIGINT does; another one ends the process at once.
    Signals without a Python handler are left as they are.
    """
    import asyncio  # which `--help` needs nothing of

    received: list[KeyboardInterrupt] = []
    # made before they are needed
    errors: dict[int, KeyboardInterrupt] = {signal.SIGINT: KeyboardInterrupt(), signal.SIGTERM: TerminatedError()}

    async def cancelled_by_signals() -> Done:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()

        def cancel(number: int, _frame: FrameType | None) -> None:
            if received or task is None:
                _SignalState.enough = True
                handle_signal(number)
                return
            received.append(errors[number])
            task.cancel()
            loop.call_soon_threadsafe(lambda: None)  # which wakes it, where it waits for what does not come

        handlers = {number: signal.signal(number, cancel) for number in listening}
        try:
            return await work
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    is_main = threading.current_thread() is threading.main_thread()
    listening = [number for number in _SIGNALS if is_main and callable(signal.getsignal(number))]
    try:
        return asyncio.run(cancelled_by_signals())
    finally:  # however it ended: it may not have waited for anything any more, or found out what is wrong just then
        if received:
            raise received[0] from None


@contextmanager
def defer_signals() -> Iterator[None]:
    """Defer signals until the block ends, which takes moments; outside the main thread it does nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _SignalState.held += 1
    try:
        yield
    finally:
        _SignalState.held -= 1
        if _SignalState.waiting and not _SignalState.held:
            number, _SignalState.waiting = _SignalState.waiting, 0
            _SignalState.enough = _SignalState.enough or _SignalState.several
            handle_signal(number)


def end_programs() -> None:
    """End by force whatever we started and could not end in good order. From here on a signal ends us at once."""
    _SignalState.enough = True
    with defer_signals():
        _kill_programs()


def _kill_programs() -> None:
    for group in tuple(RUNNING_GROUPS):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
