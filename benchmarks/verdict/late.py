"""A provider that is slow on one day: what becomes of a run of which many answers come too late.

    python benchmarks/verdict/late.py                 # the table of figures.md
    python benchmarks/verdict/late.py --worlds 20     # quicker

Forty late answers are not forty regressions, and no reason to pass: what was not answered is not decided. What was
answered wrong, or crashed with an error of its own, counts on such a day as on any other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from random import Random

from printing import print_table
from rules import Called, ours
from worlds import Drawn, Group, World, draw, same

from eval_gate.config.policy import DEFAULT_RERUNS

CASES, HISTORY, PER_BRANCH = 100, 10, 5
USUAL = 0.02


def late_worlds(cases: int = CASES) -> Iterator[World]:
    """Yield the worlds of the table, one for each line."""
    usual, one = (same(cases, USUAL),), (Group(1, USUAL, 1.0), same(cases - 1, USUAL))
    for late in (0.1, 0.4):
        share = f"{late:.0%} of the answers come too late"
        yield World(f"nothing changed, {share}", usual, late=late)
        yield World(f"nothing changed, {share} at first, none again", usual, late=late, late_again=0.0)
        yield World(f"one case died, {share}", one, late=late)
        yield World(f"one case crashes, {share}", one, late=late, breaks="C")
    hangs = (Group(5, USUAL, 1.0), same(cases - 5, USUAL))
    yield World("five cases hang whenever they are asked, no other is late", hangs, breaks="T")
    yield World("nothing changed, in the branch's newest run 40% came too late", usual, late_before=0.4)
    yield World("one case died, in the branch's newest run 40% came too late", one, late_before=0.4)


@dataclass(frozen=True)
class Days:
    """Sums over pull requests: how they ended, what was named a regression rightly and wrongly, and executions.

    `heard` are those in which a changed case was answered at first, and `heard_found` those of them that named one.
    """

    worlds: int = 0
    red: int = 0
    undecided: int = 0
    wrongly: int = 0
    heard: int = 0
    heard_found: int = 0
    executions: int = 0

    def plus(self, other: Days) -> Days:
        """Both together."""
        return Days(
            self.worlds + other.worlds,
            self.red + other.red,
            self.undecided + other.undecided,
            self.wrongly + other.wrongly,
            self.heard + other.heard,
            self.heard_found + other.heard_found,
            self.executions + other.executions,
        )


def one_day(world: World, drawn: Drawn, called: Called) -> Days:
    """Return what one pull request adds to the sums."""
    first = drawn.firsts(None)
    heard = any(first[at] == world.breaks for at in drawn.changed)
    found = heard and bool(called.regressions & drawn.changed)
    wrongly = len(called.regressions - drawn.changed)
    return Days(1, called.red, called.undecided, wrongly, heard, found, called.executions)


def days(line: int, seed: int, start: int, end: int) -> Days:
    """Simulate the pull requests from `start` to before `end` of one line, and add them up.

    Each pull request has its own seed.
    """
    world, gate, total = list(late_worlds())[line], ours(DEFAULT_RERUNS), Days()
    for number in range(start, end):
        branch = f"{seed}/{world.name}/{number // PER_BRANCH}"
        drawn = draw(world, HISTORY, branch, number)
        total = total.plus(one_day(world, drawn, gate(drawn, Random(f"{branch}/{number}/again"))))
    return total


def table(pool: ProcessPoolExecutor, pull_requests: int, seed: int) -> Iterator[str]:
    """Yield the table as Markdown, with a line for each world."""
    heads = ("red", "not decided", "green", "wrongly named, a run", "what broke is named where it was heard at first")
    yield f"| {CASES} cases, {USUAL:.0%} | {' | '.join(heads)} | executions a case |"
    yield "|:--|" + "--:|" * (len(heads) + 1)
    starts = range(0, pull_requests, PER_BRANCH)
    ends = [min(start + PER_BRANCH, pull_requests) for start in starts]
    jobs = [pool.map(partial(days, line, seed), starts, ends) for line in range(len(list(late_worlds())))]
    for world, parts in zip(late_worlds(), jobs, strict=True):
        done = Days()
        for part in parts:
            done = done.plus(part)
        green = done.worlds - done.red - done.undecided
        cells = [_share(part, done.worlds) for part in (done.red, done.undecided, green)]
        cells += [f"{done.wrongly / done.worlds:.2f}", _share(done.heard_found, done.heard)]
        yield f"| {world.name} | {' | '.join(cells)} | {done.executions / done.worlds / CASES:.2f} |"


def _share(part: int, whole: int) -> str:
    """`95.0 % ± 2.1`; a dash of nothing."""
    if not whole:
        return "–"
    return f"{100 * part / whole:.1f} % ± {100 * math.sqrt(part * (whole - part) / whole**3):.1f}"


def main() -> None:
    """Print the table as Markdown."""
    print_table(table, "--worlds", 200, "pull requests for each line", __doc__ or "")


if __name__ == "__main__":
    main()
