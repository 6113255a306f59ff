"""What it is worth to ask the base branch's agent where the gate is red: the same pull requests with it and without.

    python benchmarks/verdict/control.py --worlds 200   # the table of figures.md

The same seed gives the same table, on any number of processors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial, reduce
from random import Random

from printing import print_table
from rules import Called, ours
from simulate import PER_BRANCH, share
from worlds import Group, World, draw, same

from eval_gate.config.policy import DEFAULT_RERUNS

CASES, HISTORY, CONFIRM = 100, 10, DEFAULT_RERUNS
CHUNK = 10


@dataclass(frozen=True)
class Day:
    """A pull request's day: what is true of the change, and how often the base branch's agent fails today, by group."""

    world: World
    there: tuple[float, ...]

    @property
    def harmless(self) -> bool:
        """The change is no worse than the base branch's agent is today."""
        return all(group.here <= there for group, there in zip(self.world.groups, self.there, strict=True))

    @property
    def rates(self) -> list[float]:
        """By case."""
        groups = zip(self.world.groups, self.there, strict=True)
        return [there for group, there in groups for _ in range(group.cases)]


def days(cases: int) -> Iterator[Day]:
    """Yield the days of the table, one for each line."""

    def as_ever(name: str, *groups: Group) -> Day:
        return Day(World(name, groups), tuple(group.branch for group in groups))

    def today(name: str, *groups: Group) -> Day:
        return Day(World(name, groups), tuple(group.here for group in groups))

    yield as_ever("nothing changed (5%)", same(cases, 0.05))
    mix = (same(cases - cases // 5, 0.0), *(same(cases // 20, rate) for rate in (0.2, 0.3, 0.4, 0.5)))
    yield as_ever("nothing changed, a fifth fails 20 to 50%, the others never", *mix)
    for rate, times in ((0.02, 3), (0.02, 2), (0.05, 3), (0.05, 2)):
        yield today(f"nothing changed, a bad day: failures × {times} ({rate:.0%})", Group(cases, rate, rate * times))
    yield today("main's agent lost one case since its newest run (2%)", Group(1, 0.02, 1.0), same(cases - 1, 0.02))
    yield as_ever("one case died (2%)", Group(1, 0.02, 1.0), same(cases - 1, 0.02))
    yield as_ever("one case died that failed 40% before (2%)", Group(1, 0.4, 1.0), same(cases - 1, 0.02))
    yield as_ever("one case fails every other time (2%)", Group(1, 0.02, 0.5), same(cases - 1, 0.02))
    yield as_ever("every case lost 10 points (2%)", Group(cases, 0.02, 0.12))
    yield as_ever("every case lost 5 points (2%)", Group(cases, 0.02, 0.07))


@dataclass(frozen=True)
class Outcome:
    """Sums over pull requests: red gates, those that could not be decided, executions, those of the base's agent."""

    worlds: int = 0
    red: int = 0
    undecided: int = 0
    executions: int = 0
    there: int = 0

    def plus(self, other: Outcome) -> Outcome:
        """Both together."""
        return Outcome(
            self.worlds + other.worlds,
            self.red + other.red,
            self.undecided + other.undecided,
            self.executions + other.executions,
            self.there + other.there,
        )


def chunk(line: int, seed: int, start: int, *, asking: bool, end: int) -> Outcome:
    """Simulate the pull requests from `start` to before `end` on one day, and add them up.

    If `asking` is set, the base agent is available.
    """
    day = list(days(CASES))[line]
    rule, total = ours(CONFIRM, there=day.rates if asking else None, whole=True), Outcome()
    for number in range(start, end):
        branch = f"{seed}/{day.world.name}/{number // PER_BRANCH}"
        called: Called = rule(draw(day.world, HISTORY, branch, number), Random(f"{branch}/{number}/again"))
        total = total.plus(Outcome(1, called.red, called.undecided, called.executions, called.asked_there))
    return total


def table(pool: ProcessPoolExecutor, pull_requests: int, seed: int) -> Iterator[str]:
    """Yield the table as Markdown, with a line for each day."""
    yield "| red gates | wrong where | without | with it | could not decide, without | with it | its answers a case |"
    yield "|:--|:--|--:|--:|--:|--:|--:|"
    started = []
    for line, day in enumerate(days(CASES)):
        both = [
            [
                pool.submit(partial(chunk, line, seed, start, asking=asking, end=min(start + CHUNK, pull_requests)))
                for start in range(0, pull_requests, CHUNK)
            ]
            for asking in (False, True)
        ]
        started.append((day, both))
    for day, both in started:
        without, asking = (reduce(Outcome.plus, (one.result() for one in parts)) for parts in both)
        cells = [f"{_red(without)} | **{_red(asking)}**", share(without.undecided, without.worlds)]
        cells += [share(asking.undecided, asking.worlds), f"{asking.there / asking.worlds / CASES:.3f}"]
        yield f"| {day.world.name} | {'red' if day.harmless else 'green'} | " + " | ".join(cells) + " |"


def _red(outcome: Outcome) -> str:
    error = math.sqrt(outcome.red * (outcome.worlds - outcome.red) / outcome.worlds**3)
    return f"{share(outcome.red, outcome.worlds)} ± {100 * error:.1f}"


def main() -> None:
    """Print the table as Markdown."""
    print_table(table, "--worlds", 200, "pull requests for each line", __doc__ or "")


if __name__ == "__main__":
    main()
