"""Rules that other teams gate by, written out, so that they can judge the same draws as this gate."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from statistics import NormalDist

from rules import Called

FEWEST_NIGHTS, NIGHTS, ATTEMPTS, TRUSTED = 3, 4, 3, 0.6
"""gemini-cli trusts cases that passed more than this share of their attempts in each of its last nightly runs."""
PASSES, FAILURES, MAIN_RUNS = 2, 3, 3
MAX_DROP = 0.05
"""Of the pass rate, where a threshold gates it."""
LEVEL = 0.05
"""At which tests of the whole suite are significant, on two sides."""


def trusted_cases(nights: Sequence[Sequence[int]]) -> frozenset[int]:
    """Return the cases that gemini-cli gates, from the newest nightly runs of main.

    `nights` says how many of `ATTEMPTS` executions each case passed, for each nightly run, newest first. The set is
    empty if there are fewer than `FEWEST_NIGHTS` runs.
    """
    newest = nights[:NIGHTS]
    if len(newest) < FEWEST_NIGHTS:
        return frozenset()
    return frozenset(at for at in range(len(newest[0])) if all(night[at] / ATTEMPTS > TRUSTED for night in newest))


def best_of_four(
    failed: Sequence[bool],
    trusted: Collection[int],
    passes: Callable[[int], bool],
    main_passes: Callable[[int], bool] | None = None,
) -> Called:
    """Apply the pull request check of gemini-cli (google-gemini/gemini-cli, pull 23937).

    Only trusted cases are run. A case that fails is run again until two passes clear it, or three failures make it
    a suspect. Main is then run up to three times: a pass there confirms the suspect. Without main every suspect is
    a regression.
    """
    executions, there, found = len(trusted), 0, set[int]()
    for at in (at for at, one in enumerate(failed) if one and at in trusted):
        passed, failures = 0, 1
        while passed < PASSES and failures < FAILURES:
            executions += 1
            if passes(at):
                passed += 1
            else:
                failures += 1
        if failures < FAILURES:
            continue
        confirmed = main_passes is None
        for _ in range(0 if main_passes is None else MAIN_RUNS):
            there += 1
            if main_passes is not None and main_passes(at):
                confirmed = True
                break
        if confirmed:
            found.add(at)
    return Called(frozenset(found), executions, bool(found), asked_there=there)


def pass_rate_fell(then: Sequence[bool], now: Sequence[bool]) -> bool:
    """Whether more than five points more of the cases failed than in the newest run of main."""
    return (sum(now) - sum(then)) > MAX_DROP * len(now) + 1e-9


def mcnemar(then: Sequence[bool], now: Sequence[bool]) -> bool:
    """Whether significantly more cases broke than were fixed: the exact test on two sides. True is a failure."""
    broke = sum(after and not before for before, after in zip(then, now, strict=True))
    fixed = sum(before and not after for before, after in zip(then, now, strict=True))
    number = broke + fixed
    tail = math.fsum(math.comb(number, one) * 0.5**number for one in range(broke, number + 1)) if number < 1000 else 0.0
    return broke > fixed and 2 * tail < LEVEL


def paired_t(then: Sequence[bool], now: Sequence[bool]) -> bool:
    """Whether the mean difference of the cases is significantly worse: the paired t-test on two sides."""
    number = len(now)
    more = [after - before for before, after in zip(then, now, strict=True)]
    mean = sum(more) / number
    variance = math.fsum((one - mean) ** 2 for one in more) / (number - 1)
    if mean <= 0:
        return False
    return variance == 0 or mean / math.sqrt(variance / number) > _t_quantile(1 - LEVEL / 2, number - 1)


def _t_quantile(share: float, free: int) -> float:
    """Of Student's t, by the expansion of Cornish and Fisher; to two digits from ten degrees of freedom on."""
    z = NormalDist().inv_cdf(share)
    return z + (z**3 + z) / (4 * free) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
