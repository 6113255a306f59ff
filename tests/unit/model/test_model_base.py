"""Data that we make ourselves is what checking it would have made, and a copy is as good as its original."""

import pytest

from eval_gate.model.base import construct
from eval_gate.model.execution import CaseDetails, Status, Trial
from eval_gate.model.result import CaseResult


def test_made__of_some_values__is_what_checking_makes_with_the_same_defaults() -> None:
    values = {
        "id": "a",
        "passed": True,
        "status": Status.PASSED,
        "trials": (Trial(status="passed", score=1, duration_ms=2),),
    }
    one = construct(CaseResult, **values)
    assert one == CaseResult(**values)
    assert one.model_dump_json() == CaseResult(**values).model_dump_json()


def test_made__of_a_name_that_is_no_field__is_a_defect() -> None:
    with pytest.raises(AssertionError):
        construct(CaseDetails, respones="a")


def test_model_copy__of_what_was_made__leaves_the_original_and_names_what_was_given() -> None:
    one = Trial(status="failed", score=0.0, duration_ms=1.0)
    other = one.model_copy(update={"error": "late"})
    assert (one.error, other.error) == (None, "late")
    assert one.model_fields_set == {"status", "score", "duration_ms"}
    assert other.model_fields_set == {"status", "score", "duration_ms", "error"}
    assert one.model_copy() == one
    assert one.model_copy(deep=True) == one
