"""What the best test could reach that knows all rates, with the same executions: the bounds beside missed targets.

    python benchmarks/verdict/bounds.py

Nothing is drawn: every figure is added up exactly. A target above its bound is out of reach for any rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from eval_gate.config.policy import DEFAULT_RERUNS

CASES, RED = 100, 0.02
"""Cases of a suite, and how many gates may be red where nothing changed."""
BAD_DAYS, HISTORY = 0.1, 10
_MANY = 500
"""Executions from which on a number of orders may have no room in a float."""


def exactly(failures: int, runs: int, rate: float) -> float:
    """Return the probability of exactly `failures` failures in `runs` executions.

    `rate` is the probability that one execution fails (0 to 1).
    """
    if rate in {0.0, 1.0} or runs < _MANY:
        return math.comb(runs, failures) * rate**failures * (1 - rate) ** (runs - failures)
    orders = math.lgamma(runs + 1) - math.lgamma(failures + 1) - math.lgamma(runs - failures + 1)
    return math.exp(orders + failures * math.log(rate) + (runs - failures) * math.log1p(-rate))


def at_least(failures: int, runs: int, rate: float) -> float:
    """Return the probability of `failures` or more failures in `runs` executions.

    `rate` is the probability that one execution fails (0 to 1).
    """
    return math.fsum(exactly(one, runs, rate) for one in range(max(failures, 0), runs + 1))


def of_a_case(here: float, usual: float = 0.02, reruns: int = DEFAULT_RERUNS, cases: int = CASES) -> float:
    """How often one case is found that fails at this rate here, where all others fail at the usual one.

    It has to fail at first, and then often enough: the most powerful test (Neyman and Pearson) that is red in `RED`
    of all gates, which is also red for a part of the results on the edge.
    """
    left, found = RED / cases, 0.0
    for again in range(reruns, -1, -1):
        chance = usual * exactly(again, reruns, usual)
        part = min(left / chance, 1.0)
        found += part * here * exactly(again, reruns, here)
        left -= part * chance
    return found


class Kind(NamedTuple):
    """So many cases that usually fail so often (0 to 1)."""

    cases: int
    rate: float


def of_kinds(
    kinds: Sequence[Kind], here: Callable[[float], float], red: float = RED, reruns: int = DEFAULT_RERUNS
) -> float:
    """How often one case, any of these with the same chance, is found at the first push that now fails at another rate.

    By the most powerful rule (Neyman and Pearson) that makes the executions that this gate may make: one of every case,
    and so many re-runs of each that failed. It knows how often every case usually fails, how often the broken one
    fails, and the day; only which one is broken it does not know. It is red in `red` of harmless pull requests.
    """
    cases = sum(kind.cases for kind in kinds)
    results = []
    for number, usual in kinds:
        worse = here(usual)
        for again in range(reruns + 1):
            chance = number * usual * exactly(again, reruns, usual)
            results.append((number / cases * worse * exactly(again, reruns, worse), chance))
    return _most_powerful(results, -math.log1p(-red))


def of_loss(kinds: Sequence[Kind], lost: float, red: float = RED, executions: float = 1.25) -> float:
    """How often it is found that every case fails so much more often (0 to 1), with so many executions a case.

    By the most powerful rule, which knows all rates and counts the failures of each kind of case.
    """
    of_kind = []
    for number, usual in kinds:
        many = round(number * executions)
        of_kind.append([(exactly(one, many, usual + lost), exactly(one, many, usual)) for one in range(many + 1)])
    results = [(1.0, 1.0)]
    for one in of_kind:
        likely = [pair for pair in one if max(pair) > 1e-9]
        results = [(a * c, b * d) for a, b in results for c, d in likely]
    return _most_powerful(results, red)


def _most_powerful(results: Sequence[tuple[float, float]], left: float) -> float:
    """Return how often a change is found by the most powerful test at a given level.

    Each pair of `results` is the chance of a result with the change and without it. `left` is how often the test
    may call out a result without a change. The test takes the results that speak most for a change first, and a
    part of the last one.
    """
    found = 0.0
    for changed, unchanged in sorted(results, key=lambda one: -one[0] / max(one[1], 1e-300)):
        part = min(left / unchanged, 1.0) if unchanged else 1.0
        found, left = found + part * changed, left - part * unchanged
        if part < 1.0:
            break
    return found


def days_and_losses(rate: float, more: float, times: float, found: float) -> float:
    """How often a gate is red at least, one run in ten being a bad day, that finds a loss of the same size so often.

    After ten runs without a bad day nobody can tell the first one from such a loss; on all other days it is never red.
    """
    assert math.isclose(rate * times, rate + more)
    return BAD_DAYS * (1 - BAD_DAYS) ** HISTORY * found


def own_loss(rate: float, more: float, times: float, *, red: float | None = None, found: float | None = None) -> float:
    """Bound what is found after a bad newest run by what is red after the branch's own loss.

    Give `red` for the most that can be found, or `found` for the least that must be red (both 0 to 1). This run
    fails equally often in both cases, so only the newest run can tell them apart: it failed `times` as often on a
    bad day, or `more` (0 to 1) more often after a loss.
    """
    total = (0.0, 0.0)
    for failures in range(CASES + 1):  # fewer failures of the newest run speak for a bad day
        day, loss = exactly(failures, CASES, rate * times), exactly(failures, CASES, rate + more)
        goal, reached = (red, total[1]) if red is not None else (found, total[0])
        assert goal is not None
        step = loss if red is not None else day
        part = min(max((goal - reached) / step, 0.0), 1.0)
        total = total[0] + part * day, total[1] + part * loss
        if part < 1.0:
            break
    return total[0] if red is not None else total[1]


def broken_ones(number: int, usual: float, here: float) -> float:
    """How often so many cases that fail together are found, at `RED`, by their first executions alone.

    By a rule that knows which they are (Neyman and Pearson): it counts their failures, and needs none of the others.
    """
    left, found = RED, 0.0
    for failures in range(number, -1, -1):
        chance = exactly(failures, number, usual)
        part = min(left / chance, 1.0)
        found += part * exactly(failures, number, here)
        left -= part * chance
    return found


def lines() -> Iterator[tuple[str, str]]:
    """Yield each line of the table with its bound, as text."""
    for passes in (50, 70, 80):
        one = of_a_case(1 - passes / 100)
        yield f"one case 100 → {passes} %, others fail 2 %: found in one run, at 2 % red", f"≤ {one:.1%}"
    row = 0.45 ** (1 + DEFAULT_RERUNS)
    yield (
        f"a case that flaked 45 % died: a row of {1 + DEFAULT_RERUNS} failures, by chance 1 time in {1 / row:.0f}",
        f"≤ {min(RED / row, 1.0):.0%}, if it is the only such case and its rate is known",
    )
    yield ("20 cases 98 → 70 %, 20 others mended: found, at 2 % red", f"≤ {broken_ones(20, 0.02, 0.3):.1%}")
    for found in (0.85, 0.5):
        yield (
            f"one run in ten is a bad day (5 %, × 3): red, where a loss of 10 points is found in {found:.0%}",
            f"≥ {days_and_losses(0.05, 0.1, 3, found):.1%}",
        )
    unseen = 1 - at_least(5, CASES, 0.06)
    yield (
        "the one bad day on record (2 %, × 3) looked like none (at most 4 of 100 failed): the next is like a loss of 4",
        f"red ≥ {unseen:.0%} of what is found of it",
    )
    yield (
        "every case −10 points after a bad newest run (2 %, × 3): found, at 2 % red after the branch's own −10",
        f"≤ {own_loss(0.02, 0.1, 3, red=0.02):.1%}",
    )
    yield (
        "the branch's own −10 points in its newest run (2 %): red, where 85 % are found after a bad newest run",
        f"≥ {own_loss(0.02, 0.1, 3, found=0.85):.1%}",
    )
    yield (
        "every case −10 points after a bad newest run (5 %, × 3): found, at 2 % red after the branch's own −10",
        f"≤ {own_loss(0.05, 0.1, 3, red=0.02):.1%}",
    )


def main() -> None:
    """Print the table as Markdown."""
    print("| line | bound of any rule |\n|:--|--:|")
    for line, bound in lines():
        print(f"| {line} | {bound.replace('%', ' %')} |")


if __name__ == "__main__":
    main()
