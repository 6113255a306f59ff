"""A run result as JSON in pieces: the same as at once, and a suite's file has the contract's fields."""

import json

import msgspec
import pytest

from eval_gate.model.execution import CaseDetails, Trial
from eval_gate.model.result import RunResult, SuiteResult
from eval_gate.results.run_writer import iter_compact_pieces, iter_full_pieces
from eval_gate.struct import replace
from tests.support.results import make_result, make_run, make_suite_result

CONTRACT = {"id", "description", "passed", "durationMs", "assertionsRun", "assertionsSkipped", "error", "details"}
OF_DETAILS = {"toolsCalled", "responseLength", "skippedTokens", "response"}
HOLES = '"cases": [],"cases":[]\n"suites": [],"suites":['
"""What the pieces are put together by, in a text."""


def cases():
    answered = CaseDetails(response=HOLES, response_length=len(HOLES), tools_called=("a",))
    other = Trial(status="failed", score=0, duration_ms=1, error=HOLES, details=answered)
    plain = make_result("plain")
    return [
        replace(
            plain,
            details=CaseDetails(),
            duration_ms=0.0,
            assertions_run=0,
        ),
        replace(
            plain,
            id="no details of its own",
            details=CaseDetails(),
            trials=(other,),
        ),
        replace(
            plain,
            id="answered",
            details=answered,
            description=HOLES,
            error=HOLES,
        ),
        *(make_result(str(number)) for number in range(500)),
    ]


SUITES = pytest.mark.parametrize(
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


def suite_file(pieces, number):
    return b"".join(piece.suite_file for piece in pieces if piece.suite == number)


@SUITES
def test_full_pieces__joined__are_the_run_result_and_the_suites_as_they_are_at_once(suites) -> None:
    run = make_run(*suites, warnings=(HOLES,))
    pieces = list(iter_full_pieces(run))
    assert b"".join(piece.run_result for piece in pieces) == msgspec.json.format(msgspec.json.encode(run), indent=2)
    for number, suite in enumerate(suites):
        assert suite_file(pieces, number) == msgspec.json.format(msgspec.json.encode(suite), indent=2)


@SUITES
def test_compact_pieces__joined__say_the_same_without_what_says_nothing(suites) -> None:
    run = make_run(*suites, warnings=(HOLES,))
    written = b"".join(piece.run_result for piece in iter_compact_pieces(run))
    assert msgspec.json.decode(written, type=RunResult) == run
    assert written.startswith(b'{"schemaVersion":1,"runId":')
    assert not {b"\n", b'"tags"'} & {part for part in (b"\n", b'"tags"') if part in written}


@pytest.mark.contract("result.fields")
def test_suite_file__of_either_form__has_every_field_of_the_contract() -> None:
    run = make_run(make_suite_result(cases()), make_suite_result([], eval_file="b"))
    for form in (iter_full_pieces, iter_compact_pieces):
        pieces = list(form(run))
        for number, suite in enumerate(run.suites):
            written = json.loads(suite_file(pieces, number))
            assert msgspec.convert(written, SuiteResult) == suite
            for case in written["cases"]:
                assert case.keys() >= CONTRACT
                assert case["details"].keys() >= OF_DETAILS
