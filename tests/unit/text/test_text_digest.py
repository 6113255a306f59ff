"""Names for values."""

from __future__ import annotations

import hashlib
import json

from hypothesis import given
from hypothesis import strategies as st

from eval_gate.text.digest import compute_digest, compute_fingerprint, digest_file_content

_FRACTIONS = st.floats().filter(lambda number: not number.is_integer())
_LEAVES = st.none() | st.booleans() | st.integers() | _FRACTIONS | st.text(st.characters(exclude_categories=["Cs"]))
_VALUES = st.recursive(_LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)


@given(_VALUES)
def test_fingerprint__any_value__is_that_of_its_compact_json_with_sorted_keys(value) -> None:
    # records of earlier versions hold these names: another text for the same value would make every case a new one
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    assert compute_fingerprint(value) == hashlib.sha256(text.encode()).hexdigest()
    assert compute_digest(value) == compute_fingerprint(value)[:16]


@given(
    _VALUES | st.integers(-(10**25), 10**25),
    st.sampled_from([lambda one: one, lambda one: [one], lambda one: {"a": one}]),
)
def test_fingerprint__whole_number__is_the_same_however_it_is_written(value, around) -> None:
    if isinstance(value, int) and not isinstance(value, bool) and float(value) == value:
        assert compute_fingerprint(around(value)) == compute_fingerprint(around(float(value)))
        assert compute_fingerprint(around(value)) != compute_fingerprint(around(str(value)))
    assert compute_fingerprint(around([value, "a:5000.0,[1e3"])) == compute_fingerprint(
        around((value, "a:5000.0,[1e3"))
    )


def test_fingerprint__one_and_true__are_two_values() -> None:
    assert len({compute_fingerprint(one) for one in (1, True, "1", "1.0", 1.5)}) == 5
    assert compute_fingerprint([5000, 0, -3]) == compute_fingerprint([5e3, -0.0, -3.0])


def test_file_digest__line_endings__do_not_count() -> None:
    assert digest_file_content(b"a\r\nb\r\n") == digest_file_content(b"a\nb\n") == hashlib.sha256(b"a\nb\n").hexdigest()
    assert digest_file_content(b"a\rb") != digest_file_content(b"a\nb")


def test_fingerprint__keys_in_another_order__is_the_same() -> None:
    assert compute_fingerprint({"a": [1, {"x": None, "y": "ü"}], "b": 2.0}) == compute_fingerprint(
        {"b": 2.0, "a": [1, {"y": "ü", "x": None}]}
    )
