"""Permutation test of whether the scores of all graded cases together fell.

Each case's score here is compared with its own scores in the history. If nothing has changed, each of a case's scores
is as likely to be the one of this run as any other, whatever they are: constant, bounded, of a few steps, of very
different noise. So the sum of the scores here has a distribution that needs no assumption about them: one score drawn
from each case (the permutation test of Fisher and Pitman with cases as strata; with one run of history the paired one).
Its lower tail is calculated exactly where there are few different sums, and else by the saddlepoint approximation of
Lugannani and Rice (1980, Advances in Applied Probability 12, 475-490).

Two more questions have to be answered with yes, so that a drop is one of this change:

- against the newest run alone, at `NEWEST_RUN_FACTOR` times the limit: what the branch itself lost is not counted
again;
- from `MIN_RUNS` runs on, against how much whole runs differ (Student's t of one more run): a judge's bad day and
  cases that go together move whole runs, and cases taken one by one do not show that.

What it moves (`benchmarks/verdict/without.py`, without → with): every score falls by 0.06, found 0.0 → 100.0 ± 0.6 %;
by 0.02, 0.0 → 70.5 ± 6.6 %.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Final, NamedTuple

from eval_gate.gate.evidence.suite.score_noise import compute_student_tail
from eval_gate.model.case import CaseKey
from eval_gate.model.evidence import ScoreFinding
from eval_gate.results.history import SCORE_DIGITS

MIN_CASES: Final = 5
"""Fewest graded cases of a test. With one run of history it takes 8 cases, all lower: 1 in 256."""
MIN_FALL: Final = 0.01
"""Smallest mean fall that is a drop, however certain: a smaller one shows in no report."""
NEWEST_RUN_FACTOR: Final = 5
MIN_RUNS: Final = 5
"""Fewer runs say too little about how much runs differ, and would only hide a drop that one run shows."""
_UNIT: Final = 10**SCORE_DIGITS
_MAX_SUMS: Final = 2_000
_MANY: Final = 2_000
"""Cases from which on the saddlepoint, half a millisecond each, would say the same as the normal distribution."""
_MIN_NORMAL_CHANCE: Final = 1e-5
_NEGLIGIBLE: Final = 1e-16
_STEPS: Final = 200
_TINY: Final = 1e-12


class ScoredCase(NamedTuple):
    """One graded case: its score in this run and its scores in the history, newest first."""

    key: CaseKey
    score: float
    history: tuple[float | None, ...]

    @property
    def known_scores(self) -> list[float]:
        """The scores in the history."""
        return [score for score in self.history if score is not None]

    @property
    def fall(self) -> float:
        """How far the score is below the mean of its history."""
        return fmean(self.known_scores) - self.score


def select_testable_cases(cases: Iterable[ScoredCase]) -> list[ScoredCase]:
    """Those with a score in the history, in an order of their own; none where they are too few."""
    testable = sorted(
        (case for case in cases if case.known_scores), key=lambda case: (case.score, case.known_scores, case.key)
    )
    return testable if len(testable) >= MIN_CASES else []


def drop_largest_falls(cases: Sequence[ScoredCase], count: int) -> list[ScoredCase]:
    """Drop the `count` cases that fell most."""
    fallen = sorted((case for case in cases if case.fall > 0), key=lambda case: (-case.fall, case.key))
    left_out = {case.key for case in fallen[: max(count, 0)]}
    return [case for case in cases if case.key not in left_out]


def compute_score_finding(cases: Sequence[ScoredCase], limit: float) -> ScoreFinding:
    """Compute the finding over the scores of all these cases. `limit` is the accepted chance of a false drop."""
    falls = [case.fall for case in cases]
    mean = math.fsum(falls) / len(falls)
    chance = 1.0
    if mean >= MIN_FALL:
        chances = [
            compute_sum_chance((case.score, case.known_scores) for case in cases),
            compute_sum_chance((case.score, case.known_scores[:1]) for case in cases) / NEWEST_RUN_FACTOR,
            _compute_run_chance(cases, mean),
        ]
        chance = max(chances)
    lower = sum(round(fall * _UNIT) > 0 for fall in falls)
    return ScoreFinding(cases=len(falls), lower_cases=lower, fall=mean, chance=chance, limit=limit)


def compute_sum_chance(cases: Iterable[tuple[float, Sequence[float]]]) -> float:
    """Compute the chance that the sum of this run's scores is as low as it is, or lower.

    Any of a case's scores is taken to be equally likely to be the one of this run. Each case consists of its score
    in this run and its scores in the history.
    """
    strata = []
    for current, history in cases:
        units = [round(score * _UNIT) for score in (current, *history)]
        best = max(units)
        losses = Counter(best - unit for unit in units)  # of the best score: a large sum of these is a low sum
        if len(losses) > 1:  # what is always the same says nothing
            strata.append((best - units[0], tuple(sorted((loss, n / len(units)) for loss, n in losses.items()))))
    total, shares = sum(lost for lost, _ in strata), sorted(one for _, one in strata)
    if len(shares) > _MANY:
        return _compute_normal_tail(shares, total)
    exact = _compute_exact_tail(shares, total)
    return min(1.0, _compute_saddlepoint_tail(shares, total) if exact is None else exact)


_Shares = tuple[tuple[int, float], ...]
"""What a case may lose, and how likely each of that is."""


def _compute_exact_tail(strata: Sequence[_Shares], least: int) -> float | None:
    """Compute exactly the chance of a sum of at least `least`; None if there are too many different sums."""
    sums = {0: 1.0}
    for shares in strata:
        summed: dict[int, float] = {}
        for total, chance in sums.items():
            for loss, share in shares:
                summed[total + loss] = summed.get(total + loss, 0.0) + chance * share
        sums = {total: chance for total, chance in summed.items() if chance > _NEGLIGIBLE}
        if len(sums) > _MAX_SUMS:
            return None
    return math.fsum(chance for total, chance in sums.items() if total >= least)


def _compute_normal_tail(strata: Sequence[_Shares], least: int) -> float:
    """Compute the normal chance of at least `least`, never below 1 in 100,000: far out in the tail it is too small."""
    mean = math.fsum(loss * share for shares in strata for loss, share in shares)
    squares = math.fsum(loss * loss * share for shares in strata for loss, share in shares)
    variance = squares - math.fsum(math.fsum(loss * share for loss, share in shares) ** 2 for shares in strata)
    return (
        max(math.erfc((least - 0.5 - mean) / math.sqrt(2 * variance)) / 2, _MIN_NORMAL_CHANCE) if variance > 0 else 1.0
    )


def _compute_saddlepoint_tail(strata: Sequence[_Shares], least: int) -> float:
    """Compute the chance of a sum of at least `least` with the formula of Lugannani and Rice."""
    mean = math.fsum(loss * share for shares in strata for loss, share in shares)
    if least <= mean:
        return 1.0  # nothing rests on it
    if least >= sum(shares[-1][0] for shares in strata):
        return math.prod(shares[-1][1] for shares in strata)  # exact, as the sum cannot be larger
    low, high = 0.0, 1 / max(shares[-1][0] for shares in strata)
    while _compute_cumulants(strata, high)[1] < least:
        low, high = high, high * 2
    for _ in range(_STEPS):
        at = (low + high) / 2
        if _compute_cumulants(strata, at)[1] < least:
            low = at
        else:
            high = at
        if high - low <= _TINY * high:
            break
    at = (low + high) / 2
    log, _, variance = _compute_cumulants(strata, at)
    root = math.sqrt(max(2 * (at * least - log), 0.0))
    other = at * math.sqrt(variance)
    if root < 1e-4:
        return 0.5  # next to the mean the formula has no value, and nothing rests on it
    tail = math.erfc(root / math.sqrt(2)) / 2
    density = math.exp(-root * root / 2) / math.sqrt(2 * math.pi)
    return min(max(tail + density * (1 / other - 1 / root), 0.0), 1.0)


def _compute_cumulants(strata: Sequence[_Shares], at: float) -> tuple[float, float, float]:
    """Compute the cumulant generating function of the sum at a point, and its first two derivatives."""
    logs, means, variances = [], [], []
    for shares in strata:
        most = shares[-1][0] * at
        weights = [(loss, share * math.exp(loss * at - most)) for loss, share in shares]
        whole = math.fsum(weight for _, weight in weights)
        mean = math.fsum(loss * weight for loss, weight in weights) / whole
        logs.append(most + math.log(whole))
        means.append(mean)
        variances.append(math.fsum((loss - mean) ** 2 * weight for loss, weight in weights) / whole)
    return math.fsum(logs), math.fsum(means), math.fsum(variances)


def _compute_run_chance(cases: Sequence[ScoredCase], fall: float) -> float:
    """Compute the chance of such a fall from how much the mean scores of whole runs differ."""
    runs = []
    for at in range(max(len(case.history) for case in cases)):
        off = [
            score - fmean(case.known_scores)
            for case in cases
            if at < len(case.history) and (score := case.history[at]) is not None
        ]
        if len(off) * 2 > len(cases):
            runs.append(math.fsum(off) / len(off))
    if len(runs) < MIN_RUNS:
        return 0.0
    middle = fmean(runs)
    spread = math.sqrt(math.fsum((run - middle) ** 2 for run in runs) / (len(runs) - 1))
    if spread < 1 / _UNIT / len(cases):
        return 0.0
    return compute_student_tail(fall / (spread * math.sqrt(1 + 1 / len(runs))), len(runs) - 1)
