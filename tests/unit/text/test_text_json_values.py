"""Walks over JSON values reach every leaf once, in order, at any depth, and leave keys alone unless told otherwise."""

from __future__ import annotations

import json

from eval_gate.text.json_values import iter_leaves, iter_texts, map_leaves, map_texts

VALUE = {"b": ["x", {"c": 1, "d": []}], "a": None, "": "y", "e": {}}


def test_iter_leaves__nested_value__yields_each_leaf_with_its_path_in_order() -> None:
    assert list(iter_leaves(VALUE)) == [(("b", 0), "x"), (("b", 1, "c"), 1), (("a",), None), (("",), "y")]


def test_iter_leaves__value_without_members__is_its_own_leaf() -> None:
    assert list(iter_leaves("x")) == [((), "x")]
    assert list(iter_leaves([])) == []


def test_iter_texts__nested_value__yields_texts_and_no_keys() -> None:
    assert list(iter_texts(VALUE)) == ["x", "y"]


def test_iter_texts__very_deep_value__needs_no_recursion() -> None:
    value: object = "x"
    for _ in range(5_000):
        value = [value]
    assert list(iter_texts(value)) == ["x"]


def test_map_texts__nested_value__changes_texts_only_and_not_the_original() -> None:
    before = json.dumps(VALUE)
    assert map_texts(VALUE, str.upper) == {"b": ["X", {"c": 1, "d": []}], "a": None, "": "Y", "e": {}}
    assert json.dumps(VALUE) == before


def test_map_leaves__keys_too__changes_both() -> None:
    found = map_leaves({"k": [1, ("x",)]}, lambda leaf: [leaf], str.upper)
    assert found == {"K": [[1], [["x"]]]}
