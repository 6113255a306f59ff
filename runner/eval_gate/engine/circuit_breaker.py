"""Circuit breaker: stops requests to a target that is unreachable or times out on every case."""

from __future__ import annotations

from collections.abc import Sequence

from eval_gate.engine.trials import NoResponseError
from eval_gate.targets.base import Target

MAX_FAILURES_IN_A_ROW = 5
"""Trials in a row without a connection or without a response in time; `concurrency` if that is more."""


class CircuitBreaker:
    """Consecutive failures of the current target."""

    def __init__(self) -> None:
        self._failures: list[NoResponseError] = []
        self._responding_targets: set[int] = set()
        """Targets (by `id`) that responded at least once."""

    def start_target(self) -> None:
        """Forget the consecutive failures, because another target runs next."""
        self._failures = []

    def record_response(self, target: Target) -> None:
        """Record that the target responded to a case, which ends the row of failures."""
        self._failures = []
        self._responding_targets.add(id(target))

    def note_turn(self, target: Target) -> None:
        """Note that the target responded to a turn of a conversation, which may still fail as one execution."""
        self._responding_targets.add(id(target))

    def record_failure(
        self, target: Target, concurrency: int, failure: NoResponseError, *, timed_out_before: bool
    ) -> str | None:
        """Record a failure, and return the reason if the target gets no more requests.

        If a target responds to other cases, a case that times out again (`timed_out_before`) does not count, and the
        limit is doubled: the cases of one slow tool are next to each other, and run at the same time.
        """
        slow = failure.record.timed_out and id(target) in self._responding_targets
        if slow and timed_out_before:
            return None
        self._failures.append(failure)
        if len(self._failures) < max(MAX_FAILURES_IN_A_ROW, concurrency) * (2 if slow else 1):
            return None
        return _describe_failures(self._failures)


def _describe_failures(failures: Sequence[NoResponseError]) -> str:
    late = [failure.record.timed_out for failure in failures]
    if all(late):
        what = "no response from the target in time"
    else:
        what = "no response from the target" if any(late) else "no connection to the target"
    return f"{what}, {len(failures)} cases in a row: {failures[-1]}"
