"""How a value of another tool's results is read by its path."""

from __future__ import annotations

import pytest

from eval_gate.errors import GateError
from eval_gate.external_results.records import Fields, iter_listed_records, require_record
from eval_gate.external_results.result_rows import RowPlace

CASE = Fields({"a": {"b": 1, "empty": {}}, "text": "t", "no": None, "yes": True, "list": [1, {"n": "x"}], "zero": 0})


@pytest.mark.parametrize(
    ("paths", "value"),
    [
        ((), CASE.value),
        (("a.b",), 1),
        (("a.c",), None),
        (("text.b",), None),
        (("list.n",), None),
        (("no", "text"), "t"),
        (("a.empty", "zero"), 0),
        (("zero", "a.c"), None),
    ],
)
def test_record__paths__give_the_first_value_that_is_not_empty_else_the_last(paths, value) -> None:
    assert CASE.get(*paths) == value


def test_record__a_number__is_the_first_that_is_one_if_it_is_0_too() -> None:
    assert CASE.number("text", "yes", "zero", "a.b") == 0.0
    assert CASE.number("text") is None
    assert Fields(2).number() == 2.0


def test_record__what_is_of_another_kind__is_nothing() -> None:
    assert [one.value for one in CASE.members("list")] == [1, {"n": "x"}]
    assert [*CASE.members("text"), *CASE.items("list")] == []
    assert (CASE.count("text"), Fields(-1).count(), CASE.seconds("text"), CASE.usage("text", "no")) == (
        0,
        0,
        None,
        None,
    )
    assert (CASE.text("no"), CASE.text_or_none("no"), CASE.text("a")) == ("", None, '{"b":1,"empty":{}}')


def test_record__a_null__is_there() -> None:
    assert (CASE.has("no"), CASE.has("gone"), Fields([]).has("no")) == (True, False, False)


@pytest.mark.parametrize("value", [None, [], "x", 1])
def test_require_record__anything_but_a_mapping__is_refused(value) -> None:
    with pytest.raises(GateError) as caught:
        require_record(value, RowPlace("r.json", 3))
    assert str(caught.value.problems[0]) == "r.json:3: is not a mapping"


def test_iter_listed_records__a_list_that_is_missing__is_refused_only_if_it_is_the_first() -> None:
    document = Fields({"cases": [{"n": 1}]})
    found = [
        (name, one.get("n"), str(place)) for name, one, place in iter_listed_records(document, ("cases", "x"), "r")
    ]
    assert found == [("cases", 1, "r: cases[0]")]
    with pytest.raises(GateError, match="cannot be read"):
        next(iter_listed_records(document, ("x", "cases"), "r"))
