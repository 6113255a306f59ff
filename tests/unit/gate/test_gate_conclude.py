"""What is known of the cases of a run that is compared with nothing."""

import pytest

from eval_gate.gate.conclude import facts_alone
from eval_gate.model.comparison import CaseClass
from eval_gate.model.result import RerunEnd
from tests.support.results import make_result, make_run, make_suite_result


def test_facts_alone__cases__are_those_that_were_judged_and_need_no_others() -> None:
    cases = [
        make_result("fails", "failed"),
        make_result("passes"),
        make_result("needs others", "failed", dependent=True),
        make_result("skipped", "skipped"),
        make_result("not run", "not_run"),
    ]
    found = facts_alone(make_run(make_suite_result(cases)), 1.0, ("pass*",))
    assert [(one.key.case_id, one.plain, one.must_pass) for one in found] == [
        ("fails", CaseClass.REGRESSION, False),
        ("passes", CaseClass.STILL_PASSING, True),
    ]


@pytest.mark.parametrize("end", [*RerunEnd, None])
def test_facts_alone__case__knows_why_it_was_not_run_again(end) -> None:
    run = make_run(make_suite_result([make_result("a", "failed", rerun_end=end)]))
    assert [one.end for one in facts_alone(run, 1.0, ())] == [end]
