"""The program beside bare HTTP clients that ask the same agent the same: ratios first, then what was measured.

    python -m benchmarks.beside            # about two minutes
    python -m benchmarks.beside --quick    # a fifth of the cases, once
    python -m benchmarks.beside --peers    # also beside libraries that evaluate in process, which it installs
    python -m benchmarks.beside --check    # a fifth of the cases; fails where a ratio is a third worse than beside.json
    python -m benchmarks.beside --note     # the same, and beside.json has its ratios

Whole processes, one after the other in turns, so that a busy machine is as busy for all of them; of several runs the
median. What the program does beyond the clients is everything: reading the eval file, judging, journal, results.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from measure import Cost, measure
from run import HERE, agent, gate
from suites import write_suite
from tabulate import tabulate

Asker = Callable[[str, int, int], list[str]]
"""The command that asks the agent at this address so many cases, so many at once."""
BARE = "bare aiohttp"
PEERS_ENVIRONMENT = HERE.parent / ".venv" / "peers"
REFERENCES = HERE / "beside.json"
ALLOWED = 4 / 3
"""Times the reference: two measurements of the same on a busy machine differ by a tenth."""
OURS = "Eval Gate"
Value = Callable[[Cost], float]


def clients() -> dict[str, Asker]:
    """Those that only ask."""
    program = [sys.executable, str(HERE / "floor.py")]
    names = {BARE: "aiohttp", "bare httpx over aiohttp": "httpx"}
    return {
        who: lambda url, cases, at_once, name=name: [*program, url, str(cases), str(at_once), name]
        for who, name in names.items()
    }


def peers() -> dict[str, Asker]:
    """Libraries that evaluate and keep nothing, with an environment of their own that is made here, once a version."""
    wanted, mark = HERE / "peers.txt", PEERS_ENVIRONMENT / "made"
    if not mark.is_file() or mark.read_bytes() != wanted.read_bytes():
        subprocess.run([sys.executable, "-m", "venv", "--clear", PEERS_ENVIRONMENT], check=True)
        install = HERE.parent / "requirements" / "install.py"
        subprocess.run([PEERS_ENVIRONMENT / "bin" / "python", install, wanted], check=True)
        mark.write_bytes(wanted.read_bytes())
    program = [str(PEERS_ENVIRONMENT / "bin" / "python"), str(HERE / "peers.py")]
    return {
        name: lambda url, cases, at_once, name=name: [*program, name, url, str(cases), str(at_once)]
        for name in ("braintrust", "pydantic-evals")
    }


class Measurement:
    """So many cases of an agent that needs so long, so many at once, and what is told of it."""

    def __init__(self, others: Mapping[str, Asker], cases: int, latency_ms: int, concurrency: int, times: int) -> None:
        self.others = others
        self.cases, self.latency_ms, self.concurrency, self.times = cases, latency_ms, concurrency, times

    @property
    def ideal_s(self) -> float:
        """Seconds that the agent alone needs."""
        return self.cases * self.latency_ms / 1000 / self.concurrency

    def costs(self) -> dict[str, list[Cost]]:
        """Measure the other clients and this program in turns, and return every cost by name."""
        found: dict[str, list[Cost]] = {who: [] for who in (*self.others, OURS)}
        with agent(self.latency_ms) as url, tempfile.TemporaryDirectory() as name:
            for _ in range(self.times):
                for who, asker in self.others.items():
                    found[who].append(measure(asker(url, self.cases, self.concurrency)))
                found[OURS].append(measure(self._ours(Path(name), url)))
        return found

    def _ours(self, folder: Path, url: str) -> list[str]:
        file = folder / f"{self.cases}.golden.json"
        write_suite(file, self.cases)
        at_once = ["--concurrency", str(self.concurrency), "--output-dir", str(folder / "out")]
        return gate("run", str(file), "--agent-endpoint", url, *at_once)


class Row(NamedTuple):
    """What was measured of each of them; `key` names it in the file of references."""

    key: str
    what: str
    of: dict[str, float]
    unit: str

    @property
    def ratio(self) -> float:
        """How many times ours is what the bare client's is."""
        return self.of[OURS] / self.of[BARE]

    @property
    def cells(self) -> list[str]:
        """Ratios, then values."""
        ratios = [f"{self.of[OURS] / value:.2f}" for who, value in self.of.items() if who != OURS]
        return [self.what, *ratios, *(f"{one:.2f} {self.unit}" for one in self.of.values())]


def told(key: str, what: str, costs: dict[str, list[Cost]], value: Value, unit: str) -> Row:
    """One row of medians."""
    return Row(key, what, {who: median(map(value, some)) for who, some in costs.items()}, unit)


def rows(others: Mapping[str, Asker], *, part: int, times: int) -> Iterator[Row]:
    """Measure the table and yield each row as soon as it is measured.

    `part` divides the number of cases of the largest measurements; `times` is how often each of these is repeated.
    """
    one = Measurement(others, 1, 0, 1, times=5)
    costs = one.costs()
    start = {who: median(cost.processor_s for cost in some) for who, some in costs.items()}
    yield told("start", "1 case: processor", costs, lambda cost: cost.processor_s, "s")
    many = Measurement(others, 1_000, 0, 50, times=times + 2)
    costs = many.costs()
    in_all = f"{many.cases:,} cases at 0 ms, 50 at once: processor a case"
    yield told("case", in_all, costs, lambda cost: cost.processor_s, "ms")
    above = {who: [c.processor_s - start[who] for c in some] for who, some in costs.items()}
    of = {who: median(some) for who, some in above.items()}
    yield Row("above", f"{in_all}, above its start", of, "ms")
    for concurrency in (200, 50):
        large = Measurement(others, 10_000 // part, 50, concurrency, times=times)
        costs, what = large.costs(), f"{large.cases:,} cases at 50 ms, {concurrency} at once"
        yield told(f"wall-{concurrency}", f"{what}: wall", costs, lambda cost: cost.wall_s, "s")
        yield told(f"processor-{concurrency}", f"{what}: processor", costs, lambda cost: cost.processor_s, "s")
        yield told(f"memory-{concurrency}", f"{what}: peak memory", costs, lambda cost: cost.peak_mb, "MB")
        ideal = large.ideal_s
        share = f"{what}: share of the ideal"
        yield told(f"share-{concurrency}", share, costs, lambda cost, ideal=ideal: ideal / cost.wall_s * 100, "%")


def worse(found: Sequence[Row], references: Mapping[str, float]) -> list[str]:
    """Describe each ratio that exceeds its reference by more than a third, in a sentence each."""
    return [
        f"{row.what}: {row.ratio:.2f} times the bare client's, where it was {references[row.key]:.2f}"
        for row in found
        if row.key in references and row.ratio > references[row.key] * ALLOWED
    ]


def main() -> None:
    """Measure and print; with `--check` fail where it has become worse."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer cases, once")
    parser.add_argument("--peers", action="store_true", help="also beside libraries that evaluate in process")
    parser.add_argument("--check", action="store_true", help="fewer cases; fails where a ratio is worse by a third")
    parser.add_argument("--note", action="store_true", help="fewer cases; its ratios are what is compared with")
    asked = parser.parse_args()
    fewer = asked.quick or asked.check or asked.note
    others = clients() | (peers() if asked.peers else {})
    found = list(rows(others, part=5 if fewer else 1, times=1 if asked.quick else 3))
    headers = ["what", *(f"ours to {who}" for who in others), *others, OURS]
    print(tabulate([row.cells for row in found], headers=headers, disable_numparse=True))
    if asked.note:
        ratios = {row.key: round(row.ratio, 2) for row in found if not row.key.startswith("share")}
        REFERENCES.write_text(json.dumps(ratios, indent=2) + "\n")
    if asked.check and (said := worse(found, json.loads(REFERENCES.read_text()))):
        sys.exit("\n".join(["slower than it was:", *said]))


if __name__ == "__main__":
    main()
