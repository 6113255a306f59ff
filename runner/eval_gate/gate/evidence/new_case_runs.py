"""Extra runs of new and changed cases, which have no history, and their outcomes.

They have no history that a failure could be held against, so they are run a few times when they first appear, whatever
comes of the first time. That makes these runs as good as trials: none was made because another failed, so all of them
go in the history, and the rate of the case is known from its first day on.

What it moves (`benchmarks/verdict/without.py`, without → with): a tenth of the cases first seen by the branch's newest
run fails 50 %, red 39.4 → 9.4 ± 5.2 %; 30 %, 17.5 → 10.0 ± 3.4 %.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from eval_gate.gate.evidence.case_classification import CaseFacts
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass
from eval_gate.model.evidence import Counts
from eval_gate.model.execution import ErrorKind, Status
from eval_gate.model.result import CaseResult

NEW_CASE_CLASSES: Final = frozenset({CaseClass.ADDED, CaseClass.INCOMPARABLE})
"""Classes of cases that no earlier run judged by the same question and expectation."""
NEW_CASE_EXECUTIONS: Final = 3
"""How often such a case is run, where cases are run again at all."""
MIN_EXTRA_EXECUTIONS: Final = 100
"""Additional executions of new cases that are always allowed if re-runs have no budget."""


def plan_extra_executions(
    facts: Iterable[CaseFacts], cases: Mapping[CaseKey, CaseResult], *, bounded: bool
) -> dict[CaseKey, int]:
    """Count the runs that each new case needs beyond its first executions to have `NEW_CASE_EXECUTIONS`.

    A case that is in doubt for another reason is re-run for that. One without a response, or with a recorded one, would
    show nothing, and one that works on files of others would repeat all these each time. If `bounded`, they may take
    half as many runs as the run has cases, a hundred at least; the last ones are run once then.
    """
    budget = max(MIN_EXTRA_EXECUTIONS, len(cases) // 2)
    extra_executions = {}
    for one in facts:
        case = cases[one.key]
        more = NEW_CASE_EXECUTIONS - max(len(case.list_executions()) - case.reruns, 1)
        if (
            more <= 0
            or case.pass_rule is not None
            or one.plain_class not in NEW_CASE_CLASSES
            or one.suspicion is not None
            or one.preceding_cases is not None
        ):
            continue
        if not one.first.executions or case.details.replayed:
            continue
        if bounded and more > budget:
            break
        extra_executions[one.key] = more
        budget -= more
    return extra_executions


def count_outcomes(case: CaseResult) -> Counts:
    """How often the case passed, failed and had an agent error here. The run is held to its pass score."""
    trials = case.list_executions()
    return Counts(
        passes=sum(trial.status is Status.PASSED for trial in trials),
        failures=sum(trial.status is Status.FAILED for trial in trials),
        agent_errors=sum(
            trial.status is Status.ERROR and trial.error_kind is ErrorKind.AGENT_ERROR for trial in trials
        ),
    )


def is_failing(case: CaseResult) -> bool:
    """Whether a new case does not pass more often than it fails; one that was never judged is an error instead."""
    by_majority = case.pass_rule is None and count_outcomes(case).is_failing
    return case.status.is_scored and (case.status is Status.FAILED or by_majority)


def is_flaky(case: CaseResult) -> bool:
    """Whether a new case without a rule about its trials both passed and failed."""
    outcomes = count_outcomes(case)
    return case.pass_rule is None and outcomes.passes > 0 and outcomes.failures > 0
