"""Names for values."""

from __future__ import annotations

import hashlib
import json

from hypothesis import given
from hypothesis import strategies as st

from eval_gate.text.digest import digest, fingerprint

_LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=["Cs"]))
_VALUES = st.recursive(_LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)


@given(_VALUES)
def test_fingerprint__any_value__is_that_of_its_compact_json_with_sorted_keys(value) -> None:
    # records of earlier versions hold these names: another text for the same value would make every case a new one
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    assert fingerprint(value) == hashlib.sha256(text.encode()).hexdigest()
    assert digest(value) == fingerprint(value)[:16]


def test_fingerprint__keys_in_another_order__is_the_same() -> None:
    assert fingerprint({"a": [1, {"x": None, "y": "ü"}], "b": 2.0}) == fingerprint(
        {"b": 2.0, "a": [1, {"y": "ü", "x": None}]}
    )
