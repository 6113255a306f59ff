"""Simulated suites: how often each case fails on the default branch, and here."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Group:
    """Cases of one kind: how often they fail on the branch, in its newest `recent` runs, and here (0 to 1)."""

    cases: int
    branch: float
    here: float
    recent: int = 0
    lately: float = 0.0

    @property
    def changed(self) -> bool:
        """Whether these cases are worse here than on the branch as it is now."""
        return self.here > (self.lately if self.recent else self.branch)


@dataclass(frozen=True)
class World:
    """What is true, in words, and by groups of cases. `harmless`: a red gate is wrong."""

    name: str
    groups: tuple[Group, ...]

    @property
    def harmless(self) -> bool:
        """Nothing is worse here."""
        return not any(group.changed for group in self.groups)


@dataclass(frozen=True)
class Drawn:
    """One draw: per case the results of the history, newest first, and the rate at which it fails here.

    A result is True for a failure. `first` is the run of the pull request.
    """

    history: list[tuple[bool, ...]]
    first: list[bool]
    rates: list[float]
    changed: frozenset[int]


def same(cases: int, rate: float) -> Group:
    """Cases that are here as they always were."""
    return Group(cases, rate, rate)


def worlds(cases: int) -> Iterator[World]:
    """The worlds of the table, in its order."""
    for rate in (0.0, 0.01, 0.02, 0.05, 0.10):
        yield World(f"nothing changed, every case fails {rate:.0%} of the time", (same(cases, rate),))
    tenth, fifth = cases // 10, cases // 5
    yield World("nothing changed, a tenth of the cases fails 20%", (same(tenth, 0.2), same(cases - tenth, 0.0)))
    yield World("nothing changed, a fifth fails 30%, the others 1%", (same(fifth, 0.3), same(cases - fifth, 0.01)))
    yield World(
        "the branch itself lost one case three runs ago (2%)",
        (Group(1, 0.02, 1.0, 3, 1.0), same(cases - 1, 0.02)),
    )
    yield World(
        "the branch itself lost a tenth of the cases in its newest run (2%)",
        (Group(tenth, 0.02, 1.0, 1, 1.0), same(cases - tenth, 0.02)),
    )
    yield World(
        "the branch itself lost 10 points everywhere three runs ago (2%)",
        (Group(cases, 0.02, 0.12, 3, 0.12),),
    )
    for rate in (0.02, 0.05):
        yield World(f"one case died ({rate:.0%})", (Group(1, rate, 1.0), same(cases - 1, rate)))
    yield World(
        "one case died, a fifth of the others fails 30%",
        (Group(1, 0.01, 1.0), same(fifth, 0.3), same(cases - fifth - 1, 0.01)),
    )
    yield World("one case fails four times in five (2%)", (Group(1, 0.02, 0.8), same(cases - 1, 0.02)))
    yield World("one case fails every other time (2%)", (Group(1, 0.02, 0.5), same(cases - 1, 0.02)))
    yield World("every case lost 5 points (2%)", (Group(cases, 0.02, 0.07),))
    for rate in (0.02, 0.05):
        yield World(f"every case lost 10 points ({rate:.0%})", (Group(cases, rate, rate + 0.10),))


def draw(world: World, runs: int, random: Random) -> Drawn:
    """One history of so many runs, and one run of the pull request."""
    history: list[tuple[bool, ...]] = []
    first: list[bool] = []
    rates: list[float] = []
    changed: set[int] = set()
    for group in world.groups:
        recent = min(group.recent, runs)
        newer = list(_grid(group.cases, recent, group.lately, random))
        older = list(_grid(group.cases, runs - recent, group.branch, random))
        if group.changed:
            changed.update(range(len(first), len(first) + group.cases))
        history += [new + old for new, old in zip(newer, older, strict=True)]
        first += [random.random() < group.here for _ in range(group.cases)]
        rates += [group.here] * group.cases
    return Drawn(history, first, rates, frozenset(changed))


def _grid(cases: int, runs: int, rate: float, random: Random) -> Iterator[tuple[bool, ...]]:
    """Results of so many cases in so many runs. Rare failures are found by leaps, which is what makes this fast."""
    failed = set(_failures(cases * runs, rate, random))
    steady = (False,) * runs
    for case in range(cases):
        cells = range(case * runs, (case + 1) * runs)
        yield steady if failed.isdisjoint(cells) else tuple(cell in failed for cell in cells)


def _failures(cells: int, rate: float, random: Random) -> Iterator[int]:
    """The places of failures among so many independent executions."""
    if rate >= 1.0:
        yield from range(cells)
    elif rate > 0.0:
        at, scale = -1, math.log1p(-rate)
        while (at := at + 1 + int(math.log(1.0 - random.random()) / scale)) < cells:
            yield at
