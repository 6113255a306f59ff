"""Two runs side by side."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.gate.case_comparison import add_contract_fields
from eval_gate.gate.case_matching import GateCases
from eval_gate.model.comparison import CaseClass
from eval_gate.model.execution import ErrorKind, Status, Trial
from eval_gate.model.result import RunResult, ToolFacts
from eval_gate.model.selection import CaseSelection
from eval_gate.model.setup import TargetIdentity
from eval_gate.results.baseline import Baseline
from eval_gate.results.history import build_history
from eval_gate.struct import replace
from tests.support.results import make_baseline_run, make_result, make_run, make_suite_result
from tests.support.verdicts import compare_with, judge_against


def classes(then: RunResult, now: RunResult, **options) -> dict[str, str]:
    compared = compare_with(Baseline(then, "b"), now, **options)
    return {change.case_id: change.change.value for change in compared.changes}


@pytest.mark.contract("baseline.regression", "baseline.new-pass", "baseline.unchanged", "baseline.one-side")
@pytest.mark.parametrize(
    ("then", "now", "change", "contract"),
    [
        ("passed", "passed", "still_passing", ""),
        ("passed", "failed", "regression", "regression"),
        ("passed", "error", "errored", "regression"),
        ("passed", "skipped", "not_run", ""),
        ("passed", "not_run", "not_run", ""),
        ("failed", "passed", "new_pass", "new pass"),
        ("failed", "failed", "still_failing", ""),
        ("failed", "error", "errored", ""),
        ("error", "passed", "incomparable", "new pass"),
        ("error", "failed", "incomparable", ""),
        ("skipped", "failed", "incomparable", ""),
        ("not_run", "passed", "incomparable", ""),
        (None, "failed", "added", ""),
        (None, "passed", "added", ""),
        ("passed", None, "removed", ""),
    ],
    ids=str,
)
def test_compare__then_and_now__is_this_class_and_this_contract_word(then, now, change, contract) -> None:
    earlier = make_baseline_run({"x": "passed"} | ({"a": then} if then else {}))
    later = make_run({"x": "passed"} | ({"a": now} if now else {}))
    assert classes(earlier, later)["a"] == change
    suite = add_contract_fields(GateCases.pair(earlier, later))[0]
    assert suite.baseline_run_id == earlier.run_id
    assert ("a" in suite.regressions) == (contract == "regression")
    assert ("a" in suite.new_passes) == (contract == "new pass")


def test_compare__changed_question__is_incomparable_whatever_happened() -> None:
    now = make_run(make_suite_result([make_result("a", "failed", fingerprint="another")]))
    compared = compare_with(Baseline(make_baseline_run({"a": "passed"}), "b"), now)
    assert compared.changes[0].change is CaseClass.INCOMPARABLE
    assert compared.changes[0].reason == "the prompt or the expectation changed"


def test_compare__baseline_without_fingerprints__goes_by_id() -> None:
    then = make_baseline_run(make_suite_result([make_result("a", fingerprint=None)]))
    assert classes(then, make_run({"a": "failed"})) == {"a": "regression"}


@pytest.mark.parametrize(
    ("then", "now", "change"),
    [
        ("PPP", ("passed", "PPF"), "flaky"),
        ("PPP", ("failed", "PFF"), "regression"),
        ("PPP", ("failed", "FFF"), "regression"),
        ("PPP", ("passed", "PPP"), "still_passing"),
        ("PPF", ("passed", "PPP"), "still_passing"),
    ],
    ids=str,
)
def test_compare__several_trials__majority_decides_and_mixed_passes_are_flaky(then, now, change) -> None:
    earlier = make_baseline_run(make_suite_result([make_result("a", trials=then)]))
    later = make_run(make_suite_result([make_result("a", now[0], trials=now[1])]))
    compared = compare_with(Baseline(earlier, "b"), later).changes[0]
    assert compared.change == change
    assert compared.current is not None
    assert (compared.current.passes, compared.current.executions) == (now[1].count("P"), 3)


@pytest.mark.parametrize(
    ("chosen", "removed"),
    [
        ({"cases": ["a"]}, False),
        ({"cases": ["[ab]"]}, True),
        ({"tags": ["slow"]}, True),
        ({"tags": ["fast"]}, False),
        ({"tiers": ["golden"]}, True),
        ({"tiers": ["rubric"]}, False),
        ({"paths": ["evals/other.json"]}, False),
        ({"keys": [{"suite": "evals/refund.json", "caseId": "b"}]}, True),
    ],
)
def test_compare__only_some_cases_chosen__removed_is_what_the_choice_takes_in_the_baseline(chosen, removed) -> None:
    suite = make_suite_result(
        [make_result("a", "passed"), make_result("b", "passed", tags=("slow",))], eval_file="evals/refund.json"
    )
    here = make_run(make_suite_result({"a": "passed"}, eval_file="evals/refund.json"), partial=True)
    here = replace(here, selections=(msgspec.convert(chosen, CaseSelection),))
    expected = {"a": "still_passing"} | ({"b": "removed"} if removed else {})
    assert classes(make_baseline_run(suite), here) == expected


def test_compare__moved_file__is_found_by_its_kind() -> None:
    then = make_baseline_run(make_suite_result({"a": "passed"}, eval_file="old/weather.golden.json"))
    assert classes(then, make_run({"a": "failed"})) == {"a": "regression"}


def test_compare__two_candidates_for_a_moved_file__are_not_guessed() -> None:
    then = make_baseline_run(
        make_suite_result({"a": "passed"}, eval_file="old/x.json"),
        make_suite_result({"a": "passed"}, eval_file="old/y.json"),
    )
    assert sorted(classes(then, make_run({"a": "failed"})).values()) == ["removed"]
    compared = compare_with(Baseline(then, "b"), make_run({"a": "failed"}))
    assert [change.change.value for change in compared.changes] == ["added", "removed", "removed"]


@pytest.mark.contract("baseline.changed-file")
def test_compare__what_could_mislead__is_noted() -> None:
    then = make_baseline_run(
        make_suite_result({"a": "not_run"}, metadata=ToolFacts(eval_file_hash="ffffffffffff")),
        target=TargetIdentity(name="other", provider="http", identity="http://x"),
    )
    assert compare_with(Baseline(then, "b"), make_run({"a": "passed"})).notes == (
        "the baseline run is incomplete",
        "the baseline evaluated another target: other (http)",
        "evals/weather.golden.json changed since the baseline",
    )


STATUSES = st.sampled_from(["passed", "failed", "error", "skipped", "not_run"])
RUNS = st.dictionaries(st.sampled_from("abcdefgh"), STATUSES, max_size=8)


@given(RUNS, RUNS)
def test_compare__any_two_runs__every_case_exactly_once(then, now) -> None:
    found = compare_with(Baseline(make_baseline_run(then), "b"), make_run(now)).changes
    assert sorted(change.case_id for change in found) == sorted({*then, *now})


@given(RUNS)
def test_compare__run_with_itself__has_no_regression_and_no_new_pass(cases) -> None:
    run = make_run(cases)
    assert not compare_with(Baseline(run, "b"), run).select_changes(
        CaseClass.REGRESSION, CaseClass.NEW_PASS, CaseClass.REMOVED
    )
    suite = add_contract_fields(GateCases.pair(run, run))[0]
    assert (suite.regressions, suite.new_passes) == ((), ())


@given(RUNS, RUNS)
def test_compare__regressions__only_of_cases_that_were_judged_on_both_sides(then, now) -> None:
    for change in compare_with(Baseline(make_baseline_run(then), "b"), make_run(now)).select_changes(
        CaseClass.REGRESSION
    ):
        assert (then[change.case_id], now[change.case_id]) == ("passed", "failed")
        assert change.current is not None
        assert change.current.passes <= change.current.executions


def test_compare__baseline_could_not_judge_it__says_so_and_not_that_it_changed() -> None:
    reasons = {
        then: compare_with(Baseline(make_baseline_run({"a": then}), "b"), make_run({"a": "passed"})).changes[0].reason
        for then in ("error", "skipped")
    }
    assert reasons == {
        "error": "no earlier run has a score for it",
        "skipped": "the prompt or the expectation changed",
    }


@pytest.mark.parametrize(("has_other_parts", "change"), [(False, "errored"), (True, "regression")])
def test_compare__nobody_answered__time_outs_are_no_crashes_unless_another_part_was_heard(
    has_other_parts, change
) -> None:
    late = replace(
        make_result("a", "error", error_kind=ErrorKind.AGENT_ERROR),
        trials=(Trial(status=Status.ERROR, score=0, duration_ms=9, error_kind=ErrorKind.AGENT_ERROR, timed_out=True),),
    )
    now, skipped = make_run(make_suite_result([late, make_result("b", "skipped")])), "not_run"
    found = classes(make_baseline_run({"a": "passed", "b": "passed"}), now, has_other_parts=has_other_parts)
    assert found == {"a": change, "b": skipped}


def test_compare__broken_here_and_asked_another_question_then__has_no_tally_to_stand_beside() -> None:
    then = make_baseline_run(make_suite_result([make_result("a", fingerprint="another")]))
    change = compare_with(Baseline(then, "b"), make_run({"a": "error"})).changes[0]
    assert (change.change, change.baseline) == (CaseClass.ERRORED, None)
    failed = compare_with(Baseline(then, "b"), make_run({"a": "failed"})).changes[0]
    assert failed.change is CaseClass.INCOMPARABLE
    assert failed.baseline is not None


def test_compare__score_of_the_baseline__is_the_one_that_it_was_given() -> None:
    then = make_baseline_run(make_suite_result([make_result("a", "failed", score=0.6)]))
    change = compare_with(Baseline(then, "b"), make_run({"a": "failed"})).changes[0]
    assert change.baseline is not None
    assert change.baseline.score == 0.6


def test_compare__case_that_did_not_run__says_why() -> None:
    cases = [
        make_result("a", "skipped", error="no key\nand more"),
        make_result("b", "skipped"),
        make_result("c", "not_run"),
    ]
    then = make_baseline_run(dict.fromkeys("abc", "passed"))
    found = compare_with(Baseline(then, "b"), make_run(make_suite_result(cases))).changes
    assert [change.reason for change in found] == ["skipped: no key", "skipped", "the run ended before this case"]


@pytest.mark.parametrize("now", [{"x": "passed", "a": "passed"}, {"x": "passed"}], ids=["still there", "gone"])
def test_compare__baseline_could_not_judge_it__stands_beside_the_run_that_could(now) -> None:
    newest = make_baseline_run({"x": "passed", "a": "error"})
    older = make_baseline_run({"x": "passed", "a": "passed"}, run_id="older", timestamp="2026-11-18T10:00:00Z")
    compared = judge_against(make_run(now), Baseline(newest, "b", history=build_history((newest, older)))).comparison
    assert compared is not None
    found = next(change for change in compared.changes if change.case_id == "a")
    assert found.change is (CaseClass.STILL_PASSING if "a" in now else CaseClass.REMOVED)
    assert found.baseline is not None
    assert found.compared_with is not None
    assert ((found.baseline.passes, found.baseline.executions), found.compared_with.run_id) == ((1, 1), "older")
