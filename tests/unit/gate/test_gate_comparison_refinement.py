"""What is known of the cases of a run: of one that is compared with nothing, and of one that is judged again."""

import pytest

from eval_gate.engine.case_result import count_reruns_as_new
from eval_gate.gate.case_matching import GateCases
from eval_gate.gate.comparison_refinement import (
    build_case_facts,
    build_facts_without_baseline,
    count_trials,
    restore_prior_evidence,
)
from eval_gate.model.case import CaseKey
from eval_gate.model.comparison import CaseClass
from eval_gate.model.result import RerunStopReason
from eval_gate.results.baseline import Baseline
from tests.support.results import FILE, make_baseline_run, make_result, make_run, make_suite_result
from tests.support.verdicts import judge_against, make_executed


def test_facts_alone__cases__are_those_that_ran_and_failures_are_suspects() -> None:
    cases = [
        make_result("fails", "failed"),
        make_result("passes"),
        make_result("skipped", "skipped"),
        make_result("not run", "not_run"),
    ]
    found = build_facts_without_baseline(make_run(make_suite_result(cases)), 1.0, ("fail*", "pass*"))
    assert [(one.key.case_id, one.plain_class, one.must_pass) for one in found] == [
        ("fails", CaseClass.REGRESSION, True),
        ("passes", CaseClass.STILL_PASSING, True),
    ]


def test_facts__cases_that_work_on_files_of_others__know_how_many_run_before_them_and_are_in_no_test_of_all() -> None:
    statuses = {"a": "failed", "b": "skipped", "c": "failed", "d": "failed"}
    suite = make_suite_result([make_result(name, status, dependent=True) for name, status in statuses.items()])
    run = make_run(suite, make_suite_result([make_result("alone", "failed")], eval_file="alone.json"), reruns=6)
    then = make_baseline_run(dict.fromkeys([*statuses, "alone"], "passed"))
    assert [one.preceding_cases for one in build_facts_without_baseline(run, 1.0, ())] == [0, 1, 2, None]
    judged = judge_against(run, Baseline(then, "b"))
    assert judged.comparison is not None
    cases = GateCases.pair(then, judged)
    known = restore_prior_evidence(cases, judged.comparison.evidence)
    facts = build_case_facts(judged.comparison, cases, known, ())
    assert {one.key.case_id: (one.preceding_cases, one.is_in_suite_test) for one in facts if one.first.is_failing} == {
        "a": (0, False),
        "c": (1, False),
        "d": (2, False),
        "alone": (None, False),
    }


@pytest.mark.parametrize("end", [*RerunStopReason, None])
def test_facts_alone__case__knows_why_it_was_not_run_again(end) -> None:
    run = make_run(make_suite_result([make_result("a", "failed", rerun_stop_reason=end)]))
    assert [one.rerun_end for one in build_facts_without_baseline(run, 1.0, ())] == [end]


def test_count_trials__further_executions_of_new_cases__are_no_trials() -> None:
    old = make_result("old")
    new = count_reruns_as_new(make_executed("new", "CCC"))
    assert [count_trials(make_run(make_suite_result([*cases]))) for cases in ([old, new], [new], [old])] == [1, 1, 1]
    asked = make_executed("asked", "PFP", reruns=0)
    assert count_trials(make_run(make_suite_result([asked, new]))) == 3


def test_known_again__case_that_was_new_to_a_part__is_what_the_whole_finds_it_to_be() -> None:
    run = make_run({"a": "passed", "b": "passed"})
    part = judge_against(run, Baseline(make_baseline_run({"b": "passed"}), "b"))
    assert part.comparison is not None
    assert part.comparison.evidence is not None
    assert part.comparison.changes[0].change is CaseClass.ADDED
    baseline = make_baseline_run({"a": "error", "b": "passed"})
    cases = GateCases.pair(baseline, part)
    past = restore_prior_evidence(cases, part.comparison.evidence).case_evidence[CaseKey(FILE, "a")]
    assert (past.in_baseline, past.unscored_in_baseline) == (True, True)
