"""Names for values."""

from __future__ import annotations

import hashlib
import json

from hypothesis import given
from hypothesis import strategies as st

from eval_gate.text.digest import digest, file_digest, fingerprint

_FRACTIONS = st.floats().filter(lambda number: not number.is_integer())
_LEAVES = st.none() | st.booleans() | st.integers() | _FRACTIONS | st.text(st.characters(exclude_categories=["Cs"]))
_VALUES = st.recursive(_LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)


@given(_VALUES)
def test_fingerprint__any_value__is_that_of_its_compact_json_with_sorted_keys(value) -> None:
    # records of earlier versions hold these names: another text for the same value would make every case a new one
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    assert fingerprint(value) == hashlib.sha256(text.encode()).hexdigest()
    assert digest(value) == fingerprint(value)[:16]


@given(
    _VALUES | st.integers(-(10**25), 10**25),
    st.sampled_from([lambda one: one, lambda one: [one], lambda one: {"a": one}]),
)
def test_fingerprint__whole_number__is_the_same_however_it_is_written(value, around) -> None:
    if isinstance(value, int) and not isinstance(value, bool) and float(value) == value:
        assert fingerprint(around(value)) == fingerprint(around(float(value)))
        assert fingerprint(around(value)) != fingerprint(around(str(value)))
    assert fingerprint(around([value, "a:5000.0,[1e3"])) == fingerprint(around((value, "a:5000.0,[1e3")))


def test_fingerprint__one_and_true__are_two_values() -> None:
    assert len({fingerprint(one) for one in (1, True, "1", "1.0", 1.5)}) == 5
    assert fingerprint([5000, 0, -3]) == fingerprint([5e3, -0.0, -3.0])


def test_file_digest__line_endings__do_not_count() -> None:
    assert file_digest(b"a\r\nb\r\n") == file_digest(b"a\nb\n") == hashlib.sha256(b"a\nb\n").hexdigest()
    assert file_digest(b"a\rb") != file_digest(b"a\nb")


def test_fingerprint__keys_in_another_order__is_the_same() -> None:
    assert fingerprint({"a": [1, {"x": None, "y": "ü"}], "b": 2.0}) == fingerprint(
        {"b": 2.0, "a": [1, {"y": "ü", "x": None}]}
    )
