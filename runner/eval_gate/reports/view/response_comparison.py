"""Comparison of a case's response with the baseline's: prompt, both responses, tool call changes."""

from __future__ import annotations

from eval_gate.model.comparison import CaseChange
from eval_gate.model.execution import BaselineResult, CaseDetails, Status
from eval_gate.model.result import CaseResult
from eval_gate.reports.text_difference import CONTEXT_CHARACTERS, TextDifference, compare_texts
from eval_gate.reports.wording.tool_calls import describe_call_changes
from eval_gate.struct import FrozenStruct


class ResponseComparison(FrozenStruct):
    """Baseline response and current response of one case; None where a response was not kept."""

    question: str | None
    expected: tuple[str, ...]
    """What a good answer is, a check each."""
    expected_before: tuple[str, ...]
    """What it was in the baseline where it is another now."""
    call_changes: tuple[str, ...]
    """What differs in the tool calls, in half sentences."""
    baseline_response: str | None
    current_response: str | None
    notes: tuple[str, ...]

    has_baseline: bool
    """Whether there is an earlier side at all."""

    def compare_responses(self, around: int = CONTEXT_CHARACTERS) -> TextDifference | None:
        """Compare both responses; return None if neither side has one."""
        if self.baseline_response is None and self.current_response is None:
            return None
        return compare_texts(self.baseline_response or "", self.current_response or "", around)


def build_response_comparison(case: CaseResult, change: CaseChange | None) -> ResponseComparison | None:
    """Both sides of a case; None where nothing is kept that could be shown. Without a change there is only one side."""
    before = change.baseline_result if change else None
    shown = _find_failed_details(case)
    details = shown or case.details
    then = before.details.response if before else None
    here = details.response
    calls = describe_call_changes(before.details, details) if before and case.status is not Status.ERROR else ()
    if then is None and here is None and not calls:
        return None
    return ResponseComparison(
        question=case.text.prompt or None if case.text else None,
        expected=case.text.expectation if case.text else (),
        expected_before=before.expectation if before else (),
        call_changes=calls,
        baseline_response=then,
        current_response=here,
        notes=(
            *(["From an execution that failed; the case passed when it was re-run."] if shown else []),
            *_collect_notes(
                details, before, compared=change is not None and change.baseline is not None, status=case.status
            ),
        ),
        has_baseline=before is not None,
    )


def _find_failed_details(case: CaseResult) -> CaseDetails | None:
    """Find the details of a failed execution of a case that passed in the end."""
    failed = (trial.details for trial in case.trials if trial.status is Status.FAILED)
    return next((details for details in failed if details is not None), None) if case.passed else None


def _collect_notes(details: CaseDetails, before: BaselineResult | None, *, compared: bool, status: Status) -> list[str]:
    """Collect notes about what the difference of the responses alone would misrepresent."""
    notes = []
    if compared and (before is None or before.details.response is None):
        notes.append("The baseline has no stored response.")
    elif before is not None and before.details.response == "":
        notes.append("The baseline's response is empty.")
    if details.response is None:
        here = "There is no response here" if status is Status.ERROR else "The response here is not stored"
        notes.append(f"{here}. The baseline's:" if before is not None and before.details.response else f"{here}.")
    elif not details.response:
        notes.append("The response is empty.")
    if details.response_truncated or (before is not None and before.details.response_truncated):
        notes.append("Long responses are truncated.")
    if details.response is not None and before is not None and before.details.response == details.response:
        notes.append("Both responses are the same.")
    return notes
