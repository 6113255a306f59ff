"""Chance that a run finds a loss: exact for one case, by a small seeded simulation for all.

Of one case every way its re-runs can go is followed (`ExecutionTree`). Each leaf is what `decide_next_step` makes of
the executions so far, as re-runs and verdict do, so that these figures cannot say anything else than the gate does.

Of all cases (`LossSimulation`) only first executions are left to chance: how many cases of each history fail at first
is drawn, and whether all together are a drop is asked of the very test that the verdict asks. So a hundred thousand
cases cost as much as there are different histories.
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

from eval_gate.gate.evidence.case_classification import SUITE_TEST_SHARE, CaseFacts, decide_next_step
from eval_gate.gate.evidence.execution_groups import ExecutionGroup, compute_log_group_chance
from eval_gate.gate.evidence.rerun_decision import RerunCriteria, RerunStep, Suspicion
from eval_gate.gate.evidence.suite.failures import Stratum
from eval_gate.gate.evidence.suite_drop import run_suite_test
from eval_gate.gate.evidence.thresholds import compute_error_share
from eval_gate.gate.power.case_groups import CaseGroup, CaseGroups
from eval_gate.model.evidence import Counts
from eval_gate.model.result import RerunStopReason
from eval_gate.struct import FrozenStruct, replace

DRAWS: Final = 200
MANY_CASES: Final = 200
"""Cases from which on half as many draws do: there a point is many failures, and chance plays a smaller part."""
MIN_FOUND_SHARE: Final = 0.9
"""The share of runs in which a loss has to be found to be called found."""
MAX_POINTS: Final = 100
_SEED: Final = "what can be seen"
_MAX_UNNOTICED: Final = 1e-3
"""A chance of going unnoticed below this one needs no test of all cases."""
_NORMAL_TEST_VARIANCE: Final = 10.0
"""The variance from which on the test may take the normal distribution: off by a fraction of a failure, and quick."""
_NORMAL_DRAW_VARIANCE: Final = 1_000.0
"""The variance from which on it also draws how many cases fail."""
_MIN_UNIFORM: Final = 1e-12


class RerunPaths(FrozenStruct):
    """Number of orders in which a case is confirmed with these passes and failures."""

    group: ExecutionGroup
    number: int


class ExecutionTree(FrozenStruct, dict=True):
    """All ways in which one case of a group can be executed, re-runs included."""

    group: CaseGroup
    groups: CaseGroups

    def compute_regression_chance(self, rate: float) -> float:
        """Compute the chance that one run calls the case a regression if it fails at `rate` (0 to 1)."""
        if not self.groups.criteria.max_reruns:
            is_suspect = self.group.is_compared and self.group.passed_before
            return self._compute_first_failure_chance(rate) if is_suspect else 0.0
        paths = (path for paths in self.confirmed_paths.values() for path in paths)
        return min(1.0, math.fsum(self._compute_chance(path, rate) for path in paths))

    def compute_chance_after(self, failures: int, rate: float) -> float:
        """Compute the chance of a regression once `failures` of the first executions have failed."""
        start = self._compute_chance(self._build_first_path(failures), rate)
        paths = self.confirmed_paths.get(failures, ())
        return min(1.0, math.fsum(self._compute_chance(path, rate) for path in paths) / start) if start else 0.0

    def compute_failure_chances(self, rate: float) -> list[float]:
        """Compute the chances of 0, 1, 2 … failures among the first executions."""
        paths = map(self._build_first_path, range(self.groups.criteria.trials + 1))
        return [self._compute_chance(path, rate) for path in paths]

    def _compute_chance(self, path: RerunPaths, rate: float) -> float:
        return path.number * math.exp(compute_log_group_chance(rate, path.group, self.groups.criteria.prior.shares))

    @cached_property
    def confirmed_paths(self) -> dict[int, tuple[RerunPaths, ...]]:
        """The paths that end in a regression, by the number of failures among the first executions."""
        return {failures: tuple(self._find_paths(failures)) for failures in range(1, self.groups.criteria.trials + 1)}

    def _build_first_path(self, failures: int) -> RerunPaths:
        trials = self.groups.criteria.trials
        return RerunPaths(ExecutionGroup(trials - failures, failures), math.comb(trials, failures))

    def _compute_first_failure_chance(self, rate: float) -> float:
        return math.fsum(self.compute_failure_chances(rate)[(self.groups.criteria.trials + 1) // 2 :])

    def _find_paths(self, failures: int) -> list[RerunPaths]:
        start = self._build_first_path(failures)
        first = Counts(passes=start.group.passes, failures=failures)
        paths, level = [], {(0, 0): start.number}
        for _ in range(self.groups.criteria.max_reruns + 1):
            further: dict[tuple[int, int], int] = defaultdict(int)
            for (passes, rerun_failures), number in level.items():
                facts = replace(self.group.facts, first=first, reruns=Counts(passes=passes, failures=rerun_failures))
                if decide_next_step(facts, self.groups.criteria) is RerunStep.AGAIN:
                    further[passes + 1, rerun_failures] += number
                    further[passes, rerun_failures + 1] += number
                elif _is_regression(facts, self.groups.criteria):
                    group = start.group._replace(rerun_passes=passes, rerun_failures=rerun_failures)
                    paths.append(RerunPaths(group, number))
            level = further
        return paths


def _is_regression(facts: CaseFacts, criteria: RerunCriteria) -> bool:
    """Whether it is one for the verdict, which sees that the re-runs have ended."""
    final_facts = replace(facts, rerun_end=RerunStopReason.DECIDED)
    fails = facts.suspicion in {Suspicion.REGRESSION, Suspicion.MUST_PASS}
    return fails and decide_next_step(final_facts, criteria) is RerunStep.CONFIRMED


class _FirstOutcome(FrozenStruct):
    """Cases of one kind with the same first results. `stratum` is None outside the test of all cases."""

    stratum: Stratum | None
    unconfirmed_chance: float
    """The chance that one of them is not confirmed by itself."""


class LossSimulation:
    """Simulation of runs in which all cases fail more often by the same number of points."""

    def __init__(self, cases: CaseGroups, trees: Sequence[ExecutionTree]) -> None:
        """One tree for each kind of case, in their order."""
        self._cases, self._trees = cases, trees
        random = Random(_SEED)  # noqa: S311 (a simulation, no secret)
        many = DRAWS if cases.number <= MANY_CASES else DRAWS // 2
        self._draws = [[random.random() for _ in range(len(trees) * cases.criteria.trials)] for _ in range(many)]
        self._known: dict[frozenset[tuple[Stratum, int]], bool] = {}
        """Whether that many cases of each kind are a drop; with few histories, many draws are equal."""

    def compute_red_chance(self, points: float) -> float:
        """Compute the chance that the gate fails if every case fails more often by `points` (0 to 100)."""
        outcomes = [self._compute_outcomes(tree, points) for tree in self._trees]
        return math.fsum(self._compute_draw_chance(draw, outcomes) for draw in self._draws) / len(self._draws)

    def find_smallest_loss(self) -> int | None:
        """In whole points, the smallest loss that is found often enough. None where not even the largest one is."""
        if not self._is_found_often(MAX_POINTS):
            return None
        low, high = 0, MAX_POINTS
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._is_found_often(middle) else (middle, high)
        return high

    def _is_found_often(self, points: float) -> bool:
        """Whether it is, without the draws that cannot change that any more."""
        outcomes = [self._compute_outcomes(tree, points) for tree in self._trees]
        red, least = 0.0, len(self._draws) * MIN_FOUND_SHARE
        for number, draw in enumerate(self._draws, start=1):
            red += self._compute_draw_chance(draw, outcomes)
            if red >= least or red + len(self._draws) - number < least:
                break
        return red >= least

    def _compute_outcomes(self, tree: ExecutionTree, points: float) -> tuple[list[float], list[_FirstOutcome]]:
        """For 0, 1, 2 … failures at first: how likely that is, and what it means."""
        usual = 1.0 - self._cases.criteria.prior.add_history(tree.group.history.counts).pass_rate
        rate = min(1.0, usual + points / 100)
        chances = tree.compute_failure_chances(rate)
        return chances, [
            _FirstOutcome(_build_stratum(tree, failures), 1.0 - tree.compute_chance_after(failures, rate))
            for failures in range(len(chances))
        ]

    def _compute_draw_chance(self, draw: list[float], outcomes: list[tuple[list[float], list[_FirstOutcome]]]) -> float:
        strata: Counter[Stratum] = Counter()
        unnoticed = 1.0
        at = iter(draw)
        for tree, (chances, means) in zip(self._trees, outcomes, strict=True):
            number, rest = tree.group.number, 1.0
            for failures in range(len(chances) - 1, -1, -1):
                share = 1.0 if not failures else min(1.0, chances[failures] / rest) if rest > 0 else 0.0
                many = number if not failures else _draw_binomial(next(at), number, round(share, 12))
                number, rest = number - many, rest - chances[failures]
                if many:
                    unnoticed *= means[failures].unconfirmed_chance ** many
                    if (stratum := means[failures].stratum) is not None:
                        strata[stratum] += many
        if unnoticed < _MAX_UNNOTICED:
            return 1.0
        return 1.0 if self._is_suite_drop(strata) else 1.0 - unnoticed

    def _is_suite_drop(self, strata: Counter[Stratum]) -> bool:
        key = frozenset(strata.items())
        if key not in self._known:
            criteria, days = self._cases.criteria, self._cases.day_effects
            limit = criteria.false_alarm_rate * SUITE_TEST_SHARE * compute_error_share(criteria.cases)
            self._known[key] = run_suite_test(strata, days, limit, wide=_NORMAL_TEST_VARIANCE).is_drop
        return self._known[key]


def _build_stratum(tree: ExecutionTree, failures: int) -> Stratum | None:
    first = Counts(passes=tree.groups.criteria.trials - failures, failures=failures)
    facts = replace(tree.group.facts, first=first)
    return facts.stratum._replace(share=tree.groups.criteria.trial_share) if facts.is_in_suite_test else None


def _draw_binomial(uniform: float, number: int, share: float) -> int:
    """Return the binomial quantile of a number between 0 and 1."""
    if not number or share <= 0.0:
        return 0
    if share >= 1.0:
        return number
    if (variance := number * share * (1 - share)) > _NORMAL_DRAW_VARIANCE:
        z = NormalDist().inv_cdf(min(max(uniform, _MIN_UNIFORM), 1 - _MIN_UNIFORM))
        return min(max(round(number * share + z * math.sqrt(variance)), 0), number)
    lowest, cumulated = _compute_cumulative_chances(number, share)
    return min(lowest + bisect_left(cumulated, uniform), number)


@lru_cache(4_096)
def _compute_cumulative_chances(number: int, share: float) -> tuple[int, list[float]]:
    """Compute binomial chances of at most as many, from the smallest number that matters on."""
    mean, spread = number * share, math.sqrt(number * share * (1 - share))
    lowest, highest = max(0, int(mean - 8 * spread)), min(number, int(mean + 8 * spread) + 8)
    orders = math.lgamma(number + 1)
    cumulated, total = [], 0.0
    for count in range(lowest, highest + 1):
        ways = orders - math.lgamma(count + 1) - math.lgamma(number - count + 1)
        total += math.exp(ways + count * math.log(share) + (number - count) * math.log1p(-share))
        cumulated.append(total)
    return lowest, cumulated
