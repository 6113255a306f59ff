"""How many of the branch's newest runs are at its current level: since when it is as it is now.

When the branch itself becomes worse, a pull request must not be blamed for it until the older runs have left the
history; when it becomes better, a pull request that undoes that must be seen. So the history of all cases starts at
the newest change of the branch's own level, found by the same test that finds a drop in a pull request. Some runs that
are worse may be bad days: what they say is left to `days`, and the worse runs are a level only where they are worse
without the worse half of them, too.

What it moves (`benchmarks/verdict/without.py`, without → with): the branch gained 10 points three runs ago and this
undoes it, found 1.7 → 59.1 ± 9.0 %; five runs ago, 0.9 → 64.3 ± 8.5 %.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final, TypeVar

from eval_gate.gate.evidence.suite.failures import (
    DEFAULT_LIMIT,
    Stratum,
    compute_deviation,
    compute_suite_finding,
    is_conspicuous,
)
from eval_gate.model.evidence import NO_EXECUTIONS, Counts

MAX_RUNS: Final = 20
"""Runs of a case that count: more of the past says less about today."""
_Key = TypeVar("_Key", bound=Hashable)


def count_level_runs(runs: Sequence[Mapping[_Key, Counts]], limit: float = DEFAULT_LIMIT) -> int:
    """How many of the runs, newest first, are at the level of the newest; all of them when nothing has changed.

    Every run maps its cases to their first executions. `limit` is the chance of finding a change where there is none,
    shared out evenly among all places where it may have been and both directions. It takes two runs that fail more, and
    they have to do so without the worse half of them: a few bad days among others are no level.
    """
    if len(runs) < 2:
        return len(runs)
    share = limit / (2 * (len(runs) - 1))
    cases = _select_changing_cases(runs)
    (chance, _), length = min((_compute_change_chance(cases, length, limit), length) for length in range(1, len(runs)))
    return length if chance <= share else len(runs)


_CaseCounts = list[tuple[int, int]]
"""Passes and failures of one case in each run, newest first."""


def _select_changing_cases(runs: Sequence[Mapping[_Key, Counts]]) -> list[_CaseCounts]:
    """Select the cases that have both passed and failed; the others cannot show a change."""
    cases = []
    for key in dict.fromkeys(key for run in runs for key in run):
        counts = [run.get(key, NO_EXECUTIONS) for run in runs]
        if any(one.passes for one in counts) and any(one.failures for one in counts):
            cases.append([(one.passes, one.failures) for one in counts])
    return cases


def _compute_change_chance(cases: list[_CaseCounts], length: int, limit: float) -> tuple[float, float]:
    """Compute the chance of such a change, and a value that tells apart chances close to zero."""
    runs = range(len(cases[0])) if cases else range(0)
    newer, older = runs[:length], runs[length:]
    chances = [(1.0, 0.0)]
    for worse, better in ((newer, older), (older, newer)):
        if len(worse) < 2:
            continue
        by_failures = sorted(worse, key=lambda at: (sum(case[at][1] for case in cases), -at))
        milder = by_failures[: (len(worse) + 1) // 2]  # not only the worse half may make them worse
        strata, without_worst = ([_build_stratum(case, some, better) for case in cases] for some in (worse, milder))
        if (
            is_conspicuous(strata)
            and is_conspicuous(without_worst)
            and compute_suite_finding(without_worst).chance <= limit
        ):
            chances.append((compute_suite_finding(strata).chance, -compute_deviation(strata)))
    return min(chances)


def _build_stratum(case: _CaseCounts, worse: Sequence[int], better: Sequence[int]) -> Stratum:
    return Stratum(
        sum(case[at][0] for at in better),
        sum(case[at][1] for at in better),
        sum(case[at][0] for at in worse),
        sum(case[at][1] for at in worse),
    )
