"""How a record is written where it is large: every form says the same, and a suite's file has the contract's fields."""

import functools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_gate.model.execution import CaseDetails, Trial
from eval_gate.model.limits import DEPTH
from eval_gate.model.result import SuiteResult
from eval_gate.results.record.fitting import fitted_record
from eval_gate.results.record.forms import MeasuredJson, RecordForm, RecordTooLargeError, indented, suite_files
from eval_gate.text.foreign.json import refuse_too_much
from tests.support.results import make_result, make_run, make_suite_result

CONTRACT = {"id", "description", "passed", "durationMs", "assertionsRun", "assertionsSkipped", "error", "details"}
OF_DETAILS = {"toolsCalled", "responseLength", "skippedTokens", "response"}
TRICKY = 'a "b",\\"details":{ ,"details":{"c":1}'


def cases():
    answered = CaseDetails(response=TRICKY, response_length=len(TRICKY), tools_called=("a",))
    other = Trial(status="failed", score=0, duration_ms=1, error=TRICKY, details=answered)
    plain = make_result("plain")
    return [
        plain.model_copy(update={"details": CaseDetails(), "duration_ms": 0.0, "assertions_run": 0}),
        plain.model_copy(update={"id": "no details of its own", "details": CaseDetails(), "trials": (other,)}),
        plain.model_copy(update={"id": "answered", "details": answered, "description": TRICKY, "error": TRICKY}),
        plain.model_copy(update={"id": "skipped tokens", "details": CaseDetails(skipped_tokens=("x",))}),
        *(make_result(str(number)) for number in range(2_500)),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("form", RecordForm)
@pytest.mark.contract("result.fields")
def test_suite_files__every_form__has_every_field_of_the_contract_and_says_the_same(form) -> None:
    run = make_run(make_suite_result(cases()), make_suite_result([], eval_file="b"))
    sizes = [10**9]
    while (found := fitted_record(run, sizes[-1])).form is not form:
        sizes.append(len(b"".join(found.pieces)) - 1)
    assert found.run is run
    for suite, (of, pieces) in zip(run.suites, suite_files(found), strict=True):
        assert of is suite
        written = json.loads(b"".join(pieces))
        assert SuiteResult.model_validate(written) == suite
        for case in written["cases"]:
            assert case.keys() >= CONTRACT
            assert case["details"].keys() >= OF_DETAILS


def test_fitted__a_short_record_with_many_values_or_levels_in_texts__is_looked_at_closely() -> None:
    run = make_run(make_suite_result([make_result("a").model_copy(update={"error": "[,{" * 400})]))
    compact = len(b"".join(fitted_record(run, len(b"".join(fitted_record(run).pieces)) - 1).pieces))
    assert fitted_record(run, compact - 1, values=100).form is RecordForm.SHORT
    assert fitted_record(run, compact - 1, values=100).run is run
    assert fitted_record(run, compact - 1, values=20).run is not run


HOLES = '"cases": []\n"suites": []'
"""What the pieces are put together by, in a text."""


@pytest.mark.parametrize(
    "suites",
    [
        (),
        (make_suite_result([]),),
        (
            make_suite_result(cases(), warnings=(HOLES,)),
            make_suite_result([], eval_file="b"),
            make_suite_result(cases()),
        ),
    ],
    ids=["no suite", "no case", "several"],
)
def test_fitted__indented__is_the_same_as_written_at_once(suites) -> None:
    run = make_run(*suites, warnings=(HOLES,))
    found = fitted_record(run)
    assert found.form is RecordForm.INDENTED
    assert b"".join(found.pieces) == run.model_dump_json(by_alias=True, indent=2).encode()
    for suite, pieces in suite_files(found):
        assert b"".join(pieces) == suite.model_dump_json(by_alias=True, indent=2).encode()


def test_indented__piece_by_piece__is_the_record_and_the_suites_as_they_are_at_once() -> None:
    run = make_run(make_suite_result(cases()), make_suite_result([], eval_file="b"), make_suite_result([]))
    pieces = list(indented(run))
    assert b"".join(piece.record for piece in pieces) == run.model_dump_json(by_alias=True, indent=2).encode()
    for number, suite in enumerate(run.suites):
        own = b"".join(piece.own for piece in pieces if piece.suite == number)
        assert own == suite.model_dump_json(by_alias=True, indent=2).encode()


@given(
    st.recursive(
        st.none() | st.text('[]{},:" \n', max_size=5), lambda of: st.lists(of) | st.dictionaries(st.text(), of)
    ),
    st.integers(0, 60),
)
def test_measured__whatever_it_lets_pass__is_read_again(value: object, values: int) -> None:
    text = json.dumps(value, indent=2).encode()
    try:
        MeasuredJson(len(text), values).add(text + b"\n")
    except RecordTooLargeError:
        return
    refuse_too_much(text, values=values)


def test_measured__more_bytes_values_or_levels_than_are_read__is_too_large() -> None:
    deep = json.dumps(functools.reduce(lambda inner, _: [inner], range(DEPTH), 1), indent=2).encode()
    assert MeasuredJson(10**6, 10**6).add(b"[\n  1,\n  2\n]") is None
    for measured, text in (
        (MeasuredJson(10, 10**6), b"[\n  1,\n  2\n]"),
        (MeasuredJson(10**6, 5), b"[\n  1,\n  2\n]"),
        (MeasuredJson(10**6, 10**6), deep),
    ):
        with pytest.raises(RecordTooLargeError):
            measured.add(text)
