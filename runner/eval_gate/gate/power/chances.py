"""The chance that a run finds a loss: of one case exactly, of all cases together by a small seeded simulation.

Of one case every way its re-runs can go is followed (`Tree`). Each leaf is what `next_step` makes of the executions so
far, the function that stops the re-runs and that the verdict is made of, so that these figures cannot say anything else
than the gate does.

Of all cases (`Losses`) only first executions are left to chance: how many cases of each record fail at first is drawn,
and whether all together are a drop is asked of the very test that the verdict asks. So a hundred thousand cases cost as
much as there are different records.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cached_property, lru_cache
from random import Random
from statistics import NormalDist
from typing import Final

from eval_gate.gate.evidence.all_cases import whole_finding
from eval_gate.gate.evidence.bars import of_size
from eval_gate.gate.evidence.reruns import Confirmation, Doubt, RerunStep
from eval_gate.gate.evidence.settle import SUITE_SHARE, CaseFacts, next_step
from eval_gate.gate.evidence.suite.failures import Stratum
from eval_gate.gate.power.cases import CaseGroup, CaseGroups
from eval_gate.model.grounds import Counts
from eval_gate.model.result import RerunEnd
from eval_gate.struct import FrozenStruct, replace

DRAWS: Final = 200
LARGE: Final = 200
"""Cases from which on half as many draws do: there a point is many failures, and chance plays a smaller part."""
FOUND_IN: Final = 0.9
"""The share of runs in which a loss has to be found to be called found."""
MOST_POINTS: Final = 100
_SEED: Final = "what can be seen"
_CERTAIN: Final = 1e-3
"""A chance of going unnoticed below this one needs no test of all cases."""
_WIDE: Final = 10.0
"""The variance from which on the test may take the normal distribution: off by a fraction of a failure, and quick."""
_MANY: Final = 1_000.0
"""The variance from which on it also draws how many cases fail."""
_LEAST_UNIFORM: Final = 1e-12


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


class _Drawn(FrozenStruct):
    """Cases of one kind that do the same at first: `stratum` is None where the test of all cases leaves them out."""

    stratum: Stratum | None
    unconfirmed: float
    """The chance that one of them is not confirmed by itself."""


class Losses:
    """Losses of all cases alike, by the same number of points."""

    def __init__(self, cases: CaseGroups, trees: Sequence[Tree]) -> None:
        """One tree for each kind of case, in their order."""
        self._cases, self._trees = cases, trees
        random = Random(_SEED)  # noqa: S311 (a simulation, no secret)
        many = DRAWS if cases.number <= LARGE else DRAWS // 2
        self._draws = [[random.random() for _ in range(len(trees) * cases.trials)] for _ in range(many)]
        self._known: dict[frozenset[tuple[Stratum, int]], bool] = {}
        """Whether so many cases of each kind together are a drop: of few records, many draws come to the same."""

    def chance_of_red(self, points: float) -> float:
        """The chance that a run is red in which every case fails so many points (0 to 100) more often."""
        outcomes = [self._outcomes(tree, points) for tree in self._trees]
        return math.fsum(self._red(draw, outcomes) for draw in self._draws) / len(self._draws)

    def smallest(self) -> int | None:
        """In whole points, the smallest loss that is found often enough. None where not even the largest one is."""
        if not self._often(MOST_POINTS):
            return None
        low, high = 0, MOST_POINTS
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._often(middle) else (middle, high)
        return high

    def _often(self, points: float) -> bool:
        """Whether it is, without the draws that cannot change that any more."""
        outcomes = [self._outcomes(tree, points) for tree in self._trees]
        red, least = 0.0, len(self._draws) * FOUND_IN
        for done, draw in enumerate(self._draws, start=1):
            red += self._red(draw, outcomes)
            if red >= least or red + len(self._draws) - done < least:
                break
        return red >= least

    def _outcomes(self, tree: Tree, points: float) -> tuple[list[float], list[_Drawn]]:
        """For 0, 1, 2 … failures at first: how likely that is, and what it means."""
        rate = min(1.0, self._usual(tree.kind) + points / 100)
        chances = tree.outcomes(rate)
        return chances, [
            _Drawn(_stratum(tree, failures), 1.0 - tree.after(failures, rate)) for failures in range(len(chances))
        ]

    def _usual(self, kind: CaseGroup) -> float:
        """How often a case of this kind is believed to fail when nothing has changed."""
        return 1.0 - self._cases.confirmation.prior.after(kind.record.counts).pass_rate

    def _red(self, draw: list[float], outcomes: list[tuple[list[float], list[_Drawn]]]) -> float:
        """The chance that a run with these first executions is red."""
        strata: Counter[Stratum] = Counter()
        unnoticed = 1.0
        at = iter(draw)
        for tree, (chances, means) in zip(self._trees, outcomes, strict=True):
            left, rest = tree.kind.number, 1.0
            for failures in range(len(chances) - 1, -1, -1):
                share = 1.0 if not failures else min(1.0, chances[failures] / rest) if rest > 0 else 0.0
                many = left if not failures else _drawn(next(at), left, round(share, 12))
                left, rest = left - many, rest - chances[failures]
                if many:
                    unnoticed *= means[failures].unconfirmed ** many
                    if (stratum := means[failures].stratum) is not None:
                        strata[stratum] += many
        if unnoticed < _CERTAIN:
            return 1.0
        return 1.0 if self._dropped(strata) else 1.0 - unnoticed

    def _dropped(self, strata: Counter[Stratum]) -> bool:
        key = frozenset(strata.items())
        if key not in self._known:
            confirmation = self._cases.confirmation
            limit = confirmation.error_rate * SUITE_SHARE * of_size(confirmation.cases)
            self._known[key] = whole_finding(strata, self._cases.days, limit, wide=_WIDE).dropped
        return self._known[key]


def _stratum(tree: Tree, failures: int) -> Stratum | None:
    first = Counts(passes=tree.cases.trials - failures, failures=failures)
    facts = replace(tree.kind.facts, first=first)
    return facts.stratum if facts.in_whole else None


def _drawn(uniform: float, number: int, share: float) -> int:
    """How many of so many do it, each with this chance: the binomial quantile of a number between 0 and 1."""
    if not number or share <= 0.0:
        return 0
    if share >= 1.0:
        return number
    if (variance := number * share * (1 - share)) > _MANY:
        z = NormalDist().inv_cdf(min(max(uniform, _LEAST_UNIFORM), 1 - _LEAST_UNIFORM))
        return min(max(round(number * share + z * math.sqrt(variance)), 0), number)
    lowest, cumulated = _cumulated(number, share)
    return min(lowest + bisect_left(cumulated, uniform), number)


@lru_cache(4_096)
def _cumulated(number: int, share: float) -> tuple[int, list[float]]:
    """The least likely number that matters, and from there on the chances of at most so many."""
    mean, spread = number * share, math.sqrt(number * share * (1 - share))
    lowest, highest = max(0, int(mean - 8 * spread)), min(number, int(mean + 8 * spread) + 8)
    orders = math.lgamma(number + 1)
    cumulated, total = [], 0.0
    for count in range(lowest, highest + 1):
        ways = orders - math.lgamma(count + 1) - math.lgamma(number - count + 1)
        total += math.exp(ways + count * math.log(share) + (number - count) * math.log1p(-share))
        cumulated.append(total)
    return lowest, cumulated
