"""Half a surrogate pair in a value: found wherever it is, and mended where it is."""

import pytest

from eval_gate.text.foreign.well_formed import holds_halves, mend_halves

HALF, MENDED = "a\ud800b", "a\ufffdb"


@pytest.mark.parametrize(
    ("value", "mended"),
    [
        (HALF, MENDED),
        ({"a": [1, {"b": HALF}]}, {"a": [1, {"b": MENDED}]}),
        ([{HALF: None}], [{MENDED: None}]),
        ([[], HALF, {}], [[], MENDED, {}]),
    ],
    ids=["alone", "deep", "a-key", "in-a-list"],
)
def test_halves__anywhere__are_found_and_mended(value, mended) -> None:
    assert holds_halves(value)
    assert mend_halves(value) == mended
    assert not holds_halves(mended)


@pytest.mark.parametrize("value", ["a", "é😀", None, 1.5, [], {"é": ["😀", {"b": True}]}], ids=repr)
def test_halves__none__stays_as_it_is(value) -> None:
    assert not holds_halves(value)
    assert mend_halves(value) == value
