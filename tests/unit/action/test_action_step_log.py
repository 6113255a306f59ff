"""Work beside the step, and what is left of it when the step is ended."""

from __future__ import annotations

import io
import threading
import time
from concurrent.futures import Future

import pytest

from eval_gate.action import step_log as module
from eval_gate.action.step_log import StepEndedError, StepLog
from eval_gate.github.workflow_commands import WorkflowCommands


def test_beside__the_step_s_last_moment_is_over__nothing_more_is_waited_for(monkeypatch) -> None:
    """All that is under way has one last moment together: the runner kills the step ten seconds after its signal."""
    monkeypatch.setattr(module, "GRACE_PERIOD_S", 30.0)
    ended: Future[float] = Future()
    ended.set_result(time.monotonic() - 31)
    come = threading.Event()
    later = threading.Timer(5, come.set)
    later.start()
    beside = StepLog(WorkflowCommands(io.StringIO())).start_work(lambda _: come.wait(), "an answer")
    try:
        with pytest.raises(StepEndedError):
            beside.get_result(ended)
    finally:
        later.cancel()
        come.set()


def test_beside__is_there_when_the_last_moment_is_over__is_taken() -> None:
    ended: Future[float] = Future()
    made = StepLog(WorkflowCommands(io.StringIO())).start_work(lambda _: 7, "an answer")
    assert made.get_result() == 7
    ended.set_result(time.monotonic() - 3600)
    assert made.get_result(ended) == 7
