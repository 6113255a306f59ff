"""What the randomness of a simulated user does to a case: how often it fails on main, and what the gate then finds.

    python benchmarks/verdict/simulated_users.py --gates 200

The agent alone, with a script, passes a case with the rate `agent`. The user spoils some conversations: it leaves a
fact out, ends too early, or goes another way, and a right agent fails. `spoilt` is the mean share of these. It is the
same for every case, or spread over the cases so that few have most of it (Beta with a first parameter of 0.5). Each
branch has its own draw. Conversations are independent, so their shares multiply.

The pull request breaks one step of one case. With a script every execution comes to this step. A user comes to it in
all conversations, in half of them, or in one of five.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean

from case_worlds import PER_BRANCH, Line, measured
from worlds import Group, World

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
class Row:
    """What came out: failures on main, red gates without a change, broken cases that are found, in per cent."""

    users: Users
    failing: float
    red: float
    found: Sequence[float]
    per_case: float


def simulate(users: Users, cases: int, gates: int, history: int) -> Row:
    """Simulate so many pull requests for each kind of change."""
    failing, red, per_case = list[float](), list[float](), list[float]()
    found: dict[float, list[float]] = {share: [] for share in REACHED}
    for branch in range(max(gates // PER_BRANCH, 1)):
        rates = users.draw_rates(cases, Random(f"{users}/{branch}"))
        failing.append(fmean(rates))
        for share in (0.0, *REACHED):
            broken = 1 - (1 - rates[0]) * (1 - share)
            groups = (Group(1, rates[0], broken), *(Group(1, rate, rate) for rate in rates[1:]))
            outcome = measured(Line(World(f"{users}, {branch}, {share}", groups), history), PER_BRANCH)
            (found[share] if share else red).append(outcome.share)
            per_case.append(outcome.per_case)
    means = [fmean(shares) for shares in found.values()]
    return Row(users, 100 * fmean(failing), fmean(red), means, fmean(per_case))


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
    parser.add_argument("--gates", type=int, default=200)
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--history", type=int, default=10)
    parser.add_argument("--agent", type=float, help="only this pass rate of the agent alone")
    given = parser.parse_args()
    print(
        "| agent alone | spoilt by the user | cases | fails on main | red, nothing changed | "
        + " | ".join(f"found, {share:.0%} come to it" for share in REACHED)
        + " | executions a case |"
    )
    print("|--:|--:|:--|--:|--:|--:|--:|--:|--:|")
    for users in iter_users():
        if given.agent is not None and users.agent != given.agent:
            continue
        row = simulate(users, given.cases, given.gates, given.history)
        shown = " | ".join(f"{share:.0f} %" for share in row.found)
        spread = "-" if not users.spoilt else "alike" if users.even else "few"
        print(
            f"| {users.agent:.0%} | {users.spoilt:.0%} | {spread} | {row.failing:.1f} % | {row.red:.1f} % | {shown} "
            f"| {row.per_case:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
