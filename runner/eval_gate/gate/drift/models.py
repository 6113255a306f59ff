"""Which model answered, as its provider names it: over the runs of a branch, and here beside the baseline. Pure.

Nothing of ours need have changed for that. It is a fact beside a verdict or an alarm, and excuses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from eval_gate.gate.drift.cases import MOST_SINCE
from eval_gate.model.result import RunResult
from eval_gate.results.levels import RunLevels
from eval_gate.text.escape import one_line

NAMED: Final = 3
"""Models that a sentence names of one side."""
_LONGEST: Final = 80


@dataclass(frozen=True, slots=True)
class ModelChange:
    """Other models answered in the run `since` than in the one `before`; so many runs are since then."""

    before: RunLevels
    since: RunLevels
    runs: int

    @property
    def same_commit(self) -> bool:
        """Whether there is no commit between both runs."""
        return self.before.sha is not None and self.before.sha == self.since.sha


def model_changes(levels: Sequence[RunLevels]) -> tuple[ModelChange, ...]:
    """The changes among the newest of these runs of one target, newest first, as the changes are.

    Runs that do not say who answered are passed over.
    """
    known = [(at, one) for at, one in enumerate(levels[: MOST_SINCE + 1]) if one.models]
    return tuple(
        ModelChange(before, since, at + 1)
        for (at, since), (_, before) in pairwise(known)
        if set(before.models) != set(since.models)
    )


def change_between(
    changes: Sequence[ModelChange], levels: Sequence[RunLevels], good: RunLevels, bad: RunLevels
) -> ModelChange | None:
    """The newest change after the run `good`, up to the run `bad`; None where there is none."""
    places = {one.run_id: at for at, one in enumerate(levels)}
    first, last = places[good.run_id], places[bad.run_id]
    return next((one for one in changes if last <= places[one.since.run_id] < first), None)


def notes_of_models(here: RunResult, then: RunResult) -> Iterator[str]:
    """What is to be said where other models answered here than in the baseline, by the cases that both have."""
    before = {key: case.details.model for key, case in then.cases() if case.details.model}
    if not before:
        return
    both = [(before[key], case.details.model) for key, case in here.cases() if case.details.model and key in before]
    there, now = {one for one, _ in both}, {one for _, one in both}
    if there == now:
        return
    differ = sum(one != other for one, other in both)
    yield (
        f"the model behind the agent is another one than in the baseline: its answers were from {names(there)}, these "
        f"are from {names(now)} ({differ} of {len(both)} cases). The verdict is as without that"
    )


def names(models: set[str] | Sequence[str]) -> str:
    """The first of these by name, and how many more there are."""
    shown = [one_line(name, _LONGEST) for name in sorted(models)]
    more = f" and {len(shown) - NAMED} more" if len(shown) > NAMED else ""
    return ", ".join(shown[:NAMED]) + more
