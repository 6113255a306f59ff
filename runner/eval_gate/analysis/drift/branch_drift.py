"""Detect degraded levels of a branch, such as its failure rate or cost, and when they recover. Pure.

The history is replayed run by run: a detected degradation persists, with the same first bad run, until the level
recovers or the history loses the runs before it.

A change of the responding model, as its provider names it, is reported with an alarm and never suppresses one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from types import MappingProxyType
from typing import Final

from eval_gate.analysis.drift.case_drift import (
    RUNS_TO_RECOVER,
    CaseDegradation,
    find_broken_cases,
    find_degraded_cases,
)
from eval_gate.analysis.drift.detector import MAX_RUNS_SINCE, RiseEvidence, compute_rise_evidence
from eval_gate.results.history import History
from eval_gate.results.levels import LevelKind, RunLevels
from eval_gate.struct import FrozenStruct, replace

FALSE_ALARM_RUNS: Final = 200
"""Without a real change, at most one alarm in this many runs, over all levels and cases."""
EVIDENCE_LIMIT: Final = FALSE_ALARM_RUNS * (len(LevelKind) + 1)
"""Evidence that an alarm needs: each level, and all single cases together, get an equal share of the false alarms."""
MIN_RUNS: Final = 12
"""With fewer runs, even the clearest change stays below the limit."""
MIN_CHANGE: Final = MappingProxyType(
    {
        LevelKind.FAILING: 0.01,
        LevelKind.FAILING_BEFORE_RERUNS: 0.01,
        LevelKind.SCORE: 0.02,
        LevelKind.JUDGE: 0.02,
        LevelKind.TIME: math.log(1.2),
        LevelKind.COST: math.log(1.2),
    }
)
"""Smallest change that raises an alarm. One case that fails always suffices."""
MIN_SLOWDOWN_MS: Final = 10.0
"""Smallest slowdown of a case that raises an alarm: a busy machine delays fast agents by less."""
ONE_CASE_SHARE: Final = 0.9
_HIGHER_IS_BETTER: Final = frozenset({LevelKind.SCORE, LevelKind.JUDGE})


class ModelChange(FrozenStruct):
    """A change of the models that responded, between two runs; `runs` counts the runs since."""

    old_run: RunLevels
    new_run: RunLevels
    runs: int

    @property
    def same_commit(self) -> bool:
        """Whether there is no commit between both runs."""
        return self.old_run.is_same_commit(self.new_run)


def find_model_changes(levels: Sequence[RunLevels]) -> tuple[ModelChange, ...]:
    """Find changes of the responding models, newest first, as are `levels`; runs that name no model are skipped."""
    named_runs = [(at, one) for at, one in enumerate(levels[: MAX_RUNS_SINCE + 1]) if one.models]
    return tuple(
        ModelChange(old_run, new_run, at + 1)
        for (at, new_run), (_, old_run) in pairwise(named_runs)
        if set(old_run.models) != set(new_run.models)
    )


def find_change_between(
    changes: Sequence[ModelChange], levels: Sequence[RunLevels], good: RunLevels, bad: RunLevels
) -> ModelChange | None:
    """Return the newest model change after the run `good` and up to the run `bad`. Return None if there is none."""
    places = {one.run_id: at for at, one in enumerate(levels)}
    first, last = places[good.run_id], places[bad.run_id]
    return next((one for one in changes if last <= places[one.new_run.run_id] < first), None)


class Degradation(FrozenStruct):
    """One degraded level. Levels are medians, in the level's own unit (`LevelKind`)."""

    kind: LevelKind
    level_before: float
    level_now: float
    last_good: RunLevels
    """The newest run before the likeliest place of the change."""
    first_bad: RunLevels
    """The run after it."""
    last_surely_good: RunLevels
    """The newest run before the earliest place of the change."""
    first_surely_bad: RunLevels
    """The first run after the latest place of the change."""
    runs: int
    """Runs from `first_bad` on."""
    cases: tuple[CaseDegradation, ...] = ()
    """The cases that clearly fail more often since."""
    model_change: ModelChange | None = None
    """A possible cause: a change of the model between `last_surely_good` and `first_surely_bad`."""

    @property
    def same_commit(self) -> bool:
        """Whether the repository did not change between `last_good` and `first_bad`."""
        return self.last_good.is_same_commit(self.first_bad)

    @property
    def name(self) -> str:
        """A name that stays the same as more runs are added."""
        return f"{self.kind.value}@{self.first_bad.run_id}"


class Drift(FrozenStruct):
    """Everything that is degraded now, and the number of runs in the history."""

    newest: RunLevels | None
    runs: int
    degradations: tuple[Degradation, ...] = ()
    broken_cases: tuple[CaseDegradation, ...] = ()
    """Cases that no longer pass, the newest first."""
    examined_levels: tuple[LevelKind, ...] = ()
    """Levels with enough runs."""
    model_changes: tuple[ModelChange, ...] = ()
    """Changes of the responding models in the newest runs, newest first. None is an alarm by itself."""

    @property
    def has_degraded(self) -> bool:
        """Whether a level or a case degraded."""
        return bool(self.degradations or self.broken_cases)

    @property
    def can_detect(self) -> bool:
        """Whether any level has enough runs."""
        return bool(self.examined_levels)


def find_drift(history: History, pass_score: float = 1.0) -> Drift:
    """Find what has degraded over the runs of `history`.

    Passes are counted as by a gate with this pass score. Levels are compared only with runs of the newest run's
    target.
    """
    newest = history.levels[0] if history.levels else None
    if newest is None:
        return Drift(None, 0)
    own = _select_independent([one for one in history.levels if one.target == newest.target])
    degradations, examined, longest = [], [], 0
    for measured in LevelKind:
        runs = _select_comparable_runs(own, measured)
        longest = max(longest, len(runs))
        if len(runs) >= MIN_RUNS:
            examined.append(measured)
        degradation = _LevelSeries(runs, measured).find_degradation()
        if degradation is not None:
            degradations.append(degradation)
    models = find_model_changes(own)
    failing = {LevelKind.FAILING, LevelKind.FAILING_BEFORE_RERUNS}
    described = tuple(
        replace(
            one,
            cases=find_degraded_cases(history, one.first_bad.run_id, pass_score) if one.kind in failing else (),
            model_change=find_change_between(models, own, one.last_surely_good, one.first_surely_bad),
        )
        for one in degradations
    )
    broken = find_broken_cases(history, EVIDENCE_LIMIT, pass_score)
    return Drift(newest, longest, described, broken, tuple(examined), models)


def _select_independent(levels: Sequence[RunLevels]) -> list[RunLevels]:
    """Select runs, newest first, that have no execution in common: none of them reused a result of another.

    Reused results would repeat one lucky or unlucky execution in every run, which the ranks take for a new level.
    """
    selected: list[RunLevels] = []
    for one in reversed(levels):
        since = one.executed_since
        if not selected or since is None or one.restarted_levels or since > selected[-1].timestamp:
            selected.append(one)
    return selected[::-1]


def _select_comparable_runs(levels: Sequence[RunLevels], measured: LevelKind) -> list[RunLevels]:
    """Return the runs with this level since it last restarted, oldest first; none if the newest lacks it."""
    runs: list[RunLevels] = []
    for one in levels:
        if measured not in one.levels:
            if one is levels[0]:
                return []
            continue
        runs.append(one)
        if measured in one.restarted_levels:
            break
    return runs[::-1]


class _LevelSeries:
    def __init__(self, runs: Sequence[RunLevels], measured: LevelKind) -> None:
        self._measured = measured
        self._sign = -1.0 if measured in _HIGHER_IS_BETTER else 1.0
        self._runs: list[RunLevels] = []
        self._open: RiseEvidence | None = None
        for run in runs:
            self._runs.append(run)
            if self._open is None:
                self._detect_change()
            elif self._has_recovered(self._open):
                # the bad runs are no part of the branch's normal level
                self._runs = [*self._runs[: self._open.place], *self._runs[-RUNS_TO_RECOVER:]]
                self._open = None

    def find_degradation(self) -> Degradation | None:
        """Return the degradation that persists in the newest run, or None."""
        if self._open is None:
            return None
        place, runs = self._open.place, self._runs
        return Degradation(
            self._measured,
            level_before=self._compute_median(runs[:place]),
            level_now=self._compute_median(runs[place:][-3:]),
            last_good=runs[place - 1],
            first_bad=runs[place],
            last_surely_good=runs[self._open.earliest - 1],
            first_surely_bad=runs[self._open.latest],
            runs=len(runs) - place,
        )

    def _detect_change(self) -> None:
        numbers = [self._get_signed_level(run) for run in self._runs]
        usual = median(numbers)
        if numbers[-1] > usual:  # an alarm never begins with a run that is as good as the usual one
            rise = compute_rise_evidence(numbers)
            if rise.total >= EVIDENCE_LIMIT and self._is_relevant(numbers, rise):
                self._open = rise
        elif numbers[-1] < usual:
            fall = compute_rise_evidence([-number for number in numbers])
            if fall.total >= EVIDENCE_LIMIT:
                self._runs = self._runs[fall.place :]  # the better level is the new normal

    def _is_relevant(self, numbers: Sequence[float], rise: RiseEvidence) -> bool:
        least = MIN_CHANGE[self._measured]
        if self._measured in {LevelKind.FAILING, LevelKind.FAILING_BEFORE_RERUNS}:
            least = min(least, ONE_CASE_SHARE / max(self._runs[-1].cases, 1))
        old_level, new_level = median(numbers[: rise.place]), median(numbers[rise.place :])
        if self._measured is LevelKind.TIME and math.exp(new_level) - math.exp(old_level) < MIN_SLOWDOWN_MS:
            return False
        return new_level - old_level >= least

    def _has_recovered(self, change: RiseEvidence) -> bool:
        """Whether the newest runs are nearer to what was before than to what came since."""
        numbers = [self._get_signed_level(run) for run in self._runs]
        since = numbers[change.place : -RUNS_TO_RECOVER]
        if not since:
            return False
        middle = (median(numbers[: change.place]) + median(since)) / 2
        return max(numbers[-RUNS_TO_RECOVER:]) < middle

    def _get_signed_level(self, run: RunLevels) -> float:
        return self._sign * run.levels[self._measured]

    def _compute_median(self, runs: Sequence[RunLevels]) -> float:
        return median(run.levels[self._measured] for run in runs)
