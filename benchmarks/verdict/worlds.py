"""Simulated suites: how often each case fails on the default branch, and here."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from branch import PASS_SCORE, Execution
from measured_rates import MeasuredSuite, rates

from eval_gate.struct import replace

NOISE = 0.05
"""The standard deviation of a grade from run to run."""
MEAN = 0.85


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
    outage: bool = False
    """The newest run of the branch got HTTP 500 for every case."""
    near: float | None = None
    """Cases are graded, with means spread evenly over this much to both sides of `MEAN`; rates mean nothing then."""
    noise: float = NOISE
    fell: float = 0.0
    """By how much every score is lower here than on the branch."""
    pass_score: float = PASS_SCORE
    max_score_drop: float | None = None
    late: float = 0.0
    """How many answers of the pull request's run come too late (0 to 1), re-runs included."""
    late_again: float | None = None
    """The same of its re-runs; None for as many."""
    late_before: float = 0.0
    """The same of the branch's newest run."""
    breaks: Execution = "F"
    """What becomes of a changed case that does not pass: a wrong answer, or `C`, or `T` where it hangs."""
    excused: bool = False
    """What is worse here is the day, and not the change."""

    @property
    def harmless(self) -> bool:
        """Nothing is worse here by the change."""
        return self.excused or (not self.fell and not any(group.changed for group in self.groups))


@dataclass(frozen=True)
class Drawn:
    """One draw: per case the results of the history, newest first, and the rate at which it fails here.

    A result is True for a failure. `first` is the run of the pull request. Of graded cases there are scores instead.
    """

    history: list[tuple[bool, ...]]
    first: list[bool]
    rates: list[float]
    changed: frozenset[int]
    runs: int
    rates_then: list[tuple[float, int, float]]
    """Per case how often it fails on the branch, and how often in so many newest runs."""
    outage: bool = False
    means: tuple[float, ...] = ()
    seed: str = ""
    """Of the branch: pull requests with the same one are of the same branch."""
    number: int = 0
    noise: float = NOISE
    fell: float = 0.0
    pass_score: float = PASS_SCORE
    max_score_drop: float | None = None
    late: float = 0.0
    late_again: float = 0.0
    late_before: float = 0.0
    breaks: Execution = "F"

    @property
    def graded(self) -> bool:
        """Whether there are scores."""
        return bool(self.means)

    def firsts(self, run: int | None) -> list[Execution]:
        """Return the first executions of a run of the branch, or of the pull request.

        Run 0 is the newest run of the branch; None is the run of the pull request.
        """
        if self.outage and run == 0:
            return ["C"] * len(self.first)
        if self.graded:
            random = Random(f"{self.seed}/{self.number if run is None else 'main'}/{run}")
            return [self._grade(at, run, random) for at in range(len(self.means))]
        failed = self.first if run is None else [results[run] for results in self.history]
        plain: list[Execution] = [self._failure(at, run) if one else "P" for at, one in enumerate(failed)]
        late = self.late if run is None else self.late_before if run == 0 else 0.0
        if not late:
            return plain
        random = Random(f"{self.seed}/{self.number if run is None else 'main'}/late")
        return ["T" if random.random() < late else one for one in plain]

    def again(self, at: int, run: int | None, random: Random) -> Execution:
        """One more execution of a case in that run."""
        if self.outage and run == 0:
            return "C"
        if self.graded:
            return self._grade(at, run, random)
        rate = self.rates[at]
        if run is not None:
            branch, recent, lately = self.rates_then[at]
            rate = lately if run < recent else branch
        late = self.late_again if run is None else self.late_before if run == 0 else 0.0
        if late and random.random() < late:
            return "T"
        return self._failure(at, run) if random.random() < rate else "P"

    def failed(self, what: Execution) -> bool:
        """By the pass score, where it is a score."""
        return what < self.pass_score if isinstance(what, float) else what != "P"

    def _failure(self, at: int, run: int | None) -> Execution:
        """How a case fails: one that the change broke, as that breaks it."""
        return self.breaks if run is None and at in self.changed else "F"

    def _grade(self, at: int, run: int | None, random: Random) -> float:
        """Draw the score that an LLM judge gives the response to a case (0 to 1).

        The response is from a run of the branch, or from the pull request if `run` is None.
        """
        mean = self.means[at] - (self.fell if run is None else 0.0)
        return round(min(max(random.gauss(mean, self.noise), 0.0), 1.0), 3)


def same(cases: int, rate: float) -> Group:
    """Cases that are here as they always were."""
    return Group(cases, rate, rate)


def worlds(cases: int) -> Iterator[World]:
    """Yield the worlds of the table, in its order."""
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
    for lost in (1, 3, 5, 10):
        yield World(
            f"the branch itself lost {lost} case{'s' if lost > 1 else ''} in its newest run (2%)",
            (Group(lost, 0.02, 1.0, 1, 1.0), same(cases - lost, 0.02)),
        )
    yield World("the newest run of the branch was an outage (2%)", (same(cases, 0.02),), outage=True)
    yield World("graded cases near the pass score", (same(cases, 0.0),), near=0.1)
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
    yield World(
        "one case died, and the newest run of the branch was an outage (2%)",
        (Group(1, 0.02, 1.0), same(cases - 1, 0.02)),
        outage=True,
    )
    yield World("one case fails four times in five (2%)", (Group(1, 0.02, 0.8), same(cases - 1, 0.02)))
    yield World("one case fails every other time (2%)", (Group(1, 0.02, 0.5), same(cases - 1, 0.02)))
    yield World("every case lost 5 points (2%)", (Group(cases, 0.02, 0.07),))
    for rate in (0.02, 0.05):
        yield World(f"every case lost 10 points ({rate:.0%})", (Group(cases, rate, rate + 0.10),))


def part_worlds(cases: int) -> Iterator[World]:
    """Yield worlds that only one part of the gate verdict can tell.

    These parts are the level of the branch, the level of a case, and the allowance for a first mishap.
    """
    yield World("cases that never failed fail 2% today", (Group(cases, 0.0, 0.02),), excused=True)
    yield World(
        "the branch gained 10 points everywhere three runs ago, and this undoes it (12% then 2%)",
        (Group(cases, 0.12, 0.12, 3, 0.02),),
    )
    yield World(
        "the branch fixed a dead case three runs ago, and this breaks it (2%)",
        (Group(1, 1, 1, 3, 0.0), same(cases - 1, 0.02)),
    )


def score_worlds(cases: int) -> Iterator[World]:
    """Graded cases: every score falls, or none does. Where the pass score is 0.5 no case ever comes near it."""
    every = World("", (same(cases, 0.0),), near=0.1, noise=0.03, pass_score=0.5)
    near = replace(every, fell=0.06, pass_score=PASS_SCORE)
    yield replace(near, name=f"every score falls by 0.06 (noise 0.03, pass score {PASS_SCORE})")
    yield replace(every, name="every score falls by 0.06 (noise 0.03)", fell=0.06)
    yield replace(every, name="every score falls by 0.02 (noise 0.03)", fell=0.02)
    yield replace(every, name="nothing changed (noise 0.03)")
    strict = replace(every, noise=NOISE, max_score_drop=0.1)
    yield replace(strict, name=f"nothing changed, `max-score-drop` 0.1 (noise {NOISE})")


def measured_worlds(suite: MeasuredSuite, cases: int) -> Iterator[World]:
    """Yield a suite with the failure rates of a real agent: as it is, and with one case worse.

    That is the case in the middle, which seldom fails, or the flakiest but for a tenth of the cases.
    """
    groups = [same(1, rate) for rate in rates(suite, cases)]
    yield World(f"nothing changed, {suite.name}", tuple(groups))
    for what, at in (("middle", cases // 2), ("flaky", cases * 9 // 10)):
        usual = groups[at].branch
        for how, here in (("died", 1.0), ("passes half as often", 1 - (1 - usual) / 2)):
            name = f"the {what} case ({usual:.1%}) {how}, {suite.name}"
            yield World(name, (*groups[:at], Group(1, usual, here), *groups[at + 1 :]))


def draw(world: World, runs: int, seed: str, number: int = 0) -> Drawn:
    """Draw the history of a branch, and the run of one of its pull requests.

    The history has `runs` runs, and one more if the world has an outage. `seed` determines the history, and
    `number` selects the pull request.
    """
    random, fresh = Random(seed), Random(f"{seed}/{number}")
    runs += world.outage
    then: list[tuple[float, int, float]] = []
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
        first += [fresh.random() < group.here for _ in range(group.cases)]
        rates += [group.here] * group.cases
        then += [(group.branch, recent, group.lately)] * group.cases
    means = ()
    if world.near is not None:
        means = tuple(random.uniform(MEAN - world.near, MEAN + world.near) for _ in first)
    if world.fell:
        changed.update(range(len(first)))
    return Drawn(
        history,
        first,
        rates,
        frozenset(changed),
        runs,
        then,
        world.outage,
        means,
        seed,
        number,
        noise=world.noise,
        fell=world.fell,
        pass_score=world.pass_score,
        max_score_drop=world.max_score_drop,
        late=world.late,
        late_again=world.late if world.late_again is None else world.late_again,
        late_before=world.late_before,
        breaks=world.breaks,
    )


def _grid(cases: int, runs: int, rate: float, random: Random) -> Iterator[tuple[bool, ...]]:
    """Results of so many cases in so many runs. Rare failures are found by leaps, which is what makes this fast."""
    failed = set(_failures(cases * runs, rate, random))
    steady = (False,) * runs
    for case in range(cases):
        cells = range(case * runs, (case + 1) * runs)
        yield steady if failed.isdisjoint(cells) else tuple(cell in failed for cell in cells)


def _failures(cells: int, rate: float, random: Random) -> Iterator[int]:
    """Yield the positions of the failures among `cells` independent executions."""
    if rate >= 1.0:
        yield from range(cells)
    elif rate > 0.0:
        at, scale = -1, math.log1p(-rate)
        while (at := at + 1 + int(math.log(1.0 - random.random()) / scale)) < cells:
            yield at


def broken(cases: int, died: int) -> World:
    """Build the world of a change that broke `died` of the cases at once.

    The other cases fail one time in fifty.
    """
    return World(f"{died} of {cases} cases died (2%)", (Group(died, 0.02, 1.0), same(cases - died, 0.02)))
