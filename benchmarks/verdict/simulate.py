"""How often the gate is red when nothing is worse, and what it finds: its shipped decision code in simulated worlds.

    python benchmarks/verdict/simulate.py                           # the tables of figures.md
    python benchmarks/verdict/simulate.py --worlds 100 --settings   # what history and re-runs are worth
    python benchmarks/verdict/simulate.py --worlds 30 --broken      # what it costs to know that much is broken
    python benchmarks/verdict/simulate.py --scores                  # what becomes of scores, of 50 graded cases
    python benchmarks/verdict/simulate.py --suites                  # bad days, and changes that mend and break

The same seed gives the same tables, on any number of processors. Of a suite of 500 cases a fifth of the pull requests
is simulated.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial, reduce
from random import Random

from rules import SHARDED_EACH, Rule, ours, plain, retry_twice
from suites_table import suites_table
from worlds import World, broken, draw, score_worlds, worlds

from eval_gate.config.policy import DEFAULT_RERUNS

SIZES = (100, 500)
RULES = ("plain", "retry", "gate")
PER_BRANCH = 5
"""Pull requests of one branch."""
CHUNK = 15
SETTINGS = ((1, 6), (3, 6), (10, 6), (20, 6), (1, 2), (10, 2), (20, 2))
"""Runs of history and re-runs at most."""


SCORED_CASES, SCORED_HISTORIES = 50, (1, 3, 10)
"""The size of the suites with grades, and the runs of history beside each other."""


@dataclass(frozen=True)
class Setting:
    """What is simulated: the size of the suite, which of its worlds, the history, and the rules beside each other."""

    cases: int
    world: int
    history: int
    reruns: int
    seed: int
    rules: tuple[str, ...] = ("gate",)


@dataclass(frozen=True)
class Outcome:
    """Sums over simulated pull requests: red gates, those that call out a changed case, executions."""

    worlds: int = 0
    red: int = 0
    found: int = 0
    executions: int = 0
    undecided: int = 0

    def plus(self, other: Outcome) -> Outcome:
        """Both together."""
        return Outcome(
            self.worlds + other.worlds,
            self.red + other.red,
            self.found + other.found,
            self.executions + other.executions,
            self.undecided + other.undecided,
        )


Outcomes = dict[str, Outcome]
"""By rule."""


def every_world(cases: int) -> list[World]:
    """Those of the main tables, then those about scores."""
    return [*worlds(cases), *score_worlds(cases)]


def chunk(setting: Setting, start: int, end: int) -> Outcomes:
    """Simulate the pull requests from `start` to before `end`, and add them up by rule.

    Each pull request has its own seed, so the result does not depend on which process simulates it.
    """
    world = every_world(setting.cases)[setting.world]
    rules: dict[str, Rule] = {"plain": plain, "retry": retry_twice, "gate": ours(setting.reruns)}
    outcomes = dict.fromkeys(setting.rules, Outcome())
    for number in range(start, end):
        branch = f"{setting.seed}/{world.name}/{setting.cases}/{setting.history}/{number // PER_BRANCH}"
        drawn = draw(world, setting.history, branch, number)
        for rule in setting.rules:
            called = rules[rule](drawn, Random(f"{branch}/{number}/again"))
            found = bool(called.regressions & drawn.changed)
            outcomes[rule] = outcomes[rule].plus(Outcome(1, called.red, found, called.executions, called.undecided))
    return outcomes


def _joined(one: Outcomes, other: Outcomes) -> Outcomes:
    return {rule: outcome.plus(other[rule]) for rule, outcome in one.items()}


class Simulation:
    """Simulates settings in as many processes as there are processors."""

    def __init__(self, pool: ProcessPoolExecutor, pull_requests: int) -> None:
        """So many pull requests for each setting of 100 cases; of larger suites as many cases in all."""
        self._pool = pool
        self._pull_requests = pull_requests

    def of(self, settings: list[Setting]) -> list[Outcomes]:
        """Simulate each setting, and return its outcomes with all chunks added up."""
        started = [self._chunks(setting) for setting in settings]
        return [reduce(_joined, chunks) for chunks in started]

    def _chunks(self, setting: Setting) -> Iterator[Outcomes]:
        number = max(self._pull_requests * SIZES[0] // setting.cases, 1)
        starts = range(0, number, CHUNK)
        return self._pool.map(partial(chunk, setting), starts, [min(start + CHUNK, number) for start in starts])


def share(part: int, whole: int) -> str:
    """`1.2 %`."""
    return f"{100 * part / whole:.1f} %"


def per_case(outcome: Outcome, cases: int) -> str:
    """`1.13`: executions a case."""
    return f"{outcome.executions / outcome.worlds / cases:.2f}"


def main_tables(simulation: Simulation, history: int, reruns: int, seed: int) -> Iterator[str]:
    """Yield the tables of false alarms, of what is found, and of inconclusive gates.

    The first two compare this gate with the other rules. The last one says how often this gate was inconclusive.
    """
    known: list[World] = list(worlds(SIZES[0]))
    settings = [Setting(cases, at, history, reruns, seed, RULES) for at in range(len(known)) for cases in SIZES]
    done = dict(zip(((one.world, one.cases) for one in settings), simulation.of(settings), strict=True))
    heads = [f"{rule}, {cases} cases" for cases in SIZES for rule in ("plain rule", "retry twice", "**this gate**")]
    for harmless in (True, False):
        yield f"| {'false alarms' if harmless else 'found'} | " + " | ".join(heads) + " |"
        yield "|:--|" + "--:|" * len(heads)
        for at, world in enumerate(known):
            if world.harmless is harmless:
                cells = (_cell(world, rule, done[at, cases][rule], cases) for cases in SIZES for rule in RULES)
                yield f"| {world.name} | " + " | ".join(cells) + " |"
        yield ""
    yield "| could not decide (exit code 3) | " + " | ".join(f"this gate, {cases} cases" for cases in SIZES) + " |"
    yield "|:--|" + "--:|" * len(SIZES)
    graded = [at for at, world in enumerate(known) if world.near is not None]
    others = [at for at in range(len(known)) if at not in graded]
    for name, places in (("graded cases near the pass score", graded), ("any other line, the most", others)):
        gates = [[done[at, cases]["gate"] for at in places] for cases in SIZES]
        most = [max((one.undecided, one.worlds) for one in column) for column in gates]
        yield f"| {name} | " + " | ".join(share(*one) for one in most) + " |"


def _cell(world: World, rule: str, outcome: Outcome, cases: int) -> str:
    said = share(outcome.red if world.harmless else outcome.found, outcome.worlds)
    return f"**{said}** ({per_case(outcome, cases)})" if rule == "gate" else said


CHOSEN = {
    "nothing changed, every case fails 5% of the time": "false: all 5%",
    "nothing changed, a fifth fails 30%, the others 1%": "false: a fifth 30%",
    "one case died (5%)": "found: one died (5%)",
    "one case fails every other time (2%)": "found: every other time",
    "every case lost 10 points (2%)": "found: all −10 (2%)",
}
"""Worlds of the table of settings, and what its head says."""


def settings_table(simulation: Simulation, seed: int) -> Iterator[str]:
    """Yield the table of this gate with other histories and other numbers of re-runs."""
    lines = [(cases, history, reruns) for cases in SIZES for history, reruns in SETTINGS]
    names = [world.name for world in worlds(SIZES[0])]
    chosen = [names.index(name) for name in CHOSEN]
    settings = [Setting(cases, at, history, reruns, seed) for cases, history, reruns in lines for at in chosen]
    done = iter(simulation.of(settings))
    yield "| cases | runs of history | re-runs | " + " | ".join(CHOSEN.values()) + " |"
    yield "|--:|--:|--:|" + "--:|" * len(CHOSEN)
    for cases, history, reruns in lines:
        harmless = [world.harmless for world in worlds(cases)]
        cells = []
        for at in chosen:
            outcome = next(done)["gate"]
            said = share(outcome.red if harmless[at] else outcome.found, outcome.worlds)
            cells.append(f"{said} ({per_case(outcome, cases)})")
        yield f"| {cases} | {history} | {reruns} | " + " | ".join(cells) + " |"


BROKEN = ((100, 50, 10), (100, 50, 1), (300, 300, 10), (300, 300, 1))
"""Cases, how many of them died, and runs of history."""


def broken_table(pull_requests: int, reruns: int, seed: int) -> Iterator[str]:
    """Yield the table of executions beyond the first of every case, where much is broken.

    Many cases break at once, and every failure looks the same.
    """
    yield "| broken | runs of history | red | re-runs, mean | the most | in four shards, mean | the most |"
    yield "|:--|--:|--:|--:|--:|--:|--:|"
    for cases, died, history in BROKEN:
        world, gate = broken(cases, died), ours(reruns)
        called = [
            gate(draw(world, history, branch, number), Random(f"{branch}/{number}/again"))
            for number in range(pull_requests)
            for branch in (f"{seed}/{world.name}/{history}/{number // PER_BRANCH}",)
        ]
        more = [one.executions - cases for one in called]
        red = share(sum(one.red for one in called), len(called))
        cut, whole = more[::SHARDED_EACH], [one for at, one in enumerate(more) if at % SHARDED_EACH]
        cells = " | ".join(f"{sum(some) / len(some):.1f} | {max(some)}" for some in (whole, cut))
        yield f"| {world.name} | {history} | {red} | {cells} |"


def scores_table(simulation: Simulation, seed: int) -> Iterator[str]:
    """Red gates of suites with grades, after one, a few and ten runs of history, each with its standard error."""
    known, first = list(score_worlds(SCORED_CASES)), len(list(worlds(SCORED_CASES)))
    settings = [
        Setting(SCORED_CASES, first + at, history, DEFAULT_RERUNS, seed)
        for at in range(len(known))
        for history in SCORED_HISTORIES
    ]
    done = iter(simulation.of(settings))
    heads = (f"{history} run{'s' if history > 1 else ''} of history" for history in SCORED_HISTORIES)
    yield f"| red, {SCORED_CASES} graded cases | to reach | " + " | ".join(heads) + " |"
    yield "|:--|--:|" + "--:|" * len(SCORED_HISTORIES)
    for world in known:
        cells = []
        for _ in SCORED_HISTORIES:
            outcome = next(done)["gate"]
            error = math.sqrt(outcome.red * (outcome.worlds - outcome.red) / outcome.worlds**3)
            cells.append(f"{share(outcome.red, outcome.worlds)} ± {100 * error:.1f}")
        target = "≤ 2 %" if world.harmless else "≥ 99 %" if world.fell > world.noise else "–"
        yield f"| {world.name} | {target} | " + " | ".join(cells) + " |"


def main() -> None:
    """Print the tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=300, help="pull requests for each line, at 100 cases")
    parser.add_argument("--history", type=int, default=10, help="runs of the default branch before")
    parser.add_argument("--reruns", type=int, default=DEFAULT_RERUNS, help="re-runs of a suspect at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--settings", action="store_true", help="the table of histories and re-runs instead")
    parser.add_argument("--broken", action="store_true", help="the table of what broke at once instead")
    parser.add_argument("--scores", action="store_true", help="the table of suites with grades instead")
    parser.add_argument("--suites", action="store_true", help="the table of bad days and trade-offs instead")
    given = parser.parse_args()
    if given.broken:
        for line in broken_table(given.worlds, given.reruns, given.seed):
            print(line, flush=True)
        return
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        simulation = Simulation(pool, given.worlds)
        if given.settings:
            lines = settings_table(simulation, given.seed)
        elif given.suites:
            lines = suites_table(pool, given.worlds, given.history, given.seed)
        elif given.scores:
            lines = scores_table(simulation, given.seed)
        else:
            lines = main_tables(simulation, given.history, given.reruns, given.seed)
        for line in lines:
            print(line, flush=True)


if __name__ == "__main__":
    main()
