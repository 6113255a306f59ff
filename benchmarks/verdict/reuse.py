"""False alarms, and what is found, where runs execute only the suites whose measured files changed.

    python benchmarks/verdict/reuse.py                     # the table of benchmarks/verdict/README.md
    python benchmarks/verdict/reuse.py --branches 10       # quicker

A branch has some suites of equal size. Each of its runs changes the files of a suite with some chance, and executes
that suite, and every suite whose last execution is a week ago or whose run did not pass; it reuses the others. A pull
request changes one suite, or all of them. The same draws are judged on a branch that executes everything.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from math import sqrt
from random import Random

from branch import Branch, Simulated, policy
from printing import print_table

from eval_gate.analysis.drift.branch_drift import find_drift
from eval_gate.config.policy import DEFAULT_RERUNS
from eval_gate.gate.verdict_decision import GateInputs, decide_verdict
from eval_gate.model.comparison import Outcome
from eval_gate.model.result import RunResult, SuiteResult
from eval_gate.model.reuse import ReusedResult, ReuseSource
from eval_gate.session.history_update import build_next_history
from eval_gate.struct import replace

FILES = ("a.json", "b.json", "c.json")
RECHECK_RUNS = 15
"""Runs of the branch in a week."""
RULES = policy(0.05, graded=False)


@dataclass(frozen=True)
class World:
    """A suite of suites: how many cases, how often they fail, and how often a run of the branch changes one suite."""

    name: str
    cases: int
    rates: tuple[tuple[float, float], ...]
    """Shares of the cases, and their failure rates."""
    changed: float
    runs: int = 30
    pull_requests: int = 10

    def draw_rates(self, random: Random) -> list[float]:
        """Draw the failure rate of each case, with exact shares."""
        rates = [rate for share, rate in self.rates for _ in range(round(share * self.cases))]
        random.shuffle(rates)
        return rates


ALL_5 = ((1.0, 0.05),)
FIFTH_30 = ((0.8, 0.02), (0.2, 0.3))
WORLDS = tuple(
    World(f"{cases} cases, {words}, a suite changes in {changed:.0%} of the runs", cases, rates, changed)
    for cases in (30, 90)
    for words, rates in (("all fail 5 %", ALL_5), ("a fifth fails 30 %", FIFTH_30))
    for changed in (0.3, 0.05)
)
HEADS = (
    *("branch", "suites executed, a run", "harmless, red", "harmless that execute all, red", "dead case found"),
    *("a suite lost ten points, found", "branches with a drift alarm"),
)


def reuse(earlier: RunResult, file: str) -> SuiteResult:
    """Return the result of a suite of the baseline, with the run that executed it."""
    suite = next(one for one in earlier.suites if one.eval_file == file)
    origin = suite.reused or ReusedResult(
        source=ReuseSource.BASELINE, run_id=earlier.run_id, timestamp=earlier.timestamp
    )
    return replace(suite, reused=origin)


def run_once(
    branch: Branch, name: str, number: int, executed: set[str], rates: list[float], random: Random
) -> RunResult:
    """One run that executes these suites and reuses the others of the branch, with its verdict."""
    question = GateInputs(branch.baseline, RULES)
    others = tuple(reuse(branch.newest, file) for file in FILES if file not in executed) if branch.newest else ()

    def rerun(at: int) -> str:
        return "F" if random.random() < rates[at] else "P"

    simulated = Simulated(question, DEFAULT_RERUNS, rerun, files=FILES, reused=others)
    first = [(at, rerun(at)) for at in range(len(rates)) if FILES[at % len(FILES)] in executed]
    when = f"2026-{number // 600 + 1:02}-{number // 24 % 25 + 1:02}T{number % 24:02}:00:00Z"
    return decide_verdict(simulated.run(name, when, first, len(rates)), question)


def has_passed(run: RunResult | None) -> bool:
    """Whether the run passed its gate, so that its results may be reused."""
    return run is not None and run.verdict is not None and run.verdict.outcome is Outcome.PASSED


def grow(world: World, rates: list[float], random: Random, *, reuses: bool) -> tuple[Branch, int, int]:
    """Let a branch grow: the branch, its executed suites, and its drift alarms that come and that nothing caused."""
    branch, last, executions, alarms = Branch(), dict.fromkeys(FILES, 0), 0, 0
    for number in range(world.runs):
        executed = set(FILES)
        if reuses and has_passed(branch.newest):
            executed = {
                file for file in FILES if random.random() < world.changed or number - last[file] >= RECHECK_RUNS
            }
        last |= dict.fromkeys(executed, number)
        run = run_once(branch, f"main-{number}", number, executed, rates, random)
        branch = Branch(run, build_next_history(run, branch.baseline))
        executions += len(executed)
        alarms += number % 5 == 4 and find_drift(branch.ledger).has_degraded
    return branch, executions, int(alarms > 0)


def measure(world: World, seed: int, number: int) -> Mapping[str, Counter[str]]:
    """Judge the pull requests of one branch of each kind, and count what came of them."""
    random = Random(f"{seed}/{world}/{number}")
    rates = world.draw_rates(random)
    found: dict[str, Counter[str]] = {}
    for kind in ("everything executed", "reused"):
        branch, executions, alarms = grow(world, rates, random, reuses=kind == "reused")
        of_kind = Counter({"branches": 1, "suites": executions, "alarms": alarms})
        for at in range(world.pull_requests):
            one = {FILES[at % len(FILES)]} if kind == "reused" and has_passed(branch.newest) else set(FILES)
            dead = [1.0 if place == at % len(FILES) else rate for place, rate in enumerate(rates)]
            worse = [rate + 0.1 if FILES[place % 3] == FILES[at % 3] else rate for place, rate in enumerate(rates)]
            of_kind["pull requests"] += 1
            kinds = {
                "red": (one, rates),
                "red, all executed": (set(FILES), rates),
                "dead": (one, dead),
                "lost": (one, worse),
            }
            for name, (executed, true_rates) in kinds.items():
                of_kind[name] += not has_passed(run_once(branch, "here", 700, executed, true_rates, random))
        found[kind] = of_kind
    return found


def table(pool: ProcessPoolExecutor, branches: int, seed: int, worlds: tuple[World, ...] = WORLDS) -> Iterator[str]:
    """Yield the table as Markdown, two lines for each world, with standard errors."""
    yield f"| {' | '.join(HEADS)} |"
    yield f"|:--|{'--:|' * (len(HEADS) - 1)}"
    for world in worlds:
        measured = list(pool.map(partial(measure, world, seed), range(branches)))
        for kind in measured[0]:
            counts = sum((one[kind] for one in measured), Counter[str]())
            number = counts["pull requests"]
            shares = (_share(counts[name], number) for name in ("red", "red, all executed", "dead", "lost"))
            suites = f"{counts['suites'] / branches / world.runs:.1f} of {len(FILES)}"
            alarms = f"{counts['alarms']} of {branches}"
            yield f"| {world.name}: {kind} | {suites} | {' | '.join(shares)} | {alarms} |"


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} % ± {100 * sqrt(part * (whole - part) / whole**3):.1f}"


def main() -> None:
    """Print the table as Markdown."""
    print_table(table, "--branches", 40, "branches for each line", __doc__ or "")


if __name__ == "__main__":
    main()
