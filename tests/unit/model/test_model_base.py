"""Data of the model: built without a check, checked where it is read, copied without changing the original."""

import msgspec
import pytest

from eval_gate.model.execution import CaseDetails, Status, Trial
from eval_gate.model.result import CaseResult
from eval_gate.struct import replace


def test_record__written_and_read__is_the_same() -> None:
    one = CaseResult(
        id="a", passed=True, status=Status.PASSED, trials=(Trial(status=Status.PASSED, score=1.0, duration_ms=2.0),)
    )
    assert msgspec.json.decode(msgspec.json.encode(one), type=CaseResult) == one


def test_record__built_with_a_name_that_is_no_field__is_a_defect() -> None:
    with pytest.raises(TypeError, match="respones"):
        CaseDetails(respones="a")


def test_record__read_with_a_key_of_a_newer_version__is_read_without_it() -> None:
    assert msgspec.json.decode(b'{"responseLength": 3, "more": 1}', type=CaseDetails) == CaseDetails(response_length=3)


def test_replace__of_a_record__leaves_the_original() -> None:
    one = Trial(status=Status.FAILED, score=0.0, duration_ms=1.0)
    other = replace(one, error="late")
    assert (one.error, other.error) == (None, "late")
    assert (other.status, other.score, other.duration_ms) == (Status.FAILED, 0.0, 1.0)
