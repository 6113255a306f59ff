"""Re-runs of a case that depends on files of earlier cases, in a fresh workspace.

One suite re-run serves every suspect in it. The executions of the other cases are preparatory: they count for costs
only. An earlier case that fails does not end it, as in a run: the history was made in the same way. If the agent is
unreachable for a case, the cases after it would lack files, and are not executed.
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
    counts = [is_wanted(case) for case in cases]
    if not any(counts):
        return None
    last = max(at for at, one in enumerate(counts) if one)
    preceding = [TrialJob(case, number, preparatory=not counts[at]) for at, case in enumerate(cases[:last])]
    return TrialJob(cases[last], number, tuple(preceding))


class SuiteRerun:
    """One suite re-run in progress."""

    def __init__(self) -> None:
        self._failed: list[TrialRecord] = []

    @property
    def broken_by(self) -> TrialRecord | None:
        """Execution for which the agent was unreachable, which ends the suite re-run; None if there is none."""
        return next((one for one in self._failed if one.error_kind is ErrorKind.AGENT_UNREACHABLE), None)

    def add_execution(self, trial_record: TrialRecord) -> TrialRecord:
        """Record an execution; one that counts gets a warning that names earlier cases that did not pass."""
        if self._failed and not trial_record.preparatory:
            names = format_first_few(
                [one.case_id for one in self._failed], _MAX_NAMED, lambda text: to_one_line(text, _MAX_ID)
            )
            warning = f"re-run after cases that did not pass: {names}"
            trial_record = replace(trial_record, warnings=(*trial_record.warnings, warning))
        if trial_record.status is not Status.PASSED:
            self._failed.append(trial_record)
        return trial_record
