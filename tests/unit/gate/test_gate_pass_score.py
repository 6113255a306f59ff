"""What the gate takes for good enough in graded cases, and that the record stays as it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.config.policy import Policy
from eval_gate.gate.pass_score import apply_pass_score, apply_recorded_pass_score, is_passing_case
from eval_gate.model.case import PassRule
from eval_gate.model.execution import ErrorCause, Status, Trial
from eval_gate.results.baseline import NOT_REQUESTED, Baseline
from eval_gate.results.history import build_history
from eval_gate.struct import replace
from tests.support.graded import make_evaluator, make_graded, make_graded_baseline, make_graded_run
from tests.support.results import make_result, make_run
from tests.support.verdicts import judge_against


@pytest.mark.parametrize(
    ("case", "least", "accepted"),
    [
        (make_graded("a", 0.85), 1.0, False),
        (make_graded("a", 0.85), 0.85, True),
        (make_graded("a", 0.85), 0.86, False),
        (make_graded("a", 1.0), 1.0, True),
        (make_graded("a", 0.9, graded=False), 0.5, False),
        (make_graded("a", status="error"), 0.5, False),
        (replace(make_graded("a", status="error"), score=0.9), 0.5, False),
        (make_graded("a", status="skipped"), 0.5, False),
        (make_graded("a", trials=(0.9, 0.9, 0.3)), 0.7, True),
        (make_graded("a", trials=(0.9, 0.3, 0.3)), 0.4, False),
        (make_graded("a", trials=(1.0, 1.0, 0.1)), 0.8, True),
        (make_graded("a", trials=(0.9, 0.3)), 0.5, False),
        (make_graded("a", 0.9, evaluator_results=(make_evaluator("p", 0.9, vetoed=True),)), 0.8, False),
        (make_graded("a", 0.9, evaluator_results=(make_evaluator("p", 0.9, vetoed=True, weight=0),)), 0.8, True),
        (make_result("a"), 0.5, True),
        (make_result("a", "failed"), 0.5, False),
    ],
    ids=[
        *("below-one", "at-the-limit", "below-it", "full", "not-graded", "error", "error-with-a-score", "skipped"),
        *(
            "most-trials",
            "fewer-trials",
            "passed-by-majority",
            "half-of-them",
            "required-missing",
            "required-without-weight",
        ),
        *("yes", "no"),
    ],
)
def test_acceptable__case_and_pass_score__counts_so(case, least, accepted) -> None:
    assert is_passing_case(case, least) is accepted


def test_held_to__conversation_that_passes_by_its_score__has_no_failed_turn() -> None:
    case = replace(make_graded("a", trials=(0.7, 0.7, 0.2)), failed_turn=2)
    trials = tuple(replace(trial, failed_turn=2) for trial in case.trials)
    ((_, held),) = apply_pass_score(make_graded_run([replace(case, trials=trials)]), 0.6).iter_cases()
    assert (held.status, held.failed_turn) == (Status.PASSED, None)
    assert [trial.failed_turn for trial in held.trials] == [None, None, 2]


def test_held_to__accepted_cases__count_as_passes_everywhere() -> None:
    run = make_graded_run(
        [
            make_graded("a", 0.85),
            make_graded("b", 0.7),
            make_graded("c", trials=(0.9, 1.0)),
            make_graded("d", trials=(0.9, 0.5, 0.9)),
            make_graded("e", status="error"),
        ]
    )
    held = apply_pass_score(run, 0.75)
    cases = {case.id: case for case in held.suites[0].cases}
    assert [case.status.value for case in cases.values()] == ["passed", "failed", "passed", "passed", "error"]
    assert all(case.passed == (case.status is Status.PASSED) for case in cases.values())
    assert {name for name, case in cases.items() if case.flaky} == {"d"}
    assert [case.error is None for case in cases.values()] == [True, False, True, True, False]
    for summary in (held.summary, held.suites[0].summary):
        assert (summary.passed, summary.failed, summary.errored, summary.flaky) == (3, 1, 1, 1)
        assert summary.pass_rate == 0.75
    assert [case.score for case in held.suites[0].cases] == [case.score for case in run.suites[0].cases]


@pytest.mark.parametrize("run", [make_graded_run({"a": 0.85}), make_run({"a": "failed"})], ids=["at-one", "not-graded"])
def test_held_to__nothing_to_accept__is_the_same_run(run) -> None:
    assert apply_pass_score(run, 1.0 if run.suites[0].cases[0].graded else 0.5) is run


def test_held_to__case_that_missed_a_model_call__passes_by_no_rule() -> None:
    case = make_graded("a", trials=(0.9, 0.9, 0.9))
    case = replace(case, status=Status.ERROR, passed=False, pass_rule=PassRule(trials=3, passes=2))
    assert apply_pass_score(make_graded_run([case]), 0.8).suites[0].cases[0].passed
    run = make_graded_run([replace(case, error_cause=ErrorCause.MODEL_CALL_MISSING)])
    assert apply_pass_score(run, 0.8) == run


def test_held_to__case_without_grades_among_graded_ones__stays_as_its_record_says() -> None:
    """A pass score is asked of grades only: what one of two executions means is for the record to say."""
    ends = ((Status.PASSED, 1.0), (Status.FAILED, 0.9))
    tie = tuple(Trial(status=status, score=score, duration_ms=40) for status, score in ends)
    plain = replace(make_result("b"), trials=tie, error="slow")
    held = apply_pass_score(make_graded_run([make_graded("a", 0.85), plain]), 0.8)
    assert [case.status.value for case in held.suites[0].cases] == ["passed", "passed"]
    assert held.suites[0].cases[1] == plain


def test_held_to__case_that_another_tool_called_flaky__stays_so_without_executions() -> None:
    held = apply_pass_score(make_graded_run([replace(make_graded("a", 0.85), flaky=True)]), 0.8)
    assert (held.suites[0].cases[0].passed, held.suites[0].cases[0].flaky) == (True, True)


@pytest.mark.contract("agentv.results.status-and-threshold-apart")
def test_decide_verdict__pass_score__leaves_the_record_as_it_is() -> None:
    run = make_graded_run({"a": 0.85})
    judged = judge_against(run, NOT_REQUESTED, Policy(pass_score=0.8))
    assert judged.verdict is not None
    assert (judged.verdict.outcome.value, judged.verdict.pass_score) == ("passed", 0.8)
    assert judged.suites == run.suites
    assert judged.summary == run.summary
    assert apply_recorded_pass_score(judged).summary.passed == 1


def test_decide_verdict__history__is_held_to_the_pass_score_too() -> None:
    runs = tuple(make_graded_baseline({"a": score}, run_id=f"r{score}") for score in (0.9, 0.85, 0.2))
    judged = judge_against(
        make_graded_run({"a": 0.5}), Baseline(runs[0], "b", history=build_history(runs)), Policy(pass_score=0.8)
    )
    assert judged.comparison is not None
    change = judged.comparison.changes[0]
    assert (change.baseline.passes, change.baseline.executions) == (1, 1)
    assert change.change.value == "regression"


def test_judged_as__run_without_a_verdict__is_itself() -> None:
    run = make_graded_run({"a": 0.85})
    assert apply_recorded_pass_score(run) is run


CASES = st.builds(
    lambda number, score, trials, status: make_graded(f"c{number}", score, status, trials=trials if not status else ()),
    st.integers(0, 5),
    st.floats(0, 1),
    st.lists(st.sampled_from([0.0, 0.5, 0.9, 1.0]), max_size=3),
    st.sampled_from([None, None, None, "error", "skipped", "not_run"]),
)
RUNS = st.lists(CASES, min_size=1, max_size=6, unique_by=lambda case: case.id).map(make_graded_run)
SCORES = st.floats(0.01, 1)


@pytest.mark.slow
@given(RUNS, SCORES)
def test_held_to__twice__is_as_once_and_counts_what_it_holds(run, least) -> None:
    held = apply_pass_score(run, least)
    assert apply_pass_score(held, least) == held
    cases = held.suites[0].cases
    assert held.summary.passed == sum(case.status is Status.PASSED for case in cases)
    assert held.summary.failed == sum(case.status is Status.FAILED for case in cases)
    assert held.summary.flaky == sum(case.flaky for case in cases)
    assert held.summary.errored == run.summary.errored


@pytest.mark.slow
@given(RUNS, SCORES, SCORES)
def test_held_to__higher_score__accepts_no_other_case(run, one, other) -> None:
    low, high = sorted((one, other))
    accepted = [
        {case.id for case in apply_pass_score(run, least).suites[0].cases if case.passed} for least in (low, high)
    ]
    assert accepted[1] <= accepted[0]


def test_good_enough__case_that_broke_after_passing_executions__does_not_pass() -> None:
    assert not is_passing_case(make_result("a", "error", trials="PPE"), 1.0)
    assert is_passing_case(make_result("a", "passed", trials="PPF"), 1.0)
