"""Which of many suspects are run again: a few of each cause first, and no more once nothing can turn the exit code.

A change that breaks one tool breaks every case that calls it. Three of them confirmed say as much as three hundred.

What it moves (`benchmarks/verdict/without.py`, without → with) are executions a case: 50 of 100 cases died, 2.05 →
1.06 ± 0.018; 10 of 100, 1.26 → 1.06 ± 0.007. No verdict of 200 changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from typing import Final

from eval_gate.model.case import CaseKey
from eval_gate.struct import FrozenStruct

FEW: Final = 5
"""So many suspects are all run again, whatever is known by then: each of them may have a cause of its own."""
OF_A_CAUSE: Final = 3
"""Confirmed regressions that name a cause."""
IN_ALL: Final = 10
"""Confirmed regressions that name a run's causes, where each failure says something else."""


class Suspects(FrozenStruct):
    """The cases that may be spared, in the order of the run, by the cause that each names. Nothing is, of `FEW`.

    `allowed` regressions do not fail the gate; None where no number of them does. Those that `uncounted` names never
    make it fail: they are accepted, or may be seen otherwise by whoever judges the whole.
    """

    causes: Mapping[CaseKey, str]
    allowed: int | None
    uncounted: Set[CaseKey] = frozenset()

    @property
    def many(self) -> bool:
        """Whether there is anything to spare."""
        return self.allowed is not None and len(self.causes) > FEW

    def certain(self, confirmed: Collection[CaseKey]) -> bool:
        """Whether the gate fails by what is confirmed, so that no further re-run can turn its exit code."""
        return self.allowed is not None and sum(key not in self.uncounted for key in confirmed) > self.allowed

    def spares(self, key: CaseKey, confirmed: Collection[CaseKey]) -> bool:
        """Whether running this case again could neither turn the exit code nor name a cause that is not named yet."""
        if not self.many or key not in self.causes or not self.certain(confirmed):
            return False
        return len(confirmed) >= IN_ALL or self._named(confirmed)[self.causes[key]] >= OF_A_CAUSE

    def turn(self, waiting: Sequence[CaseKey], confirmed: Collection[CaseKey]) -> list[CaseKey]:
        """Those of the waiting cases that are run again next; when they are done, the others are asked about again.

        First a few of each cause. Then all, or where it is certain by now: of a cause that is confirmed in part as
        many again as were run of it.
        """
        mine = [key for key in waiting if key in self.causes]
        others = [key for key in waiting if key not in self.causes]
        if not self.many or not mine:
            return list(waiting)
        if len(mine) == len(self.causes):
            return others + self._few_of_each(mine)
        wanted = [key for key in mine if not self.spares(key, confirmed)]
        if not self.certain(confirmed):
            return others + wanted
        named, taken, chosen = self._named(confirmed), Counter[str](), list[CaseKey]()
        done = Counter(self.causes.values()) - Counter(self.causes[key] for key in mine)
        for key in wanted:
            cause = self.causes[key]
            if not named[cause] or taken[cause] < max(done[cause], 1):
                chosen.append(key)
                taken[cause] += 1
        return others + chosen

    def _few_of_each(self, mine: Sequence[CaseKey]) -> list[CaseKey]:
        """The first of every cause, then the second ones: as many as make it certain if all are confirmed."""
        assert self.allowed is not None
        seen, places = Counter[str](), dict[CaseKey, int]()
        for key in sorted(mine, key=lambda key: key in self.uncounted):
            places[key] = seen[self.causes[key]]
            seen[self.causes[key]] += 1
        by_turns = sorted(places, key=lambda key: places[key])
        few = [key for key in by_turns if places[key] < OF_A_CAUSE][:IN_ALL]
        rest = [key for key in by_turns if key not in set(few)]
        return few + rest[: max(self.allowed + 1 - sum(key not in self.uncounted for key in few), 0)]

    def _named(self, confirmed: Collection[CaseKey]) -> Counter[str]:
        return Counter(self.causes[key] for key in confirmed if key in self.causes)
