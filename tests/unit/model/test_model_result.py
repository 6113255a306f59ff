"""A run as what is written and asked: its cases by their keys."""

from eval_gate.model.case import CaseKey
from tests.support.results import make_result, make_run, make_suite_result


def test_with_cases__an_id_that_two_suites_have__is_changed_in_the_one_that_is_named() -> None:
    one = make_suite_result({"a": "passed", "b": "passed"}, eval_file="one.json")
    run = make_run(one, make_suite_result({"a": "passed"}, eval_file="other.json"))
    changed = run.with_cases({CaseKey("other.json", "a"): make_result("a", "failed")})
    found = [(*key, case.status.value) for key, case in changed.cases()]
    assert found == [("one.json", "a", "passed"), ("one.json", "b", "passed"), ("other.json", "a", "failed")]
    assert run.with_cases({}) is run
