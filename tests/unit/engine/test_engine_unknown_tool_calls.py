"""Which tools were called is unknown where no answer of a target lists calls."""

from __future__ import annotations

import pytest

from eval_gate.engine.case_result import mark_unlisted_calls
from eval_gate.engine.journal import TrialRecord
from eval_gate.model.execution import CALLS_UNKNOWN, ErrorKind, Status


def record(status: Status = Status.PASSED, missing: str | None = "a list at `calls`") -> TrialRecord:
    return TrialRecord(
        eval_file="evals/a.golden.json",
        case_id="c",
        trial=0,
        fingerprint="f",
        status=status,
        attempts=1,
        score=1.0,
        missing_calls=missing,
    )


@pytest.mark.parametrize("status", [Status.PASSED, Status.FAILED])
def test_mark__no_answer_lists_calls__is_an_evaluation_error(status) -> None:
    (marked,) = mark_unlisted_calls([record(status)], lists=False)
    assert (marked.status, marked.error_kind, marked.score) == (Status.ERROR, ErrorKind.EVALUATION_ERROR, 0.0)
    assert (marked.error or "").startswith(f"{CALLS_UNKNOWN}: no response of this run has a list at `calls`")


@pytest.mark.parametrize(
    ("one", "lists"),
    [(record(), True), (record(missing=None), False), (record(Status.ERROR), False)],
    ids=["another answer lists calls", "checks no tools, or has a list", "broke already"],
)
def test_mark__calls_are_known_or_do_not_matter__stays_as_it_is(one, lists) -> None:
    assert mark_unlisted_calls([one], lists=lists) == [one]
