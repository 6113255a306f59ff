"""Which of many suspects are re-run: a dozen, spread over causes, and no more once nothing can turn the exit code.

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

FEW: Final = 5
"""So many suspects are all re-run, whatever is known by then: each of them may have a cause of its own."""
DOZEN: Final = 12
"""Confirmed regressions from which on suspects are spared: two to four re-runs each, a quarter to a half of an
execution a case in a suite of 100."""
_LEAST: Final = 3
"""The same of one shard of many."""


def share_of_shard(shards: int) -> int:
    """How many regressions each shard confirms, so that all together confirm a dozen."""
    return max(-(-DOZEN // shards), _LEAST)


class Suspects(FrozenStruct):
    """The cases that may be spared, in the order of the run, by the cause that each names. Nothing is, of `FEW`.

    `allowed` regressions do not fail the gate; None where no number of them does. Those that `uncounted` names never
    make it fail: they are accepted, or may be seen otherwise by whoever judges the whole. `enough` confirmed ones name
    what broke.
    """

    causes: Mapping[CaseKey, str]
    allowed: int | None
    uncounted: Set[CaseKey] = frozenset()
    enough: int = DOZEN

    @property
    def many(self) -> bool:
        """Whether there is anything to spare."""
        return self.allowed is not None and len(self.causes) > max(FEW, self.enough)

    def certain(self, confirmed: Collection[CaseKey]) -> bool:
        """Whether the gate fails by what is confirmed, so that no further re-run can turn its exit code."""
        return self.allowed is not None and sum(key not in self.uncounted for key in confirmed) > self.allowed

    def spares(self, key: CaseKey, confirmed: Collection[CaseKey]) -> bool:
        """Whether re-running this case could neither turn the exit code nor is needed to name what broke."""
        return self.many and key in self.causes and self.certain(confirmed) and len(confirmed) >= self.enough

    def turn(self, waiting: Sequence[CaseKey], confirmed: Collection[CaseKey]) -> list[CaseKey]:
        """Those of the waiting cases that are re-run next; when they are done, the others are asked about again.

        First a dozen, by turns over the causes. Then all, or where the gate fails for certain by now as many as are
        missing to a dozen.
        """
        mine = [key for key in waiting if key in self.causes]
        others = [key for key in waiting if key not in self.causes]
        if not self.many or not mine:
            return list(waiting)
        if len(mine) == len(self.causes):
            return others + self._first(mine)
        if not self.certain(confirmed):
            return others + mine
        return others + self._by_turns(mine)[: max(self.enough - len(confirmed), 0)]

    def _first(self, mine: Sequence[CaseKey]) -> list[CaseKey]:
        """A dozen, and as many more as make it certain if all are confirmed."""
        assert self.allowed is not None
        ordered = self._by_turns(mine)
        first, rest = ordered[: self.enough], ordered[self.enough :]
        return first + rest[: max(self.allowed + 1 - sum(key not in self.uncounted for key in first), 0)]

    def _by_turns(self, mine: Sequence[CaseKey]) -> list[CaseKey]:
        """The first of every cause, then the second ones; those that cannot make the gate fail come last."""
        seen, places = Counter[str](), dict[CaseKey, tuple[bool, int]]()
        for key in mine:
            of = key in self.uncounted, self.causes[key]
            places[key] = of[0], seen[repr(of)]
            seen[repr(of)] += 1
        return sorted(places, key=lambda key: places[key])
