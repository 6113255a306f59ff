"""What a case was asked, what it answered in the baseline and here, and how its tool calls differ."""

from __future__ import annotations

from eval_gate.model.comparison import CaseChange
from eval_gate.model.execution import BaselineSide, CaseDetails, Status
from eval_gate.model.result import CaseResult
from eval_gate.reports.difference import AROUND, TextDifference, difference
from eval_gate.reports.words.calls import call_words
from eval_gate.struct import FrozenStruct


class Sides(FrozenStruct):
    """Both sides of one case. An answer is None where none is kept; the notes say which, and why."""

    question: str | None
    expected: tuple[str, ...]
    """What a good answer is, a check each."""
    calls: tuple[str, ...]
    """What differs in the tool calls, in half sentences."""
    then: str | None
    here: str | None
    notes: tuple[str, ...]

    compared: bool
    """Whether there is an earlier side at all."""

    def difference(self, around: int = AROUND) -> TextDifference | None:
        """The two answers held against each other; None where there is none at all."""
        if self.then is None and self.here is None:
            return None
        return difference(self.then or "", self.here or "", around)


def sides_of(case: CaseResult, change: CaseChange | None) -> Sides | None:
    """Both sides of a case; None where nothing is kept that could be shown. Without a change there is only one side."""
    before = change.before if change else None
    shown = _failed(case)
    details = shown or case.details
    then = before.details.response if before else None
    here = details.response
    calls = call_words(before.details, details) if before and case.status is not Status.ERROR else ()
    if then is None and here is None and not calls:
        return None
    return Sides(
        question=case.asked.question or None if case.asked else None,
        expected=case.asked.expectation if case.asked else (),
        calls=calls,
        then=then,
        here=here,
        notes=(
            *(["Of an execution that failed; the case passed when it was tried again."] if shown else []),
            *_notes(details, before, compared=change is not None and change.baseline is not None, status=case.status),
        ),
        compared=before is not None,
    )


def _failed(case: CaseResult) -> CaseDetails | None:
    """What was kept of an execution that failed, of a case that passes in the end; None where that is not so."""
    failed = (trial.details for trial in case.trials if trial.status is Status.FAILED)
    return next((details for details in failed if details is not None), None) if case.passed else None


def _notes(details: CaseDetails, before: BaselineSide | None, *, compared: bool, status: Status) -> list[str]:
    """What the difference alone would say wrongly."""
    notes = []
    if compared and (before is None or before.details.response is None):
        notes.append("The baseline kept no answer.")
    elif before is not None and before.details.response == "":
        notes.append("The baseline's answer is empty.")
    if details.response is None:
        notes.append("There is no answer here." if status is Status.ERROR else "No answer is kept here.")
    elif not details.response:
        notes.append("The answer here is empty.")
    if details.response_truncated or (before is not None and before.details.response_truncated):
        notes.append("Only the beginning of a long answer is kept.")
    if details.response is not None and before is not None and before.details.response == details.response:
        notes.append("The answer is the same on both sides.")
    return notes
