"""Which model answered over the runs of a branch, as its provider names it. Pure.

Nothing of ours need have changed for that. It is a fact beside a verdict or an alarm, and excuses nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from eval_gate.analysis.drift.cases import MOST_SINCE
from eval_gate.results.levels import RunLevels
from eval_gate.struct import FrozenStruct


class ModelChange(FrozenStruct):
    """Other models answered in the run `since` than in the one `before`; so many runs are since then."""

    before: RunLevels
    since: RunLevels
    runs: int

    @property
    def same_commit(self) -> bool:
        """Whether there is no commit between both runs."""
        return self.before.same_commit(self.since)


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
