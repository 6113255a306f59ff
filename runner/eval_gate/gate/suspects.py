"""Select the suspects to re-run: a dozen over all causes, none once the gate fails for certain.

A change that breaks one tool breaks every case that calls it. A dozen of them confirmed say as much as three hundred.

What it moves (`benchmarks/verdict/without.py`, without → with) are executions a case: 50 of 100 cases died, 2.05 →
1.24 after ten runs of history. No verdict of 200 changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from typing import Final

from eval_gate.model.case import CaseKey
from eval_gate.struct import FrozenStruct

MAX_ALWAYS_RERUN: Final = 5
"""Suspects that are always re-run: each of them may have its own cause."""
ENOUGH_CONFIRMED: Final = 12
"""Confirmed regressions from which on suspects are spared: two to four re-runs each, a quarter to a half of an
execution a case in a suite of 100."""
_MIN_SHARD_SHARE: Final = 3
"""The same of one shard of many."""


def compute_shard_share(shards: int) -> int:
    """How many regressions each shard confirms, so that all together confirm a dozen."""
    return max(-(-ENOUGH_CONFIRMED // shards), _MIN_SHARD_SHARE)


class Suspects(FrozenStruct):
    """Suspected regressions of a run by cause, and which of them need no re-run.

    `allowed_regressions` regressions do not fail the gate; None if no number of them does. Cases in `non_blocking`
    never fail it: they are waived, or the verdict over the whole run may classify them differently. `enough_confirmed`
    confirmed regressions are enough to name the cause.
    """

    causes: Mapping[CaseKey, str]
    allowed_regressions: int | None
    non_blocking: Set[CaseKey] = frozenset()
    enough_confirmed: int = ENOUGH_CONFIRMED

    @property
    def is_limited(self) -> bool:
        """Whether there is anything to spare."""
        return self.allowed_regressions is not None and len(self.causes) > max(MAX_ALWAYS_RERUN, self.enough_confirmed)

    def is_gate_failing(self, confirmed: Collection[CaseKey]) -> bool:
        """Whether the gate fails by what is confirmed, so that no further re-run can turn its exit code."""
        return (
            self.allowed_regressions is not None
            and sum(key not in self.non_blocking for key in confirmed) > self.allowed_regressions
        )

    def can_skip(self, key: CaseKey, confirmed: Collection[CaseKey]) -> bool:
        """Whether re-running this case could neither turn the exit code nor is needed to name what broke."""
        return (
            self.is_limited
            and key in self.causes
            and self.is_gate_failing(confirmed)
            and len(confirmed) >= self.enough_confirmed
        )

    def select_next(self, waiting: Sequence[CaseKey], confirmed: Collection[CaseKey]) -> list[CaseKey]:
        """Those of the waiting cases that are re-run next; when they are done, the others are asked about again.

        First a dozen, by turns over the causes. Then all, or where the gate fails for certain by now as many as are
        missing to a dozen.
        """
        mine = [key for key in waiting if key in self.causes]
        others = [key for key in waiting if key not in self.causes]
        if not self.is_limited or not mine:
            return list(waiting)
        if len(mine) == len(self.causes):
            return others + self._select_first(mine)
        if not self.is_gate_failing(confirmed):
            return others + mine
        return others + self._alternate_causes(mine)[: max(self.enough_confirmed - len(confirmed), 0)]

    def _select_first(self, mine: Sequence[CaseKey]) -> list[CaseKey]:
        """Select a dozen suspects, and as many more as make the gate fail for certain if all are confirmed."""
        assert self.allowed_regressions is not None
        ordered = self._alternate_causes(mine)
        first, rest = ordered[: self.enough_confirmed], ordered[self.enough_confirmed :]
        return first + rest[: max(self.allowed_regressions + 1 - sum(key not in self.non_blocking for key in first), 0)]

    def _alternate_causes(self, mine: Sequence[CaseKey]) -> list[CaseKey]:
        """Order the suspects by turns over the causes; those that cannot make the gate fail come last."""
        seen, places = Counter[str](), dict[CaseKey, tuple[bool, int]]()
        for key in mine:
            of = key in self.non_blocking, self.causes[key]
            places[key] = of[0], seen[repr(of)]
            seen[repr(of)] += 1
        return sorted(places, key=lambda key: places[key])
