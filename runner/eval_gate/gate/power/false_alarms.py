"""Chance that a harmless pull request fails the gate, estimated from what was seen so far.

The evidence that a case needs follows from what is believed of its suite. A few runs of the default branch do not show
which cases are flaky: one that passed so far is a regression when it fails every time here. Of many such cases some do
that by chance, and a large suite is red then more often than is promised. How many flaky cases there are shows sooner
than which they are, by the re-runs of this run and of those in the history: two kinds of cases are fitted to them, one
that seldom fails and one that often does (maximum likelihood). Cases that have failed in the history count for nothing
here: they are held to a threshold of their own (`thresholds`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from eval_gate.config.policy import DEFAULT_FALSE_ALARM_RATE
from eval_gate.gate.evidence.case_history import count_case_responses
from eval_gate.gate.evidence.new_case_runs import NEW_CASE_CLASSES
from eval_gate.gate.power.case_groups import CaseGroup, CaseGroups, group_run_cases, relearn_prior
from eval_gate.gate.power.loss_detection import ExecutionTree
from eval_gate.model.comparison import CaseClass
from eval_gate.model.evidence import Counts
from eval_gate.model.execution import Status
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.struct import FrozenStruct, replace

PROMISED_SHARE: Final = 0.02
"""Of harmless pull requests at most this share is red: what is promised with the default error rate."""
MORE_RUNS: Final = (1, 2, 3, 4, 5, 7, 10)
"""Further runs of the default branch that may change it."""
MAX_CASES: Final = 20_000
"""Cases of a run whose results are looked at here."""
_SOLID_RATES: Final = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1)
_FLAKY_RATES: Final = (0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
_PASSED_AS_SEEN, _FAILED_AS_SEEN = 4, 1
"""Prior passes and failures of cases that often fail: few re-runs say little."""
_FITTING_STEPS: Final = 8
_MIN_LOG_GAIN: Final = 2.0
"""By so much (a logarithm) two kinds of cases have to explain more than one does."""
_FIRST_SHARE: Final = 0.1
_BROKEN_AFTER: Final = 6
"""A case that failed every time, and so often, is broken and no flaky one."""
_MIN_RATE: Final = 1e-9

ObservedCounts = Collection[tuple[tuple[int, int], int]]
"""By passes and failures, how many cases have passed and failed so often, in the history and here."""


class FlakinessMixture(NamedTuple):
    """Mixture of two kinds of cases: a share that fails often, and the rest that seldom fails."""

    solid_rate: float
    flaky_rate: float
    flaky_share: float

    def compute_flaky_chance(self, counts: Counts) -> float:
        """Compute the chance that a case with this history is one that often fails."""
        flaky = self.flaky_share * _compute_likelihood(self.flaky_rate, counts.passes, counts.failures)
        solid = (1 - self.flaky_share) * _compute_likelihood(self.solid_rate, counts.passes, counts.failures)
        return flaky / max(flaky + solid, 1e-300)


class FalseAlarms(FrozenStruct):
    """Estimate of the chance that a harmless pull request fails the gate.

    With `more_runs` further runs in the history, the chance (0 to 1) is `promised_share`. None if no number of runs
    achieves that.
    """

    chance: float
    cases: int
    flaky: int
    runs: int
    more_runs: int | None
    promised_share: float = PROMISED_SHARE


def estimate_run_false_alarms(run: RunResult) -> FalseAlarms | None:
    """Estimate the false alarms of a run with a verdict; None if they stay below the limit, or if nothing is known."""
    cases = group_run_cases(run)
    if cases is None or not cases.runs or not cases.criteria.max_reruns or cases.allowed_regressions:
        return None
    if not 0 < cases.number <= MAX_CASES:
        return None
    return estimate_false_alarms(cases, frozenset(_count_seen(run).items()))


@lru_cache(maxsize=1)
def estimate_false_alarms(cases: CaseGroups, counts: ObservedCounts) -> FalseAlarms | None:
    """Estimate the chance that a harmless pull request fails the gate, once for all reports of a run.

    Return None if the promised share holds, or if `counts` does not show two kinds of cases.
    """
    kinds, promised = fit_mixture(counts), compute_promised_share(cases)
    if kinds is None or (chance := compute_red_chance(cases, kinds)) <= promised:
        return None
    projections = ((runs, project_history(cases, kinds, runs)) for runs in MORE_RUNS)
    more = next((runs for runs, projected in projections if compute_red_chance(projected, kinds) <= promised), None)
    flaky = max(round(kinds.flaky_share * cases.number), 1)
    return FalseAlarms(chance, cases.number, flaky, cases.runs, more, promised)


def compute_promised_share(cases: CaseGroups) -> float:
    """Return the share of harmless pull requests that may fail the gate; it grows with the false alarm rate."""
    return PROMISED_SHARE * max(cases.criteria.false_alarm_rate / DEFAULT_FALSE_ALARM_RATE, 1.0)


def fit_mixture(counts: ObservedCounts) -> FlakinessMixture | None:
    """Fit the two kinds of cases that explain best what was seen. Return None if one kind explains it about as well."""
    cases = [
        (passes, failures, number)
        for (passes, failures), number in sorted(counts)
        if passes or 0 < failures < _BROKEN_AFTER
    ]
    if not any(failures for _, failures, _ in cases):
        return None
    log, best = max(_fit_share(cases, seldom, often) for seldom in _SOLID_RATES for often in _FLAKY_RATES)
    return best if log - _compute_single_rate_fit(cases) > _MIN_LOG_GAIN else None


def _compute_single_rate_fit(cases: Sequence[tuple[int, int, int]]) -> float:
    """How well one rate explains it that all cases share (a logarithm)."""
    failed = sum(failures * number for _, failures, number in cases)
    passed = sum(passes * number for passes, _, number in cases)
    rate = min(max(failed / (passed + failed), _MIN_RATE), 1 - _MIN_RATE)
    return passed * math.log1p(-rate) + failed * math.log(rate)


def _fit_share(cases: Sequence[tuple[int, int, int]], seldom: float, often: float) -> tuple[float, FlakinessMixture]:
    """How well these rates explain it (a logarithm), and with which share of flaky cases."""
    rows = [
        (number, _compute_likelihood(often, passes, failures), _compute_likelihood(seldom, passes, failures))
        for passes, failures, number in cases
    ]
    total, share = sum(number for number, _, _ in rows), _FIRST_SHARE
    for _ in range(_FITTING_STEPS):
        share = sum(number * share * flaky / (share * flaky + (1 - share) * solid) for number, flaky, solid in rows)
        share = min(max(share / total, _MIN_RATE), 1 - _MIN_RATE)
    prior_log = _PASSED_AS_SEEN * math.log1p(-often) + _FAILED_AS_SEEN * math.log(often)
    log = math.fsum(number * math.log(share * flaky + (1 - share) * solid) for number, flaky, solid in rows)
    return log + prior_log, FlakinessMixture(seldom, often, share)


def _compute_likelihood(rate: float, passes: int, failures: int) -> float:
    return max((1 - rate) ** passes * rate**failures, 1e-300)


def compute_red_chance(cases: CaseGroups, kinds: FlakinessMixture) -> float:
    """Compute the chance of at least one false regression among the cases that never failed in their history."""
    expected = 0.0
    for kind in cases.groups:
        if kind.history.counts.failures or not kind.is_compared:
            continue
        tree, flaky = ExecutionTree(kind, cases), kinds.compute_flaky_chance(kind.history.counts)
        often, seldom = map(tree.compute_regression_chance, (kinds.flaky_rate, kinds.solid_rate))
        expected += kind.number * (flaky * often + (1 - flaky) * seldom)
    return -math.expm1(-expected)


def project_history(cases: CaseGroups, kinds: FlakinessMixture, runs: int) -> CaseGroups:
    """Project the histories to `runs` further runs, in which each case fails as often as its kind; learn the prior."""
    groups = tuple(_iter_projected_groups(cases.groups, kinds, runs))
    return relearn_prior(replace(cases, groups=groups, runs=cases.runs + runs))


def _iter_projected_groups(groups: Sequence[CaseGroup], kinds: FlakinessMixture, runs: int) -> Iterator[CaseGroup]:
    for group in groups:
        history = group.history.counts
        flaky = kinds.compute_flaky_chance(history)
        if history.failures:
            failed = round(runs * (flaky * kinds.flaky_rate + (1 - flaky) * kinds.solid_rate))
            yield _add_counts(group, group.number, Counts(passes=runs - failed, failures=failed))
            continue
        clean = flaky * (1 - kinds.flaky_rate) ** runs + (1 - flaky) * (1 - kinds.solid_rate) ** runs
        number = round(group.number * clean)
        yield _add_counts(group, number, Counts(passes=runs))
        yield _add_counts(group, group.number - number, Counts(passes=runs - 1, failures=1))


def _add_counts(group: CaseGroup, number: int, more: Counts) -> CaseGroup:
    return replace(group, number=number, keys=(), history=replace(group.history, counts=group.history.counts.add(more)))


def _count_seen(run: RunResult) -> Counter[tuple[int, int]]:
    """Count passes and failures of each executed case, in history and this run, without those that may be broken."""
    comparison, results = run.comparison, run.without_reused.index_cases()
    assert comparison is not None
    assert comparison.evidence is not None
    counts: Counter[tuple[int, int]] = Counter()
    for change in comparison.changes:
        case = results.get(key := change.key)
        if case is None or case.dependent or change.change is CaseClass.REGRESSION or key in run.quarantined_keys:
            continue
        current = _count_case(case, comparison.evidence.pass_score)
        if change.change in NEW_CASE_CLASSES and not current.passes:
            continue
        history = change.case_history.counts if change.case_history else Counts()
        counts[history.passes + current.passes, history.failures + current.failures] += 1
    return counts


_PASSED_ONCE: Final = Counts(passes=1)


def _count_case(case: CaseResult, pass_score: float) -> Counts:
    if not case.graded and len(case.trials) == 1 and case.trials[0].status is Status.PASSED:  # as most cases do
        return _PASSED_ONCE
    counts = count_case_responses(case, pass_score)
    return counts.first.add(counts.reruns).without_agent_errors
