"""Half a surrogate pair in a value: found wherever it is, and mended where it is."""

import pytest

from eval_gate.text.untrusted.surrogates import has_surrogates, replace_surrogates

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
def test_halves__anywhere__are_found_and_fixed(value, mended) -> None:
    assert has_surrogates(value)
    assert replace_surrogates(value) == mended
    assert not has_surrogates(mended)


@pytest.mark.parametrize("value", ["a", "é😀", None, 1.5, [], {"é": ["😀", {"b": True}]}], ids=repr)
def test_halves__none__stays_as_it_is(value) -> None:
    assert not has_surrogates(value)
    assert replace_surrogates(value) == value
