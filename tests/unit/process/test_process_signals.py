"""Signals that end what is asynchronous."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

from eval_gate.errors import GateError, TerminatedError
from eval_gate.process.signals import run_async


@pytest.fixture(autouse=True)
def listening() -> Iterator[None]:
    """Somebody listens for SIGTERM, as the program does."""
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    yield
    signal.signal(signal.SIGTERM, before)


async def refused_when_signalled() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    raise GateError("wrong-config", "it is wrong", "mend it")


async def done_when_cancelled() -> str:
    os.kill(os.getpid(), signal.SIGTERM)
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(60)
    return "done"


async def signalled(*, more_to_do: bool) -> str:
    os.kill(os.getpid(), signal.SIGTERM)
    if more_to_do:
        await asyncio.sleep(60)
    return "done"


@pytest.mark.parametrize("work", [refused_when_signalled, done_when_cancelled])
def test_run_async__sigterm_and_another_end__is_not_lost(work) -> None:
    with pytest.raises(TerminatedError):
        run_async(work())


@pytest.mark.parametrize("more_to_do", [True, False], ids=["amid its work", "in its last step"])
def test_run_async__sigterm__ends_it_and_is_not_lost(more_to_do) -> None:
    ours = signal.getsignal(signal.SIGTERM)
    with pytest.raises(TerminatedError):
        run_async(signalled(more_to_do=more_to_do))
    assert signal.getsignal(signal.SIGTERM) is ours


def test_run_async__nobody_listens__leaves_the_signal_as_it_is() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    assert run_async(signalled(more_to_do=False)) == "done"
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


ENDED_TWICE = """
import os, signal
from eval_gate.process.signals import FINAL_ACTIONS, defer_signals, handle_signal
signal.signal(signal.SIGTERM, handle_signal)
FINAL_ACTIONS.add(lambda: os.write(1, b"given"))
FINAL_ACTIONS.add(lambda: 1 / 0)
try:
    os.kill(os.getpid(), signal.SIGTERM)
except KeyboardInterrupt:
    try:
        with defer_signals():
            for _ in range(50_000):  # each is noted, and none answered before this is done
                os.kill(os.getpid(), signal.SIGTERM)
            os.write(1, b"whole ")
    finally:
        os.write(1, b"never")
"""


def test_ended_at_once__what_is_done_last__is_done_whatever_else_breaks() -> None:
    done = subprocess.run([sys.executable, "-c", ENDED_TWICE], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (143, "whole given", "")
