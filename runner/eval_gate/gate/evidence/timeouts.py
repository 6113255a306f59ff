"""Many timed-out cases in one run: a slow provider rather than broken cases. Pure.

A case that hangs because of a change hangs whenever it is asked. Where many cases were late, and either a large part of
all were or most of those answer when they are asked again, being late is no property of the cases. Whether the provider
is slow or this change made everything slow nobody can tell from here, so that nothing is decided by it, and nothing
passes by it. What was answered wrong counts without what was late: of a case that flaked once, and was too late when
it was asked again, nothing more is known than that. A crash is none of this: whoever says that it broke has answered.

Re-runs can tell the two apart: where two thirds of the cases answered in time, and the re-runs of the late ones were
late far more often than a slow day makes any execution late, the cases that were late every time hang by themselves.

What it moves (`benchmarks/verdict/without.py`, without → with): nothing changed and 40 % of the responses are late, red
99.4 → 1.7 ± 1.1 %; 10 % late, 26.1 → 5.6 ± 3.7 %. Five of 20 cases hang, found 100 %, as without it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from eval_gate.gate.evidence.case_classification import CaseFacts, ClassifiedCase, classify_cases
from eval_gate.gate.evidence.case_history import count_executions
from eval_gate.gate.evidence.rerun_decision import RerunCriteria
from eval_gate.model.comparison import CaseClass
from eval_gate.model.evidence import GroundKind
from eval_gate.model.execution import Status, Trial
from eval_gate.model.result import CaseResult, RerunStopReason, RunResult
from eval_gate.results.history import build_executions
from eval_gate.struct import replace

MIN_TIMED_OUT: Final = 5
"""Cases whose first execution was late, for it to be about more than these cases."""
TIMED_OUT_SHARE: Final = 0.2
"""The share of all cases from which on being late is about all of them, unless re-runs say that these cases hang."""
HANGING_LIMIT: Final = 0.001
"""The chance up to which re-runs that were late so often are not those of a slow day."""
_MOST_LATE: Final = 3
"""One case in so many may be late for re-runs to say that single cases hang."""
_LATE_RERUNS_NEEDED: Final = math.ceil(math.log(HANGING_LIMIT) / math.log(1 / _MOST_LATE))
"""Re-runs of all late cases together that say so, whatever share of the cases is late, where all of them are late."""


class TimeoutCounts(NamedTuple):
    """Timed-out cases of a run by their first executions, and how their re-runs went."""

    cases: int = 0
    timed_out: int = 0
    rerun_cases: int = 0
    """Late cases that were run again, and how many of them mostly answered then."""
    recovered_cases: int = 0
    reruns: int = 0
    timed_out_reruns: int = 0

    @property
    def is_general(self) -> bool:
        """Whether being late is no property of single cases."""
        by_chance = self.rerun_cases > 0 and self.recovered_cases * 2 >= self.rerun_cases
        return self.timed_out >= MIN_TIMED_OUT and (self.timed_out >= TIMED_OUT_SHARE * self.cases or by_chance)

    @property
    def is_mostly_in_time(self) -> bool:
        """Whether two thirds of the cases at least were in time: of fewer, no re-run says that single cases hang."""
        return self.timed_out * _MOST_LATE <= self.cases

    @property
    def reruns_needed(self) -> int:
        """How many late re-runs of each late case are enough for `has_hanging_cases`.

        Where fewer cases were late in a part of a run, there are more in the whole, or it does not matter.
        """
        return math.ceil(_LATE_RERUNS_NEEDED / max(self.timed_out, MIN_TIMED_OUT))

    @property
    def has_hanging_cases(self) -> bool:
        """Whether most cases were in time, and the late ones are late again far more often than any case was at first.

        By Chernoff's bound on the chance of so many late re-runs, which is exact where all of them were.
        """
        if not self.timed_out or not self.reruns or not self.is_mostly_in_time:
            return False
        usual, again = self.timed_out / self.cases, self.timed_out_reruns / self.reruns
        if again <= usual:
            return False
        away = again * math.log(again / usual)
        away += (1 - again) * math.log((1 - again) / (1 - usual)) if again < 1 else 0.0
        return math.exp(-self.reruns * away) <= HANGING_LIMIT


def count_timeouts(run: RunResult) -> TimeoutCounts:
    """Count the cases of a run that timed out, and how their re-runs went."""
    cases, late, rerun_cases, answering, reruns, late_reruns = 0, 0, 0, 0, 0, 0
    for _, case in run.iter_cases():
        if case.status is Status.PASSED and not case.reruns:
            cases += 1
            continue
        trials = case.list_executions()
        first, again = trials[: len(trials) - case.reruns], trials[len(trials) - case.reruns :]
        if not any(_has_outcome(trial) for trial in first):
            continue
        cases += 1
        if not any(trial.timed_out for trial in first):
            continue
        late += 1
        late_again = sum(trial.timed_out for trial in again)
        rerun_cases += bool(again)
        answering += bool(again) and late_again * 2 <= len(again)
        reruns += len(again)
        late_reruns += late_again
    return TimeoutCounts(cases, late, rerun_cases, answering, reruns, late_reruns)


def has_many_timeouts(run: RunResult) -> bool:
    """Whether so many first executions timed out that the cause may be more than these cases."""
    found = 0
    for _, case in run.iter_cases():
        if case.status is not Status.PASSED or case.reruns:
            trials = case.list_executions()
            found += any(trial.timed_out for trial in trials[: len(trials) - case.reruns])
    return found >= MIN_TIMED_OUT


def reclassify_timeouts(
    settled: Sequence[ClassifiedCase],
    facts: Sequence[CaseFacts],
    run: RunResult,
    criteria: RerunCriteria,
    pass_score: float,
) -> Iterator[ClassifiedCase]:
    """Where being late is no property of cases: what their answers alone make of those that some executions were late.

    None is a regression by being late, but those that hang whenever they are asked, where re-runs say so; and none that
    could be one by its answers is let go.
    """
    seen = count_timeouts(run)
    if not seen.is_general:
        yield from settled
        return
    cases, known = run.index_cases(), {one.key: one for one in facts}
    for one in settled:
        case, grounds = cases[one.key], one.grounds
        in_doubt = one.case_class is CaseClass.REGRESSION or (grounds is not None and grounds.kind.is_inconclusive)
        by_itself = grounds is None or grounds.kind in _INDEPENDENT_GROUNDS or not _has_timeout(case)
        if by_itself or not in_doubt or (seen.has_hanging_cases and _is_hanging(case)):
            yield one
        else:
            yield _classify_without_timeouts(one, known[one.key], case, criteria, pass_score)


_INDEPENDENT_GROUNDS: Final = frozenset({GroundKind.MUST_PASS, GroundKind.SUITE_DROP})
"""What must pass is decided by any second failure, and the test of all cases knows nothing of what was late."""


def _has_timeout(case: CaseResult) -> bool:
    return any(trial.timed_out for trial in case.list_executions())


def _is_hanging(case: CaseResult) -> bool:
    """Whether every execution timed out, including at least one re-run."""
    return case.reruns > 0 and all(trial.timed_out for trial in case.list_executions())


def _classify_without_timeouts(
    one: ClassifiedCase, facts: CaseFacts, case: CaseResult, criteria: RerunCriteria, pass_score: float
) -> ClassifiedCase:
    trials = case.list_executions()
    first, again = trials[: len(trials) - case.reruns], trials[len(trials) - case.reruns :]
    left = drop_timeouts(facts, first, again, pass_score, graded=case.graded)
    if left is None:
        return _mark_slow(one)
    (found,) = classify_cases((left,), criteria, share=0.0).cases
    return _mark_slow(found) if found.grounds is not None and found.grounds.kind.is_inconclusive else found


def drop_timeouts(
    facts: CaseFacts, first: Sequence[Trial], again: Sequence[Trial], pass_score: float, *, graded: bool
) -> CaseFacts | None:
    """Remove the executions that timed out from the facts of a case, as if they had not been made.

    The first execution with a response then counts as the first one. Return None if no remaining execution fails.
    Whether a case responds in time says nothing about its response, so the executions in time are a sample like any
    other.
    """
    first, again = ([one for one in some if not one.timed_out] for some in (first, again))
    if not first:
        first, again = again[:1], again[1:]
    here, more = (count_executions(build_executions(some, graded=graded), pass_score) for some in (first, again))
    if not here.failures and not more.failures:
        return None
    return replace(
        facts,
        first=here,
        reruns=more,
        rerun_end=facts.rerun_end if facts.rerun_end is RerunStopReason.NOT_REPEATABLE else None,
    )


def _mark_slow(one: ClassifiedCase) -> ClassifiedCase:
    assert one.grounds is not None
    grounds = replace(
        one.grounds,
        kind=GroundKind.TIMEOUTS,
        chance=None,
        required_failures=None,
    )
    return replace(one, case_class=CaseClass.ERRORED, grounds=grounds)


def _has_outcome(trial: Trial) -> bool:
    return trial.status.is_scored or trial.timed_out or trial.status is Status.ERROR
