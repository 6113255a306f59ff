"""Executions of a case in one run that belong together: harmless and broken pull requests at shares of the run.

    python benchmarks/verdict/run_shares.py                          # the whole table
    python benchmarks/verdict/run_shares.py --shares 0.3 --trials 3 --pull-requests 100 --fresh

Every case has a rate of its own in each run, drawn from a Beta distribution: the share is the correlation of two
executions of a case in one run. The executions of one run are independent given that rate. With `--waits` re-runs
wait as long as the history asks for, and with `--fresh` each re-run that waits has a rate of its own.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random

from branch import Asking, Branch, Execution, policy, pull_request
from parts import PARTS, without

from eval_gate.config.policy import DEFAULT_RERUNS
from eval_gate.errors import ExitCode
from eval_gate.gate.evidence.execution_groups import compute_trial_share
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass

SHARES, TRIALS = (0.0, 0.05, 0.1, 0.3), (1, 3, 10)
EACH = 5
"""Pull requests of one branch."""


@dataclass(frozen=True)
class Cell:
    """One line of the table."""

    share: float
    trials: int
    cases: int = 60
    rate: float = 0.05
    history: int = 10
    fresh: bool = False
    waits: bool = False
    flaky: int = 0
    """Cases that fail three times in ten instead."""

    @property
    def rates(self) -> list[float]:
        """How often each case fails if nothing changed."""
        return [0.3] * self.flaky + [self.rate] * (self.cases - self.flaky)


@dataclass
class RunExecutions:
    """Executions of the cases in one run: the trials of a case share its rate, and so do re-runs unless `fresh`."""

    cell: Cell
    rates: Sequence[float]
    random: Random
    done: dict[int, int] = field(default_factory=dict)
    wait_s: int = 0
    run_rates: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Draw the rate of every case in this run."""
        self.run_rates = [self._draw_rate(rate) for rate in self.rates]

    def __call__(self, at: int) -> Execution:
        """Execute the case with this number once."""
        self.done[at] = self.done.get(at, 0) + 1
        again = self.cell.fresh and self.wait_s > 0 and self.done[at] > self.cell.trials
        rate = self._draw_rate(self.rates[at]) if again else self.run_rates[at]
        return "F" if self.random.random() < rate else "P"

    def note_wait(self, seconds: int) -> None:
        """Note how long re-runs wait."""
        self.wait_s = seconds

    def list_firsts(self) -> list[Execution]:
        """Execute every case once."""
        return [self(at) for at in range(len(self.rates))]

    def _draw_rate(self, rate: float) -> float:
        if not self.cell.share or rate in {0.0, 1.0}:
            return rate
        worth = (1 - self.cell.share) / self.cell.share
        return self.random.betavariate(rate * worth, (1 - rate) * worth)


@dataclass
class Seen:
    """Counts of `number` pull requests of one kind."""

    number: int = 0
    red: int = 0
    drops: int = 0
    inconclusive: int = 0
    found: int = 0
    executions: float = 0.0

    def show(self, count: int) -> str:
        """Show a count as a percentage with its standard error."""
        share = count / self.number
        error = math.sqrt(max(share * (1 - share), 0.25 / self.number) / self.number)
        return f"{share:.1%} ± {error:.1%}".replace("%", "")


def simulate(cell: Cell, pull_requests: int, seed: int) -> tuple[dict[str, Seen], float]:
    """Simulate pull requests that change nothing, break a case, and break it half of the time.

    Return what was seen of each kind, and the mean share that the gate learned.
    """
    rules, main, wait_s = policy(0.05, graded=False), Branch(), 1_800.0 if cell.waits else 0.0
    seen = {kind: Seen() for kind in ("same", "dead", "half")}
    learned = []
    for number in range(pull_requests):
        name = f"{seed}/{cell.share}/{cell.trials}/{number // EACH}"
        if number % EACH == 0:
            main = Branch()
            for place in range(cell.history):
                run = RunExecutions(cell, cell.rates, Random(f"{name}/main/{place}"))
                asking = Asking(rules, DEFAULT_RERUNS, run, trials=cell.trials, wait_s=wait_s, on_wait=run.note_wait)
                main = main.pushed(place, run.list_firsts(), asking)
        for kind, one in seen.items():
            random, rates = Random(f"{name}/{number}/{kind}"), cell.rates
            broken = random.randrange(cell.flaky, cell.cases)
            if kind != "same":
                rates[broken] = 1.0 if kind == "dead" else 1 - (1 - rates[broken]) / 2
            here = RunExecutions(cell, rates, random)
            asking = Asking(rules, DEFAULT_RERUNS, here, trials=cell.trials, wait_s=wait_s, on_wait=here.note_wait)
            done = pull_request(main, here.list_firsts(), asking)
            comparison, verdict = done.judged.comparison, done.judged.verdict
            assert comparison is not None
            assert comparison.evidence is not None
            assert verdict is not None
            learned.append(compute_trial_share(comparison.evidence.shares))
            named = comparison.select_changes(CaseClass.REGRESSION)
            one.number += 1
            one.red += verdict.exit_code is ExitCode.FAILED
            one.drops += comparison.suite_finding is not None and comparison.suite_finding.is_drop
            one.inconclusive += verdict.exit_code is ExitCode.INCOMPLETE
            one.found += CaseKey("suite.json", f"case-{broken}") in {change.key for change in named}
            one.executions += done.executions / cell.cases
    return seen, sum(learned) / len(learned)


def build_table(cells: Sequence[Cell], pull_requests: int, seed: int) -> Iterator[str]:
    """Simulate each cell, and yield the table as Markdown."""
    heads = (
        "share | trials | harmless red % | of these drops | exit 3 % | dead found % | dead, exit 3 | half found % "
        "| half, exit 3 | executions a case | learned"
    )
    yield f"| {heads} |"
    yield "|" + "--:|" * (heads.count("|") + 1)
    for cell in cells:
        seen, learned = simulate(cell, pull_requests, seed)
        same, dead, half = seen["same"], seen["dead"], seen["half"]
        figures = (
            same.show(same.red),
            same.show(same.drops),
            same.show(same.inconclusive),
            dead.show(dead.found),
            dead.show(dead.inconclusive),
            half.show(half.found),
            half.show(half.inconclusive),
            f"{same.executions / same.number:.2f}",
            f"{learned:.3f}",
        )
        yield f"| {cell.share} | {cell.trials} | {' | '.join(figures)} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES)
    parser.add_argument("--trials", type=int, nargs="+", default=TRIALS)
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--flaky", type=int, default=0)
    parser.add_argument("--history", type=int, default=10)
    parser.add_argument("--pull-requests", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fresh", action="store_true", help="a re-run that waits has a rate of its own")
    parser.add_argument("--waits", action="store_true", help="re-runs wait as long as the history asks for")
    parser.add_argument("--without", choices=PARTS, help="switch off this part of the gate")
    given = parser.parse_args()
    cells = [
        Cell(
            share,
            trials,
            given.cases,
            history=given.history,
            fresh=given.fresh,
            waits=given.waits,
            flaky=given.flaky,
        )
        for share in given.shares
        for trials in given.trials
    ]
    with without(PARTS[given.without] if given.without else None):
        for line in build_table(cells, given.pull_requests, given.seed):
            print(line, flush=True)


if __name__ == "__main__":
    main()
