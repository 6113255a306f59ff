"""Many answers that did not come in time: a provider on a slow day, and not as many broken cases. Pure.

A case that hangs because of a change hangs whenever it is asked. Where many cases were late, and either a large part of
all were or most of those answer when they are asked again, being late is no property of the cases. Whether the provider
is slow or this change made everything slow nobody can tell from here, so that nothing is decided by it, and nothing
passes by it. A crash is none of this: whoever says that it broke has answered.
"""

from __future__ import annotations

from typing import Final

from eval_gate.gate.evidence.settle import Settled
from eval_gate.model.comparison import CaseClass
from eval_gate.model.execution import Status, Trial
from eval_gate.model.grounds import Why
from eval_gate.model.result import CaseResult, RunResult

LEAST_LATE: Final = 5
"""Cases whose first execution was late, for it to be about more than these cases."""
SHARE: Final = 0.2
"""The share of all cases from which on being late is about all of them, whatever re-runs say."""


def slow_in_all(run: RunResult) -> bool:
    """Whether being late is no property of single cases in this run."""
    late, total, asked_again, answered_again = 0, 0, 0, 0
    for _, case in run.cases():
        if case.status is Status.PASSED and not case.reruns:
            total += 1
            continue
        trials = case.executions()
        first, again = trials[: len(trials) - case.reruns], trials[len(trials) - case.reruns :]
        if not any(_heard_or_late(trial) for trial in first):
            continue
        total += 1
        if not any(trial.timed_out for trial in first):
            continue
        late += 1
        if again:
            asked_again += 1
            answered_again += sum(not trial.timed_out for trial in again) * 2 >= len(again)
    by_chance = asked_again > 0 and answered_again * 2 >= asked_again
    return late >= LEAST_LATE and (late >= SHARE * total or by_chance)


def undecided_by_slowness(one: Settled, case: CaseResult) -> bool:
    """Whether all that speaks against this case is that it was late."""
    grounds = one.grounds
    if grounds is None or grounds.why is Why.MUST_PASS:
        return False
    bad = [trial for trial in case.executions() if _heard_or_late(trial) and trial.status is not Status.PASSED]
    doubted = one.change is CaseClass.REGRESSION or grounds.why.undecided
    return doubted and bool(bad) and all(trial.timed_out for trial in bad)


def _heard_or_late(trial: Trial) -> bool:
    return trial.status.judged or trial.timed_out or trial.status is Status.ERROR
