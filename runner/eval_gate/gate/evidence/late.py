"""Many answers that did not come in time: a provider on a slow day, and not as many broken cases. Pure.

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

from eval_gate.gate.evidence.past import counts_of_executions
from eval_gate.gate.evidence.reruns import Confirmation
from eval_gate.gate.evidence.settle import CaseFacts, Settled, settle
from eval_gate.model.comparison import CaseClass
from eval_gate.model.execution import Status, Trial
from eval_gate.model.grounds import GroundKind
from eval_gate.model.result import CaseResult, RerunEnd, RunResult
from eval_gate.results.ledger import executions
from eval_gate.struct import replace

LEAST_LATE: Final = 5
"""Cases whose first execution was late, for it to be about more than these cases."""
SHARE: Final = 0.2
"""The share of all cases from which on being late is about all of them, unless re-runs say that these cases hang."""
HANGING_LIMIT: Final = 0.001
"""The chance up to which re-runs that were late so often are not those of a slow day."""


class Lateness(NamedTuple):
    """What was late in a run: cases by their first executions, and the re-runs of those that were."""

    cases: int = 0
    late: int = 0
    rerun_cases: int = 0
    """Late cases that were run again, and how many of them mostly answered then."""
    answering: int = 0
    reruns: int = 0
    late_reruns: int = 0

    @property
    def in_all(self) -> bool:
        """Whether being late is no property of single cases."""
        by_chance = self.rerun_cases > 0 and self.answering * 2 >= self.rerun_cases
        return self.late >= LEAST_LATE and (self.late >= SHARE * self.cases or by_chance)

    @property
    def most_in_time(self) -> bool:
        """Whether two thirds of the cases at least were in time: of fewer, no re-run says that single cases hang."""
        return self.late * 3 <= self.cases

    @property
    def of_hanging_cases(self) -> bool:
        """Whether most cases were in time, and the late ones are late again far more often than any case was at first.

        By Chernoff's bound on the chance of so many late re-runs, which is exact where all of them were.
        """
        if not self.late or not self.reruns or not self.most_in_time:
            return False
        usual, again = self.late / self.cases, self.late_reruns / self.reruns
        if again <= usual:
            return False
        away = again * math.log(again / usual)
        away += (1 - again) * math.log((1 - again) / (1 - usual)) if again < 1 else 0.0
        return math.exp(-self.reruns * away) <= HANGING_LIMIT


def lateness_of(run: RunResult) -> Lateness:
    """What was late in this run."""
    cases, late, rerun_cases, answering, reruns, late_reruns = 0, 0, 0, 0, 0, 0
    for _, case in run.cases():
        if case.status is Status.PASSED and not case.reruns:
            cases += 1
            continue
        trials = case.executions()
        first, again = trials[: len(trials) - case.reruns], trials[len(trials) - case.reruns :]
        if not any(_heard_or_late(trial) for trial in first):
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
    return Lateness(cases, late, rerun_cases, answering, reruns, late_reruns)


def many_late(run: RunResult) -> bool:
    """Whether so many first executions were late that it may be about more than these cases."""
    found = 0
    for _, case in run.cases():
        if case.status is not Status.PASSED or case.reruns:
            trials = case.executions()
            found += any(trial.timed_out for trial in trials[: len(trials) - case.reruns])
    return found >= LEAST_LATE


def without_the_late(
    settled: Sequence[Settled],
    facts: Sequence[CaseFacts],
    run: RunResult,
    confirmation: Confirmation,
    pass_score: float,
) -> Iterator[Settled]:
    """Where being late is no property of cases: what their answers alone make of those that some executions were late.

    None is a regression by being late, but those that hang whenever they are asked, where re-runs say so; and none that
    could be one by its answers is let go.
    """
    seen = lateness_of(run)
    if not seen.in_all:
        yield from settled
        return
    cases, known = run.by_key(), {one.key: one for one in facts}
    for one in settled:
        case, grounds = cases[one.key], one.grounds
        in_doubt = one.change is CaseClass.REGRESSION or (grounds is not None and grounds.why.undecided)
        by_itself = grounds is None or grounds.why in _NOT_BY_BEING_LATE or not _any_late(case)
        if by_itself or not in_doubt or (seen.of_hanging_cases and _hangs(case)):
            yield one
        else:
            yield _by_answers(one, known[one.key], case, confirmation, pass_score)


_NOT_BY_BEING_LATE: Final = frozenset({GroundKind.MUST_PASS, GroundKind.SUITE})
"""What must pass is decided by any second failure, and the test of all cases knows nothing of what was late."""


def _any_late(case: CaseResult) -> bool:
    return any(trial.timed_out for trial in case.executions())


def _hangs(case: CaseResult) -> bool:
    """Whether it was late whenever it was asked, once more at least."""
    return case.reruns > 0 and all(trial.timed_out for trial in case.executions())


def _by_answers(
    one: Settled, facts: CaseFacts, case: CaseResult, confirmation: Confirmation, pass_score: float
) -> Settled:
    trials = case.executions()
    first, again = trials[: len(trials) - case.reruns], trials[len(trials) - case.reruns :]
    left = by_answers(facts, first, again, pass_score, graded=case.graded)
    if left is None:
        return _undecided(one)
    (found,) = settle((left,), confirmation, share=0.0).cases
    return _undecided(found) if found.grounds is not None and found.grounds.why.undecided else found


def by_answers(
    facts: CaseFacts, first: Sequence[Trial], again: Sequence[Trial], pass_score: float, *, graded: bool
) -> CaseFacts | None:
    """A case without its executions that were late, as if they had not been made; None where no answer fails.

    The first that answered is the first then. Whether a case answers in time says nothing of what it answers, so those
    that did are a sample like any other.
    """
    first, again = ([one for one in some if not one.timed_out] for some in (first, again))
    if not first:
        first, again = again[:1], again[1:]
    here, more = (counts_of_executions(executions(some, graded=graded), pass_score) for some in (first, again))
    if not here.failures and not more.failures:
        return None
    return replace(facts, first=here, again=more, end=facts.end if facts.end is RerunEnd.IMPOSSIBLE else None)


def _undecided(one: Settled) -> Settled:
    assert one.grounds is not None
    grounds = replace(
        one.grounds,
        why=GroundKind.SLOW,
        chance=None,
        needed=None,
    )
    return replace(one, change=CaseClass.ERRORED, grounds=grounds)


def _heard_or_late(trial: Trial) -> bool:
    return trial.status.judged or trial.timed_out or trial.status is Status.ERROR
