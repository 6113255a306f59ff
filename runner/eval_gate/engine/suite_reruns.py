"""Re-runs of a case that depends on files of earlier cases, in a fresh workspace.

One such suite re-run serves every case in it that is to be run again. The executions of the others are preparatory:
they cost what they cost, and say nothing of their own cases. A case before that fails is no reason to stop, as it is
none in a run: the record of the branch, which failures are held against, was made in the same way. Only where the
agent could not be reached for one, what comes after it would find no files through nobody's fault, and is not executed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eval_gate.engine.journal import TrialRecord
from eval_gate.engine.trials import TrialJob
from eval_gate.model.case import EvalCase
from eval_gate.model.execution import ErrorKind, Status
from eval_gate.struct import replace
from eval_gate.text.escape import format_first_few, to_one_line

_MAX_NAMED = 3
"""Cases before one that are named as not having passed."""
_MAX_ID = 100


def plan_suite_rerun(cases: Sequence[EvalCase], number: int, is_wanted: Callable[[EvalCase], bool]) -> TrialJob | None:
    """Plan one re-run of cases that depend on each other's files, in their order.

    Return None if no case `is_wanted`. `number` must differ from that of every earlier execution of these cases,
    because it names the folder.
    """
    wanted = [is_wanted(case) for case in cases]
    if not any(wanted):
        return None
    last = max(at for at, one in enumerate(wanted) if one)
    before = [TrialJob(case, number, preparatory=not wanted[at]) for at, case in enumerate(cases[:last])]
    return TrialJob(cases[last], number, tuple(before))


class SuiteRerun:
    """One suite re-run in progress."""

    def __init__(self) -> None:
        self._failed: list[TrialRecord] = []

    @property
    def broken_by(self) -> TrialRecord | None:
        """The execution for which the agent could not be reached, so that no more is made; None while there is none."""
        return next((one for one in self._failed if one.error_kind is ErrorKind.AGENT_UNREACHABLE), None)

    def add_execution(self, trial_record: TrialRecord) -> TrialRecord:
        """Record an execution; one that counts gets a warning that names earlier cases that did not pass."""
        told = trial_record
        if self._failed and not trial_record.preparatory:
            names = format_first_few(
                [one.case_id for one in self._failed], _MAX_NAMED, lambda text: to_one_line(text, _MAX_ID)
            )
            told = replace(
                trial_record, warnings=(*trial_record.warnings, f"re-run after cases that did not pass: {names}")
            )
        if trial_record.status is not Status.PASSED:
            self._failed.append(trial_record)
        return told
