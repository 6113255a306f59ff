"""Since when the default branch is as it is now, as a whole.

When the branch itself becomes worse, a pull request must not be blamed for it until the older runs have left the
history; when it becomes better, a pull request that undoes that must be seen. So the history of all cases starts at
the newest change of the branch's own level, found by the same test that finds a drop in a pull request.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import accumulate
from typing import Final, TypeVar

from eval_gate.gate.evidence.whole_suite import DEFAULT_LIMIT, Stratum, stands_out, suite_finding
from eval_gate.model.grounds import NO_RUNS, Counts

MAX_RUNS: Final = 20
"""More of the past says less about today."""
_Key = TypeVar("_Key", bound=Hashable)


def runs_of_this_level(runs: Sequence[Mapping[_Key, Counts]], limit: float = DEFAULT_LIMIT) -> int:
    """How many of the runs, newest first, are at the level of the newest; all of them when nothing has changed.

    Every run maps its cases to their first executions. `limit` is the chance of finding a change where there is none,
    shared out evenly among all places where it may have been and both directions.
    """
    runs = runs[:MAX_RUNS]
    if len(runs) < 2:
        return len(runs)
    share = limit / (2 * (len(runs) - 1))
    cases = _changing(runs)
    chance, length = min((_chance_of_change(cases, length), length) for length in range(1, len(runs)))
    return length if chance <= share else len(runs)


_Sums = list[tuple[int, int]]
"""Of one case: passes and failures of the newest run, of the newest two, and so on."""


def _changing(runs: Sequence[Mapping[_Key, Counts]]) -> list[_Sums]:
    """The cases that have both passed and failed; the others cannot show a change."""
    cases = []
    for key in dict.fromkeys(key for run in runs for key in run):
        counts = [run.get(key, NO_RUNS) for run in runs]
        passes, failures = accumulate(one.passes for one in counts), accumulate(one.failures for one in counts)
        sums = list(zip(passes, failures, strict=True))
        if all(sums[-1]):
            cases.append(sums)
    return cases


def _chance_of_change(cases: list[_Sums], length: int) -> float:
    """That so many newest runs differ so much from the older ones by chance, in the likelier direction to be real."""
    strata = []
    for sums in cases:
        (all_passes, all_failures), (passes, failures) = sums[-1], sums[length - 1]
        strata.append(Stratum(all_passes - passes, all_failures - failures, passes, failures))
    directions = strata, [stratum.swapped for stratum in strata]
    return min((suite_finding(one).chance for one in directions if stands_out(one)), default=1.0)
