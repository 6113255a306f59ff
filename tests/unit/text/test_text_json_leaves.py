"""Leaves of a JSON value, in their order."""

from __future__ import annotations

from eval_gate.text.json_leaves import iter_leaves, iter_texts

VALUE = {"a": [1, "x", {"b": None}], "c": {"d": "y"}, "e": [], "f": True}


def test_leaves__of_a_value__are_in_order_with_keys_where_wanted() -> None:
    assert list(iter_leaves(VALUE)) == [1, "x", None, "y", True]
    assert list(iter_leaves("x")) == ["x"]
    assert list(iter_texts(VALUE)) == ["x", "y"]
    assert list(iter_texts(VALUE, with_keys=True)) == ["a", "x", "b", "c", "d", "y", "e", "f"]
