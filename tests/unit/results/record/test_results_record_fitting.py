"""A record that would be too large to be read again is made smaller, part by part."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.model.comparison import BaselineFacts, CaseChange, CaseClass, Comparison
from eval_gate.model.conversation import Message
from eval_gate.model.execution import BaselineSide, CaseDetails, EvaluatorResult, KeptCall, Status, Trial
from eval_gate.model.result import AskedWords, RunResult
from eval_gate.results.record import fitting
from eval_gate.results.record.fitting import fitted_record
from eval_gate.results.record.forms import FittedRecord, RecordForm
from tests.support.results import make_result, make_run, make_suite_result

LONG = "x" * 30_000
PROMPT = EvaluatorResult(name="j", type="llm_judge", score=1, evaluator_provider_request={"userPrompt": LONG})


def data_of(found: FittedRecord) -> bytes:
    return b"".join(found.pieces)


def details(letter: str) -> CaseDetails:
    return CaseDetails(
        response=letter * 30_000,
        response_length=30_000,
        conversation=(Message(role="user", content=LONG),),
        tool_calls=(KeptCall(name="t", arguments={"a": 1}, result=LONG),),
    )


def large() -> RunResult:
    """Every part of it has 30,000 characters; the three cases together have 23 of them."""
    trial = Trial(status=Status.FAILED, score=0, duration_ms=1)
    other = trial.model_copy(update={"details": CaseDetails(response=LONG)})
    cases = [
        make_result(
            name, status, details=details(name), evaluator_results=(PROMPT,), asked=AskedWords(question=LONG)
        ).model_copy(update={"trials": (trial, other)})
        for name, status in (("p", "passed"), ("f", "failed"), ("g", "failed"))
    ]
    before = BaselineSide(status=Status.PASSED, details=CaseDetails(response=LONG))
    changes = tuple(
        CaseChange(suite="s", case_id=name, change=change, before=before)
        for name, change in (("f", CaseClass.REGRESSION), ("g", CaseClass.STILL_FAILING))
    )
    comparison = Comparison(baseline=BaselineFacts(run_id="b", timestamp="t", source="x"), changes=changes)
    return make_run(make_suite_result(cases), comparison=comparison, warnings=("said before",))


def left(data: bytes) -> list[str]:
    """Which parts are there, in the order in which they go."""
    found = json.loads(data)
    passing, failing, _ = found["suites"][0]["cases"]
    regression, still = found["comparison"]["changes"]
    parts = {
        "exchange": bool(passing["details"]["conversation"]),
        "answer": passing["details"]["response"] is not None,
        "executions": failing["trials"][1]["details"] is not None,
        "still": still["before"] is not None,
        "failing": failing["details"]["response"] is not None,
        "regression": regression["before"] is not None,
        "question": failing["asked"] is not None,
    }
    return [name for name, there in parts.items() if there]


ALL = ["exchange", "answer", "executions", "still", "failing", "regression", "question"]


def test_fitted__small_enough__is_as_it_was() -> None:
    run = large()
    found = fitted_record(run)
    assert found.run is run
    assert RunResult.model_validate_json(data_of(found)) == run


@pytest.mark.parametrize("gone", range(1, len(ALL) + 1))
def test_fitted__too_large__loses_the_least_missed_parts_first(gone) -> None:
    sizes = [len(data_of(fitted_record(large(), 10**9)))]
    while len(sizes) <= gone:
        sizes.append(len(data_of(fitted_record(large(), sizes[-1] - 20_000))))
    found = fitted_record(large(), sizes[gone - 1] - 20_000)
    assert left(data_of(found)) == ALL[gone:]
    first, second = found.run.warnings
    assert first.startswith(f"the record would be larger than {sizes[gone - 1] - 20_000:,} bytes, which no run reads")
    assert "exchanges, results of calls and judges' prompts of passing cases (1)" in first
    assert ("questions and expectations (3)" in first) is (gone == len(ALL))
    assert second == "said before"
    assert json.loads(data_of(found))["warnings"] == list(found.run.warnings)


def test_fitted__calls_of_passing_cases__keep_their_arguments_as_long_as_the_answer() -> None:
    run = large()
    found = fitted_record(run, len(data_of(fitted_record(run))) - 20_000).run
    (call,) = found.by_key()[next(iter(found.by_key()))].details.tool_calls
    assert (call.arguments, call.result) == ({"a": 1}, None)


def test_fitted__many_values__count_as_much_as_many_bytes() -> None:
    run = large()
    assert fitted_record(run, values=10**6).run is run
    short = fitted_record(run, values=250)
    assert (short.run is run, short.form) == (True, RecordForm.SHORT)
    assert fitted_record(run, values=60).run.warnings != run.warnings


def test_fitted__a_little_too_large__loses_only_its_line_breaks() -> None:
    run = large()
    found = fitted_record(run, len(data_of(fitted_record(run))) - 1)
    assert (found.run is run, b"\n" in data_of(found)) == (True, False)
    assert '"tags":[]' in data_of(found).decode()


def test_fitted__still_too_large_without_line_breaks__loses_what_says_nothing_and_no_more() -> None:
    run = large()
    compact = data_of(fitted_record(run, len(data_of(fitted_record(run))) - 1))
    found = fitted_record(run, len(compact) - 1)
    assert (found.run is run, found.form) == (True, RecordForm.SHORT)
    assert '"tags"' not in data_of(found).decode()
    assert data_of(found).startswith(b'{"schemaVersion":1,"runId":')
    assert RunResult.model_validate_json(data_of(found)) == run


def test_fitted__many_cases_that_say_little__are_read_again_as_they_were() -> None:
    run = make_run(*(make_suite_result([make_result(f"{suite} {number}") for number in range(40)]) for suite in "ab"))
    full = data_of(fitted_record(run))
    found = fitted_record(run, len(full) // 4)
    assert (found.run is run, found.form) == (True, RecordForm.SHORT)
    assert RunResult.model_validate_json(data_of(found)) == run


def test_fitted__passing_cases_with_many_words__keep_scores_alone() -> None:
    said = EvaluatorResult(name="contains", type="check", score=1, hits=(LONG,), reasoning=LONG)
    cases = [make_result(name, name, evaluator_results=(said,)) for name in ("passed", "failed")]
    found = fitted_record(make_run(make_suite_result(cases)), 100_000).run
    assert found.warnings[0].endswith("evaluators' words about passing cases (1)")
    assert [case.evaluator_results[0].reasoning for _, case in found.cases()] == [None, LONG]
    assert [case.evaluator_results[0].score for _, case in found.cases()] == [1, 1]


def test_fitted__still_too_large_without_answers__loses_the_checks_that_simply_hold() -> None:
    held = tuple(EvaluatorResult(name=f"check {n}", type="check", score=1) for n in range(100))
    short = (*held, EvaluatorResult(name="last", type="check", score=0.5))
    cases = [
        make_result("held", "passed", evaluator_results=held),
        make_result("graded", "passed", evaluator_results=held, graded=True),
        make_result("short", "passed", evaluator_results=short),
        make_result("failed", "failed", evaluator_results=short),
    ]
    found = fitted_record(make_run(make_suite_result(cases)), 20_000).run
    assert found.warnings[0].endswith(", checks that passing cases hold (1)")
    assert [len(case.evaluator_results) for _, case in found.cases()] == [0, 100, 101, 101]


ANSWERS = st.builds(
    CaseDetails,
    response=st.none() | st.sampled_from(["", "a"]),
    conversation=st.sampled_from([(), (Message(role="user", content="q"),)]),
    tool_calls=st.sampled_from([(), (KeptCall(name="t"),), (KeptCall(name="t", result="r"),)]),
    left_out=st.sampled_from([{}, {"characters": 3}]),
)
SAID = st.sampled_from(
    [
        PROMPT,
        EvaluatorResult(name="c", type="check", score=1),
        EvaluatorResult(name="c", type="check", score=0, misses=("m",)),
    ]
)


@given(
    st.lists(
        st.builds(
            lambda status, flaky, details, said: make_result(
                "a", status, flaky=flaky, details=details, evaluator_results=said
            ),
            st.sampled_from(["passed", "failed", "error"]),
            st.booleans(),
            ANSWERS,
            st.lists(SAID, max_size=2).map(tuple),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_fitted__the_first_three_steps_at_once__are_as_one_after_the_other(cases) -> None:
    suite, steps = make_suite_result(cases), [(at, step.case) for at, step in enumerate(fitting._STEPS[:3])]
    at_once, one_by_one = ({0: 0, 1: 0, 2: 0} for _ in range(2))
    found = fitting._suite_taken(suite, steps, at_once)
    expected = suite
    for step in steps:
        expected = fitting._suite_taken(expected, [step], one_by_one)
    assert found == expected
    assert at_once == one_by_one
    assert (found is suite) == (expected is suite)


@pytest.mark.parametrize("most", [10_000, 60_000, 150_000, 250_000, 10_000_000])
def test_fitted__a_large_run_beside_a_large_comparison__is_as_if_every_step_were_tried(monkeypatch, most) -> None:
    cases = [make_result(f"{n:03}", "failed", details=CaseDetails(response="y" * 300)) for n in range(200)]
    before = BaselineSide(status=Status.FAILED, details=CaseDetails(response="z" * 300))
    changes = tuple(
        CaseChange(suite="s", case_id=f"{n:03}", change=kind, before=before)
        for n, kind in enumerate([CaseClass.STILL_FAILING, CaseClass.REGRESSION] * 100)
    )
    compared = Comparison(baseline=BaselineFacts(run_id="b", timestamp="t", source="x"), changes=changes)
    run = make_run(make_suite_result(cases), comparison=compared)
    monkeypatch.setattr(fitting, "MANY", 1_000)
    every = fitted_record(run, most)
    monkeypatch.setattr(fitting, "MANY", 100)
    some = fitted_record(run, most)
    assert some.run == every.run
    assert data_of(some) == data_of(every)
