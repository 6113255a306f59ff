"""Several executions of every case: what the test of all cases together makes of them, beside tests of the means.

    python benchmarks/verdict/trials.py                                  # the whole table, hours
    python benchmarks/verdict/trials.py --sizes 60 --trials 10 --lines "95% → 90%" --pull-requests 30
    python benchmarks/verdict/trials.py --sizes 20 --trials 10 --passes 8 --histories 3 --pull-requests 250

The tests beside it take every case's share of passes in the newest run and here, as packages for paired tests do: a
paired t-test, one-sided, at 5 % and at the 1 % that the test of all cases may spend here, and McNemar's test of the
cases' majorities at 5 %. Where the trials of a case go together, neither a case nor all of them are what the gate takes
them for: independent executions. These lines show what that costs. With one trial it is the re-runs that go with the
first execution.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean, stdev

from branch import Asking, Branch, Execution, policy, pull_request
from worlds import Drawn, Group, World, draw, same

from eval_gate.config.policy import DEFAULT_RERUNS
from eval_gate.errors import ExitCode
from eval_gate.gate.evidence.suite.score_noise import compute_student_tail
from eval_gate.model.comparison import CaseClass
from eval_gate.model.execution import Status
from eval_gate.model.result import CaseResult, RunResult

SIZES, TRIALS, HISTORIES = (20, 60, 100, 500), (1, 3, 10), (1, 3, 10)
EACH, USUAL, STRICT = 5, 0.05, 0.01
"""Pull requests of a branch; the levels of the tests beside it."""


@dataclass(frozen=True)
class Together(World):
    """A world in which the executions of a case in one run go together.

    `share` is how much of the variance of one execution is that of the run: the case's rate in it is drawn anew.
    """

    share: float = 0.0


def worlds(cases: int) -> Iterator[World]:
    """Yield the worlds of the table: first those without a change, then losses of the suite."""
    tenth, steady = max(cases // 10, 1), "nothing changed, every case fails {:.0%}"
    for rate in (0.02, 0.05, 0.10):
        yield World(steady.format(rate), (same(cases, rate),))
    yield World("nothing changed, a tenth fails 20%", (same(tenth, 0.2), same(cases - tenth, 0.0)))
    for share in (0.1, 0.3):
        yield Together(f"{steady.format(0.05)}, trials go together ({share})", (same(cases, 0.05),), share=share)
    yield World("every case 95% → 90%", (Group(cases, 0.05, 0.10),))
    yield World("every case 98% → 95%", (Group(cases, 0.02, 0.05),))
    yield World("one case 95% → 50%", (Group(1, 0.05, 0.5), same(cases - 1, 0.05)))
    yield Together("every case 95% → 90%, trials go together (0.1)", (Group(cases, 0.05, 0.10),), share=0.1)


@dataclass
class Seen:
    """Of so many pull requests: red gates, those that name a regression, and what the other tests find."""

    gates: int = 0
    red: int = 0
    named: int = 0
    paired: int = 0
    strict: int = 0
    mcnemar: int = 0
    executions: float = 0.0

    def add(self, judged: RunResult, before: RunResult, executions: int) -> None:
        """One more."""
        comparison, verdict = judged.comparison, judged.verdict
        assert comparison is not None
        assert verdict is not None
        here, then = judged.index_cases(), before.index_cases()
        self.gates += 1
        self.red += verdict.exit_code is ExitCode.FAILED
        self.named += bool(comparison.select_changes(CaseClass.REGRESSION))
        chance = paired([_share(then[key]) - _share(case) for key, case in here.items()])
        self.paired += chance <= USUAL
        self.strict += chance <= STRICT
        self.mcnemar += mcnemar([(_share(then[key]) > 0.5, _share(case) > 0.5) for key, case in here.items()]) <= USUAL
        self.executions += executions / len(here)


def _share(case: CaseResult) -> float:
    """Return the share of passes among the trials of a case, without its re-runs (0 to 1)."""
    first = case.trials[: len(case.trials) - case.reruns]
    return fmean(one.status is Status.PASSED for one in first)


def paired(falls: Sequence[float]) -> float:
    """Return the one-sided p-value of the mean of `falls` in a paired t-test.

    This is the chance of such a mean fall if there is none. Return 1.0 if all falls are equal.
    """
    spread = stdev(falls)
    if not spread:
        return 1.0
    return compute_student_tail(fmean(falls) / (spread / math.sqrt(len(falls))), len(falls) - 1)


def mcnemar(passed: Sequence[tuple[bool, bool]]) -> float:
    """Return the one-sided p-value of McNemar's exact test.

    Each pair of `passed` says whether a case passed in the baseline and whether it passes now. The test compares
    the cases that passed and fail now with those that failed and pass now.
    """
    worse, better = (sum(pair == one for pair in passed) for one in ((True, False), (False, True)))
    number = worse + better
    return sum(math.comb(number, k) for k in range(worse, number + 1)) / 2**number


class Trials:
    """The trials of one run: of a case that goes together its rate in this run is drawn first."""

    def __init__(self, world: World, drawn: Drawn, run: int | None, random: Random) -> None:
        """`run` is one of the branch, 0 for the newest; None for the pull request's."""
        self._drawn, self._run, self._random = drawn, run, random
        self._rates: list[float] = []
        share = world.share if isinstance(world, Together) else 0.0
        if share:
            rates = [group.here if run is None else group.branch for group in world.groups for _ in range(group.cases)]
            many = (1 - share) / share
            self._rates = [random.betavariate(rate * many, (1 - rate) * many) for rate in rates]

    def first(self) -> list[Execution]:
        """Return the first execution of every case."""
        if self._rates:
            return [self(at) for at in range(len(self._rates))]
        return self._drawn.firsts(self._run)

    def __call__(self, at: int) -> Execution:
        """One more of this case."""
        if self._rates:
            return "F" if self._random.random() < self._rates[at] else "P"
        return self._drawn.again(at, self._run, self._random)


def simulate(world: World, trials: int, history: int, pull_requests: int, seed: int, needed: int | None = None) -> Seen:
    """Simulate the pull requests of one cell, and add up what the gate and other tests find.

    The branch, its history, trials, re-runs and gate verdicts are made as the program makes them.
    `needed` of the trials of a case have to pass; None for more than half.
    """
    rules, seen, main = policy(0.05, graded=False), Seen(), Branch()
    for number in range(pull_requests):
        name = f"{seed}/{world.name}/{number // EACH}"
        drawn = draw(world, history, name, number)
        if number % EACH == 0:
            main = Branch()
            for place in range(history):
                run = history - 1 - place
                again = Trials(world, drawn, run, Random(f"{name}/main/{run}"))
                main = main.pushed(
                    place, again.first(), Asking(rules, DEFAULT_RERUNS, again, trials=trials, needed=needed)
                )
        here = Trials(world, drawn, None, Random(f"{name}/{number}"))
        done = pull_request(main, here.first(), Asking(rules, DEFAULT_RERUNS, here, trials=trials, needed=needed))
        assert main.newest is not None
        seen.add(done.judged, main.newest, done.executions)
    return seen


def table(
    sizes: Sequence[int],
    trials: Sequence[int],
    histories: Sequence[int],
    words: Sequence[str],
    plan: tuple[int, int, int | None],
) -> Iterator[str]:
    """Simulate each cell, and yield the table as Markdown, with a line for each cell.

    If `words` are given, only worlds with any of them in their name are simulated. `plan` has the pull requests
    of a cell, the seed, and how many trials have to pass.
    """
    tests = (f"paired t-test, {USUAL:.0%}", f"{STRICT:.0%}", f"McNemar, {USUAL:.0%}")
    heads = ("pull requests", "red", "of these with a named case", *tests, "executions a case")
    yield f"| world | cases | trials | runs of history | {' | '.join(heads)} |"
    yield "|:--|" + "--:|" * (len(heads) + 3)
    for cases in sizes:
        for world in worlds(cases):
            if words and not any(one in world.name for one in words):
                continue
            for many in trials:
                for history in histories:
                    one = simulate(world, many, history, *plan)
                    counts = (one.gates, one.red, one.named, one.paired, one.strict, one.mcnemar)
                    cells = [*map(str, counts), f"{one.executions / plan[0]:.2f}"]
                    yield f"| {world.name} | {cases} | {many} | {history} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--trials", type=int, nargs="+", default=TRIALS)
    parser.add_argument("--histories", type=int, nargs="+", default=HISTORIES)
    parser.add_argument("--lines", nargs="+", default=[], metavar="WORDS", help="lines with any of these in their name")
    parser.add_argument("--pull-requests", type=int, default=30)
    parser.add_argument("--passes", type=int, help="number of trials that have to pass; by default more than half")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    plan = given.pull_requests, given.seed, given.passes
    asked = given.sizes, given.trials, given.histories, given.lines, plan
    for line in table(*asked):
        print(line, flush=True)


if __name__ == "__main__":
    main()
