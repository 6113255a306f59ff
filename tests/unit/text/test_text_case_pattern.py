"""Patterns that name no case."""

from __future__ import annotations

import pytest

from eval_gate.errors import GateError
from eval_gate.text.globs import check_unmatched_patterns

CASES = [("refund/partial", ("core",)), ("hello", ())]


def test_idle_patterns__pattern_that_names_no_case__is_said_and_strictly_an_error() -> None:
    patterns = ("refund/*", "tag:core", "refund/partal", "refund/partal")
    (told,) = check_unmatched_patterns(patterns, CASES)
    assert told.startswith('must-pass: "refund/partal" matches no case (did you mean "refund/partial"?): this entry')
    with pytest.raises(GateError) as caught:
        check_unmatched_patterns(patterns, CASES, strict=True)
    assert (caught.value.code, [one.field for one in caught.value.problems]) == ("unmatched-must-pass", ["must-pass"])
    assert check_unmatched_patterns(("hello", "tag:core"), CASES, strict=True) == ()
