"""When a target is given up on: it is gone, or hangs on everything, and the rest would be hours of waiting."""

from __future__ import annotations

from collections.abc import Sequence

from eval_gate.engine.trials import NoAnswerError
from eval_gate.targets.base import Target

GIVE_UP_AFTER = 5
"""Trials in a row without connection or without answer in time; as many as are in flight at once if that is more."""


class Unanswered:
    """The latest trials of the target that is being asked, as far as no answer came in between."""

    def __init__(self) -> None:
        self._failures: list[NoAnswerError] = []
        self._have_answered: set[int] = set()
        """Targets (by `id`) that have answered anything."""

    def begin(self) -> None:
        """Another target is asked from here on."""
        self._failures = []

    def note_answer(self, target: Target) -> None:
        """It gave an answer, to whatever case."""
        self._failures = []
        self._have_answered.add(id(target))

    def enough(self, target: Target, concurrency: int, failure: NoAnswerError, *, was_late: bool) -> str | None:
        """One more without an answer: why the target is asked no more, if that is so now.

        A case that was too slow before (`was_late`) and is so again says nothing new of a target that answers others.
        Such a target is waited for twice as long: the cases of one slow tool stand side by side, and are in flight
        together.
        """
        slow = failure.record.timed_out and id(target) in self._have_answered
        if slow and was_late:
            return None
        self._failures.append(failure)
        if len(self._failures) < max(GIVE_UP_AFTER, concurrency) * (2 if slow else 1):
            return None
        return with_hint(_nobody_there(self._failures), failure.hint)


def _nobody_there(failures: Sequence[NoAnswerError]) -> str:
    late = [failure.record.timed_out for failure in failures]
    if all(late):
        what = "no answer from the target in time"
    else:
        what = "no answer from the target" if any(late) else "no connection to the target"
    return f"{what}, {len(failures)} cases in a row: {failures[-1]}"


def with_hint(message: str, hint: str | None) -> str:
    """What happened, and what to do in parentheses."""
    return f"{message} ({hint})" if hint else message
