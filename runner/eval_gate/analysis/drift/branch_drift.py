"""Finds what degraded on a branch, run by run: detected, persisting, recovered. Pure.

Every run is looked at as the newest one of its day, so that what was found once stays found, with the same beginning,
until it is mended or the runs before it are on record no more.

Which model answered, as its provider names it, is a fact beside an alarm and excuses nothing: nothing of ours need have
changed for that.
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
"""While nothing changes there is one alarm in so many runs, or fewer: all that is measured together."""
EVIDENCE_LIMIT: Final = FALSE_ALARM_RUNS * (len(LevelKind) + 1)
"""What the evidence about one of them has to reach: each level, and all single cases, have an equal share of the false
alarms."""
MIN_RUNS: Final = 12
"""Below so many runs not even the plainest change reaches the limit."""
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
"""A smaller change is none that somebody should be told about, however sure it is. One case that fails is, too."""
MIN_SLOWDOWN_MS: Final = 10.0
"""Nor is a case that takes less than so much longer: a busy machine does that to an agent that answers at once."""
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
    """Find the changes of the responding models among the newest runs of one target, newest first.

    `levels` is ordered from the newest run to the oldest. Runs that do not name their models are skipped.
    """
    known = [(at, one) for at, one in enumerate(levels[: MAX_RUNS_SINCE + 1]) if one.models]
    return tuple(
        ModelChange(before, since, at + 1)
        for (at, since), (_, before) in pairwise(known)
        if set(before.models) != set(since.models)
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
    """The newest run that was as before, if the change was at its likeliest place."""
    first_bad: RunLevels
    """The run after it: the first that was worse, probably."""
    last_surely_good: RunLevels
    """The newest run that was as before in any case."""
    first_surely_bad: RunLevels
    """By this run it was worse in any case."""
    runs: int
    """Runs since, with that one."""
    cases: tuple[CaseDegradation, ...] = ()
    """Which cases fail since, where that can be said of any by itself."""
    model_change: ModelChange | None = None
    """The change of the model behind it that may be why: between what was safely good and what is bad in any case."""

    @property
    def same_commit(self) -> bool:
        """Whether there is no commit between before and since: nothing in the repository has changed."""
        return self.last_good.is_same_commit(self.first_bad)

    @property
    def name(self) -> str:
        """By which it is known as the same when more runs have come."""
        return f"{self.kind.value}@{self.first_bad.run_id}"


class Drift(FrozenStruct):
    """Everything that is degraded now, and the number of runs in the history."""

    newest: RunLevels | None
    runs: int
    degradations: tuple[Degradation, ...] = ()
    broken_cases: tuple[CaseDegradation, ...] = ()
    """Single cases that do not pass any more, the newest first."""
    examined_levels: tuple[LevelKind, ...] = ()
    """What there were enough runs of."""
    model_changes: tuple[ModelChange, ...] = ()
    """Where other models began to answer, among the newest runs, the newest change first. No alarm by itself."""

    @property
    def has_degraded(self) -> bool:
        """Whether anything is worse."""
        return bool(self.degradations or self.broken_cases)

    @property
    def can_detect(self) -> bool:
        """Whether anything could have been found."""
        return bool(self.examined_levels)


def find_drift(history: History, pass_score: float = 1.0) -> Drift:
    """Find what has degraded over the runs of `history`.

    Passes are counted as by a gate with this pass score. Levels are compared only with runs of the newest run's
    target.
    """
    newest = history.levels[0] if history.levels else None
    if newest is None:
        return Drift(None, 0)
    own = [one for one in history.levels if one.target == newest.target]
    worse, looked_at, longest = [], [], 0
    for measured in LevelKind:
        runs = _select_comparable_runs(own, measured)
        longest = max(longest, len(runs))
        if len(runs) >= MIN_RUNS:
            looked_at.append(measured)
        found = _LevelSeries(runs, measured).find_degradation()
        if found is not None:
            worse.append(found)
    models = find_model_changes(own)
    failing = {LevelKind.FAILING, LevelKind.FAILING_BEFORE_RERUNS}
    described = tuple(
        replace(
            one,
            cases=find_degraded_cases(history, one.first_bad.run_id, pass_score) if one.kind in failing else (),
            model_change=find_change_between(models, own, one.last_surely_good, one.first_surely_bad),
        )
        for one in worse
    )
    broken = find_broken_cases(history, EVIDENCE_LIMIT, pass_score)
    return Drift(newest, longest, described, broken, tuple(looked_at), models)


def _select_comparable_runs(levels: Sequence[RunLevels], measured: LevelKind) -> list[RunLevels]:
    """Return the runs with this level since it last restarted, oldest first; none if the newest lacks it."""
    found: list[RunLevels] = []
    for one in levels:
        if measured not in one.levels:
            if one is levels[0]:
                return []  # of the newest nothing is known
            continue
        found.append(one)
        if measured in one.restarted_levels:
            break
    return found[::-1]


class _LevelSeries:
    """Values of one level over the runs."""

    def __init__(self, runs: Sequence[RunLevels], measured: LevelKind) -> None:
        self._measured = measured
        self._sign = -1.0 if measured in _HIGHER_IS_BETTER else 1.0
        self._kept: list[RunLevels] = []
        self._open: RiseEvidence | None = None
        for run in runs:
            self._kept.append(run)
            if self._open is None:
                self._detect_change()
            elif self._has_recovered(self._open):
                # what was bad is no part of how the branch is when it is well
                self._kept = [*self._kept[: self._open.place], *self._kept[-RUNS_TO_RECOVER:]]
                self._open = None

    def find_degradation(self) -> Degradation | None:
        """Return the degradation that persists in the newest run, or None."""
        if self._open is None:
            return None
        place, kept = self._open.place, self._kept
        return Degradation(
            self._measured,
            level_before=self._compute_median(kept[:place]),
            level_now=self._compute_median(kept[place:][-3:]),
            last_good=kept[place - 1],
            first_bad=kept[place],
            last_surely_good=kept[self._open.earliest - 1],
            first_surely_bad=kept[self._open.latest],
            runs=len(kept) - place,
        )

    def _detect_change(self) -> None:
        numbers = [self._get_signed_level(run) for run in self._kept]
        usual = median(numbers)
        if numbers[-1] > usual:  # no alarm begins with a run that is as good as any
            found = compute_rise_evidence(numbers)
            if found.total >= EVIDENCE_LIMIT and self._is_relevant(numbers, found):
                self._open = found
        elif numbers[-1] < usual:
            better = compute_rise_evidence([-number for number in numbers])
            if better.total >= EVIDENCE_LIMIT:
                self._kept = self._kept[better.place :]  # the branch is held to what it has become

    def _is_relevant(self, numbers: Sequence[float], found: RiseEvidence) -> bool:
        least = MIN_CHANGE[self._measured]
        if self._measured in {LevelKind.FAILING, LevelKind.FAILING_BEFORE_RERUNS}:
            least = min(least, ONE_CASE_SHARE / max(self._kept[-1].cases, 1))
        then, now = median(numbers[: found.place]), median(numbers[found.place :])
        if self._measured is LevelKind.TIME and math.exp(now) - math.exp(then) < MIN_SLOWDOWN_MS:
            return False
        return now - then >= least

    def _has_recovered(self, change: RiseEvidence) -> bool:
        """Whether the newest runs are nearer to what was before than to what came since."""
        numbers = [self._get_signed_level(run) for run in self._kept]
        since = numbers[change.place : -RUNS_TO_RECOVER]
        if not since:
            return False
        middle = (median(numbers[: change.place]) + median(since)) / 2
        return max(numbers[-RUNS_TO_RECOVER:]) < middle

    def _get_signed_level(self, run: RunLevels) -> float:
        return self._sign * run.levels[self._measured]

    def _compute_median(self, runs: Sequence[RunLevels]) -> float:
        return median(run.levels[self._measured] for run in runs)
