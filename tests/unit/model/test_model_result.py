"""A run as what is written and asked: its cases by their keys."""

import pytest

from eval_gate.model.case import CaseKey
from eval_gate.model.selection import CaseSelection
from tests.support.results import make_result, make_run, make_suite_result


def test_with_cases__an_id_that_two_suites_have__is_changed_in_the_one_that_is_named() -> None:
    one = make_suite_result({"a": "passed", "b": "passed"}, eval_file="one.json")
    run = make_run(one, make_suite_result({"a": "passed"}, eval_file="other.json"))
    changed = run.replace_cases({CaseKey("other.json", "a"): make_result("a", "failed")})
    found = [(*key, case.status.value) for key, case in changed.iter_cases()]
    assert found == [("one.json", "a", "passed"), ("one.json", "b", "passed"), ("other.json", "a", "failed")]
    assert run.replace_cases({}) is run


@pytest.mark.parametrize(
    ("own", "their", "covered"),
    [
        ({"tags": ("a", "b")}, {"tags": ("b", "a")}, True),
        ({"tags": ("a", "b")}, {"tags": ("a",)}, True),
        ({"tags": ("a",)}, {"tags": ("a", "b")}, False),
        ({"tags": ("a",)}, {}, False),
        ({}, {"tags": ("a",)}, True),
        ({"tags": ("a",)}, {"tags": ("a",), "tiers": ("x",)}, True),
        ({"tags": ("a",), "tiers": ("x",)}, {"tags": ("a",)}, False),
    ],
)
def test_choice__covers_another__where_every_part_takes_as_much(own, their, covered) -> None:
    assert CaseSelection(**own).covers(CaseSelection(**their)) is covered
