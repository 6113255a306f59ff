"""How much the executions of a case in one run belong together, learned from the runs of the default branch.

One prompt cache, one bad minute or one model replica hits all executions of a case in one run. Then a failure that is
repeated says little more than the first, and a gate that takes executions for independent is red for nothing. How much
of a case's variance belongs to the run shows in the branch's own runs: in their trials, and in the re-runs of what
failed. Some shares are weighed against each other by how well they explain those (`execution_groups`), and none at all
is believed most. Executions are taken for independent until the history speaks for a share.

Three other causes of repeated failures are separated from it. A case that the branch broke in one run fails there every
time: each run of a case is believed to be broken now and then, and a run that broke many cases at once is left out. On
a bad day all cases fail more: the rates of a case are those of the day. And a flaky case fails in other runs, too.

Re-runs that wait share less. What is learned from runs that waited as long as this one says how much; until there are
such runs, half of the belief is that they share nothing.

What it moves (`benchmarks/verdict/run_shares.py`, 60 cases at 5 %, without → with): three tenths of the variance belong
to the run, nothing changed, red 57.0 → 5.0 ± 2.8 %, with three trials 70.0 → 15.0 ± 5.6 %; where re-runs that wait
share nothing 1.7 ± 1.7 %. A tenth: red 17.5 → 6.7 ± 3.2 %. A dead case is found in 97 to 100 %, as without.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median_low
from typing import Final, NamedTuple

from eval_gate.gate.evidence.execution_groups import (
    ExecutionGroup,
    RunShares,
    compute_log_group_chance,
    compute_trial_share,
    sum_logs,
)
from eval_gate.gate.evidence.flakiness import CaseRun
from eval_gate.gate.evidence.prior import RATES, STEADY_RATE, Prior, learn_weights
from eval_gate.model.evidence import BranchRun, RunShare
from eval_gate.struct import FrozenStruct, replace

SHARES: Final = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.7, 0.95)
"""The shares that are weighed against each other; the last is that of a cache, which repeats itself."""
_SHARE_WEIGHTS: Final = (0.6, 0.06, 0.1, 0.12, 0.07, 0.03, 0.012, 0.006, 0.002)
"""Prior weights of the shares: large ones are rare, so that a few repeated failures do not keep a dead case open."""
CALM_WEIGHT: Final = _SHARE_WEIGHTS[0]
"""Weight of independence from which on executions are independent: the history has to speak for a share."""
SAME_DRAW_CHANCES: Final = (0.0, 0.5, 1.0)
"""The chances, weighed against each other, that re-runs belong to the same draw as the trials."""
_SAME_DRAW_WEIGHTS: Final = (0.1, 0.1, 0.8)
_MIN_WEIGHT: Final = 0.01
"""Smallest weight of a share; what has less is left out."""
BROKEN_CHANCE: Final = 0.005
"""Chance that the branch broke a case in one run; high, so that one broken case does not pass for a share."""
MIN_REPEATING_RUNS: Final = 3
"""Runs, and cases, with a repeated failure from which on there can be a share: of fewer, the branch may have broken one
or two."""
_MANY_BROKEN, _BROKEN_TIMES = 5, 3
"""A run that broke many cases: five at least that failed every execution, and three times as many as usual."""
_DAY_WEIGHT: Final = 8.0
"""Usual failures that are added to those of a day, so that few of them make no bad day."""
_DAY_STEPS: Final = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_LEARNING_STEPS: Final = 6
_MAX_GROUPS: Final = 4_000
"""Runs of cases that are looked at: more would say the same."""
SHORTEST_WAIT, WAIT_SECONDS, LONGEST_WAIT = 0.015, 600.0, 300.0
"""Re-runs wait from this share on, believed or not: a minute for each tenth of the variance, five at most."""
_SAME_WAIT: Final = 0.5
"""Part of this run's wait from which on the wait of another run counts as long."""
_ENOUGH_RUNS: Final = 5
"""Runs with re-runs that did not wait, from which on these tell the share."""


def compute_rerun_wait(share: float) -> float:
    """Compute the seconds that a re-run waits, so that it shares as little as possible with the executions before."""
    return 0.0 if share < SHORTEST_WAIT else min(share * WAIT_SECONDS, LONGEST_WAIT)


class ShareBelief(FrozenStruct):
    """What the history says of the share of the run.

    `run_share` is that of re-runs without a wait, from which the wait follows. `shares` are those of this run. One
    execution in the history says as much as `history_worth` independent ones.
    """

    run_share: float = 0.0
    shares: RunShares = ()
    history_worth: float = 1.0

    @property
    def trial_share(self) -> float:
        """The mean correlation of two trials of a case in one run."""
        return compute_trial_share(self.shares)


NO_SHARES: Final = ShareBelief()


def discount_rounds(belief: ShareBelief, groups: Iterable[str]) -> ShareBelief:
    """Count the runs of a group, warm-up rounds of one run, as whole runs only as far as the share allows.

    `groups` names the group of each run. Rounds begin anew as waited re-runs do, so half of the belief is that they
    share nothing.
    """
    sizes, share = Counter(groups).values(), belief.run_share / 2
    runs = sum(sizes)
    worth = math.fsum(size / (1.0 + (size - 1.0) * share) for size in sizes) / runs if runs else 1.0
    return replace(belief, history_worth=belief.history_worth * worth)


_SeenCases = Sequence[tuple[Sequence[tuple[int, CaseRun]], int]]
"""What the runs saw of a case, each with its place, and how many cases have the same history."""
_Rates = tuple[tuple[float, float], ...]
"""Failure rates of cases, with weights."""
_Belief = dict[float, float]
"""Values with weights that sum to 1."""


class _CaseGroups(NamedTuple):
    """Runs of equal cases: passes and failures of runs with one execution, and the other runs with factor and wait."""

    single: tuple[int, int]
    groups: tuple[tuple[ExecutionGroup, float, int], ...]
    number: int

    def select_groups(self, wait: int = 0) -> _CaseGroups:
        """Select the runs that waited about as long as `wait`, or those that did not wait."""
        groups = tuple(one for one in self.groups if (one[2] >= wait * _SAME_WAIT if wait else not one[2]))
        return self._replace(groups=groups)


def learn_run_shares(
    cases: _SeenCases, prior: Prior, days: Sequence[BranchRun], waits: Sequence[int], wait: int = 0
) -> ShareBelief:
    """Learn the shares from what the runs saw of each case.

    `prior` is the suite's own, `days` are its runs, `waits` how long the re-runs of each run waited, all newest first,
    and `wait` how long those of this run do.
    """
    if not any(_has_several(one) for runs, _ in cases for _, one in runs):
        return NO_SHARES
    groups, rates = _build_case_groups(cases, [_find_day_step(day) for day in days], waits), _weigh_rates(prior)
    trials = _select_trials(groups)
    prompt, late = ([case.select_groups(seconds) for case in groups] for seconds in (0, wait))
    rerun_places = {at for runs, _ in cases for at, one in runs if one.reruns.executions}
    if max(waits, default=0) and sum(not waits[at] for at in rerun_places) < _ENOUGH_RUNS and not trials:
        # the wait itself tells why runs waited
        shares = {min(SHARES, key=lambda one: abs(one - max(waits) / WAIT_SECONDS)): 1.0}
        if wait:
            belief = _weigh_shares(late, rates)
            return ShareBelief(max(shares), () if _is_calm(belief) else _join(belief, {1.0: 1.0}))
    else:
        shares = _weigh_shares(trials or prompt, rates)
    mean = math.fsum(share * weight for share, weight in shares.items())
    if _is_calm(shares):
        return ShareBelief(mean)
    same_draw = {1.0: 1.0}
    if trials:
        same_draw = _weigh_same_draw(prompt, rates, mean, dict(zip(SAME_DRAW_CHANCES, _SAME_DRAW_WEIGHTS, strict=True)))
    run_share = mean * math.fsum(part * weight for part, weight in same_draw.items())
    if wait:
        unknown = {part: weight / 2 for part, weight in same_draw.items()}
        same_draw = _weigh_same_draw(late, rates, mean, {**unknown, 0.0: unknown.get(0.0, 0.0) + 0.5})
    return ShareBelief(run_share, _join(shares, same_draw), 1.0 / (1.0 + (_count_mean_trials(cases) - 1.0) * mean))


def _is_calm(shares: _Belief) -> bool:
    return shares.get(0.0, 0.0) >= CALM_WEIGHT


def _has_several(one: CaseRun) -> bool:
    return one.first.executions > 1 or one.reruns.executions > 0


def _build_case_groups(cases: _SeenCases, steps: Sequence[float], waits: Sequence[int]) -> list[_CaseGroups]:
    broken = _find_breaking_places(cases)
    numbers: Counter[tuple[tuple[int, int], tuple[tuple[ExecutionGroup, float, int], ...]]] = Counter()
    for runs, number in cases:
        passes = failures = 0
        several = []
        for at, one in runs:
            if at in broken or not one.first.executions:
                continue
            if not _has_several(one):
                passes, failures = passes + one.first.passes, failures + one.first.failures
            else:
                several.append((ExecutionGroup.from_counts(one.first, one.reruns), steps[at], waits[at]))
        numbers[(passes, failures), tuple(sorted(several))] += number
    ordered = sorted(numbers.items())
    stride = -(-sum(len(several) for (_, several), _ in ordered) // _MAX_GROUPS)
    return [_CaseGroups(single, several, number) for (single, several), number in ordered[:: max(stride, 1)]]


def _find_breaking_places(cases: _SeenCases) -> set[int]:
    """Find the runs that broke many cases at once: these failed every execution."""
    broken: Counter[int] = Counter()
    for runs, number in cases:
        for at, one in runs:
            if _has_several(one):
                broken[at] += number * (not one.first.passes and not one.reruns.passes)
    usual = median_low(broken.values()) if broken else 0
    return {at for at, count in broken.items() if count >= max(_MANY_BROKEN, _BROKEN_TIMES * usual)}


def _count_mean_trials(cases: _SeenCases) -> float:
    """Count the first executions of a case in one run of the branch, on average."""
    runs = sum(number * len(of_case) for of_case, number in cases)
    return sum(number * one.first.executions for of_case, number in cases for _, one in of_case) / max(runs, 1)


def _find_day_step(day: BranchRun) -> float:
    """Find by how much a day multiplied failures."""
    factor = (day.failures + _DAY_WEIGHT) / (day.expected + _DAY_WEIGHT)
    return min(_DAY_STEPS, key=lambda step: abs(math.log(step / factor)))


def _select_trials(cases: Sequence[_CaseGroups]) -> list[_CaseGroups]:
    """Keep the first executions of all runs; there are none if no run has several of a case."""
    trials = [
        case._replace(groups=tuple((ExecutionGroup(*one[:2]), day, wait) for one, day, wait in case.groups))
        for case in cases
    ]
    return trials if any(one.passes + one.failures > 1 for case in trials for one, _, _ in case.groups) else []


def _weigh_rates(prior: Prior) -> _Rates:
    """Weigh the failure rates that cases had so far: the steadiest ones nearly none."""
    least, *rest = prior.weights
    weights = (least * prior.steady, least * (1.0 - prior.steady), *rest)
    return tuple((rate, weight) for rate, weight in zip((STEADY_RATE, *RATES), weights, strict=True) if weight > 0.0)


def _weigh_shares(cases: Sequence[_CaseGroups], rates: _Rates) -> _Belief:
    """Weigh the shares by how well they explain executions that all share one draw."""
    return _normalize(
        {
            share: math.log(weight) + _sum_log_chances(cases, rates, share, 1.0)
            for share, weight in zip(SHARES, _SHARE_WEIGHTS, strict=True)
        }
    )


def _weigh_same_draw(cases: Sequence[_CaseGroups], rates: _Rates, share: float, weights: _Belief) -> _Belief:
    """Weigh how likely re-runs belong to the draw of the trials, from these prior weights."""
    return _normalize(
        {
            part: math.log(weight) + _sum_log_chances(cases, rates, share, part)
            for part, weight in weights.items()
            if weight > 0.0
        }
    )


def _sum_log_chances(cases: Sequence[_CaseGroups], rates: _Rates, share: float, same_draw: float) -> float:
    """Sum the logarithms of the chances of what the runs saw of each case, over its possible rates.

    How many cases have which rate is learned from the same executions: flaky cases would pass for a share otherwise.
    """
    shares = (RunShare(trials=share, reruns=share * same_draw, weight=1.0),) if share else ()
    tables: dict[tuple[ExecutionGroup, float], list[float]] = {}
    chances, total = [], 0.0
    for case in cases:
        passes, failures = case.single
        logs = [passes * math.log1p(-rate) + failures * math.log(rate) for rate, _ in rates]
        for group, day, _ in case.groups:
            if (group, day) not in tables:
                tables[group, day] = [
                    _compute_log_chance(group, min(rate * day, RATES[-1]), shares) for rate, _ in rates
                ]
            logs = [one + other for one, other in zip(logs, tables[group, day], strict=True)]
        most = max(logs)
        total += case.number * most
        chances.append((case.number, [math.exp(log - most) for log in logs]))
    weights = learn_weights([weight for _, weight in rates], chances, _LEARNING_STEPS)
    return total + math.fsum(
        many * math.log(math.fsum(weight * chance for weight, chance in zip(weights, likely, strict=True)))
        for many, likely in chances
    )


def _compute_log_chance(group: ExecutionGroup, rate: float, shares: RunShares) -> float:
    """Compute the chance of a run of a case, which the branch may have broken in it."""
    usual = math.log1p(-BROKEN_CHANCE) + compute_log_group_chance(rate, group, shares)
    return sum_logs([usual, math.log(BROKEN_CHANCE) + compute_log_group_chance(RATES[-1], group, ())])


def _normalize(logs: _Belief) -> _Belief:
    """Turn logarithms into weights that sum to 1, without the smallest."""
    most = max(logs.values())
    weights = {value: math.exp(log - most) for value, log in logs.items()}
    total = math.fsum(weights.values())
    large_weights = {value: weight for value, weight in weights.items() if weight >= total * _MIN_WEIGHT}
    return {value: weight / math.fsum(large_weights.values()) for value, weight in large_weights.items()}


def _join(shares: _Belief, same_draw: _Belief) -> RunShares:
    run_shares = [
        RunShare(trials=share, reruns=share * part, weight=weight * of_part)
        for share, weight in shares.items()
        for part, of_part in (same_draw.items() if share else [(0.0, 1.0)])
        if weight * of_part >= _MIN_WEIGHT
    ]
    total = math.fsum(one.weight for one in run_shares)
    return tuple(replace(one, weight=one.weight / total) for one in run_shares)
