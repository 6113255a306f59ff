"""Cases of which no run of the branch knows anything: new ones, and known ones with another question or expectation.

They have no record that a failure could be held against, so they are run a few times when they first appear, whatever
comes of the first time. That makes these runs as good as trials: none was made because another failed, so all of them
go on record, and the rate of the case is known from its first day on.

What it moves (`benchmarks/verdict/without.py`, without → with): a tenth of the cases first seen by the branch's newest
run fails 50 %, red 39.4 → 9.4 ± 5.2 %; 30 %, 17.5 → 10.0 ± 3.4 %.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from eval_gate.gate.evidence.settle import CaseFacts
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass
from eval_gate.model.execution import Blame, Status
from eval_gate.model.grounds import Counts
from eval_gate.model.result import CaseResult

FRESH: Final = frozenset({CaseClass.ADDED, CaseClass.INCOMPARABLE})
"""Classes of cases that no earlier run judged by the same question and expectation."""
RUNS: Final = 3
"""How often such a case is run, where cases are run again at all."""
LEAST_EXTRA: Final = 100
"""So many more runs of new cases are made in any case, where nobody said what re-runs may take."""


def more_runs(facts: Iterable[CaseFacts], cases: Mapping[CaseKey, CaseResult], *, bounded: bool) -> dict[CaseKey, int]:
    """How often each new case is run beyond its first executions so that it has `RUNS`, in the order of `facts`.

    A case that is in doubt for another reason is run again for that. One that nobody answered, or that was answered
    from a recording, would show nothing, and one that works on files of others would take a run of all these each time.
    `bounded`: they may take half as much as the run has cases, a hundred at least, so that a change which brings
    thousands of cases costs no multiple of their first run; the last ones are run once then.
    """
    left = max(LEAST_EXTRA, len(cases) // 2)
    found = {}
    for one in facts:
        case = cases[one.key]
        more = RUNS - max(len(case.executions()) - case.reruns, 1)
        if more <= 0 or one.plain not in FRESH or one.doubt is not None or one.cases_before is not None:
            continue
        if not one.first.runs or case.details.replayed:
            continue
        if bounded and more > left:
            break
        found[one.key] = more
        left -= more
    return found


def seen_here(case: CaseResult) -> Counts:
    """How often the case passed and failed here, a crash counting as a failure. The run is held to its pass score."""
    trials = case.executions()
    crashes = sum(trial.status is Status.ERROR and trial.blame is Blame.CRASHED for trial in trials)
    return Counts(
        passes=sum(trial.status is Status.PASSED for trial in trials),
        failures=sum(trial.status is Status.FAILED for trial in trials) + crashes,
        crashes=crashes,
    )


def fails(case: CaseResult) -> bool:
    """Whether a new case does not pass more often than it fails; one that was never judged is an error instead."""
    return case.status.judged and (case.status is Status.FAILED or seen_here(case).fails)


def flakes(case: CaseResult) -> bool:
    """Whether a new case was seen to do both."""
    seen = seen_here(case)
    return seen.passes > 0 and seen.failures > 0
