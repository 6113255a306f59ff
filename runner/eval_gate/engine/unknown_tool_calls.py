"""Unknown tool calls: cases that check tools when no response of the run lists tool calls.

One answer without the list means little: many agents leave it out when they called nothing. A whole run without a
single list, not even an empty one, says that nobody knows which tools were called: the list is looked for in the wrong
place, or the agent keeps it to itself. Then "no tool was called" would be a guess, and every case that checks tools is
an evaluation error, and no regression: nothing is known. The rule looks at all answers of a
target at once, so their order changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from eval_gate.engine.journal import FinishedTrials, TrialRecord
from eval_gate.engine.run_plan import RunPlan
from eval_gate.model.execution import CALLS_UNKNOWN, ErrorCause, ErrorKind, Status
from eval_gate.struct import replace

ListingTargets = frozenset[int]
"""Targets (by `id`) that have listed tool calls in this run."""

_ERROR_TEMPLATE: Final = (
    "{unknown}: no response of this run has {missing}. An agent that calls no tool returns an empty list"
)


def find_listing_targets(plan: RunPlan, trials: FinishedTrials) -> ListingTargets:
    """Which targets have listed calls in at least one answer to a case of the plan."""
    return frozenset(
        id(plan.get_target(case)) for case in plan.list_runnable_cases() if trials.has_listed_calls(case.key)
    )


def mark_unlisted_calls(records: Iterable[TrialRecord], *, lists: bool) -> list[TrialRecord]:
    """Return the trials, with those marked as evaluation errors whose tool calls are unknown.

    If `lists`, the target has listed tool calls in this run, and no trial is marked.
    """
    return [record if lists else _mark_record(record) for record in records]


def _mark_record(trial_record: TrialRecord) -> TrialRecord:
    missing = trial_record.missing_calls
    if missing is None or not trial_record.status.is_scored:
        return trial_record
    return replace(
        trial_record,
        status=Status.ERROR,
        score=0.0,
        error=_ERROR_TEMPLATE.format(unknown=CALLS_UNKNOWN, missing=missing),
        error_kind=ErrorKind.EVALUATION_ERROR,
        error_cause=ErrorCause.CALLS_UNKNOWN,
        vetoed=False,
        assertions_run=0,
        assertions_skipped=0,
        evaluator_results=(),
    )
