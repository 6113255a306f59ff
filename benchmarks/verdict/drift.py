"""How soon main's own alarm sees slow rot, and how often it is wrong: whole branches, by the path of a user's run.

    python benchmarks/verdict/drift.py                     # the table of benchmarks/verdict/drift.md
    python benchmarks/verdict/drift.py --branches 20       # quicker

A branch has some runs of history. Then pull requests come, of which each makes every case a little worse; what the gate
stops is not merged. Each merge is a run of main, with its ledger, over which the alarm is asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from random import Random
from statistics import median

from branch import Asking, Branch, Execution, policy, pull_request
from printing import print_table

from eval_gate.analysis.drift.branch_drift import find_drift
from eval_gate.config.policy import DEFAULT_RERUNS
from eval_gate.errors import ExitCode

SOON = 8
"""Merges within which slow rot is to be seen."""
CONFIRM = DEFAULT_RERUNS


@dataclass(frozen=True)
class Rot:
    """What happens to a branch: so many pull requests, of which each takes `loss` (0 to 1) from every case."""

    name: str
    cases: int
    history: int
    flaky: float
    loss: float
    pull_requests: int = 15
    dead: int = 0
    """Cases that the first merge breaks altogether, past the gate."""

    @property
    def harmless(self) -> bool:
        """Nothing gets worse."""
        return not self.loss and not self.dead


@dataclass(frozen=True)
class Seen:
    """Of one branch: after how many merges it was seen, None for never; how many there were, and runs in all."""

    after: int | None
    merges: int
    runs: int


ROTS = (
    Rot("−2 points a pull request (2 % flake)", 100, 10, 0.02, 0.02),
    Rot("−2 points a pull request (5 % flake)", 100, 10, 0.05, 0.02),
    Rot("−2 points a pull request (2 % flake)", 100, 20, 0.02, 0.02),
    Rot("−1 point a pull request (2 % flake)", 100, 20, 0.02, 0.01),
    Rot("one of 100 cases dies unseen (2 % flake)", 100, 20, 0.02, 0.0, 10, dead=1),
    Rot("nothing changes (2 % flake)", 100, 10, 0.02, 0.0, 20),
    Rot("nothing changes (5 % flake)", 100, 10, 0.05, 0.0, 20),
)


def branch_with(rot: Rot, seed: int, number: int) -> Seen:
    """One branch from its first run to the one that is seen, or to the last pull request."""
    random = Random(f"{seed}/{rot}/{number}")
    rules = policy(0.05, graded=False)
    main, worse, runs, merges = Branch(), 0.0, 0, 0

    def drawn(more: float, dead: int) -> list[Execution]:
        return ["F" if at < dead or random.random() < rot.flaky + more else "P" for at in range(rot.cases)]

    def asking(more: float, dead: int) -> Asking:
        return Asking(rules, CONFIRM, lambda at: "F" if at < dead or random.random() < rot.flaky + more else "P")

    for _ in range(rot.history):
        main, runs = main.pushed(runs, drawn(0.0, 0), asking(0.0, 0)), runs + 1
    for at in range(rot.pull_requests):
        after = worse + rot.loss
        if rot.loss and _stopped(main, drawn(after, 0), asking(after, 0)):
            continue
        worse, merges = after, merges + 1
        main, runs = main.pushed(runs, drawn(worse, rot.dead), asking(worse, rot.dead)), runs + 1
        if find_drift(main.ledger).has_degraded:
            return Seen(merges, at + 1, runs)
    return Seen(None, merges, runs)


def _stopped(main: Branch, first: list[Execution], asking: Asking) -> bool:
    verdict = pull_request(main, first, asking).judged.verdict
    assert verdict is not None
    return verdict.exit_code is not ExitCode.PASSED


def table(pool: ProcessPoolExecutor, branches: int, seed: int, rots: tuple[Rot, ...] = ROTS) -> Iterator[str]:
    """Yield the table as Markdown, with a line and standard errors for each kind of branch."""
    heads = ("branch", "runs of history", f"seen by merge {SOON}, or got so far", "of these seen", "at merge, median")
    yield f"| {' | '.join(heads)} |"
    yield "|:--|--:|--:|--:|--:|"
    for rot in rots:
        number = max(branches * 100 // rot.cases, 1)
        seen = list(pool.map(partial(branch_with, rot, seed), range(number)))
        after = [one.after for one in seen if one.after is not None]
        if rot.harmless:
            runs = sum(one.runs for one in seen)
            yield f"| {rot.name} | {rot.history} | – | {len(after)} false alarms in {runs:,} runs | – |"
            continue
        soon = sum(merges <= SOON for merges in after)
        far = [one for one in seen if (one.after or math.inf) <= SOON or one.merges >= SOON]
        middle = f"{median(after):.0f}" if after else "–"
        reached = f"{len(far)} of {number}"
        yield f"| {rot.name} | {rot.history} | {reached} | {_share(soon, len(far))} | {middle} |"


def _share(part: int, whole: int) -> str:
    """`95.0 % ± 2.1`; a dash of nothing."""
    if not whole:
        return "–"
    error = math.sqrt(part * (whole - part) / whole**3)
    return f"{100 * part / whole:.1f} % ± {100 * error:.1f}"


def main() -> None:
    """Print the table as Markdown."""
    print_table(table, "--branches", 200, "branches for each line, of 100 cases", __doc__ or "")


if __name__ == "__main__":
    main()
