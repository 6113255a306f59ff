"""What is known of each case before a run: the earlier result it is compared with, and its record.

Both come from the ledger that ends with the baseline. The same ledger says the same to whoever asks: to a shard, to the
run that is put together of all shards, and to whoever judges a stored run again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from statistics import fmean, median_low
from typing import Final, NamedTuple

from eval_gate.gate.evidence.days import days_of
from eval_gate.gate.evidence.flakiness import CaseSeen, broken_since, may_look_mended, of_this_level, record_of
from eval_gate.gate.evidence.prior import Prior, learned_from
from eval_gate.gate.evidence.suite.level import MAX_RUNS, runs_of_this_level
from eval_gate.gate.evidence.suite.noise import PooledVariance, ScoreVariance, pooled_variance
from eval_gate.gate.moved_cases import earlier_keys
from eval_gate.gate.pass_score import passes
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import ScoreRecord, Tally
from eval_gate.model.execution import Status, Trial
from eval_gate.model.grounds import NO_RECORD, CaseRecord, Counts, RunDay, RunName
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.results.baseline import Baseline, is_measured
from eval_gate.results.ledger import (
    LedgerCase,
    LedgerEntry,
    LedgerExecution,
    LedgerRun,
    YardstickLikeness,
    alike,
    executions_of,
    yardstick_of,
)
from eval_gate.struct import FrozenStruct, replace

_STATUS: Final = {"P": Status.PASSED, "F": Status.FAILED}
_CRASHES: Final = frozenset("CT")
_OUTAGE_SHARE, _OUTAGE_CASES, _OUTAGE_TIMES = 5, 5, 3
"""An outage: one case in five got no response at first, five at least, and three times as many as in the other runs."""
_Kind = tuple[str, tuple[bool, ...]]
"""What the runs of a case were, as the ledger has them, and which of its yardsticks count: most cases share both."""
_NO_RUNS: Final[_Kind] = "", ()


class _RunPlace(NamedTuple):
    """A comparable run: its place in the ledger, and whether it was an outage, whose errors say nothing of a case."""

    place: int
    run_id: str
    sha: str | None
    outage: bool


class NewestEarlier(FrozenStruct):
    """The newest earlier result of a case by the same yardstick. `run` is None where that is the baseline's."""

    tally: Tally
    run: RunName | None = None

    @property
    def passed(self) -> bool:
        """Whether it passed then."""
        return self.tally.passed


class CasePast(FrozenStruct):
    """What is known of one case. `newest` is None where no run judged it by the same question and expectation."""

    newest: NewestEarlier | None = None
    present: bool = False
    """Whether the baseline has it, judged or not."""
    errored: bool = False
    """The baseline could not judge it either."""
    record: CaseRecord = NO_RECORD
    scores: ScoreRecord | None = None


NOTHING_KNOWN: Final = CasePast()


class Past:
    """The past of all cases, as a gate with this pass score counts it. Raises GateError for a ledger that is none."""

    def __init__(self, baseline: Baseline, pass_score: float) -> None:
        self._baseline = baseline.result
        self._pass_score = pass_score
        self._ledger = baseline.own_ledger
        self._runs = _comparable(self._ledger.runs)
        self._measured = is_measured(self._baseline)
        self._records: dict[_Kind, CaseRecord] = {}
        self._pasts: dict[Hashable, CasePast] = {}
        self._beliefs: dict[frozenset[CaseKey], Prior] = {}

    def of(self, current: RunResult) -> Mapping[CaseKey, CasePast]:
        """The past of every case of this run, those that have another name now among them."""
        there, earlier = self._baseline.by_key(), earlier_keys(self._baseline, current)
        return {key: self._of(earlier.get(key, key), case, there) for key, case in current.cases()}

    def lost(self, keys: Collection[CaseKey]) -> Mapping[CaseKey, NewestEarlier]:
        """Of the baseline's cases with these names: the newest earlier result by its own yardstick, if there is one."""
        there = self._baseline.by_key()
        return {key: then for key in keys if (then := self._of(key, there[key], there).newest) is not None}

    @cached_property
    def level(self) -> int:
        """How many of the newest runs are at the level of the newest, over all cases of the branch."""
        runs: list[dict[CaseKey, Counts]] = [{} for _ in self._runs[:MAX_RUNS]]
        for key, kind in self._kinds.items():
            seen = self._seen(*kind)
            answered = [(at, one.first.answered) for at, one in seen if at < len(runs)]
            if any(one.passes for _, one in answered) and any(one.failures for _, one in answered):
                for at, one in answered:  # a case that did the same every time shows no change
                    if one.runs:
                        runs[at][key] = one
        return runs_of_this_level(runs)

    def belief(self, quarantined: Collection[CaseKey] = ()) -> Prior:
        """What the records of the branch's own cases say about any of them; not of those that are set aside."""
        aside = frozenset(quarantined)
        if aside not in self._beliefs:
            self._beliefs[aside] = learned_from(self.records(aside))
        return self._beliefs[aside]

    def days(self, quarantined: Collection[CaseKey] = ()) -> tuple[RunDay, ...]:
        """The runs of this level as a whole, newest first, by the branch's own cases that are not set aside."""
        at_level = self._at_level(quarantined)
        return days_of(
            ((of_this_level(one, self._may_look_mended), number) for one, number in at_level),
            min(self.level, MAX_RUNS),
        )

    @cached_property
    def _may_look_mended(self) -> int:
        """How many of the branch's own cases could look mended by chance."""
        return sum(number for seen, number in self._at_level() if may_look_mended(one for _, one in seen))

    def _at_level(self, quarantined: Collection[CaseKey] = ()) -> list[tuple[list[tuple[int, CaseSeen]], int]]:
        """What the runs of this level saw of the branch's own cases, of each kind once, and how many are of it."""
        seen = ((self._seen(*kind), number) for kind, number in self._own(quarantined).items())
        return [([one for one in all_of if one[0] < self.level], number) for all_of, number in seen]

    def records(self, quarantined: Collection[CaseKey] = ()) -> Counter[tuple[int, int]]:
        """How many of the branch's own cases have passed and failed so often on record."""
        found = Counter[tuple[int, int]]()
        for kind, number in self._own(quarantined).items():
            counts = self._record(*kind).counts
            found[counts.passes, counts.failures] += number
        return found

    def _own(self, quarantined: Collection[CaseKey]) -> Counter[_Kind]:
        """How many of the branch's own cases that are not set aside are of each kind."""
        return Counter(self._kinds.get(key, _NO_RUNS) for key, _ in self._baseline.cases() if key not in quarantined)

    @cached_property
    def _kinds(self) -> Mapping[CaseKey, _Kind]:
        """Every case by its newest yardstick."""
        cases = ((key, self._ledger.case(key)) for key in self._ledger.every_key())
        return {key: (known.runs, _newest(known, self._runs)) for key, known in cases}

    def _of(self, key: CaseKey, now: CaseResult, there: Mapping[CaseKey, CaseResult]) -> CasePast:
        """Most cases of a suite share one past: it is put together once for all that differ in nothing else."""
        known, before = self._ledger.case(key), there.get(key)
        yardstick = yardstick_of(now)
        like = tuple([alike(one, yardstick) for one in known.yardsticks])
        errored = before is not None and before.status is Status.ERROR
        kind = (known.runs, like, _alike_among(known.yardsticks), now.graded, before is not None, errored)
        if kind not in self._pasts:
            self._pasts[kind] = self._past(known, like, now, present=before is not None, errored=errored)
        return self._pasts[kind]

    def _past(
        self, known: LedgerCase, like: Sequence[YardstickLikeness], now: CaseResult, *, present: bool, errored: bool
    ) -> CasePast:
        chosen = self._newest_judged(known, like)
        if chosen is None:
            return CasePast(present=present, errored=errored)
        at, entry = chosen
        measured = known.yardsticks[entry.place]
        run = None if at == 0 else self._ledger.runs[self._runs[at]].name
        return CasePast(
            newest=_then(entry, run, self._pass_score, graded=now.graded),
            present=present,
            errored=errored and self._measured,
            record=self._record(known.runs, _fits(known, measured)),
            scores=self._scores(known, measured, same=like[entry.place].all) if now.graded else None,
        )

    def _newest_judged(self, known: LedgerCase, like: Sequence[YardstickLikeness]) -> tuple[int, LedgerEntry] | None:
        """The place among the comparable runs, and the entry: by the same yardstick, else by the same question.

        `like` says of each of the case's yardsticks how alike it is to the one of this run.
        """
        judged = [
            (at, entry)
            for at, entry in self._entries(known)
            if any(one.letter in _STATUS for one in (*entry.first, *entry.again))
        ]
        same = ((at, entry) for at, entry in judged if like[entry.place].all)
        asked = ((at, entry) for at, entry in judged if like[entry.place].question)
        return next(same, None) or next(asked, None)

    def _entries(self, known: LedgerCase) -> list[tuple[int, LedgerEntry]]:
        entries = known.entries()
        return [
            (at, entry)
            for at, place in enumerate(self._runs)
            if place < len(entries) and (entry := entries[place]) is not None
        ]

    def _record(self, runs: str, fits: tuple[bool, ...]) -> CaseRecord:
        if (runs, fits) not in self._records:
            level, seen = self.level, self._seen(runs, fits)
            record = record_of([one for at, one in seen if at < level], self._may_look_mended)
            # where the whole branch broke, the runs that say so are those of the level before
            since = broken_since([one for _, one in seen])
            self._records[runs, fits] = replace(record, broken_since=since)
        return self._records[runs, fits]

    def _seen(self, runs: str, fits: tuple[bool, ...]) -> list[tuple[int, CaseSeen]]:
        """What the comparable runs saw of a case by the yardsticks that fit, each with its place among them."""
        return _seen_in(runs, fits, self._names, self._pass_score)

    @cached_property
    def _names(self) -> tuple[_RunPlace, ...]:
        runs, outages = self._ledger.runs, self._outages
        return tuple(_RunPlace(place, runs[place].run_id, runs[place].sha, place in outages) for place in self._runs)

    @cached_property
    def _outages(self) -> Collection[int]:
        """The places of the runs in which far more cases than usual got no response, and of an unmeasured baseline."""
        cases, silent = Counter[int](), Counter[int]()
        for runs, number in Counter(self._ledger.case(key).runs for key in self._ledger.every_key()).items():
            for place, entry in enumerate(LedgerCase(runs=runs).words()):
                if entry is not None:
                    cases[place] += number
                    silent[place] += number * all(one.letter not in _STATUS for one in entry.first)
        found = set() if self._measured else {0}
        for place in self._runs:
            others = [silent[one] / cases[one] for one in self._runs if one != place and cases[one]]
            many = silent[place] >= _OUTAGE_CASES and silent[place] * _OUTAGE_SHARE >= cases[place]
            if many and others and silent[place] >= _OUTAGE_TIMES * median_low(others) * cases[place]:
                found.add(place)
        return found

    def _scores(self, known: LedgerCase, measured: str, *, same: bool) -> ScoreRecord | None:
        """`same`: this run measures by that yardstick too."""
        seen = {
            at: score
            for at, entry in self._entries(known)
            if at < self.level
            and alike(known.yardsticks[entry.place], measured).all
            and (score := _mean_score(entry.first)) is not None
        }
        if not seen:
            return None
        spread, free = self._pool.spread_of(_varied(tuple(seen.values())))
        by_run = tuple(seen.get(at) for at in range(max(seen) + 1)) if same else ()
        return ScoreRecord(runs=len(seen), mean=fmean(seen.values()), spread=spread, free=free, by_run=by_run)

    @cached_property
    def _pool(self) -> PooledVariance:
        """How much the score of one case varies from run to run, over all graded cases."""
        varied = []
        for key in self._ledger.every_key():
            known = self._ledger.case(key)
            entries = [entry for at, entry in self._entries(known) if at < self.level]
            scores = [
                score
                for entry in entries
                if entry.place == entries[0].place and (score := _mean_score(entry.first)) is not None
            ]
            varied.append(_varied(scores))
        return pooled_variance(varied)


def past_before(baseline: Baseline, pass_score: float) -> Past:
    """The past that ends with this baseline. What was worked out for one run is there for the next one."""
    return Past(baseline, pass_score)


def _alike_among(yardsticks: Sequence[str]) -> tuple[tuple[YardstickLikeness, ...], ...]:
    """How alike a case's own yardsticks are: all that a past looks at in them, beside the one of this run."""
    if len(yardsticks) <= 1:
        return ()
    return tuple(tuple(alike(one, other) for other in yardsticks) for one in yardsticks)


def _fits(known: LedgerCase, measured: str) -> tuple[bool, ...]:
    """Which of a case's yardsticks are this one."""
    return tuple(alike(one, measured).all for one in known.yardsticks)


def _newest(known: LedgerCase, runs: Sequence[int]) -> tuple[bool, ...]:
    """Which of a case's yardsticks are the one of its newest run among these."""
    entries = known.entries()
    newest = next((entry for place in runs if place < len(entries) and (entry := entries[place]) is not None), None)
    return _fits(known, known.yardsticks[newest.place]) if newest else (False,) * len(known.yardsticks)


def _comparable(runs: Sequence[LedgerRun]) -> tuple[int, ...]:
    """The places of the runs that count: the baseline, and those before it of the same agent that were measured."""
    return tuple(place for place, run in enumerate(runs) if place == 0 or (run.usable and run.target == runs[0].target))


@lru_cache(maxsize=20_000)
def _seen_in(
    runs: str, fits: tuple[bool, ...], names: tuple[_RunPlace, ...], pass_score: float
) -> list[tuple[int, CaseSeen]]:
    """Most cases of a suite have the same past to the letter, so it is only worked out once.

    In an outage, errors of a case that was not answered wrong do not count: else they would be failures on record.
    """
    entries = LedgerCase(runs=runs).words()
    found = []
    for at, run in enumerate(names):
        entry = entries[run.place] if run.place < len(entries) else None
        if entry is not None and fits[entry.place]:
            first, again = counts_of_executions(entry.first, pass_score), counts_of_executions(entry.again, pass_score)
            seen = CaseSeen(run.run_id, first, again, run.sha)
            if run.outage and not seen.answered.all.failures:
                seen = seen.answered
            if seen.first.runs:
                found.append((at, seen))
    return found


@lru_cache(maxsize=20_000)
def counts_of_executions(executions: tuple[LedgerExecution, ...], pass_score: float) -> Counts:
    """Passes and failures, crashes among these; what says nothing about the target is left out."""
    passed = sum(_passes(one, pass_score) for one in executions)
    answered = sum(one.letter in _STATUS for one in executions)
    crashes = sum(one.letter in _CRASHES for one in executions)
    return Counts(passes=passed, failures=answered - passed + crashes, crashes=crashes)


def counts_of(case: CaseResult, pass_score: float) -> tuple[Counts, Counts]:
    """The same of a case here: its first execution (or the trials), and its re-runs."""
    first, again = executions_of(case)
    return counts_of_executions(first, pass_score), counts_of_executions(again, pass_score)


def first_score(case: CaseResult) -> float | None:
    """The score of a graded case's first execution here, or the mean of its trials; None where it has none."""
    return _mean_score(executions_of(case)[0])


def _passes(one: LedgerExecution, pass_score: float) -> bool:
    status = _STATUS.get(one.letter)
    if status is None:
        return False
    graded = one.score is not None
    return passes(Trial(status=status, score=one.score or 0.0, duration_ms=0.0), pass_score, graded=graded)


def _then(entry: LedgerEntry, run: RunName | None, pass_score: float, *, graded: bool) -> NewestEarlier:
    answered = [one for one in (*entry.first, *entry.again) if one.letter in _STATUS]
    passed = sum(_passes(one, pass_score) for one in answered)
    known = [one.score for one in answered if one.score is not None]
    score = fmean(known) if graded and known else passed / len(answered)
    return NewestEarlier(Tally(k=passed, n=len(answered), score=score), run)


def _varied(scores: Sequence[float]) -> ScoreVariance:
    if len(scores) < 2:
        return ScoreVariance(0.0, 0)
    mean = fmean(scores)
    return ScoreVariance(math.fsum((score - mean) ** 2 for score in scores), len(scores) - 1)


def _mean_score(executions: Iterable[LedgerExecution]) -> float | None:
    scores = [one.score for one in executions if one.score is not None]
    return fmean(scores) if scores else None
