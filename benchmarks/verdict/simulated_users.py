"""What the randomness of a simulated user does to a case: how often it fails on main, and what the gate then finds.

    python benchmarks/verdict/simulated_users.py            # the table of docs/models.md and more, two minutes

The agent alone, with a script, passes a case with the rate `agent`. The user spoils some conversations: it leaves a
fact out, ends too early, or goes another way, and a right agent fails. `spoilt` is the mean share of these. It is the
same for every case, or spread over the cases so that few have most of it (Beta with a first parameter of 0.5).
Conversations are independent, so their shares multiply.

The pull request breaks one step of a case. With a script every execution comes to this step. A user comes to it in all
conversations, in half of them, or in one of five.

Single cases only, by the shipped thresholds and decisions: only histories are drawn, and all ways of the executions
are added up, as in long_reruns.py. The suite test is left out.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from statistics import fmean

from long_reruns import Path, list_ends

from eval_gate.config.policy import DEFAULT_FALSE_ALARM_RATE, DEFAULT_RERUNS
from eval_gate.gate.evidence.prior import learn_prior
from eval_gate.gate.evidence.rerun_decision import RerunCriteria
from eval_gate.gate.evidence.thresholds import ExecutionLimits, compute_run_thresholds
from eval_gate.model.evidence import Counts

AGENT = (1.0, 0.98, 0.95)
SPOILT = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3)
REACHED = (1.0, 0.5, 0.2)
"""Share of the conversations that come to the broken step."""
SPREAD = 0.5
"""First parameter of the Beta distribution of the shares over the cases: the smaller, the more uneven."""


@dataclass(frozen=True)
class Users:
    """Cases of one kind of agent and user. `even`: the user spoils as many conversations of every case."""

    agent: float
    spoilt: float
    even: bool = True

    def draw_rates(self, cases: int, random: Random) -> list[float]:
        """Draw how often each case fails on main."""
        if self.even or not self.spoilt:
            shares = [self.spoilt] * cases
        else:
            shares = [random.betavariate(SPREAD, SPREAD / self.spoilt - SPREAD) for _ in range(cases)]
        return [1 - self.agent * (1 - share) for share in shares]


@dataclass(frozen=True)
class Found:
    """Of one history, from 0 to 1: a red gate without a change, and broken cases that are found; executions a case."""

    red: float
    broken: tuple[float, ...]
    executions: float


def compute_found(rates: list[float], runs: int, random: Random) -> Found:
    """Draw a history of cases that fail at these rates, and compute what is found after it."""
    failures = [sum(random.random() < rate for _ in range(runs)) for rate in rates]
    histories = Counter((runs - number, number) for number in failures)
    prior = learn_prior(histories)
    limits = ExecutionLimits(DEFAULT_RERUNS)
    thresholds = compute_run_thresholds(prior, histories, len(rates), limits, DEFAULT_FALSE_ALARM_RATE)
    assert thresholds is not None
    criteria = RerunCriteria(len(rates), prior, max_reruns=DEFAULT_RERUNS, thresholds=thresholds)
    ends = {
        number: list_ends(criteria, Counts(passes=passes, failures=number)) if passes else []
        for passes, number in histories
    }
    green, executions, broken = 0.0, 0.0, [list[float]() for _ in REACHED]
    for rate, number in zip(rates, failures, strict=True):
        green += math.log1p(-_confirm(ends[number], rate))
        executions += 1 + math.fsum(path.chance(rate) * (path.passes + path.failures - 1) for path in ends[number])
        for chances, share in zip(broken, REACHED, strict=True):
            chances.append(_confirm(ends[number], 1 - (1 - rate) * (1 - share)))
    return Found(-math.expm1(green), tuple(map(fmean, broken)), executions / len(rates))


def _confirm(ends: list[Path], rate: float) -> float:
    """Compute the chance that a case which fails at `rate` is called a regression."""
    return math.fsum(path.chance(rate) for path in ends if path.confirmed)


def iter_users() -> Iterator[Users]:
    """Yield the sweep: agents, how much their users spoil, and how evenly."""
    for agent in AGENT:
        for spoilt in SPOILT:
            yield Users(agent, spoilt)
            if spoilt:
                yield Users(agent, spoilt, even=False)


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=int, default=100)
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--runs", type=int, default=10)
    given = parser.parse_args()
    heads = ("agent alone", "spoilt", "spread", "fails on main", "red, nothing changed")
    heads += (*(f"found, {share:.0%} come to it" for share in REACHED), "executions a case")
    print(f"| {' | '.join(heads)} |\n|{'--:|' * len(heads)}")
    for users in iter_users():
        found, failing = list[Found](), list[float]()
        for number in range(given.histories):
            random = Random(f"{users}/{number}")
            rates = users.draw_rates(given.cases, random)
            failing.append(fmean(rates))
            found.append(compute_found(rates, given.runs, random))
        broken = (f"{100 * fmean(one.broken[at] for one in found):.0f} %" for at in range(len(REACHED)))
        spread = "none" if not users.spoilt else "even" if users.even else "few cases"
        cells = (f"{users.agent:.0%}", f"{users.spoilt:.0%}", spread, f"{100 * fmean(failing):.1f} %")
        cells += (f"{100 * fmean(one.red for one in found):.1f} %", *broken)
        print(f"| {' | '.join(cells)} | {fmean(one.executions for one in found):.2f} |", flush=True)


if __name__ == "__main__":
    main()
