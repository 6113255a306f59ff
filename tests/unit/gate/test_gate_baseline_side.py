"""The baseline's side of what has changed, in the record of the run."""

from __future__ import annotations

import pytest

from eval_gate.config.policy import Policy
from eval_gate.gate.verdict_decision import GateInputs, decide_verdict
from eval_gate.model.execution import CaseDetails, EvaluatorResult, Status, StoredCall
from eval_gate.model.usage import Usage
from eval_gate.results.baseline import Baseline
from eval_gate.results.history import EMPTY_HISTORY, build_history
from tests.support.results import make_baseline_run, make_result, make_run, make_suite_result

DETAILS = CaseDetails(response="It comes on Sunday.", tool_calls=(StoredCall(name="t", arguments={"a": 1}),))
JUDGED = EvaluatorResult(
    name="j", type="llm_judge", score=1, reasoning="kind", evaluator_provider_request={"userPrompt": "u", "model": "m"}
)


def then(case_id: str = "a", status: str = "passed", **fields):
    return make_result(
        case_id,
        status,
        details=DETAILS,
        evaluator_results=(JUDGED,),
        usage=Usage(input_tokens=3, output_tokens=4),
        cost_usd=0.5,
        duration_ms=7.0,
        **fields,
    )


def compared(before, now, ledger=None, **policy):
    old, new = make_baseline_run(make_suite_result([before])), make_run(make_suite_result([now]))
    baseline = Baseline(old, "x", history=build_history([old]) if ledger is None else ledger)
    judged = decide_verdict(new, GateInputs(baseline, Policy(**policy)))
    assert judged.comparison is not None
    return judged


def test_decide_verdict__regression__has_the_baselines_side() -> None:
    (change,) = compared(then(), make_result("a", "failed")).comparison.changes
    found = change.baseline_result
    assert found is not None
    assert (found.status, found.details, found.duration_ms, found.cost_usd) == (Status.PASSED, DETAILS, 7.0, 0.5)
    assert (found.input_tokens, found.output_tokens, found.executions) == (3, 4, ())
    (said,) = found.evaluator_results
    assert (said.reasoning, said.evaluator_provider_request) == ("kind", {"model": "m"})
    assert change.recent_results == "P"


@pytest.mark.parametrize(
    ("was", "status", "has"),
    [
        ("passed", "passed", False),
        ("failed", "failed", True),
        ("failed", "passed", True),
        ("passed", "error", True),
        ("passed", "not_run", False),
        ("error", "failed", False),
    ],
)
def test_decide_verdict__only_what_is_not_as_it_was_and_was_judged__has_it(was, status, has) -> None:
    (change,) = compared(then(status=was), make_result("a", status, details=DETAILS)).comparison.changes
    assert (change.baseline_result is not None) is has


def test_decide_verdict__score_drop_of_a_case_that_passes_on_both_sides__has_it() -> None:
    before = then(graded=True, score=1.0)
    now = make_result("a", "failed", graded=True, score=0.8, details=DETAILS)
    (change,) = compared(before, now, pass_score=0.7).comparison.changes
    assert (change.change, change.score_drop) == ("still_passing", True)
    assert change.baseline_result is not None
    assert compared(before, now, pass_score=0.7, score_tolerance=0.5).comparison.changes[0].baseline_result is None


def test_decide_verdict__renamed_case__has_that_of_its_earlier_name() -> None:
    judged = compared(then("old", fingerprint="f"), make_result("new", "failed", fingerprint="f"))
    (change,) = judged.comparison.changes
    assert change.case_id == "new"
    assert change.baseline_result is not None
    assert (change.baseline_result.details.response, change.recent_results) == ("It comes on Sunday.", "P")


def test_decide_verdict__several_executions__tells_how_each_ended() -> None:
    (change,) = compared(then(trials="PF"), make_result("a", "failed")).comparison.changes
    assert change.baseline_result is not None
    assert change.baseline_result.executions == (Status.PASSED, Status.FAILED)


def test_decide_verdict__again_without_the_history__says_what_the_record_says() -> None:
    old, older = make_baseline_run({"a": "passed"}), make_run({"a": "failed"}, run_id="older", timestamp="2020")
    new = make_run(make_suite_result([make_result("a", "failed")]))
    first = decide_verdict(new, GateInputs(Baseline(old, "x", history=build_history([old, older])), Policy()))
    again = decide_verdict(first, GateInputs(Baseline(old, "x", history=EMPTY_HISTORY), Policy()))
    assert [run.run_id for run in first.comparison.recent_runs] == [old.run_id, "older"]
    assert (again.comparison.recent_runs, again.comparison.changes[0].recent_results) == (
        first.comparison.recent_runs,
        "PF",
    )
