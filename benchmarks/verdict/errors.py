"""An agent that errs: on main as here, in one run, or in one case.

python benchmarks/verdict/errors.py                 # the table of README.md
python benchmarks/verdict/errors.py --worlds 20     # quicker
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from random import Random

from branch import Execution
from late import HISTORY, PER_BRANCH, USUAL, Days, _share, one_day
from printing import print_table
from rules import ours
from worlds import Drawn, Group, World, draw, same

from eval_gate.config.policy import DEFAULT_RERUNS

CASES = 60


@dataclass(frozen=True)
class Erring:
    """What was drawn, where executions of the branch and of the pull request also end in HTTP 500 (shares, 0 to 1)."""

    drawn: Drawn
    branch: float
    here: float

    def __getattr__(self, name: str) -> object:
        """Everything else is as it was drawn."""
        return getattr(self.drawn, name)

    def firsts(self, run: int | None) -> list[Execution]:
        """Return the first executions of a run of the branch, or of the pull request."""
        random = Random(f"{self.drawn.seed}/{self.drawn.number if run is None else 'main'}/{run}/errors")
        return [self._err(one, run, random) for one in self.drawn.firsts(run)]

    def again(self, at: int, run: int | None, random: Random) -> Execution:
        """One more execution of a case in that run."""
        return self._err(self.drawn.again(at, run, random), run, random)

    def _err(self, what: Execution, run: int | None, random: Random) -> Execution:
        return "C" if random.random() < (self.here if run is None else self.branch) else what


def erring_worlds() -> Iterator[tuple[World, float, float]]:
    """Yield the worlds of the table, and the shares of errors on the branch and here."""
    others = (Group(1, USUAL, 1.0), same(CASES - 1, USUAL))
    for branch, here in ((0.3, 0.3), (0.002, 0.002), (0.002, 0.1), (0.002, 0.2), (0.002, 0.6)):
        yield World("nothing changed", (same(CASES, USUAL),)), branch, here
    for branch, here in ((0.3, 0.3), (0.002, 0.2)):
        yield World("one case answers wrong", others), branch, here
    for branch, here in ((0.3, 0.3), (0.002, 0.002)):
        yield World("one case always errs", others, breaks="C"), branch, here


def days(line: int, seed: int, start: int, end: int) -> Days:
    """Simulate the pull requests from `start` to before `end` of one line, and add them up."""
    (world, branch, here), gate, total = list(erring_worlds())[line], ours(DEFAULT_RERUNS), Days()
    for number in range(start, end):
        base = f"{seed}/{world.name}/{branch}/{here}/{number // PER_BRANCH}"
        drawn = draw(world, HISTORY, base, number)
        called = gate(Erring(drawn, branch, here), Random(f"{base}/{number}/again"))  # type: ignore[arg-type]  # as drawn
        total = total.plus(one_day(world, drawn, called))
    return total


def table(pool: ProcessPoolExecutor, pull_requests: int, seed: int) -> Iterator[str]:
    """Yield the table as Markdown, with a line for each world."""
    heads = ("errors on main", "here", "red", "inconclusive", "wrongly named, a run", "broken case named")
    yield f"| {CASES} cases, {USUAL:.0%} | {' | '.join(heads)} | executions a case |"
    yield "|:--|" + "--:|" * (len(heads) + 1)
    starts = range(0, pull_requests, PER_BRANCH)
    ends = [min(start + PER_BRANCH, pull_requests) for start in starts]
    lines = list(erring_worlds())
    jobs = [pool.map(partial(days, line, seed), starts, ends) for line in range(len(lines))]
    for (world, branch, here), parts in zip(lines, jobs, strict=True):
        done = Days()
        for part in parts:
            done = done.plus(part)
        cells = [f"{branch:.1%}", f"{here:.1%}", _share(done.red, done.worlds), _share(done.undecided, done.worlds)]
        cells += [f"{done.wrongly / done.worlds:.2f}", _share(done.heard_found, done.heard)]
        yield f"| {world.name} | {' | '.join(cells)} | {done.executions / done.worlds / CASES:.2f} |"


def main() -> None:
    """Print the table as Markdown."""
    print_table(table, "--worlds", 40, "pull requests for each line", __doc__ or "")


if __name__ == "__main__":
    main()
