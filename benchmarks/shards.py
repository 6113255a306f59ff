"""How long shards take beside the ideal: simulated durations, cut by the code that cuts.

Cases are dealt out as every machine deals them out, and one shard is chosen by `select_cases` as its own machine would.
A
case has a usual duration, drawn from a skewed distribution; the baseline saw it with a third more or less, and so does
the run. A shard has so many cases in flight, begun in file order. The ideal is one machine with the places of all
shards that wastes nothing: all durations by all places, or the longest case.

    python -m benchmarks.shards --cases 100000 --seed 13
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from heapq import heapify, heapreplace
from typing import Final

from eval_gate.config.selection import Selection
from eval_gate.engine.preparation.case_filter import assign_shards, select_cases
from eval_gate.model.case import CaseKey, EvalSuite
from eval_gate.model.result import RunResult, Shard
from tests.support.cases import make_case, make_suite
from tests.support.results import make_result, make_run, make_suite_result

COUNTS: Final = (1, 4, 16, 64)
FILES: Final = 20
NOISE: Final = 0.33
"""Standard deviation of the logarithm of a duration, from run to run."""
KINDS: Final[dict[str, Callable[[random.Random], float]]] = {
    "log-normal, median 2 s, sigma 1": lambda chance: 2_000 * chance.lognormvariate(0, 1),
    "Pareto, least 1 s, alpha 1.5": lambda chance: min(1_000 * chance.paretovariate(1.5), 600_000),
}


Durations = dict[CaseKey, float]


def branch(cases: int, usual: Callable[[random.Random], float], chance: random.Random) -> tuple[RunResult, Durations]:
    """Simulate a run of main, and draw how long each case takes in the next run.

    `usual` draws the usual duration of a case. Durations are in milliseconds.
    """
    # drawn in order and dealt out to the files, so that each has its share of long ones
    times = sorted(usual(chance) for _ in range(cases))
    mixed = [time for at in range(FILES) for time in chance.sample(times[at::FILES], len(times[at::FILES]))]
    now: dict[CaseKey, float] = {}
    suites = []
    for at in range(FILES):
        results = []
        for number, time in enumerate(mixed[at * cases // FILES : (at + 1) * cases // FILES]):
            results.append(make_result(f"c{number}", duration_ms=time * chance.lognormvariate(0, NOISE)))
            now[CaseKey(f"s{at:02}.json", f"c{number}")] = time * chance.lognormvariate(0, NOISE)
        suites.append(make_suite_result(results, eval_file=f"s{at:02}.json"))
    return make_run(*suites), now


def taken(durations: Sequence[float], at_once: int) -> float:
    """Until the last case ends, where so many run at once and are begun in this order."""
    ends = [0.0] * at_once
    heapify(ends)
    for one in durations:
        heapreplace(ends, ends[0] + one)
    return max(ends)


def shards(suites: Sequence[EvalSuite], count: int, before: RunResult | None, now: Durations) -> list[list[float]]:
    """Return the durations of the cases of each shard, in file order and in milliseconds.

    `before` is the run whose durations decide the shards; None for equally many cases in each shard. The last shard
    is also selected as its own machine selects it, and an AssertionError is raised if it differs.
    """
    parts: list[list[float]] = [[] for _ in range(count)]
    for suite, index_of in zip(suites, assign_shards(suites, count, before), strict=True):
        for case in suite.cases:
            parts[index_of[case.id] - 1].append(now[CaseKey(suite.file, case.id)])
    chosen = select_cases(suites, Selection(shard=Shard(index=count, count=count), timing_run=before))
    assert [now[CaseKey(suite.file, case.id)] for suite in chosen for case in suite.cases] == parts[-1]
    return parts


def main() -> None:
    """Print the table."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--cases", type=int, default=100_000)
    asked.add_argument("--seed", type=int, default=13)
    asked.add_argument("--concurrency", type=int, default=10)
    given = asked.parse_args()
    print("| durations | shards | ideal, s | by durations, s | of the ideal | equally many cases, s | of the ideal |")
    print("|:--|--:|--:|--:|--:|--:|--:|")
    for name, usual in KINDS.items():
        before, now = branch(given.cases, usual, random.Random(given.seed))
        suites = [
            make_suite(*[make_case(case.id) for case in suite.cases], file=suite.eval_file) for suite in before.suites
        ]
        for count in COUNTS:
            ideal = max(sum(now.values()) / count / given.concurrency, *now.values()) / 1000
            cells = []
            for known in (before, None):
                parts = shards(suites, count, known, now)
                assert sum(map(len, parts)) == given.cases, "a case is in no shard, or in two"
                longest = max(taken(part, given.concurrency) for part in parts) / 1000
                cells.append(f"{longest:,.0f} | {longest / ideal:.3f}")
            print(f"| {name} | {count} | {ideal:,.0f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
