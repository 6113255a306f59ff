"""What is known of the cases of a run: of one that is compared with nothing, and of one that is judged again."""

import pytest

from eval_gate.gate.conclude import facts_alone, known_again
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass
from eval_gate.model.result import RerunEnd
from eval_gate.results.baseline import Baseline
from tests.support.results import FILE, make_baseline_run, make_result, make_run, make_suite_result
from tests.support.verdicts import judge_against


def test_facts_alone__cases__are_those_that_failed_and_need_no_others() -> None:
    cases = [
        make_result("fails", "failed"),
        make_result("passes"),
        make_result("needs others", "failed", dependent=True),
        make_result("skipped", "skipped"),
        make_result("not run", "not_run"),
    ]
    found = facts_alone(make_run(make_suite_result(cases)), 1.0, ("fail*", "pass*"))
    assert [(one.key.case_id, one.plain, one.must_pass) for one in found] == [("fails", CaseClass.REGRESSION, True)]


@pytest.mark.parametrize("end", [*RerunEnd, None])
def test_facts_alone__case__knows_why_it_was_not_run_again(end) -> None:
    run = make_run(make_suite_result([make_result("a", "failed", rerun_end=end)]))
    assert [one.end for one in facts_alone(run, 1.0, ())] == [end]


def test_known_again__case_that_was_new_to_a_part__is_what_the_whole_finds_it_to_be() -> None:
    run = make_run({"a": "passed", "b": "passed"})
    part = judge_against(run, Baseline(make_baseline_run({"b": "passed"}), "b"))
    assert part.comparison is not None
    assert part.comparison.evidence is not None
    assert part.comparison.changes[0].change is CaseClass.ADDED
    baseline = make_baseline_run({"a": "error", "b": "passed"})
    past = known_again(part, baseline, part.comparison.evidence).past[CaseKey(FILE, "a")]
    assert (past.present, past.errored) == (True, True)
