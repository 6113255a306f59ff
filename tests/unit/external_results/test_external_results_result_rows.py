"""What is read of one row of somebody else's results."""

from __future__ import annotations

import pytest

from eval_gate.errors import GateError
from eval_gate.external_results.result_rows import RowPlace, require_name


@pytest.mark.parametrize(
    ("value", "name"), [("refund", "refund"), (" a ", "a"), (0, "0"), (12, "12"), ("false", "false")]
)
def test_require_name__text_or_whole_number__is_the_name(value, name) -> None:
    assert require_name(value, RowPlace("r.json"), "id") == name


@pytest.mark.parametrize("value", [True, False, None, "", " ", 1.5, [], {}, "x" * 100_000])
def test_require_name__anything_else__is_refused(value) -> None:
    with pytest.raises(GateError) as caught:
        require_name(value, RowPlace("r.json"), "id")
    assert caught.value.problems[0].message.startswith("has no id of up to")
