"""Suite test: whether all cases together fail more than their history, on any day of the branch.

Two questions share one error rate, each asked by the test of `suite/failures`: whether all cases fail more than before,
and whether those that seldom fail do. The first finds what is a little worse everywhere; the second what is broken
while something else was fixed, since cases that failed often and pass now pay for nothing there. Which case seldom
fails is decided by all its executions, those here included, so that it does not depend on where the failures fell. The
answer is the rarer of both, times how much likelier it is that any of two questions comes out so: exactly, as both are
sums over cases.

Every case is paired with its own history, and every trial of it counts: they were made whatever came of the others.
Re-runs were not, so they count neither here nor in the history. Sixty cases that fall from 95 to 90 % with ten trials
each, after one run of the branch: a drop in 76 of 100 pull requests (a paired t-test at the same limit: 83), after
three in 89 (`benchmarks/verdict/trials.py`); where nothing changed, in fewer than 1 of 100.

The second question is kept for one line: where 20 of 100 cases fall from 98 to 70 % while 20 others are fixed, the gate
is red in 50 % of the pull requests with it and in 33 % without, after 3 and 10 runs (`suite.steady` of
`benchmarks/verdict/without.py`). Pairing does not replace it: the fixed cases lower the sum over cases.

Then whole runs differ: by what the history shows of its days (`days`), and by a mishap of a kind that it has not shown
yet, in which one case in fifty fails.

What the mishap moves (`benchmarks/verdict/without.py`, without → with): cases that never failed fail 2 % today, red
25.5 → 0.9 ± 7.2 %. What the second question moves: 20 cases 98 → 70 % while 20 others are fixed, found 43.1 →
75.4 ± 6.4 %.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import accumulate
from typing import Final, NamedTuple

from eval_gate.gate.evidence.day_effects import DayEffects
from eval_gate.gate.evidence.suite.failures import (
    DEFAULT_LIMIT,
    NORMAL_VARIANCE,
    Stratum,
    compute_chance_at_rate,
    compute_moments,
    compute_sum_distribution,
    compute_tail_chance,
    count_strata,
)
from eval_gate.model.evidence import SuiteFinding

MISHAP_RATE: Final = 0.02
"""How many of the cases that mostly pass may fail in a mishap."""


class _SuiteTest(NamedTuple):
    """One test: cases, their executions and failures in this run, mean, variance, and chance."""

    cases: int
    executions: int
    failures: int
    mean: float
    variance: float
    chance_without_days: float
    chance: float


def run_suite_test(
    strata: Iterable[Stratum], days: DayEffects, limit: float = DEFAULT_LIMIT, *, wide: float = NORMAL_VARIANCE
) -> SuiteFinding:
    """Run the suite test over all cases that have executions both in the history and in this run.

    Without any, nothing has dropped, and the chance is 1. A caller that has counted equal strata already passes the
    counts (a `Counter`). `limit` is the accepted chance of a false drop. Above the variance `wide`, the normal
    distribution is used.
    """
    kinds = count_strata(strata)
    steady = Counter({kind: count for kind, count in kinds.items() if kind.is_steady})
    unsteady = Counter({kind: count for kind, count in kinds.items() if not kind.is_steady})
    tested = [_run_test(kinds, days, wide)]
    if compute_moments(unsteady)[1] > 0 and compute_moments(steady)[1] > 0:
        tested.append(_run_test(steady, days, wide))
    best = min(tested, key=lambda one: one.chance)
    times = _compute_multiplicity(steady, unsteady, tested, wide) if len(tested) > 1 else 1.0
    chance, plain_chance = min(best.chance * times, 1.0), min(best.chance_without_days * times, 1.0)
    widened = days.has_effects and plain_chance < chance
    chance += days.mishap_chance * max(compute_chance_at_rate(kinds, MISHAP_RATE) - chance, 0.0)
    return SuiteFinding(
        cases=best.cases,
        failures=best.failures,
        executions=best.executions if best.executions != best.cases else None,
        expected=best.mean,
        chance=chance,
        limit=limit,
        steady_cases_only=len(tested) > 1 and best is tested[1],
        chance_if_runs_equal=plain_chance if widened else None,
    )


def _run_test(kinds: Counter[Stratum], days: DayEffects, wide: float) -> _SuiteTest:
    failures = sum(kind.failures * count for kind, count in kinds.items())
    mean, variance = compute_moments(kinds)
    plain_chance = compute_tail_chance(kinds, failures, wide)
    executions = sum(kind.runs * count for kind, count in kinds.items())
    chance = days.widen_chance(plain_chance, failures, mean, variance)
    return _SuiteTest(kinds.total(), executions, failures, mean, variance, plain_chance, chance)


def _compute_multiplicity(
    steady: Counter[Stratum], unsteady: Counter[Stratum], tested: list[_SuiteTest], wide: float
) -> float:
    """Compute how much likelier one of both chances is so small than this one: 1 to 2; days move both the same way."""
    least = min(one.chance_without_days for one in tested)
    if compute_moments(steady)[1] + compute_moments(unsteady)[1] > wide or least <= 0.0:
        return 2.0
    if least >= 0.5:
        return 1.0
    lowest, chances = compute_sum_distribution(steady)
    other_lowest, rest = compute_sum_distribution(unsteady)
    _, joint = compute_sum_distribution(steady + unsteady)
    of_steady = lowest + _find_tail_start(chances, least)
    of_all = lowest + other_lowest + _find_tail_start(joint, least)
    other_tails = _compute_tails(rest)
    chance = 0.0
    for at, one in enumerate(chances, start=lowest):
        needed = of_all - at - other_lowest
        chance += one if at >= of_steady or needed <= 0 else one * (other_tails[needed] if needed < len(rest) else 0.0)
    return min(max(chance / least, 1.0), 2.0)


def _find_tail_start(chances: list[float], least: float) -> int:
    """Find the first place, or the end, from which on the chances add up to `least` or less."""
    tails = _compute_tails(chances)
    return next((at for at, tail in enumerate(tails) if tail <= least * (1 + 1e-9)), len(tails))


def _compute_tails(chances: list[float]) -> list[float]:
    return list(accumulate(reversed(chances)))[::-1]
