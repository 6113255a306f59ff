"""What one case shows: losses of one case, and what fifty runs of history change, with their standard errors.

    python benchmarks/verdict/case_worlds.py --worlds 200

`to reach` is what was asked for; a line that misses it says so by its figure.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from rules import ours
from worlds import Group, World, draw, same

from eval_gate.config.policy import DEFAULT_RERUNS
from eval_gate.struct import replace

PER_BRANCH = 5


@dataclass(frozen=True)
class Line:
    """A world at a size and a history. `least` and `most` are per cent of red gates, or of gates that find the case."""

    world: World
    history: int = 10
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True)
class Measured:
    """Gates that were red (of harmless worlds) or found the case, of so many; and executions a case.

    `by_branch` has the same for every branch: pull requests of one share its record, and what is odd about it.
    """

    gates: int
    said: int
    per_case: float
    by_branch: tuple[tuple[int, int], ...] = ()
    undecided: int = 0

    @property
    def share(self) -> float:
        """In per cent."""
        return 100 * self.said / self.gates

    @property
    def error(self) -> float:
        """The standard error of the share, of at least one gate in the direction of a miss.

        That of gates which are independent, or the one that branches as a whole show, whichever is larger.
        """
        share = min(max(self.said, 1), self.gates - 1) / self.gates
        alone, mean = share * (1 - share) / self.gates, self.said / self.gates
        together = sum((said - mean * gates) ** 2 for gates, said in self.by_branch) / self.gates**2
        return 100 * math.sqrt(max(alone, together))


LONG_HISTORY = 50


def lines(cases: int) -> Iterator[Line]:
    """All of them at so many cases, but for those of a long history, of which each branch takes long."""
    random = Random(cases)
    yield Line(World("nothing changed, every case fails 5%", (same(cases, 0.05),)), most=2)
    beta = tuple(same(1, random.betavariate(0.5, 9)) for _ in range(cases))
    yield Line(World("nothing changed, rates spread as Beta(0.5, 9)", beta), most=2)
    flaky = tuple(same(1, random.uniform(0.2, 0.5)) for _ in range(cases // 5))
    yield Line(
        World("nothing changed, four fifths solid, a fifth 20 to 50%", (*flaky, same(cases - len(flaky), 0))), most=2
    )
    for here, least in ((0.5, 40.0), (0.3, 12.0), (0.2, 4.0)):
        one = (Group(1, 0.0, here), same(cases - 1, 0.02))
        yield Line(World(f"one case that never failed fails {here:.0%}", one), least=least)
    for history, least in ((1, 94.0), (2, 99.0), (3, 99.0), (10, 99.0)):
        one = (Group(1, 0.05, 1.0), same(cases - 1, 0.05))
        yield Line(World(f"one case died (5%), history {history}", one), history, least=least)
    one = (Group(1, 0.45, 1.0), same(cases - 1, 0.02))
    yield Line(World("one case that flaked 45% died", one), least=75)


def long_lines(cases: int) -> Iterator[Line]:
    """Yield some of the lines with a history of fifty runs.

    Only the newest twenty runs of a history count.
    """
    known = {line.world.name: line for line in lines(cases)}
    for name in (
        "nothing changed, every case fails 5%",
        "nothing changed, four fifths solid, a fifth 20 to 50%",
        "one case that never failed fails 50%",
        "one case that flaked 45% died",
    ):
        line = known[name]
        world = replace(line.world, name=f"{name}, history {LONG_HISTORY}")
        yield replace(line, world=world, history=LONG_HISTORY)
    died = known["one case died (5%), history 10"]
    yield replace(
        died, world=replace(died.world, name=f"one case died (5%), history {LONG_HISTORY}"), history=LONG_HISTORY
    )


def measured(line: Line, gates: int, reruns: int = DEFAULT_RERUNS, seed: int = 1) -> Measured:
    """By the path that a user's run takes."""
    gate, executions, undecided = ours(reruns), 0, 0
    cases, said = sum(group.cases for group in line.world.groups), list[bool]()
    for number in range(gates):
        branch = f"{seed}/{line.world.name}/{cases}/{line.history}/{number // PER_BRANCH}"
        drawn = draw(line.world, line.history, branch, number)
        called = gate(drawn, Random(f"{branch}/{number}/again"))
        said.append(called.red if line.world.harmless else bool(called.regressions & drawn.changed))
        executions, undecided = executions + called.executions, undecided + called.undecided
    branches = [said[start : start + PER_BRANCH] for start in range(0, gates, PER_BRANCH)]
    by_branch = tuple((len(some), sum(some)) for some in branches)
    return Measured(gates, sum(said), executions / gates / cases, by_branch, undecided)


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=200)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--reruns", type=int, default=DEFAULT_RERUNS)
    given = parser.parse_args()
    print(f"| {given.cases} cases | to reach | this gate | executions a case |\n|:--|--:|--:|--:|")
    shown = [line for line in lines(given.cases) if not line.world.harmless]  # the others are in the table of sizes
    for line in (*shown, *long_lines(given.cases)):
        found = measured(line, given.worlds, given.reruns)
        target = f"≤ {line.most:g} %" if line.most is not None else f"≥ {line.least:g} %"
        print(
            f"| {line.world.name} | {target} | {found.share:.1f} % ± {found.error:.1f} | {found.per_case:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
