"""What more re-runs are worth, exactly: only the histories are drawn, and all ways of the executions are added up.

    python benchmarks/verdict/long_reruns.py --histories 24         # the table of README.md, a few minutes
    python benchmarks/verdict/long_reruns.py --sizes 500 --runs 20   # one size, after twenty runs of main

Single cases only, by the shipped thresholds and decisions. The suite test, which re-runs do not change, is left out,
and runs of main have no bad days. One day in fifty fails three times as often. Errors are those of the histories.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import NamedTuple
from unittest.mock import patch

from year_parts import EACH_BAD, LINES, TIMES, half_broken, kinds

from eval_gate.config.policy import DEFAULT_FALSE_ALARM_RATE, DEFAULT_RERUNS
from eval_gate.gate.evidence import rerun_decision
from eval_gate.gate.evidence.prior import learn_prior
from eval_gate.gate.evidence.rerun_decision import MIN_RERUN_EVIDENCE, RerunCriteria, RerunStep, Suspicion
from eval_gate.gate.evidence.thresholds import ExecutionLimits, compute_run_thresholds
from eval_gate.model.evidence import Counts

VARIANTS = ((6, 0.0), (6, MIN_RERUN_EVIDENCE), (DEFAULT_RERUNS, 0.0), (DEFAULT_RERUNS, MIN_RERUN_EVIDENCE))
"""Maximum re-runs, and the minimum evidence of a case that passed."""
SIZES, RUNS = (20, 100, 500, 2000), (1, 10, 20)


class Found(NamedTuple):
    """Of one history: harmless pull requests of 1,000 that are red, per cent found, and executions a case."""

    red: float
    dead: float
    half: float
    executions: float


class Path(NamedTuple):
    """Some executions of a case, in how many orders they come about, and whether they end in a regression."""

    passes: int
    failures: int
    orders: int
    confirmed: bool

    def chance(self, rate: float) -> float:
        """Return the chance of these orders if the case fails at `rate` (0 to 1)."""
        return self.orders * rate**self.failures * (1 - rate) ** self.passes


def list_ends(criteria: RerunCriteria, history: Counts) -> list[Path]:
    """List the executions at which a case with this history ends that fails at first."""
    ways, ends = {0: 1}, []
    for done in range(1, criteria.max_reruns + 2):
        further = Counter[int]()
        for passes, orders in ways.items():
            now = Counts(passes=passes, failures=done - passes)
            step = criteria.decide_next_step(
                Suspicion.REGRESSION,
                history,
                Counts(failures=1),
                criteria.max_reruns + 1 - done,
                reruns=Counts(passes=now.passes, failures=now.failures - 1),
            )
            if step is RerunStep.AGAIN:
                further[passes] += orders
                further[passes + 1] += orders
            else:
                ends.append(Path(passes, done - passes, orders, step is RerunStep.CONFIRMED))
        ways = further
    return ends


def compute_found(line: str, cases: int, runs: int, reruns: int, random: Random) -> Found:
    """Draw a history of the suite, and compute what is red and found after it."""
    suite = kinds(line, cases)
    failed = [
        Counter(sum(random.random() < kind.rate for _ in range(runs)) for _ in range(kind.cases)) for kind in suite
    ]
    histories = Counter[tuple[int, int]]()
    for of_kind in failed:
        histories.update({(runs - failures, failures): number for failures, number in of_kind.items()})
    prior = learn_prior(histories)
    limits = ExecutionLimits(reruns)
    bars = compute_run_thresholds(prior, histories, cases, limits, DEFAULT_FALSE_ALARM_RATE)
    assert bars is not None
    criteria = RerunCriteria(
        cases,
        prior,
        max_reruns=reruns,
        thresholds=bars,
    )
    ends = {
        failures: list_ends(criteria, Counts(passes=passes, failures=failures))
        for passes, failures in histories
        if passes
    }
    green = {1.0: 0.0, TIMES: 0.0}
    dead = half = executions = 0.0
    for kind, of_kind in zip(suite, failed, strict=True):
        for failures, number in of_kind.items():
            paths = ends.get(failures, [])
            confirmed = [path for path in paths if path.confirmed]
            for times in green:
                rate = min(kind.rate * times, 1.0)
                green[times] += number * math.log1p(-math.fsum(path.chance(rate) for path in confirmed))
            dead += number * math.fsum(path.chance(1.0) for path in confirmed)
            half += number * math.fsum(path.chance(half_broken(kind.rate)) for path in confirmed)
            more = math.fsum(path.chance(kind.rate) * (path.passes + path.failures - 1) for path in paths)
            executions += number * (1 + more)
    red = -math.expm1(green[1.0]) * (1 - 1 / EACH_BAD) - math.expm1(green[TIMES]) / EACH_BAD
    return Found(1000 * red, 100 * dead / cases, 100 * half / cases, executions / cases)


def iter_table(sizes: Sequence[int], runs: Sequence[int], histories: int, seed: int) -> Iterator[str]:
    """Yield the table as Markdown: means over the four suites, each variant on the same histories."""
    heads = "red of 1,000", "dead found, %", "half-broken found, %", "executions a case"
    yield f"| cases | runs of main | re-runs | minimum | {' | '.join(heads)} |"
    yield "|--:|--:|--:|--:|--:|--:|--:|--:|"
    for cases in sizes:
        for length in runs:
            for reruns, least in VARIANTS:
                with patch.object(rerun_decision, "MIN_RERUN_EVIDENCE", least):
                    found = {
                        line: [
                            compute_found(
                                line, cases, length, reruns, Random(f"{seed}/{line}/{cases}/{length}/{number}")
                            )
                            for number in range(histories)
                        ]
                        for line in LINES
                    }
                cells = (f"{mean:.{digits}f} ± {error:.{digits}f}" for mean, error, digits in _summarize(found))
                yield f"| {cases:,} | {length} | {reruns} | {least:g} | {' | '.join(cells)} |"


def _summarize(found: Mapping[str, Sequence[Found]]) -> Iterator[tuple[float, float, int]]:
    """Yield mean, standard error and digits of each figure over all suites."""
    for at, digits in enumerate((1, 1, 1, 3)):
        variance, means = 0.0, []
        for several in found.values():
            values = [one[at] for one in several]
            mean = math.fsum(values) / len(values)
            means.append(mean)
            variance += math.fsum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1) / len(values)
        yield math.fsum(means) / len(means), math.sqrt(variance) / len(means), digits


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--runs", type=int, nargs="+", default=RUNS, help="runs of main before")
    parser.add_argument("--histories", type=int, default=12, help="histories drawn of each suite")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for line in iter_table(given.sizes, given.runs, given.histories, given.seed):
        print(line, flush=True)


if __name__ == "__main__":
    main()
