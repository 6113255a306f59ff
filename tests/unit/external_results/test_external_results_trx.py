"""TRX after the schema that Visual Studio publishes (`vstst.xsd`), in the order in which `dotnet test` writes it.

`jest.trx` is what jest-trx-results-processor 3.0.2 wrote, without stacks and times; definitions come first in it.
"""

import re
from pathlib import Path

import pytest

from eval_gate.config.settings import ResultsFormat
from eval_gate.errors import ExitCode, GateError
from eval_gate.external_results.loader import load_external_results
from eval_gate.external_results.score_rules import ScoreRules
from eval_gate.model.execution import ErrorKind, Status
from tests.support.tool_results import ERROR, FAILED, FILES, PASSED, load, refused, statuses

CLASS = "Shop.Tests.AgentTests"


def result(name: str, outcome: str | None = "Passed", message: str = "", *, inner: str = "", test: str = "") -> str:
    """One result of a test of `CLASS`; `test` is its id, where it is not its name."""
    said = f"<ErrorInfo><Message>{message}</Message><StackTrace>at {CLASS}</StackTrace></ErrorInfo>" if message else ""
    within = f"<InnerResults>{inner}</InnerResults>" if inner else ""
    ended = "" if outcome is None else f' outcome="{outcome}"'
    return (
        f'<UnitTestResult executionId="e" testId="{test or name}" testName="{name}" duration="00:00:01.5000000"{ended}>'
        f"<Output><StdOut>said {name}</StdOut>{said}</Output>{within}</UnitTestResult>"
    )


def trx(
    *results: str, outcome: str = "Completed", counters: str = "", text: str = "", names: tuple[str, ...] = ()
) -> str:
    """A whole file with definitions of tests of these names."""
    definitions = "".join(
        f'<UnitTest name="{name}" id="{name}"><TestCategory><TestCategoryItem TestCategory="slow"/></TestCategory>'
        f'<TestMethod className="{CLASS}, Shop.Tests, Version=1.0.0.0" name="{name.partition("(")[0]}"/></UnitTest>'
        for name in names
    )
    infos = f'<RunInfos><RunInfo outcome="Error"><Text>{text}</Text></RunInfo></RunInfos>' if text else ""
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<TestRun id="1" xmlns="http://microsoft.com/schemas/VisualStudio/TeamTest/2010">'
        f"<Results>{''.join(results)}</Results><TestDefinitions>{definitions}</TestDefinitions>"
        f'<ResultSummary outcome="{outcome}"><Counters {counters}/>{infos}</ResultSummary></TestRun>'
    )


def write(tmp_path: Path, document: str) -> Path:
    file = tmp_path / "r.trx"
    file.write_text(document)
    return file


def test_read_trx__results__are_named_by_class_and_test(tmp_path) -> None:
    refund = result(f"{CLASS}.Refund(order: 4711)", test="Refund(order: 4711)")
    hours = result("Hours", "Failed", "Assert.Equal() Failure: Values differ")
    file = write(tmp_path, trx(refund, hours, outcome="Failed", names=("Refund(order: 4711)", "Hours")))
    brought = load(file)
    assert (brought.format, brought.tool) == (ResultsFormat.TRX, "VSTest")
    assert statuses(brought) == {(CLASS, "Refund(order: 4711)"): [PASSED], (CLASS, "Hours"): [FAILED]}
    [row] = brought.cases[CLASS, "Hours"]
    assert row.error == f"Assert.Equal() Failure: Values differ\nat {CLASS}"
    assert (row.response, row.duration_ms, row.tags, row.rerun_name) == (
        "said Hours",
        1500,
        ("slow",),
        f"{CLASS}.Hours",
    )
    assert brought.cases[CLASS, "Refund(order: 4711)"][0].rerun_name == f"{CLASS}.Refund"


@pytest.mark.parametrize(
    ("outcome", "message", "status", "kind"),
    [
        ("Passed", "", PASSED, None),
        ("Failed", "Assert.True() Failure", FAILED, None),
        ("Failed", "System.DivideByZeroException : Attempted to divide by zero.", FAILED, None),
        ("Failed", "System.Net.Http.HttpRequestException : Connection refused (localhost:9)", ERROR, "away"),
        (
            "Failed",
            "Test method A.B threw exception: \nSystem.Net.Sockets.SocketException: target machine actively refused it",
            ERROR,
            "away",
        ),
        ("Failed", "Assert.Contains() Failure: Connection refused", FAILED, None),  # what the test is about
        ("NotExecuted", "", Status.SKIPPED, None),
        ("Error", "boom", ERROR, "agent"),
        ("Error", "ECONNREFUSED", ERROR, "away"),
        ("Timeout", "Test 'A' exceeded execution timeout period.", ERROR, "agent"),
        ("Aborted", "", ERROR, "evaluation"),
        ("Inconclusive", "Assert.Inconclusive failed.", ERROR, "evaluation"),
        ("NotRunnable", "", ERROR, "evaluation"),
        ("PassedButRunAborted", "", ERROR, "evaluation"),
        ("Disconnected", "", ERROR, "evaluation"),
        ("Warning", "", ERROR, "evaluation"),
        ("Completed", "", ERROR, "evaluation"),
        ("Brilliant", "", ERROR, "evaluation"),
        (None, "", ERROR, "evaluation"),
    ],
)
def test_read_trx__outcomes__are_four_different_things(tmp_path, outcome, message, status, kind) -> None:
    [row] = load(write(tmp_path, trx(result("A", outcome, message)))).rows
    kinds = {
        ErrorKind.AGENT_ERROR: "agent",
        ErrorKind.AGENT_UNREACHABLE: "away",
        ErrorKind.EVALUATION_ERROR: "evaluation",
    }
    assert (row.status, kinds[row.error_kind] if status is ERROR else None) == (status, kind)


def test_read_trx__results_within_a_result__are_the_cases(tmp_path) -> None:
    inner = result("Add (1, 2)", test="Add") + result("Add (3, 4)", "Failed", "Assert", test="Add")
    file = write(tmp_path, trx(result("Add", "Failed", inner=inner), outcome="Failed", counters='total="3" failed="2"'))
    assert statuses(load(file)) == {("tests", "Add (1, 2)"): [PASSED], ("tests", "Add (3, 4)"): [FAILED]}


def test_read_trx__container_that_failed_without_one_in_it__is_a_case_too(tmp_path) -> None:
    inner = result("Add (1, 2)")
    file = write(tmp_path, trx(result("Add", "Failed", "cleanup", inner=inner), outcome="Failed"))
    assert statuses(load(file)) == {("tests", "Add"): [FAILED], ("tests", "Add (1, 2)"): [PASSED]}


@pytest.mark.parametrize("other", ["1", "2"])
def test_read_trx__two_results_of_one_name__are_no_executions_of_one_test(tmp_path, other) -> None:
    file = write(tmp_path, trx(result("A", "Failed", "no", test="1"), result("A", test=other), outcome="Failed"))
    error = refused(file)
    assert (error.code, "rows of one theory" in str(error.hint)) == ("duplicate-results", True)


def test_read_trx__cleanup_of_xunit_that_failed__is_an_evaluation_error(tmp_path) -> None:
    file = write(tmp_path, trx(result("[Test Class Cleanup Failure (A.B)]", "Failed"), outcome="Failed"))
    assert [(row.status, row.error_kind) for row in load(file).rows] == [(ERROR, ErrorKind.EVALUATION_ERROR)]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (trx(result("A"), counters='total="2" passed="2"'), "counts 2 results, but has 1"),
        (trx(result("A"), counters='total="1" failed="1"'), "counts 1 results that did not pass, but has 0"),
        (trx(result("A"), outcome="Failed"), "reports that the run is Failed, but all of its tests passed"),
        (trx(result("A"), outcome="Aborted"), "reports that the run is Aborted"),
        (trx(result("A"), result("B", "InProgress")), "is a test that is InProgress"),
        (
            trx(result("A"), text="The active test run was aborted. Reason: Test host process crashed"),
            "reports that the run broke off: The active test run was aborted.",
        ),
        (trx(result("A"))[:-30], "ends in the middle"),
    ],
)
def test_read_trx__results_that_are_missing__are_a_tool_that_did_not_finish(tmp_path, document, said) -> None:
    error = refused(write(tmp_path, document))
    assert (error.code, error.exit_code) == ("results-incomplete", ExitCode.INCOMPLETE)
    assert said in str(error.problems[0])


def test_read_trx__messages_of_xunit_in_the_summary__are_no_crash(tmp_path) -> None:
    document = trx(result("A", "Failed", "no"), outcome="Failed", text="[xUnit.net 00:00:00.51]     A [FAIL]")
    assert [row.status for row in load(write(tmp_path, document)).rows] == [FAILED]


ENTITY = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>'


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (trx(result("A")).replace("<TestRun", f"{ENTITY}<TestRun"), "has a document type, which TRX does not need"),
        (f"<TestRun><Results>{'<a>' * 100}", "is nested deeper than"),
        ("<TestRun><Results>" + result("x" * 1001) + "</Results></TestRun>", "without a testName of up to 1,000"),
        ("<TestRun><Results>" + result("") + "</Results></TestRun>", "without a testName"),
        ("<TestRun><Results></Oops></TestRun>", "is not XML"),
        ("<TestRun/>", "has no cases"),
        (trx(result("A\x0c")), "contains the control character U+000C"),
    ],
)
def test_read_trx__hostile_xml__is_refused_in_a_sentence(tmp_path, document, said) -> None:
    error = refused(write(tmp_path, document))
    assert error.code == "invalid-results"
    assert said in str(error.problems[0])


def test_read_trx__junit_that_somebody_calls_trx__is_refused(tmp_path) -> None:
    file = write(tmp_path, "<testsuite/>")
    with pytest.raises(GateError) as caught:
        load_external_results([str(file)], ResultsFormat.TRX, ScoreRules())
    assert "is junit, not trx" in str(caught.value.problems[0])


def test_read_trx__texts_of_megabytes__are_truncated(tmp_path) -> None:
    document = trx(result("A")).replace("said A", "x" * 3_000_000)
    [row] = load(write(tmp_path, document)).rows
    assert len(row.response or "") == 1_000_000


def test_read_trx__folder__has_its_files(tmp_path) -> None:
    write(tmp_path, trx(result("A")))
    assert statuses(load(tmp_path)) == {("tests", "A"): [PASSED]}


def test_read_trx__a_file_that_jest_wrote__has_its_tests_by_class_and_name(tmp_path) -> None:
    text = (FILES / "jest.trx").read_text()
    kept = re.sub(r'    <UnitTestResult [^>]*testName="b.jest.js".*?</UnitTestResult>\n', "", text, flags=re.DOTALL)
    (tmp_path / "jest.trx").write_text(kept.replace('total="9"', 'total="8"').replace('error="1"', 'error="0"'))
    brought = load(tmp_path / "jest.trx")
    assert statuses(brought) == {
        ("orders", "orders / refund"): [PASSED],
        ("orders", "orders / later"): [Status.SKIPPED],
        ("orders", "orders / some day"): [Status.SKIPPED],
        ("orders", "orders / broken"): [FAILED],
        ("orders", "orders / away"): [ERROR],
        ("orders", "orders / late / cancel"): [PASSED],
        ("No suite", "alone"): [PASSED],
        ("No suite", "y"): [FAILED],
    }
    [away] = brought.cases["orders", "orders / away"]
    assert away.error_kind is ErrorKind.AGENT_UNREACHABLE


def test_read_trx__a_file_of_tests_that_jest_could_not_load__is_no_result() -> None:
    error = refused("jest.trx")
    assert (error.code, error.exit_code) == ("results-incomplete", ExitCode.INCOMPLETE)
    assert "reports that b.jest.js could not be loaded, so none of its tests ran: Error: Cannot" in str(error.problems)
