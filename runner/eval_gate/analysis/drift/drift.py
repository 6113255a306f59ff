"""What has become worse on a branch, run by run as it was seen then: found, still there, mended. Pure.

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
from typing import Final, NamedTuple

from eval_gate.analysis.drift.cases import MOST_SINCE, CaseSince, broken_cases, cases_since
from eval_gate.analysis.drift.detector import LEAST_BEFORE, RiseEvidence, evidence_of_rise
from eval_gate.results.ledger import Ledger
from eval_gate.results.levels import LevelKind, RunLevels
from eval_gate.struct import FrozenStruct, replace

FALSE_ALARM_RUNS: Final = 200
"""While nothing changes there is one alarm in so many runs, or fewer: all that is measured together."""
LIMIT: Final = FALSE_ALARM_RUNS * (len(LevelKind) + 1)
"""What the evidence about one of them has to reach: each level, and all single cases, have an equal share of the false
alarms."""
LEAST_RUNS: Final = 12
"""Below so many runs not even the plainest change reaches the limit."""
LEAST_MENDED: Final = 2
"""Newest runs that have to be as they were before, for it to be mended."""
LEAST_CHANGE: Final = MappingProxyType(
    {
        LevelKind.FAILING: 0.01,
        LevelKind.FIRST: 0.01,
        LevelKind.SCORE: 0.02,
        LevelKind.GRADING: 0.02,
        LevelKind.TIME: math.log(1.2),
        LevelKind.COST: math.log(1.2),
    }
)
"""A smaller change is none that somebody should be told about, however sure it is. One case that fails is, too."""
LEAST_SLOWER_MS: Final = 10.0
"""Nor is a case that takes less than so much longer: a busy machine does that to an agent that answers at once."""
ONE_CASE: Final = 0.9
_BETTER_IS_MORE: Final = frozenset({LevelKind.SCORE, LevelKind.GRADING})


class ModelChange(FrozenStruct):
    """Other models answered in the run `since` than in the one `before`; so many runs are since then."""

    before: RunLevels
    since: RunLevels
    runs: int

    @property
    def same_commit(self) -> bool:
        """Whether there is no commit between both runs."""
        return self.before.same_commit(self.since)


def model_changes(levels: Sequence[RunLevels]) -> tuple[ModelChange, ...]:
    """The changes among the newest of these runs of one target, newest first, as the changes are.

    Runs that do not say who answered are passed over.
    """
    known = [(at, one) for at, one in enumerate(levels[: MOST_SINCE + 1]) if one.models]
    return tuple(
        ModelChange(before, since, at + 1)
        for (at, since), (_, before) in pairwise(known)
        if set(before.models) != set(since.models)
    )


def change_between(
    changes: Sequence[ModelChange], levels: Sequence[RunLevels], good: RunLevels, bad: RunLevels
) -> ModelChange | None:
    """The newest change after the run `good`, up to the run `bad`; None where there is none."""
    places = {one.run_id: at for at, one in enumerate(levels)}
    first, last = places[good.run_id], places[bad.run_id]
    return next((one for one in changes if last <= places[one.since.run_id] < first), None)


class Worse(FrozenStruct):
    """One level that is worse than it was. Levels are medians, in the level's own measure (`LevelKind`)."""

    measured: LevelKind
    then: float
    now: float
    before: RunLevels
    """The newest run that was as before, if the change was at its likeliest place."""
    since: RunLevels
    """The run after it: the first that was worse, probably."""
    safely_before: RunLevels
    """The newest run that was as before in any case."""
    at_latest: RunLevels
    """By this run it was worse in any case."""
    runs: int
    """Runs since, with that one."""
    cases: tuple[CaseSince, ...] = ()
    """Which cases fail since, where that can be said of any by itself."""
    model: ModelChange | None = None
    """The change of the model behind it that may be why: between what was safely good and what is bad in any case."""

    @property
    def same_commit(self) -> bool:
        """Whether there is no commit between before and since: nothing in the repository has changed."""
        return self.before.same_commit(self.since)

    @property
    def name(self) -> str:
        """By which it is known as the same when more runs have come."""
        return f"{self.measured.value}@{self.since.run_id}"


class Drift(FrozenStruct):
    """What is worse now, the weightiest first, of so many runs on record."""

    newest: RunLevels | None
    runs: int
    worse: tuple[Worse, ...] = ()
    broken: tuple[CaseSince, ...] = ()
    """Single cases that do not pass any more, the newest first."""
    mended: tuple[LevelKind, ...] = ()
    """What had been worse until the newest run."""
    looked_at: tuple[LevelKind, ...] = ()
    """What there were enough runs of."""
    models: tuple[ModelChange, ...] = ()
    """Where other models began to answer, among the newest runs, the newest change first. No alarm by itself."""
    run_ids: frozenset[str] = frozenset()
    """The runs on record, but the oldest few, before which nothing can be seen to be better."""

    @property
    def anything_worse(self) -> bool:
        """Whether anything is worse."""
        return bool(self.worse or self.broken)

    @property
    def could_find(self) -> bool:
        """Whether anything could have been found."""
        return bool(self.looked_at)


def drift_of(ledger: Ledger, pass_score: float = 1.0) -> Drift:
    """What has become worse over the runs of this ledger, as a gate with this pass score counts it."""
    newest = ledger.levels[0] if ledger.levels else None
    if newest is None:
        return Drift(None, 0)
    own = [one for one in ledger.levels if one.target == newest.target]
    worse, mended, looked_at, longest = [], [], [], 0
    for measured in LevelKind:
        runs = _in_one_row(own, measured)
        longest = max(longest, len(runs))
        if len(runs) >= LEAST_RUNS:
            looked_at.append(measured)
        row = _Row(runs, measured)
        if row.mended_now:
            mended.append(measured)
        found = row.worse()
        if found is not None:
            worse.append(found)
    models = model_changes(own)
    told = tuple(
        replace(
            _with_cases(one, ledger, pass_score),
            model=change_between(models, own, one.safely_before, one.at_latest),
        )
        for one in worse
    )
    broken = broken_cases(ledger, LIMIT, pass_score)
    run_ids = frozenset(one.run_id for one in own[: -LEAST_BEFORE or None])
    return Drift(newest, longest, told, broken, tuple(mended), tuple(looked_at), models, run_ids)


def _with_cases(one: Worse, ledger: Ledger, pass_score: float) -> Worse:
    if one.measured not in {LevelKind.FAILING, LevelKind.FIRST}:
        return one
    return replace(one, cases=cases_since(ledger, one.since.run_id, pass_score))


def _in_one_row(levels: Sequence[RunLevels], measured: LevelKind) -> list[RunLevels]:
    """The runs whose levels go on from each other, oldest first, up to the newest."""
    found: list[RunLevels] = []
    for one in levels:
        if measured not in one.levels:
            if one is levels[0]:
                return []  # of the newest nothing is known
            continue
        found.append(one)
        if measured in one.anew:
            break
    return found[::-1]


class _Open(NamedTuple):
    """A change that was found: its place among the runs that are compared, and how wide it may be off."""

    place: int
    earliest: int
    latest: int


class _Row:
    """The runs of one level, taken one after the other."""

    def __init__(self, runs: Sequence[RunLevels], measured: LevelKind) -> None:
        self._measured = measured
        self._sign = -1.0 if measured in _BETTER_IS_MORE else 1.0
        self._kept: list[RunLevels] = []
        self._open: _Open | None = None
        self.mended_now = False
        for run in runs:
            self._kept.append(run)
            self.mended_now = False
            if self._open is None:
                self._look()
            elif self._mended(self._open):
                # what was bad is no part of how the branch is when it is well
                self._kept = [*self._kept[: self._open.place], *self._kept[-LEAST_MENDED:]]
                self._open = None
                self.mended_now = True

    def worse(self) -> Worse | None:
        """What is worse now."""
        if self._open is None:
            return None
        place, kept = self._open.place, self._kept
        return Worse(
            self._measured,
            then=self._level(kept[:place]),
            now=self._level(kept[place:][-3:]),
            before=kept[place - 1],
            since=kept[place],
            safely_before=kept[self._open.earliest - 1],
            at_latest=kept[self._open.latest],
            runs=len(kept) - place,
        )

    def _look(self) -> None:
        numbers = [self._number(run) for run in self._kept]
        usual = median(numbers)
        if numbers[-1] > usual:  # no alarm begins with a run that is as good as any
            found = evidence_of_rise(numbers)
            if found.total >= LIMIT and self._matters(numbers, found):
                self._open = _Open(found.place, found.earliest, found.latest)
        elif numbers[-1] < usual:
            better = evidence_of_rise([-number for number in numbers])
            if better.total >= LIMIT:
                self._kept = self._kept[better.place :]  # the branch is held to what it has become

    def _matters(self, numbers: Sequence[float], found: RiseEvidence) -> bool:
        least = LEAST_CHANGE[self._measured]
        if self._measured in {LevelKind.FAILING, LevelKind.FIRST}:
            least = min(least, ONE_CASE / max(self._kept[-1].cases, 1))
        then, now = median(numbers[: found.place]), median(numbers[found.place :])
        if self._measured is LevelKind.TIME and math.exp(now) - math.exp(then) < LEAST_SLOWER_MS:
            return False
        return now - then >= least

    def _mended(self, change: _Open) -> bool:
        """Whether the newest runs are nearer to what was before than to what came since."""
        numbers = [self._number(run) for run in self._kept]
        since = numbers[change.place : -LEAST_MENDED]
        if not since:
            return False
        middle = (median(numbers[: change.place]) + median(since)) / 2
        return max(numbers[-LEAST_MENDED:]) < middle

    def _number(self, run: RunLevels) -> float:
        return self._sign * run.levels[self._measured]

    def _level(self, runs: Sequence[RunLevels]) -> float:
        return median(run.levels[self._measured] for run in runs)
