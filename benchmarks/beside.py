"""The program beside bare HTTP clients that ask the same agent the same: ratios first, then what was measured.

    python -m benchmarks.beside            # about two minutes
    python -m benchmarks.beside --quick    # a fifth of the cases, once

Whole processes, one after the other in turns, so that a busy machine is as busy for all of them; of several runs the
median. What the program does beyond the clients is everything: reading the eval file, judging, journal, results.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent))

from measure import Cost, measure
from run import HERE, agent, gate
from suites import write_suite
from tabulate import tabulate

CLIENTS = {"bare aiohttp": "aiohttp", "bare httpx over aiohttp": "httpx"}
OURS = "Eval Gate"
Value = Callable[[Cost], float]


class Measurement:
    """So many cases of an agent that needs so long, so many at once, and what is told of it."""

    def __init__(self, cases: int, latency_ms: int, concurrency: int, times: int) -> None:
        self.cases, self.latency_ms, self.concurrency, self.times = cases, latency_ms, concurrency, times

    @property
    def ideal_s(self) -> float:
        """Seconds that the agent alone needs."""
        return self.cases * self.latency_ms / 1000 / self.concurrency

    def costs(self) -> dict[str, list[Cost]]:
        """What each of them cost, each time."""
        found: dict[str, list[Cost]] = {who: [] for who in (*CLIENTS, OURS)}
        with agent(self.latency_ms) as url, tempfile.TemporaryDirectory() as name:
            for _ in range(self.times):
                for who, client in CLIENTS.items():
                    asked = [url, str(self.cases), str(self.concurrency), client]
                    found[who].append(measure([sys.executable, str(HERE / "floor.py"), *asked]))
                found[OURS].append(measure(self._ours(Path(name), url)))
        return found

    def _ours(self, folder: Path, url: str) -> list[str]:
        file = folder / f"{self.cases}.golden.json"
        write_suite(file, self.cases)
        at_once = ["--concurrency", str(self.concurrency), "--output-dir", str(folder / "out")]
        return gate("run", str(file), "--agent-endpoint", url, *at_once)


def told(what: str, costs: dict[str, list[Cost]], value: Value, unit: str) -> Iterator[list[str]]:
    """One row: how much more than each client, and the values."""
    yield row(what, {who: median(map(value, some)) for who, some in costs.items()}, unit)


def row(what: str, of: dict[str, float], unit: str) -> list[str]:
    """Ratios, then values."""
    ratios = [f"{of[OURS] / of[who]:.2f}" for who in CLIENTS]
    return [what, *ratios, *(f"{one:.2f} {unit}" for one in of.values())]


def rows(*, quick: bool) -> Iterator[list[str]]:
    """The table, row by row as it is measured."""
    part, times = (5, 1) if quick else (1, 3)
    one = Measurement(1, 0, 1, times=5)
    costs = one.costs()
    start = {who: median(cost.processor_s for cost in some) for who, some in costs.items()}
    yield from told("1 case: processor", costs, lambda cost: cost.processor_s, "s")
    many = Measurement(1_000, 0, 50, times=times + 2)
    costs = many.costs()
    in_all = f"{many.cases:,} cases at 0 ms, 50 at once: processor a case"
    yield from told(in_all, costs, lambda cost: cost.processor_s, "ms")
    above = {who: [c.processor_s - start[who] for c in some] for who, some in costs.items()}
    of = {who: median(some) for who, some in above.items()}
    yield row(f"{in_all}, above its start", of, "ms")
    for concurrency in (200, 50):
        large = Measurement(10_000 // part, 50, concurrency, times=times)
        costs, what = large.costs(), f"{large.cases:,} cases at 50 ms, {concurrency} at once"
        yield from told(f"{what}: wall", costs, lambda cost: cost.wall_s, "s")
        yield from told(f"{what}: processor", costs, lambda cost: cost.processor_s, "s")
        yield from told(f"{what}: peak memory", costs, lambda cost: cost.peak_mb, "MB")
        ideal = large.ideal_s
        yield from told(f"{what}: share of the ideal", costs, lambda cost, ideal=ideal: ideal / cost.wall_s * 100, "%")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer cases, once")
    asked = parser.parse_args()
    headers = ["what", *(f"ours to {who}" for who in CLIENTS), *CLIENTS, OURS]
    print(tabulate(list(rows(quick=asked.quick)), headers=headers, disable_numparse=True))


if __name__ == "__main__":
    main()
