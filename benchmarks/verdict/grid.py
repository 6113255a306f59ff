"""Every line at every size and after every history: red gates, or found, through the path that a user's run takes.

    python benchmarks/verdict/grid.py --to grid.jsonl              # simulates what is missing there, then the tables
    python benchmarks/verdict/grid.py --to grid.jsonl --times 2    # twice as many pull requests: those kept count

What is done is kept branch by branch, so that a killed run goes on where it was. The same seed gives the same figures.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import NamedTuple

from case_worlds import lines as case_lines
from days import DayWorld, day_worlds, draw_day
from rules import AnyDrawn, ours
from worlds import World, draw, part_worlds, score_worlds, worlds

from eval_gate.config.policy import DEFAULT_RERUNS

SIZES = (20, 100, 500, 2000)
HISTORIES = (1, 2, 3, 10, 50)
BRANCHES: Mapping[int, int] = MappingProxyType({20: 12, 100: 8, 500: 3, 2000: 1})
"""So many of each line, by the number of cases; half as many after a long history."""
PER_BRANCH, LONG, PER_LONG_BRANCH = 5, 50, 10
"""Pull requests of one branch; what costs after a long history is the branch."""
FEW_AFTER_LONG = 500
"""Cases from which on only some lines are simulated after a long history: a branch of 2,000 takes half a minute."""
ALSO_AFTER_LONG = ("one case died (2%)", "one case fails every other time (2%)", "every case lost 10 points (2%)")
USUAL = "nothing changed, "
"""How the lines begin in which nothing is different here, nor was on the branch."""

AnyWorld = World | DayWorld


class Place(NamedTuple):
    """One cell: a line by its name, the cases, and the runs of history."""

    line: str
    cases: int
    history: int


@dataclass(frozen=True)
class Done:
    """What came of the pull requests of one branch: how many were red or found the case, and executions."""

    line: str
    cases: int
    history: int
    branch: int
    gates: int
    said: int
    executions: int

    @property
    def place(self) -> Place:
        """The cell it belongs to."""
        return Place(self.line, self.cases, self.history)


def known(cases: int) -> dict[str, AnyWorld]:
    """Every line about one run, by its name: those that a suite of this size has cases for."""
    single = (line.world for line in case_lines(cases) if not line.world.name.startswith("one case died"))
    every: Iterable[AnyWorld] = (*worlds(cases), *single, *day_worlds(cases), *part_worlds(cases), *score_worlds(cases))
    return {one.name: one for one in every if all(group.cases >= 0 for group in one.groups)}


def fits(world: AnyWorld, cases: int, history: int) -> bool:
    """Whether the line means something after so many runs and is drawn: what befell the branch has a run before it."""
    if cases >= FEW_AFTER_LONG and history >= LONG and not world.name.startswith((USUAL, *ALSO_AFTER_LONG)):
        return False
    ago = max((group.recent for group in world.groups), default=0)
    seen = (world.seen or 0) if isinstance(world, DayWorld) else 0
    return ago < history and seen < history


def places() -> Iterator[Place]:
    """Every cell, the cheap ones first."""
    for cases in SIZES:
        for history in HISTORIES:
            yield from (
                Place(name, cases, history) for name, world in known(cases).items() if fits(world, cases, history)
            )


def of_branch(place: Place, branch: int, seed: int) -> Done:
    """Simulate the pull requests of one branch of a cell, and add up the outcomes.

    Each pull request has its own seed.
    """
    world, gate = known(place.cases)[place.line], ours(DEFAULT_RERUNS)
    gates, base = _each(place), f"{seed}/{place.line}/{place.cases}/{place.history}/{branch}"
    said = executions = 0
    for number in range(branch * gates, (branch + 1) * gates):
        if isinstance(world, DayWorld):
            drawn: AnyDrawn = draw_day(world, place.history, base, number)
        else:
            drawn = draw(world, place.history, base, number)
        called = gate(drawn, Random(f"{base}/{number}/again"))
        # of one case it is asked whether it was named, of many whether the gate was red
        said += bool(called.regressions & drawn.changed) if len(drawn.changed) == 1 else called.red
        executions += called.executions
    return Done(*place, branch, gates, said, executions)


def _each(place: Place) -> int:
    return PER_LONG_BRANCH if place.history >= LONG else PER_BRANCH


def branches(place: Place, times: float) -> int:
    """How many of this cell."""
    return max(round(BRANCHES[place.cases] * times / (2 if place.history >= LONG else 1)), 1)


def simulated(file: Path, times: float, seed: int, chosen: Iterable[Place] | None = None) -> list[Done]:
    """All branches of all cells: those in the file, and what is missing there, added to it one after the other."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    asked_for = dict.fromkeys(chosen or places())
    # a killed run's last line may be cut off
    known_already = (Done(**json.loads(line)) for line in lines if line.endswith("}"))
    kept = [one for one in known_already if one.place in asked_for]
    there = {(one.place, one.branch) for one in kept}
    wanted = [(place, at) for place in asked_for for at in range(branches(place, times))]
    with ProcessPoolExecutor(os.cpu_count()) as pool, file.open("a", encoding="utf-8") as journal:
        journal.write("\n" * any(not line.endswith("}") for line in lines[-1:]))
        asked = [pool.submit(of_branch, *one, seed) for one in wanted if one not in there]
        for future in as_completed(asked):
            journal.write(json.dumps(asdict(future.result())) + "\n")
            journal.flush()
            kept.append(future.result())
    return kept


@dataclass(frozen=True)
class Cell:
    """All branches of one cell, or of several."""

    gates: int
    said: int
    error: float
    """The standard error of the share, in per cent: that of whole branches, where it is larger."""

    @classmethod
    def of(cls, done: Iterable[Done]) -> Cell:
        """Of at least one gate in the direction of a miss."""
        some = list(done)
        gates, said = sum(one.gates for one in some), sum(one.said for one in some)
        share = min(max(said, 1), gates - 1) / gates
        together = sum((one.said - said / gates * one.gates) ** 2 for one in some) / gates**2
        return cls(gates, said, 100 * math.sqrt(max(share * (1 - share) / gates, together)))

    @property
    def share(self) -> float:
        """In per cent."""
        return 100 * self.said / self.gates

    def __str__(self) -> str:
        return f"{self.share:.0f} ± {self.error:.0f}"


def tables(done: Iterable[Done]) -> Iterator[str]:
    """One for each size: a row for each line, a column for each history, harmless lines first; then the promise."""
    cells: dict[Place, list[Done]] = {}
    for one in done:
        cells.setdefault(one.place, []).append(one)
    for cases in SIZES:
        lines = known(cases)
        for harmless in (True, False):
            yield f"| {'red' if harmless else 'found'}, % of pull requests, {cases:,} cases | {_heads()} |"
            yield "|:--|" + "--:|" * len(HISTORIES)
            for name in (name for name, world in lines.items() if world.harmless is harmless):
                row = (cells.get(Place(name, cases, history)) for history in HISTORIES)
                yield f"| {name} | {' | '.join(str(Cell.of(one)) if one else '–' for one in row)} |"
            yield ""
    yield f"| red, of all pull requests in which nothing changed on a usual day | {_heads()} |"
    yield "|:--|" + "--:|" * len(HISTORIES)
    for cases in SIZES:
        usual = {name for name in known(cases) if name.startswith(USUAL)}
        columns = [
            Cell.of(done for place, some in cells.items() if place.line in usual for done in some if place[1:] == at)
            for at in ((cases, history) for history in HISTORIES)
        ]
        yield f"| {cases:,} cases | " + " | ".join(f"{one.share:.1f} % of {one.gates}" for one in columns) + " |"


def _heads() -> str:
    return " | ".join(f"{history} run{'s' if history > 1 else ''}" for history in HISTORIES)


def main() -> None:
    """Simulate, and print the tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, required=True, metavar="FILE", help="where branches are kept (JSON lines)")
    parser.add_argument("--times", type=float, default=1.0, help="so many times as many branches")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for line in tables(simulated(given.to, given.times, given.seed)):
        print(line)


if __name__ == "__main__":
    main()
