"""Factories for cases that pass, by what they call and say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eval_gate.model.execution import CaseDetails, Status, StoredCall, Trial
from eval_gate.model.result import CaseResult, RunResult
from eval_gate.results.history import History, build_history
from eval_gate.struct import replace
from tests.support.results import make_baseline_run, make_result, make_run, make_suite_result

SAID = "Your order A7 was sent on Sunday and will be there in three days."
Calls = Sequence[tuple[str, Mapping[str, object]]]


def make_details(calls: Calls, said: str | None = SAID, **fields) -> CaseDetails:
    """What one execution called, with which arguments, and said."""
    made = tuple(StoredCall(name=name, arguments=dict(given)) for name, given in calls)
    values = {
        "tools_called": tuple(name for name, _ in calls),
        "tool_calls": made,
        "response": said,
        "response_length": len(said or ""),
    }
    return CaseDetails(**(values | fields))


def make_behaving(case_id: str, *executions: CaseDetails, **fields) -> CaseResult:
    """A case that passed in each of these executions, of which the first is stored with the case."""
    trials = tuple(
        Trial(status=Status.PASSED, score=1.0, duration_ms=1.0, decisive=not place, details=details if place else None)
        for place, details in enumerate(executions)
    )
    made = make_result(case_id, details=executions[0], **fields)
    return made if len(executions) == 1 else replace(made, trials=trials)


def make_branch(*runs: Sequence[CaseResult]) -> tuple[RunResult, History]:
    """The newest run of a branch, and the history of all of them; the oldest comes first."""
    made = [
        make_baseline_run(
            make_suite_result(list(cases)), run_id=f"main-{number}", timestamp=f"2026-11-{number + 1:02}T10:00:00Z"
        )
        for number, cases in enumerate(runs)
    ]
    return made[-1], build_history(reversed(made))


def make_here(*cases: CaseResult) -> RunResult:
    """The run of a change with these cases."""
    return make_run(make_suite_result(list(cases)))
