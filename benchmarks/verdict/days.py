"""Simulated suites whose runs differ as a whole: bad days, cases of one template, and changes that mend and break."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from branch import PASS_SCORE, Execution
from worlds import Group, same

from eval_gate.struct import replace

BAD_DAYS = 0.1
"""How many runs are on a bad day, where chance decides."""
TOGETHER = 0.5
"""How often a case fails in a run in which its template does badly."""


@dataclass(frozen=True)
class DayWorld:
    """What is true. On a bad day every case fails `times` as often, re-runs included.

    `seen` older runs of the branch, at places that chance decides, were bad days; None where chance decides how many.
    `newest` and `here` say whether its newest run and the one of the pull request are; None for chance. So many cases
    in a row are of one `template`, and do badly in the same runs. `least` per cent are to be found, or at `most` so
    many may be red.
    """

    name: str
    groups: tuple[Group, ...]
    times: float = 1.0
    seen: int | None = 0
    newest: bool | None = False
    here: bool | None = False
    template: int = 1
    least: float | None = None
    most: float | None = None

    @property
    def harmless(self) -> bool:
        """Nothing is worse here."""
        return not any(group.changed for group in self.groups)


@dataclass(frozen=True)
class DayDrawn:
    """One draw, as `worlds.Drawn` is one: the rates of each case in each run, newest first, and here."""

    history: list[list[bool]]
    first: list[bool]
    rates: list[float]
    rates_then: list[list[float]]
    changed: frozenset[int]
    seed: str
    number: int
    graded: bool = False
    pass_score: float = PASS_SCORE
    max_score_drop: float | None = None

    @property
    def runs(self) -> int:
        """Runs of history."""
        return len(self.history)

    def firsts(self, run: int | None) -> list[Execution]:
        """Return the first executions of a run of the branch, or of the pull request.

        Run 0 is the newest run of the branch; None is the run of the pull request.
        """
        return ["F" if one else "P" for one in (self.first if run is None else self.history[run])]

    def again(self, at: int, run: int | None, random: Random) -> Execution:
        """One more execution of a case in that run, on the same day."""
        rate = self.rates[at] if run is None else self.rates_then[run][at]
        return "F" if random.random() < rate else "P"

    def failed(self, what: Execution) -> bool:
        """Whether it did not pass."""
        return what != "P"


def draw_day(world: DayWorld, runs: int, seed: str, number: int = 0) -> DayDrawn:
    """Draw the history of a branch, and the run of one of its pull requests.

    The history has `runs` runs. `seed` determines the history, and `number` selects the pull request.
    """
    random, fresh = Random(seed), Random(f"{seed}/{number}")
    older = list(range(1, runs))
    bad = set(random.sample(older, min(world.seen, len(older)))) if world.seen is not None else None
    then: list[list[float]] = []
    history: list[list[bool]] = []
    for run in range(runs):
        chosen = world.newest if run == 0 else None if bad is None else run in bad
        is_bad = random.random() < BAD_DAYS if chosen is None else chosen
        usual = [
            group.lately if run < group.recent else group.branch for group in world.groups for _ in range(group.cases)
        ]
        then.append(_on_day(usual, world, is_bad=is_bad))
        history.append([random.random() < rate for rate in _by_template(then[-1], world, random)])
    is_bad = fresh.random() < BAD_DAYS if world.here is None else world.here
    rates = _on_day([group.here for group in world.groups for _ in range(group.cases)], world, is_bad=is_bad)
    changed = [group.changed for group in world.groups for _ in range(group.cases)]
    return DayDrawn(
        history,
        [fresh.random() < rate for rate in _by_template(rates, world, fresh)],
        rates,
        then,
        frozenset(at for at, one in enumerate(changed) if one),
        seed,
        number,
    )


def _on_day(usual: list[float], world: DayWorld, *, is_bad: bool) -> list[float]:
    """How often each case fails in one run."""
    return [min(rate * (world.times if is_bad else 1.0), 1.0) for rate in usual]


def _by_template(rates: list[float], world: DayWorld, random: Random) -> list[float]:
    """Return the rates of first executions, in which cases of one template fail together.

    Re-runs come later and keep the rates of `rates`.
    """
    if world.template == 1:
        return rates
    done: list[float] = []
    for start in range(0, len(rates), world.template):
        badly = random.random()
        done += [TOGETHER if badly < rate / TOGETHER else 0.0 for rate in rates[start : start + world.template]]
    return done


def day_worlds(cases: int = 100) -> Iterator[DayWorld]:
    """Yield the worlds of the table, in its order."""
    yield from _of_bad_days(cases)
    yield from _of_losses(cases)
    yield from _of_trade_offs(cases)


def _of_bad_days(cases: int) -> Iterator[DayWorld]:
    usual = (same(cases, 0.02),)
    bad = DayWorld("", usual, 3, here=True)
    for times, most in ((3, 10.0), (2, 5.0)):
        for seen in range(4):
            name = f"a bad day (2%, failures × {times}), {seen} of the branch's runs were such days"
            yield replace(bad, name=name, times=times, seen=seen, most=most if seen else None)
    five = (same(cases, 0.05),)
    name = "a bad day (5%, failures × 3), 2 of the branch's runs were such days"
    yield replace(bad, name=name, groups=five, seen=2, most=10.0)
    for rate, groups in ((0.02, usual), (0.05, five)):
        name = f"one run in ten is a bad day ({rate:.0%}, failures × 3)"
        yield DayWorld(name, groups, 3, None, None, None, most=2.0)
    yield DayWorld("the branch's newest run was a bad day (2%, failures × 3)", usual, 3, newest=True, most=2.0)
    name = "twenty templates, whose cases fail together at first (2%)"
    yield DayWorld(name, usual, template=cases // 20, most=2.0)


def _of_losses(cases: int) -> Iterator[DayWorld]:
    yield DayWorld("every case lost 5 points (2%)", (Group(cases, 0.02, 0.07),))
    lost = DayWorld("every case lost 10 points (2%)", (Group(cases, 0.02, 0.12),), 3, least=85.0)
    yield lost
    for rate in (0.02, 0.05):
        name = f"every case lost 10 points, the branch's newest run was a bad day ({rate:.0%}, failures × 3)"
        yield replace(lost, name=name, groups=(Group(cases, rate, rate + 0.1),), newest=True)
    for recent, when in ((1, "in its newest run"), (2, "two runs ago"), (3, "three runs ago")):
        groups = (Group(cases, 0.02, 0.12, recent, 0.12),)
        yield DayWorld(f"the branch itself lost 10 points everywhere {when} (2%)", groups, most=2.0)


def _of_trade_offs(cases: int) -> Iterator[DayWorld]:
    for many, least in ((5, 25.0), (10, 55.0), (20, 85.0)):
        groups = (Group(many, 0.05, 0.3), same(cases - many, 0.0))
        yield DayWorld(f"{many} cases pass 70% instead of 95%, the others always", groups, least=least)
    worse, mended = Group(20, 0.02, 0.3), Group(20, 0.3, 0.02)
    yield DayWorld("20 cases pass 70% instead of 98%, the others always", (worse, same(cases - 20, 0.0)), least=75.0)
    groups = (worse, mended, same(cases - 40, 0.0))
    yield DayWorld("20 cases pass 70% instead of 98%, and 20 others 98% instead of 70%", groups, least=75.0)
