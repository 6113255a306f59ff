"""Evidence thresholds that keep runs without a real change from failing too often.

With evidence of N / α from each of N cases no more than α of such runs would be red by it, whatever the belief. That
is far too much: evidence comes in steps of one execution, and most cases cannot come near it by chance. So all ways
that the executions of a case can go are added up, for every history there is, and the bar is set where the chances
of all cases together are what may be spent.

What they move (`benchmarks/verdict/without.py`, without → with): a case that flaked 45 % and died, found 44.3 →
62.9 ± 4.6 %. Nearly all of that is `all_failed_threshold`, the lower bar of what failed every time: 43.8 → 64.1 ± 5.0
%. That short histories may spend less (`compute_history_share`): of 1,000 harmless pull requests on usual days, in
suites with a fifth that fails 30 % of the time, red after one run 44 → 4, after three 46 → 17, after eight 14 → 13;
dead cases found 99 → 99 %. It costs half-broken cases: after one run found 8.5 → 1.5 %, after three 11.9 → 7.1 %, after
eight 19.5 → 18.1 % (100 cases, all fail 5 %).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from eval_gate.gate.evidence.execution_groups import ExecutionGroup
from eval_gate.gate.evidence.prior import RATES, DayFactors, Prior
from eval_gate.model.evidence import Counts
from eval_gate.struct import FrozenStruct, replace

THRESHOLD_SHARE: Final = 0.35
"""The part of the error rate that bars may spend: what is left is for what no belief knows."""
ALL_FAILED_SHARE: Final = 0.15
"""The part of it for cases that failed every time, and now and then in the history, where that is less than the bar."""
FULL_SHARE_CASES: Final = 100
"""Cases of a run that may spend all of it; larger ones less, but half of it at least."""
SETTLED_EXECUTIONS: Final = 10
"""Executions of a case in the history from which on single cases may spend all of it."""
MIN_THRESHOLD: Final = 20.0
_BISECTION_STEPS: Final = 14
_MAX_EVIDENCE: Final = 1e200
MAX_LOG: Final = 600.0
"""Largest logarithm of evidence: more does not fit a float, and no threshold needs it."""
_MIN_WEIGHT: Final = 1e-280


def compute_alternative(unchanged: Prior) -> tuple[float, ...]:
    """Compute the weights of a case that got worse: dead, passing half as often, or anything worse.

    Of anything worse, failing a fifth to two thirds of the time has most weight: a dead case is found anyhow. In
    proportion to `unchanged` the weights grow with the rate, so that every failure adds to the evidence.
    """
    expected, half = 1 - unchanged.pass_rate, 1 - unchanged.pass_rate / 2
    nearest = min(range(len(RATES)), key=lambda at: abs(RATES[at] - half))
    ideal_weights = [
        (_DEAD if at == len(RATES) - 1 else 0.0)
        + (_HALF if at == nearest else 0.0)
        + (_EVEN * width if RATES[at] > expected else 0.0)
        for at, width in enumerate(_WIDTHS)
    ]
    most, raised = 0.0, []
    for weight, want in zip(unchanged.weights, ideal_weights, strict=True):
        most = min(max(most, want / weight), _MAX_EVIDENCE)
        raised.append(most * weight)
    total = math.fsum(raised)
    return tuple(max(one / total, _MIN_WEIGHT) for one in raised)


_DEAD, _HALF, _EVEN = 0.3, 0.2, 0.5
_BETWEEN, _ELSEWHERE = (0.2, 0.7), 0.3
_EDGES = [0.0, *((low + high) / 2 for low, high in itertools.pairwise(RATES)), 1.0]
_WIDTHS: Final = tuple(
    (high - low) * (1.0 if _BETWEEN[0] < rate < _BETWEEN[1] else _ELSEWHERE)
    for rate, (low, high) in zip(RATES, itertools.pairwise(_EDGES), strict=True)
)


@lru_cache(20_000)
def build_worse_prior(unchanged: Prior) -> Prior:
    """Build the prior of a case that got worse."""
    return replace(unchanged, weights=compute_alternative(unchanged))


def compute_error_share(cases: float) -> float:
    """Return the part of the false alarm rate that a run spends: all up to 100 cases, and half from 400 on.

    In a small suite, evidence comes in such large steps that most of what may be spent is not spent. In a large one a
    loss of all cases shows at any limit, so half of it finds about as much.
    """
    return min(1.0, max(0.5, math.sqrt(FULL_SHARE_CASES / max(cases, 1))))


def compute_history_share(histories: Iterable[tuple[tuple[int, int], float]]) -> float:
    """Return the part of the false alarm rate that single cases may spend: a tenth for each execution in the history.

    Fewer than ten show how often cases fail on average, and not that a few of them fail often, so the belief takes a
    flaky case for a solid one.
    """
    histories = list(histories)
    cases = math.fsum(number for counts, number in histories if sum(counts))
    executions = math.fsum(sum(counts) * number for counts, number in histories)
    return min(1.0, executions / cases / SETTLED_EXECUTIONS) if cases else 1.0


class EvidenceThresholds(FrozenStruct):
    """Evidence that a case needs, and the lower ones for a case that failed every time.

    `all_failed_threshold` is for one that failed in its history, too, `never_failed_threshold` for one that did not.
    """

    threshold: float
    all_failed_threshold: float | None
    never_failed_threshold: float = 0.0


MAX_TRIALS: Final = 100
"""Maximum trials of a run. The work grows with their square; beyond it, N / α is used for any number."""
EvidenceTable = dict[ExecutionGroup, tuple[float, float]]
"""By the executions here: the chance of one such order if nothing has changed, and the evidence."""
NEVER_FAILED_SHARE: Final = 0.3
"""The part of the error rate for cases that never failed before, fail every time here, and do so because executions of
one run belong together: what is left of it. While they stay within it, they need no evidence."""


class ExecutionLimits(NamedTuple):
    """Executions of a case: trials, how many of them have to pass (by default more than half), and maximum re-runs."""

    reruns: int
    trials: int = 1
    passes: int | None = None

    @property
    def passes_if_failing(self) -> range:
        """Numbers of passed trials with which the case fails."""
        return range(self.trials // 2 + 1 if self.passes is None else self.passes)

    @property
    def max_total(self) -> int:
        """All together."""
        return self.trials + self.reruns


@lru_cache(64)
def compute_thresholds(
    prior: Prior,
    histories: tuple[tuple[tuple[int, int], float], ...],
    executions: ExecutionLimits,
    false_alarm_rate: float,
    day: DayFactors = (),
) -> EvidenceThresholds:
    """Compute the thresholds of cases with these histories: passes and failures, and how many cases have them.

    They are never above N / α, which would do for any belief, with α as much smaller as a short history makes it.
    """
    number = max(math.fsum(many for _, many in histories), 1.0)
    history_share = compute_history_share(histories)
    most = number / (false_alarm_rate * history_share)
    kinds = [
        (failures, many, prior.add_history(Counts(passes=passes, failures=failures)).adjust_to_day(day))
        for (passes, failures), many in histories
        if passes
    ]
    tables = [(failures, many, _build_table(unchanged, executions)) for failures, many, unchanged in kinds]
    false_alarm_rate *= compute_error_share(number)
    budget = false_alarm_rate * THRESHOLD_SHARE * history_share
    low, high = math.log(min(MIN_THRESHOLD, most)), math.log(most)
    for _ in range(_BISECTION_STEPS):
        middle = (low + high) / 2
        spent = math.fsum(
            many * _compute_reach_chance(table, executions, math.exp(middle)) for _, many, table in tables
        )
        low, high = (low, middle) if spent <= budget else (middle, high)
    sure = math.exp(high)
    every = ExecutionGroup(0, executions.trials, 0, executions.reruns)
    failed = [(many, *table[every]) for failures, many, table in tables if failures]
    never, limit = [], false_alarm_rate * NEVER_FAILED_SHARE
    if prior.shares:
        never = [
            (many, _compute_shared_chance(unchanged, executions), table[every][1])
            for (failures, many, unchanged), (_, _, table) in zip(kinds, tables, strict=True)
            if not failures
        ]
    return EvidenceThresholds(
        sure,
        _lower_threshold(failed, sure, false_alarm_rate * ALL_FAILED_SHARE),
        _lower_threshold(never, sure, limit) if math.fsum(many * chance for many, chance, _ in never) > limit else 0.0,
    )


def _lower_threshold(cases: Iterable[tuple[float, float, float]], sure: float, budget: float) -> float:
    """Lower the threshold `sure` as far as chances stay within `budget`; `cases` are numbers, chances and evidence."""
    lowest = sure
    for many, chance, evidence in sorted(cases, key=lambda one: -one[2]):
        if evidence < sure:
            budget -= chance * many
            if budget < 0:
                break
            lowest = evidence
    return lowest


def _compute_shared_chance(unchanged: Prior, executions: ExecutionLimits) -> float:
    """Compute by how much shared executions raise the chance that a case fails all of them."""
    first, reruns = Counts(failures=executions.trials), Counts(failures=executions.reruns)
    shared, independent = (
        math.exp(one.compute_log_chance(first, reruns)) for one in (unchanged, replace(unchanged, shares=()))
    )
    return max(shared - independent, 0.0)


def compute_run_thresholds(
    prior: Prior,
    histories: Mapping[tuple[int, int], int],
    number: int,
    executions: ExecutionLimits,
    false_alarm_rate: float,
    day: DayFactors = (),
) -> EvidenceThresholds | None:
    """Compute the evidence thresholds of a run with `number` cases; `histories` are those of a sample of them.

    Return None if no case has a history, if nothing is re-run, or if another tool made more than `MAX_TRIALS`.
    """
    sample_size = sum(number for (passes, failures), number in histories.items() if passes + failures)
    if not sample_size or not executions.reruns or executions.trials > MAX_TRIALS:
        return None
    factor = max(number / sample_size, 1.0)
    many = tuple((history, number * factor) for history, number in sorted(histories.items()) if sum(history))
    return compute_thresholds(prior, many, executions, false_alarm_rate, day)


def _build_table(unchanged: Prior, executions: ExecutionLimits) -> EvidenceTable:
    """Build the table of all executions in which the case fails its trials."""
    worse, table = build_worse_prior(unchanged), EvidenceTable()
    for passes in executions.passes_if_failing:
        first = Counts(passes=passes, failures=executions.trials - passes)
        for number in range(executions.reruns + 1):
            for rerun_passes in range(number + 1):
                reruns = Counts(passes=rerun_passes, failures=number - rerun_passes)
                chance = unchanged.compute_log_chance(first, reruns)
                evidence = worse.compute_log_chance(first, reruns) - chance
                table[ExecutionGroup.from_counts(first, reruns)] = math.exp(chance), math.exp(min(evidence, MAX_LOG))
    return table


def _compute_reach_chance(table: EvidenceTable, executions: ExecutionLimits, bar: float) -> float:
    """Compute the chance that a case fails its trials and then reaches `bar`."""
    trials, reach_chance = executions.trials, 0.0
    for passes in executions.passes_if_failing:
        ways = {0: math.comb(trials, passes)}  # by passes of re-runs
        for reruns in range(executions.reruns + 1):
            further: dict[int, int] = {}
            for rerun_passes, number in ways.items():
                group = ExecutionGroup(passes, trials - passes, rerun_passes, reruns - rerun_passes)
                chance, evidence = table[group]
                if evidence >= bar and group.failures + group.rerun_failures >= min(2, executions.max_total):
                    reach_chance += number * chance
                else:
                    further[rerun_passes] = further.get(rerun_passes, 0) + number
                    further[rerun_passes + 1] = further.get(rerun_passes + 1, 0) + number
            ways = further
    return reach_chance
