"""What a pull request finds within several pushes, and how often it is red for no reason: remembering, and not.

    python benchmarks/verdict/pushes.py                  # the table of docs/verdict.md
    python benchmarks/verdict/pushes.py --worlds 40      # quicker

Each pull request is pushed five times without a change, on the path of a user's run: main's runs with their re-runs and
ledger, then the pushes, of which each is given what those before it left. The same draws are judged by a gate that
does not remember. The same seed gives the same table, on any number of processors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial, reduce
from random import Random

from branch import Asking, Branch, Execution, PullRequest, policy, pull_request
from printing import print_table
from rules import SHARDED_EACH, STORED_EACH
from worlds import Drawn, Group, World, draw, same

from eval_gate.config.policy import DEFAULT_CONFIRM
from eval_gate.errors import ExitCode
from eval_gate.model.comparison import CaseClass
from eval_gate.results.pushes import Pushes, pushes_bytes, read_pushes

CASES, HISTORY, CONFIRM = 100, 10, DEFAULT_CONFIRM
MOST_PUSHES, LOOKED_AT = 5, 3
"""Pushes of one pull request, and those within which a case has to be found."""
PER_BRANCH = 5
CHUNK = 10
SHOWN = (1, LOOKED_AT, MOST_PUSHES)


@dataclass(frozen=True)
class Line:
    """A world, and what is to be reached within three pushes, in percent; None where any red is wrong."""

    world: World
    target: int | None = None


def lines(cases: int = CASES) -> list[Line]:
    """The worlds of the table."""
    rest = same(cases - 1, 0.02)
    found = [
        Line(World(f"one case 100 → {passes}% (2%)", (Group(1, 0.0, 1 - passes / 100), rest)), target)
        for passes, target in ((50, 80), (70, 45), (80, 20))
    ]
    mended = Line(World("one case dead in the first push, then mended (2%)", (same(1, 0.0), rest)))
    fifth = cases // 5
    unchanged = [
        World("nothing changed, every case fails 2% of the time", (same(cases, 0.02),)),
        World("nothing changed, every case fails 5% of the time", (same(cases, 0.05),)),
        World("nothing changed, a tenth of the cases fails 20%", (same(cases // 10, 0.2), same(cases * 9 // 10, 0.0))),
        World("nothing changed, a fifth fails 30%, the others 1%", (same(fifth, 0.3), same(cases - fifth, 0.01))),
    ]
    return [*found, mended, *map(Line, unchanged)]


@dataclass(frozen=True)
class Outcome:
    """Sums over pull requests, by the number of pushes so far: those that were red (or found) by then, executions."""

    worlds: int = 0
    found: tuple[int, ...] = (0,) * MOST_PUSHES
    executions: tuple[int, ...] = (0,) * MOST_PUSHES

    def plus(self, other: Outcome) -> Outcome:
        """Both together."""
        return Outcome(
            self.worlds + other.worlds,
            tuple(map(sum, zip(self.found, other.found, strict=True))),
            tuple(map(sum, zip(self.executions, other.executions, strict=True))),
        )


Outcomes = tuple[Outcome, Outcome]
"""Of a gate that remembers, and of one that does not."""


def chunk(at: int, seed: int, start: int, end: int) -> Outcomes:
    """The pull requests with these numbers in one world; each has a seed of its own."""
    line = lines()[at]
    total = (Outcome(), Outcome())
    branches: dict[str, Branch] = {}
    for number in range(start, end):
        name = f"{seed}/{line.world.name}/{number // PER_BRANCH}"
        pushed = [draw(line.world, HISTORY, name, number * MOST_PUSHES + push) for push in range(MOST_PUSHES)]
        if name not in branches:
            branches = {name: _branch(pushed[0])}
        one = tuple(_pull_request(line, branches[name], pushed, number, remember) for remember in (True, False))
        total = total[0].plus(one[0]), total[1].plus(one[1])
    return total


def _pull_request(line: Line, branch: Branch, pushed: list[Drawn], number: int, remember: bool) -> Outcome:
    """All pushes of one pull request, one after the other."""
    rules = policy(0.05, graded=False)
    pushes = Pushes(pull_request=number) if remember else None
    found, executions, before = [], [], False
    for push, drawn in enumerate(pushed):
        random = Random(f"{drawn.seed}/{number}/{push}/again")
        first = drawn.firsts(None)
        dead = line.world.name.startswith("one case dead") and push == 0
        done = pull_request(
            branch,
            ["F", *first[1:]] if dead else first,
            Asking(rules, CONFIRM, _asked(drawn, random, dead=dead)),
            sharded=number % SHARDED_EACH == 0,
            stored=number % STORED_EACH == 0,
            pushes=pushes,
        )
        if pushes is not None:
            pushes = read_pushes(pushes_bytes(pushes.with_run(done.judged)), "the push before")
        before = before or (_called(done, drawn, by_case=line.target is not None) and not dead)
        found.append(int(before))
        executions.append(done.executions)
    return Outcome(1, tuple(found), tuple(executions))


def _called(done: PullRequest, drawn: Drawn, *, by_case: bool) -> bool:
    """Whether a case that changed is called a regression, or anything at all is red."""
    comparison, verdict = done.judged.comparison, done.judged.verdict
    assert comparison is not None
    assert verdict is not None
    if not by_case:
        return verdict.exit_code is not ExitCode.PASSED
    return any(int(one.case_id.rpartition("-")[2]) in drawn.changed for one in comparison.of(CaseClass.REGRESSION))


def _asked(drawn: Drawn, random: Random, *, dead: bool = False) -> partial[Execution]:
    return partial(_again, drawn, random, dead)


def _again(drawn: Drawn, random: Random, dead: bool, at: int) -> Execution:
    return "F" if dead and at == 0 else drawn.again(at, None, random)


def _branch(drawn: Drawn) -> Branch:
    """All runs of the branch, the oldest first, each with its re-runs."""
    branch, random = Branch(), Random(f"{drawn.seed}/again")
    for number in range(drawn.runs):
        run = drawn.runs - 1 - number
        ask = Asking(policy(0.05, graded=False), CONFIRM, partial(drawn.again, run=run, random=random))
        branch = branch.pushed(number, drawn.firsts(run), ask)
    return branch


def table(pool: ProcessPoolExecutor, pull_requests: int, seed: int) -> Iterator[str]:
    """A row for each world: red, or found, within one, three and five pushes, and what a push costs."""
    heads = [f"{'1 push' if number == 1 else f'{number} pushes'}" for number in SHOWN]
    yield "| within | to reach, 3 pushes | " + " | ".join(f"{head}" for head in heads) + " | without memory, 3 | 5 |"
    yield "|:--|--:|" + "--:|" * (len(heads) + 2)
    starts = range(0, pull_requests, CHUNK)
    ends = [min(start + CHUNK, pull_requests) for start in starts]
    known = lines()
    started = [pool.map(partial(chunk, at, seed), starts, ends) for at in range(len(known))]
    for line, chunks in zip(known, started, strict=True):
        with_memory, without = reduce(lambda one, other: (one[0].plus(other[0]), one[1].plus(other[1])), chunks)
        cells = [f"**{_share(with_memory, push)}** ({_cost(with_memory, push)})" for push in SHOWN]
        cells += [f"{_share(without, push)} ({_cost(without, push)})" for push in SHOWN[1:]]
        target = "red: ≤ 2 %" if line.target is None else f"≥ {line.target} %"
        yield f"| {line.world.name} | {target} | " + " | ".join(cells) + " |"


def _share(outcome: Outcome, pushes: int) -> str:
    """`68.3 % ± 1.9`: with its standard error."""
    share = outcome.found[pushes - 1] / outcome.worlds
    return f"{100 * share:.1f} % ± {100 * math.sqrt(share * (1 - share) / outcome.worlds):.1f}"


def _cost(outcome: Outcome, pushes: int) -> str:
    """`1.06`: executions a case in that push."""
    return f"{outcome.executions[pushes - 1] / outcome.worlds / CASES:.2f}"


def main() -> None:
    """Print the table as Markdown."""
    print_table(table, "--worlds", 300, "pull requests for each line", __doc__ or "")


if __name__ == "__main__":
    main()
