"""History of one case over recent runs of the default branch: failure rate, flaky or not.

A history is only worth as much as it is about the same thing. A case that broke on the branch itself would look flaky,
and each pull request would be blamed for it; one that was fixed would look broken. So a history starts where the case
last broke or was fixed, when the newest runs are too much of a row for chance: two failures after five passes.

Where many cases come and go, some of them end in a row of passes by chance, and what is left of their histories would
then be that they never fail. So a fix is held against how many such cases there are; a break is not, since no change
caused what the newest run fails.

Only responses say anything. A case with nothing but agent errors in the newest run was scored last in the run before,
and a change that makes it respond wrong is not excused by these errors.

What it moves that a history starts there (`benchmarks/verdict/without.py`, without → with): main fixed a dead case
three runs ago and this breaks it, found 0.0 → 100.0 ± 1.2 % at 20 and 100 cases. At 500 and more,
three runs are too few to show that it was fixed. One pass never shows it, so that the run which fixes a case runs it
until it fails (`Suspicion.FIX`): main fixed a dead case in its newest run and this breaks it, found 0 → 80 ± 13 % at
100 cases, and 0 → 100 ± 2 % at 20.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import pairwise, takewhile
from typing import Final, NamedTuple

from eval_gate.gate.evidence.suite.failures import Stratum, compute_suite_finding
from eval_gate.model.evidence import NO_EXECUTIONS, NO_HISTORY, CaseHistorySummary, Counts, RunReference, Stability

LEVEL_CHANGE_LIMIT: Final = 0.05
"""The chance of such a row at the end of the history, given how often the case failed. One failure is never below it,
as long as no more than twenty runs are looked at."""
MIN_OF_EACH: Final = 2
"""Fewest passes and failures of a case that could look fixed."""


class CaseRun(NamedTuple):
    """One case in one run of the branch: first execution (or trials), and re-runs."""

    run_id: str
    first: Counts
    reruns: Counts = NO_EXECUTIONS
    sha: str | None = None
    """The commit of the run, where that is known."""

    @property
    def all(self) -> Counts:
        """First executions and re-runs together."""
        return self.first.add(self.reruns)


def build_case_history(runs: Sequence[CaseRun], among: int = 1) -> CaseHistorySummary:
    """Build the history of a case from its runs, newest first; `among` cases could look fixed by chance."""
    scored = [one for one in runs if one.first.executions]
    if not scored:
        return NO_HISTORY
    cut = scored[: _count_level_runs(scored, among)]
    counts = _sum_counts(one.first for one in cut)
    return CaseHistorySummary(
        counts=counts,
        stability=_classify_steadiness(cut),
        evidence_run_ids=_list_deviating_runs(cut, counts),
        newest_run=cut[0].first,
        newest_failed=_is_broken(scored[0]),
        broken_since=find_breaking_run(scored),
        oldest_run_id=cut[-1].run_id if len(cut) < len(scored) else None,
    )


def can_look_fixed(runs: Iterable[CaseRun]) -> bool:
    """Whether it passed and failed so often that a row of passes at the end shows a fix."""
    first = _sum_counts(one.first for one in runs)
    return min(first.passes, first.failures) >= MIN_OF_EACH


def select_level_runs(runs: Sequence[tuple[int, CaseRun]], among: int = 1) -> Sequence[tuple[int, CaseRun]]:
    """Select the runs since the case last broke or was fixed, newest first and each with its place."""
    scored = [one for one in runs if one[1].first.executions]
    return scored[: _count_level_runs([one for _, one in scored], among)]


def _is_broken(one: CaseRun) -> bool:
    """Whether it failed there, and mostly failed when it was run again: else it only flaked."""
    reruns = one.reruns
    return one.first.is_failing and (not reruns.executions or reruns.failures > reruns.passes)


def _count_level_runs(case_runs: Sequence[CaseRun], among: int) -> int:
    streak = _find_streak(case_runs) if case_runs else ()
    is_change = 0 < len(streak) < len(case_runs) and is_level_change(streak, case_runs[len(streak) :], among)
    return len(streak) if is_change else len(case_runs)


def find_breaking_run(runs: Sequence[CaseRun]) -> RunReference | None:
    """Find the run with which the branch began to fail the case in every run, if an earlier run passed it."""
    failing = list(takewhile(lambda one: one.all.is_failing, runs))
    if not failing or len(failing) == len(runs):
        return None
    return RunReference(run_id=failing[-1].run_id, sha=failing[-1].sha)


def _find_streak(case_runs: Sequence[CaseRun]) -> Sequence[CaseRun]:
    """Return the newest runs in which the case only passed or only failed, re-runs included."""
    newest = case_runs[0].all
    if newest.passes and newest.failures:
        return case_runs[:0]
    length = 1
    while length < len(case_runs) and not _is_mixed(newest.add(case_runs[length].all)):
        length += 1
    return case_runs[:length]


def is_level_change(streak: Sequence[CaseRun], older: Sequence[CaseRun], among: int = 1) -> bool:
    """Whether the streak broke or fixed a case, and not by chance: the suite test with this one case decides."""
    streak_counts, older_counts = _sum_counts(one.all for one in streak), _sum_counts(one.first for one in older)
    if streak_counts.is_failing == older_counts.is_failing:
        return False
    stratum = Stratum.from_counts(older_counts, streak_counts)
    if streak_counts.is_failing:
        return compute_suite_finding([stratum]).chance < LEVEL_CHANGE_LIMIT
    return compute_suite_finding([stratum.swapped]).chance < LEVEL_CHANGE_LIMIT / max(among, 1)


def _classify_steadiness(case_runs: Sequence[CaseRun]) -> Stability:
    everything = _sum_counts(one.all for one in case_runs)
    if not _is_mixed(everything):
        return Stability.FAILING if everything.failures else Stability.PASSING
    turns = sum(one.first.is_failing != other.first.is_failing for one, other in pairwise(case_runs))
    by_turns = turns > 1 or any(_is_mixed(one.all) for one in case_runs)
    return Stability.FLAKY if by_turns else Stability.CHANGED


def _list_deviating_runs(case_runs: Sequence[CaseRun], counts: Counts) -> tuple[str, ...]:
    """List the ids of the runs that differ from what the case mostly does."""
    if counts.is_failing:
        return tuple(one.run_id for one in case_runs if one.all.passes)
    return tuple(one.run_id for one in case_runs if one.all.failures)


def _is_mixed(counts: Counts) -> bool:
    return bool(counts.passes and counts.failures)


def _sum_counts(many: Iterable[Counts]) -> Counts:
    return reduce(Counts.add, many, NO_EXECUTIONS)
