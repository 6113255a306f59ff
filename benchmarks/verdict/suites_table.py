"""The table of suites whose runs differ as a whole, and of changes that mend and break: red gates, and their errors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from random import Random

from days import day_worlds, draw_day
from rules import ours, plain, retry_twice

from eval_gate.config.policy import DEFAULT_RERUNS

PER_BRANCH = 5
CASES, HISTORY, CONFIRM = 100, 10, DEFAULT_RERUNS
_CHUNK = 25


@dataclass(frozen=True)
class Reds:
    """How many pull requests there were, and how often each rule was red; `executions` are the gate's."""

    number: int = 0
    plain: int = 0
    retry: int = 0
    gate: int = 0
    executions: int = 0

    def plus(self, other: Reds) -> Reds:
        """Both together."""
        return Reds(
            self.number + other.number,
            self.plain + other.plain,
            self.retry + other.retry,
            self.gate + other.gate,
            self.executions + other.executions,
        )

    @property
    def error(self) -> float:
        """The standard error of the gate's share of red, in per cent."""
        return 100 * math.sqrt(self.gate * (self.number - self.gate) / self.number**3)


def reds(world: int, seed: int, start: int, end: int, history: int = HISTORY) -> Reds:
    """Simulate the pull requests from `start` to before `end`, and count red gates by rule.

    Each pull request has its own seed, so the result does not depend on which process simulates it.
    """
    of, gate, found = list(day_worlds(CASES))[world], ours(CONFIRM), Reds()
    for number in range(start, end):
        branch = f"{seed}/{of.name}/{history}/{number // PER_BRANCH}"
        drawn, again = draw_day(of, history, branch, number), f"{branch}/{number}/again"
        called = gate(drawn, Random(again))
        one, other = plain(drawn, Random(again)).red, retry_twice(drawn, Random(again)).red
        found = found.plus(Reds(1, one, other, called.red, called.executions))
    return found


def suites_table(pool: ProcessPoolExecutor, pull_requests: int, history: int, seed: int) -> Iterator[str]:
    """One line a world: what is to be reached, and how often each rule is red."""
    starts = range(0, pull_requests, _CHUNK)
    ends = [min(start + _CHUNK, pull_requests) for start in starts]
    known = list(enumerate(day_worlds(CASES)))
    jobs = [pool.map(partial(_chunk, at, seed, history), starts, ends) for at, _ in known]
    yield f"| red, {CASES} cases | to reach | plain rule | retry twice | **this gate** |"
    yield "|:--|--:|--:|--:|--:|"
    for (_, world), chunks in zip(known, jobs, strict=True):
        found = Reds()
        for chunk in chunks:
            found = found.plus(chunk)
        goal = f"≥ {world.least:.0f} %" if world.least else f"≤ {world.most:.0f} %" if world.most else "–"
        cells = (f"{100 * one / found.number:.1f} %" for one in (found.plain, found.retry))
        share = f"**{100 * found.gate / found.number:.1f} %** ± {found.error:.1f}"
        each = f"{found.executions / found.number / CASES:.2f}"
        yield f"| {world.name} | {goal} | {' | '.join(cells)} | {share} ({each}) |"


def _chunk(world: int, seed: int, history: int, start: int, end: int) -> Reds:
    return reds(world, seed, start, end, history)
