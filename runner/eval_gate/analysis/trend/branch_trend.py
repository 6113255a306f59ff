"""Trend of a branch, from its history: pass rate, cost and time of each run, broken, fixed and flaky cases. Pure.

A case counts in a run as the gate counts it: it passes if more than half of its executions do, or as many as its rule
asks for; with a rule, each run is one pass or failure of what broke or is flaky, whatever single trials do. A run that
reused a result passes or fails the case as the run that executed it did. Warm-up rounds are no runs of the branch: they
count only as executions of their cases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from eval_gate.analysis.drift.case_drift import select_case_runs
from eval_gate.gate.evidence.case_history import count_executions, count_responses
from eval_gate.gate.evidence.flakiness import CaseRun, build_case_history, is_level_change
from eval_gate.gate.evidence.suite.branch_level import MAX_RUNS
from eval_gate.model.case import CaseKey, decide_pass
from eval_gate.model.evidence import Counts, Stability
from eval_gate.results.history import CaseHistory, History, HistoryEntry, HistoryRun
from eval_gate.struct import FrozenStruct


class TrendRun(FrozenStruct):
    """One run of the branch with its numbers of cases and of warm-up rounds."""

    run: HistoryRun
    passed: int
    ran: int
    """Cases with a result, also an error."""
    reused: int
    """Those of them whose result an earlier run had."""
    rounds: int = 0

    @property
    def pass_rate(self) -> float | None:
        """Share of the cases that passed, 0 to 1; None if none ran."""
        return self.passed / self.ran if self.ran else None


class CaseBreak(FrozenStruct):
    """A case that passed, and then failed in every run or too often for chance."""

    key: CaseKey
    last_good: HistoryRun
    """The newest run before that passed it."""
    first_bad: HistoryRun
    last_bad: HistoryRun
    fixed: HistoryRun | None
    """The first run that passed it again; None if the newest one fails it."""
    failed_runs: int
    """Runs that failed it, warm-up rounds not among them."""


class Trend(FrozenStruct):
    """Trend of a branch; runs from the oldest to the newest."""

    runs: tuple[TrendRun, ...]
    breaks: tuple[CaseBreak, ...]
    """Cases that fail now first, then the newest first."""
    flaky: tuple[tuple[CaseKey, Counts], ...]
    """Cases that pass and fail in the newest runs since their last break, with their first executions there."""


def find_trend(history: History, pass_score: float = 1.0) -> Trend | None:
    """Find the trend over the runs of `history` with the target of the newest; None if none is complete."""
    runs = tuple(_iter_runs(history, pass_score))[::-1]
    if not runs:
        return None
    by_id = {run.run_id: run for run in history.runs}
    breaks, flaky = list[CaseBreak](), list[tuple[CaseKey, Counts]]()
    for key in history.iter_keys():
        case = history.get_case(key)
        if "F" not in case.runs:  # as of most cases
            continue
        case_runs = list(_iter_case_runs(history, case, pass_score))
        since = case_runs
        for good, bad, fixed in _iter_breaks(case_runs[::-1], is_flaky=_is_flaky(case_runs)):
            last_good, first_bad, last_bad = (by_id[one.run_id] for one in (good, bad[0], bad[-1]))
            failed = len({by_id[one.run_id].group for one in bad if one.all.is_failing})
            fix = by_id[fixed.run_id] if fixed else None
            breaks.append(CaseBreak(key, last_good, first_bad, last_bad, fix, failed))
            since = case_runs[: case_runs.index(bad[-1])]
        if _is_flaky(since):
            flaky.append((key, build_case_history(since[:MAX_RUNS]).counts))
    breaks.sort(key=lambda one: (one.fixed is None, one.first_bad.timestamp), reverse=True)
    flaky.sort(key=lambda one: one[1].failures / one[1].executions, reverse=True)
    return Trend(runs, tuple(breaks), tuple(flaky))


def _is_flaky(case_runs: Sequence[CaseRun]) -> bool:
    return build_case_history(case_runs[:MAX_RUNS]).stability is Stability.FLAKY


def _iter_runs(history: History, pass_score: float) -> Iterator[TrendRun]:
    """Yield the complete runs with the target of the newest one, newest first."""
    passed, ran, reused = Counter[int](), Counter[int](), Counter[int]()
    cases = (history.get_case(key) for key in history.iter_keys())
    rows = Counter((case.runs, case.pass_rule) for case in cases)  # most cases did the same
    for (row, rule), number in rows.items():
        for place, passes, is_reused in _iter_results(CaseHistory(runs=row, pass_rule=rule), pass_score):
            passed[place] += number * passes
            ran[place] += number
            reused[place] += number * is_reused
    rounds = Counter(run.warm_up_of for run in history.runs)
    target = next((run.target for run in history.runs if run.complete and not run.partial), None)
    for place, run in enumerate(history.runs):
        if run.complete and not run.partial and run.warm_up_of is None and run.target == target:
            yield TrendRun(run, passed[place], ran[place], reused[place], rounds[run.run_id])


def _iter_results(case: CaseHistory, pass_score: float) -> Iterator[tuple[int, bool, bool]]:
    """Yield the place of each run that has the case, oldest first, whether it passed, and whether it was reused."""
    entries, reused = case.decode_entries_unchecked(), case.reused_places
    passes: bool | None = None
    for place, entry in reversed([*enumerate(entries)]):
        if entry is not None:
            passes = bool(_decide(case, entry, pass_score))
        if passes is not None and (entry is not None or place in reused):
            yield place, passes, entry is None


def _decide(case: CaseHistory, entry: HistoryEntry, pass_score: float) -> bool | None:
    """Decide whether the case passed in this run; None if it has too few scores for that."""
    counts = (count_executions((one,), pass_score) for one in (*entry.first, *entry.reruns))
    return decide_pass(case.pass_rule, [one.passes > 0 for one in counts if one.executions])


def _iter_case_runs(history: History, case: CaseHistory, pass_score: float) -> Iterator[CaseRun]:
    """Yield the runs that scored the case as it is now, newest first."""
    for place, entry in select_case_runs(history, case):
        run, counts = history.runs[place], count_responses(entry.first, entry.reruns, pass_score)
        if case.pass_rule is not None:
            if (passes := _decide(case, entry, pass_score)) is not None:
                yield CaseRun(run.run_id, Counts(passes=int(passes), failures=int(not passes)), sha=run.sha)
        elif counts.first.executions:
            yield CaseRun(run.run_id, counts.first, counts.reruns, run.sha)


def _iter_breaks(
    case_runs: Sequence[CaseRun], *, is_flaky: bool
) -> Iterator[tuple[CaseRun, Sequence[CaseRun], CaseRun | None]]:
    """Yield the last good run, the bad ones and the first good one of each break; `case_runs` begins with the oldest.

    A case broke if its failures after passes are too many for chance, and is fixed by its first pass if that is no
    chance either. For the newest runs, what they show suffices, unless the case is flaky.
    """
    good, bad = list[CaseRun](), list[CaseRun]()
    stretches = [list(stretch) for _, stretch in groupby(case_runs, key=lambda one: one.all.is_failing)]
    for number, stretch in enumerate(stretches, start=1):
        is_failing, is_newest = stretch[0].all.is_failing, number == len(stretches)
        if bad and not is_failing and (is_newest or is_level_change(stretch, bad)):
            yield good[-1], bad, stretch[0]
            good, bad = stretch, []
        elif bad or (is_failing and good and ((is_newest and not is_flaky) or is_level_change(stretch, good))):
            bad += stretch
        else:
            good += stretch
    if bad:
        yield good[-1], bad, None
