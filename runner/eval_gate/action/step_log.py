"""Log of a step: written as it happens and kept for the summary."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from threading import Event
from typing import Final, Generic, TypeVar

from eval_gate.errors import PAGES
from eval_gate.github.background_calls import start_in_background
from eval_gate.github.failure import FailureKind, GitHubError
from eval_gate.github.workflow_commands import DeferredCommands, WorkflowCommands
from eval_gate.text.quoting import capitalize_first

T = TypeVar("T")
GRACE_PERIOD_S: Final = 2.0
"""Seconds for what is under way when the step is ended from outside; the runner kills it after ten."""


class StepEndedError(Exception):
    """Error for a step that ended before a background result arrived."""


class StepLog:
    """Trail of one step. `losses` holds what could not be published, for the top of the summary."""

    def __init__(self, commands: WorkflowCommands, read_only: str | None = None) -> None:
        self.commands = commands
        self.trail: list[str] = []
        self.losses: list[str] = []
        self.read_only = read_only
        """Why the token is not expected to write, if it is not: its refusals are then no surprise."""

    def copy(self) -> StepLog:
        """One that goes on from here by itself, where a step has several things to publish."""
        log = StepLog(self.commands, self.read_only)
        log.trail, log.losses = list(self.trail), list(self.losses)
        return log

    def record(self, what: str) -> None:
        """One step, in a sentence without its full stop."""
        self.trail.append(what)
        self.commands.print_line(what)

    def warn(self, what: str, hint: str = "") -> None:
        """Something that does not work here: a warning, with what to do about it, and a step of the trail."""
        self.trail.append(what)
        self.commands.write_warning(f"{capitalize_first(what)}{f'; {hint}' if hint else ''}")

    def record_loss(self, what: str, error: GitHubError) -> None:
        """Something that could not be published: the verdict is the same, and the log says what is missing."""
        if error.kind is FailureKind.FORBIDDEN and self.read_only:
            sentence = f"{what}: {self.read_only}; see {PAGES}/action.md#forks"
            self.record(sentence)
        else:
            sentence = f"{what}: {error}"
            self.trail.append(sentence)
            self.commands.write_warning(sentence)
        self.losses.append(sentence)

    def record_superseded(self, why: str) -> None:
        """Record that a result is not published, because a newer one takes precedence."""
        sentence = f"Not published: {why}"
        self.record(sentence)
        self.losses.append(sentence)

    def start_work(self, work: Callable[[StepLog], T], name: str) -> BackgroundWork[T]:
        """Start work in the background, with a log of its own that is replayed when the result is requested."""
        return BackgroundWork(self, work, name)


class BackgroundWork(Generic[T]):
    """Background work of a step whose log output appears when its result is requested.

    Log output appears in the order in which the results are requested, and the first error in that order ends the step.
    Work whose result is never requested has no effect.
    """

    def __init__(self, log: StepLog, work: Callable[[StepLog], T], name: str) -> None:
        self._log = log
        self._commands = DeferredCommands()
        own = self._own = StepLog(self._commands, log.read_only)
        self._outcome: Future[T] = start_in_background(lambda: work(own), name)

    def peek(self, end: Future[float] | None = None) -> T:
        """Wait for the result from other background work, without replaying the work's log.

        The log stays with the work until `get_result` requests the result in order. Raises what the work raises.

        `end` holds the moment at which the step ended early, by `time.monotonic`. From then on, all pending work
        shares a short time limit: raises StepEndedError if the result does not arrive within it.
        """
        if end is not None:
            either = Event()
            for one in (self._outcome, end):
                one.add_done_callback(lambda _: either.set())
            either.wait()
            try:
                self._outcome.exception(_compute_time_left(end))
            except TimeoutError:
                raise StepEndedError from None
        return self._outcome.result()

    def get_result(self, end: Future[float] | None = None) -> T:
        """Wait for the result like `peek`, and replay the work's log first. Raises what the work raises."""
        try:
            return self.peek(end)
        finally:
            self._commands.replay_to(self._log.commands)
            self._log.trail += self._own.trail
            self._log.losses += self._own.losses
            self._own.trail, self._own.losses = [], []


def _compute_time_left(end: Future[float]) -> float | None:
    """Seconds of the last moment that are left; None where it has not begun."""
    return max(end.result() + GRACE_PERIOD_S - time.monotonic(), 0.0) if end.done() else None
