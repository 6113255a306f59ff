"""The chance that a case that fails so often here is called a regression: every way its re-runs can go, exactly.

Each leaf is what `next_step` makes of the executions so far, the function that stops the re-runs and that the verdict
is made of, so that these figures cannot say anything else than the gate does. What the test of all cases together adds
is not among them: one case alone does not move it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from functools import cached_property

from eval_gate.gate.evidence.reruns import Confirmation, Doubt, RerunStep
from eval_gate.gate.evidence.settle import CaseFacts, next_step
from eval_gate.gate.power.cases import CaseGroup, CaseGroups
from eval_gate.model.grounds import Counts
from eval_gate.model.result import RerunEnd
from eval_gate.struct import FrozenStruct, replace


class RerunPaths(FrozenStruct):
    """In how many orders (`number`) a case can come to be confirmed with so many passes and failures here."""

    passes: int
    failures: int
    number: int


class Tree(FrozenStruct, dict=True):
    """All ways in which one case of a kind can be executed, with these re-runs."""

    kind: CaseGroup
    cases: CaseGroups

    def chance_of_regression(self, rate: float) -> float:
        """The chance that it is called a regression in one run if it fails at this rate (0 to 1) there."""
        if not self.cases.confirmation.confirm:
            return self._fails_at_first(rate) if self.kind.compared and self.kind.passed_then else 0.0
        return min(1.0, math.fsum(_chance(way, rate) for ways in self.confirmed.values() for way in ways))

    def after(self, failures: int, rate: float) -> float:
        """The same once so many of its first executions have failed."""
        before = _chance(self._first(failures), rate)
        ways = self.confirmed.get(failures, ())
        return min(1.0, math.fsum(_chance(way, rate) for way in ways) / before) if before else 0.0

    def outcomes(self, rate: float) -> list[float]:
        """The chances of 0, 1, 2 … failures among its first executions."""
        return [_chance(self._first(failures), rate) for failures in range(self.cases.trials + 1)]

    @cached_property
    def confirmed(self) -> dict[int, tuple[RerunPaths, ...]]:
        """The ways that end in a regression, by the number of failures among the first executions."""
        return {failures: tuple(self._ways(failures)) for failures in range(1, self.cases.trials + 1)}

    def _first(self, failures: int) -> RerunPaths:
        trials = self.cases.trials
        return RerunPaths(trials - failures, failures, math.comb(trials, failures))

    def _fails_at_first(self, rate: float) -> float:
        """That at least half of the trials fail: a case passes when more than half of them do."""
        return math.fsum(
            chance for failures, chance in enumerate(self.outcomes(rate)) if failures * 2 >= self.cases.trials
        )

    def _ways(self, failures: int) -> list[RerunPaths]:
        start = self._first(failures)
        first = Counts(passes=start.passes, failures=start.failures)
        found, level = [], {(0, 0): start.number}
        for _ in range(self.cases.confirmation.confirm + 1):
            further: dict[tuple[int, int], int] = defaultdict(int)
            for (passes, again), number in level.items():
                facts = replace(self.kind.facts, first=first, again=Counts(passes=passes, failures=again))
                if next_step(facts, self.cases.confirmation) is RerunStep.AGAIN:
                    further[passes + 1, again] += number
                    further[passes, again + 1] += number
                elif _regression(facts, self.cases.confirmation):
                    found.append(RerunPaths(first.passes + passes, first.failures + again, number))
            level = further
        return found


def _regression(facts: CaseFacts, confirmation: Confirmation) -> bool:
    """Whether it is one for the verdict, which sees that the re-runs have ended."""
    ended = replace(facts, end=RerunEnd.DECIDED)
    fails = facts.doubt in {Doubt.REGRESSION, Doubt.MUST_PASS}
    return fails and next_step(ended, confirmation) is RerunStep.CONFIRMED


def _chance(way: RerunPaths, rate: float) -> float:
    return way.number * (1.0 - rate) ** way.passes * rate**way.failures
