"""JUnit XML as test runners write it."""

import re

import pytest

from eval_gate.config.settings import ResultsFormat
from eval_gate.errors import ExitCode, GateError
from eval_gate.external_results.loader import ExternalResults, load_external_results
from eval_gate.external_results.score_rules import ScoreRules
from eval_gate.model.execution import ErrorKind, Status
from tests.support.tool_results import FILES


def load(tmp_path, body: str) -> ExternalResults:
    file = tmp_path / "junit.xml"
    file.write_text(f'<?xml version="1.0"?><testsuites><testsuite name="s">{body}</testsuite></testsuites>')
    return load_external_results([str(file)], ResultsFormat.AUTO, ScoreRules())


def test_read_junit__four_endings__are_four_statuses(tmp_path) -> None:
    brought = load(
        tmp_path,
        '<testcase classname="c" name="a" time="1.5"/>'
        '<testcase classname="c" name="b"><failure message="wrong">wrong\nand why</failure></testcase>'
        '<testcase classname="c" name="c"><error message="broke"/></testcase>'
        '<testcase name="d"><skipped type="pytest.xfail" message="known"/></testcase>',
    )
    assert [(key.suite, key.case_id, rows[0].status, rows[0].error) for key, rows in brought.cases.items()] == [
        ("c", "a", Status.PASSED, None),
        ("c", "b", Status.FAILED, "wrong\nand why"),
        ("c", "c", Status.ERROR, "broke"),
        ("s", "d", Status.SKIPPED, "known"),
    ]
    assert next(iter(brought.rows)).duration_ms == 1500


def test_read_junit__reruns_of_surefire__are_executions_in_their_order_unless_one_passed(tmp_path) -> None:
    brought = load(
        tmp_path,
        '<testcase name="flaky"><flakyFailure message="once"/></testcase>'
        '<testcase name="dead"><failure message="1"/><rerunFailure message="2"/><rerunError message="3"/></testcase>',
    )
    assert {key.case_id: [row.status for row in rows] for key, rows in brought.cases.items()} == {
        "flaky": [Status.PASSED],
        "dead": [Status.FAILED, Status.FAILED, Status.ERROR],
    }
    assert [row.rerun for row in brought.rows] == [False, False, True, True]
    [note] = brought.notes
    assert note.endswith("1 case failed and passed in a retry, which the tool counts as passed: flaky")


def test_read_junit__a_failure_with_an_error_beside_it__is_the_failure(tmp_path) -> None:
    brought = load(tmp_path, '<testcase name="a"><failure message="wrong"/><error message="teardown"/></testcase>')
    assert [row.status for row in brought.rows] == [Status.FAILED]


def test_read_junit__a_name_twice__is_an_error_with_both_lines(tmp_path) -> None:
    with pytest.raises(GateError) as caught:
        load(tmp_path, '<testcase name="a"/>\n<testcase name="a"/>')
    assert caught.value.code == "duplicate-results"
    assert "junit.xml:2" in str(caught.value.problems[0])


def test_read_junit__pytests_files__give_the_name_by_which_it_runs_a_test(tmp_path) -> None:
    case = '<testcase classname="tests.test_bot.TestBot" name="test_a[x]" file="tests/test_bot.py" line="4"/>'
    [row] = load(tmp_path, case).rows
    assert row.rerun_name == "tests/test_bot.py::TestBot::test_a[x]"
    assert row.location is not None
    assert row.location.line == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<html></html>", "is not JUnit: it begins with <html>"),
        ('<testsuite><testcase name="a"></testsuite>', "is not XML: mismatched tag"),
        (
            '<!DOCTYPE x [<!ENTITY a "aaaa">]><testsuite>&a;</testsuite>',
            "has a document type, which JUnit does not need",
        ),
        ("<testsuite><testcase/></testsuite>", "is a testcase without a name"),
        (f"<testsuite>{'<properties>' * 200}", "is nested deeper than 50 levels"),
        ("<testsuites></testsuites>", "has no cases"),
    ],
)
def test_read_junit__what_is_no_junit__is_refused_in_a_sentence(tmp_path, text, said) -> None:
    file = tmp_path / "junit.xml"
    file.write_text(text)
    with pytest.raises(GateError) as caught:
        load_external_results([str(file)], ResultsFormat.AUTO, ScoreRules())
    assert said in str(caught.value.problems[0])


def vitest(tmp_path, case: str) -> ExternalResults:
    file = tmp_path / "junit.xml"
    file.write_text(f'<testsuites name="vitest tests"><testsuite name="a.test.ts">{case}</testsuite></testsuites>')
    return load_external_results([str(file)], ResultsFormat.AUTO, ScoreRules())


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        ('<failure message="connect ECONNREFUSED 127.0.0.1:9" type="Error"/>', Status.ERROR),
        (
            """<failure message="fetch failed" type="TypeError">TypeError: fetch failed
Caused by: Error: connect ECONNREFUSED 127.0.0.1:9</failure>""",
            Status.ERROR,
        ),
        ('<failure message="expected ECONNREFUSED" type="AssertionError"/>', Status.FAILED),
        ('<failure message="x is not a function" type="TypeError">at agent.mjs:429:1</failure>', Status.FAILED),
    ],
)
def test_read_junit__vitest_threw__is_an_error_only_where_nobody_was_reached(tmp_path, failure, status) -> None:
    [row] = vitest(tmp_path, f'<testcase classname="a.test.ts" name="refund">{failure}</testcase>').rows
    assert row.status is status
    assert (row.error_kind is ErrorKind.AGENT_UNREACHABLE) or status is Status.FAILED


def test_read_junit__a_file_that_vitest_could_not_load__is_no_result(tmp_path) -> None:
    """Its tests are missing: as a failed new case they would look as if somebody had removed them."""
    with pytest.raises(GateError) as caught:
        vitest(
            tmp_path,
            '<testcase classname="a.test.ts" name="a.test.ts"><failure message="Cannot find module x"/></testcase>',
        )
    assert (caught.value.code, caught.value.exit_code) == ("results-incomplete", ExitCode.INCOMPLETE)
    assert "a.test.ts could not be loaded, so none of its tests ran: Cannot find module x" in str(
        caught.value.problems[0]
    )


def test_read_junit__vitests_nesting__is_as_its_filter_wants_it(tmp_path) -> None:
    case = '<testcase classname="a.test.ts" name="orders &gt; late &gt; refund"/>'
    for tool, again in (("vitest tests", "orders late refund"), ("other", None)):
        file = tmp_path / "junit.xml"
        file.write_text(f'<testsuites name="{tool}"><testsuite name="a.test.ts">{case}</testsuite></testsuites>')
        [row] = load_external_results([str(file)], ResultsFormat.AUTO, ScoreRules()).rows
        assert (row.id, row.rerun_name) == ("orders > late > refund", again)


def test_read_junit__a_module_is_not_found__is_a_crash_and_no_lost_connection(tmp_path) -> None:
    """`ModuleNotFoundError` holds the letters of `ENOTFOUND`."""
    [row] = load(tmp_path, '<testcase name="a"><error message="ModuleNotFoundError: bot"/></testcase>').rows
    assert row.error_kind is ErrorKind.AGENT_ERROR


PYTEST = '<testsuites name="pytest tests"><testsuite name="pytest">{}</testsuite></testsuites>'


def of_pytest(tmp_path, body: str) -> ExternalResults:
    file = tmp_path / "pytest.xml"
    file.write_text(PYTEST.format(body))
    return load_external_results([str(file)], ResultsFormat.AUTO, ScoreRules())


def test_read_junit__suites_in_suites__name_what_has_no_classname_by_the_innermost(tmp_path) -> None:
    inner = '<testsuite name="inner"><testcase name="a"/></testsuite><testcase name="a"/>'
    brought = load(tmp_path, f'<testsuite name="outer">{inner}</testsuite><testcase name="a"/>')
    assert [key.suite for key in brought.cases] == ["inner", "outer", "s"]


def test_read_junit__pytests_second_testcase_of_a_failed_tear_down__is_no_other_case(tmp_path) -> None:
    torn = (
        '<testcase classname="t" name="{0}"><failure message="assert 0">late = None</failure></testcase>'
        '<testcase classname="t" name="{0}"><error message="failed on teardown with &quot;X&quot;">…</error>'
        "<system-out>------ Captured Out ------\nanswer\n\n</system-out></testcase>"
    )
    brought = of_pytest(tmp_path, torn.format("a") + torn.format("b"))
    assert [(row.id[:1], row.status, row.response) for row in brought.rows] == [
        ("a", Status.FAILED, "answer"),
        ("b", Status.FAILED, "answer"),
    ]


def test_read_junit__pytests_tear_down_of_a_test_that_passed__is_an_error(tmp_path) -> None:
    case = (
        '<testcase classname="t" name="a"><error message="failed on teardown with &quot;X&quot;">…</error></testcase>'
    )
    assert [row.status for row in of_pytest(tmp_path, case).rows] == [Status.ERROR]


FAILS = '<testcase classname="t" name="a"><failure message="no"/></testcase>'
BREAKS = '<testcase classname="t" name="a"><error message="broke"/></testcase>'
PASSES = '<testcase classname="t" name="a"/>'
SKIPPED = '<testcase classname="t" name="a"><skipped/></testcase>'
RECORDED_RERUNS = {
    "surefire-reruns.xml": {
        ("shop.AgentTest", "broken"): [Status.FAILED] * 3,
        ("shop.AgentTest", "refund"): [Status.PASSED],
        ("shop.AgentTest", "crash"): [Status.ERROR] * 3,
        ("shop.AgentTest", "hours"): [Status.PASSED],
    },
    "gotestsum-reruns.xml": {
        ("example.com/orders/orders", "TestRefund"): [Status.FAILED, Status.FAILED, Status.PASSED],
        ("example.com/orders/orders", "TestBroken"): [Status.FAILED] * 4,
        ("example.com/orders/orders", "TestOrders/cancel"): [Status.FAILED, Status.PASSED],
        ("example.com/orders/orders", "TestOrders"): [Status.FAILED, Status.PASSED],
        ("example.com/orders/orders", "TestHours"): [Status.PASSED],
        ("example.com/orders/orders", "TestOrders/where"): [Status.PASSED],
    },
}
"""What Surefire 2.22.3 wrote with `rerunFailingTestsCount`, and gotestsum 1.8.2 with `--rerun-fails`.

Surefire says of a test that it was flaky, and counts it as passed.
"""


@pytest.mark.parametrize("name", RECORDED_RERUNS)
def test_read_junit__re_runs_that_the_runner_recorded__are_executions_in_their_order(name) -> None:
    cases = load_external_results([str(FILES / name)], ResultsFormat.AUTO, ScoreRules()).cases
    assert {tuple(key): [row.status for row in rows] for key, rows in cases.items()} == RECORDED_RERUNS[name]
    assert all(row.rerun is (at > 0) for rows in cases.values() for at, row in enumerate(rows))


def test_read_junit__surefire_that_counts_executions__misses_one_that_is_cut_out(tmp_path) -> None:
    text = (FILES / "surefire-reruns.xml").read_text()
    (tmp_path / "junit.xml").write_text(re.sub(r'  <testcase name="crash".*?</testcase>\n', "", text, flags=re.DOTALL))
    with pytest.raises(GateError, match="did not finish"):
        load_external_results([str(tmp_path / "junit.xml")], ResultsFormat.AUTO, ScoreRules())


@pytest.mark.parametrize("reader", [load, of_pytest])
@pytest.mark.parametrize(
    ("cases", "found"),
    [
        (FAILS + PASSES, [Status.FAILED, Status.PASSED]),
        (FAILS + BREAKS + PASSES, [Status.FAILED, Status.ERROR, Status.PASSED]),
        (FAILS + FAILS, [Status.FAILED, Status.FAILED]),
    ],
)
def test_read_junit__a_name_again_after_failures_alone__is_a_re_run(tmp_path, reader, cases, found) -> None:
    brought = reader(tmp_path, cases)
    [rows] = brought.cases.values()
    assert [(row.status, row.rerun) for row in rows] == [(status, at > 0) for at, status in enumerate(found)]
    assert any("repeats 1 case after a failure: the repeated results count as re-runs" in one for one in brought.notes)


@pytest.mark.parametrize("reader", [load, of_pytest])
@pytest.mark.parametrize(
    "cases",
    [
        PASSES + PASSES,
        PASSES + FAILS,
        FAILS + PASSES + PASSES,
        FAILS + PASSES + FAILS,
        FAILS + SKIPPED,
        SKIPPED + PASSES,
    ],
)
def test_read_junit__a_name_again_after_a_pass__is_another_test_and_an_error(tmp_path, reader, cases) -> None:
    with pytest.raises(GateError) as caught:
        reader(tmp_path, cases)
    assert caught.value.code == "duplicate-results"


def test_read_junit__re_runs_in_one_of_two_suites__leave_the_other_a_case_of_its_own(tmp_path) -> None:
    suites = f'<testsuite name="x">{FAILS}\n{PASSES}</testsuite>\n<testsuite name="y">{PASSES}</testsuite>'
    both = f"<testsuites>{suites}</testsuites>"
    file = tmp_path / "r.xml"
    file.write_text(both)
    brought = load_external_results([str(file)], ResultsFormat.AUTO, ScoreRules())
    assert {tuple(key): [row.status for row in rows] for key, rows in brought.cases.items()} == {
        ("x: t", "a"): [Status.FAILED, Status.PASSED],
        ("y: t", "a"): [Status.PASSED],
    }


def test_read_junit__a_failure_in_one_suite_and_a_pass_in_another__are_two_tests(tmp_path) -> None:
    file = tmp_path / "r.xml"
    file.write_text(
        f'<testsuites><testsuite name="x">{FAILS}</testsuite>\n<testsuite name="x">{PASSES}</testsuite></testsuites>'
    )
    with pytest.raises(GateError) as caught:
        load_external_results([str(file)], ResultsFormat.AUTO, ScoreRules())
    assert caught.value.code == "duplicate-results"


def test_read_junit__pytests_lines__are_counted_from_one(tmp_path) -> None:
    cases = '<testcase name="a" file="t.py" line="0"/><testcase name="b" file="t.py" line="4"/>'
    assert [row.location and row.location.line for row in of_pytest(tmp_path, cases).rows] == [1, 5]


def test_read_junit__pytests_output__is_the_answer_without_its_headings(tmp_path) -> None:
    printed = "--------------------------------- Captured Out ---------------------------------\n{}\n\n"
    cases = "".join(
        f'<testcase name="{name}"><system-out>{printed.format(text)}</system-out></testcase>'
        for name, text in {"a": "Refunded.\nBye.", "b": ""}.items()
    )
    assert [row.response for row in of_pytest(tmp_path, cases).rows] == ["Refunded.\nBye.", None]


@pytest.mark.parametrize(
    ("ending", "status", "error_kind"),
    [
        ('message="ConnectionRefusedError: [Errno 111] Connection refused"', Status.ERROR, ErrorKind.AGENT_UNREACHABLE),
        ('message="openai.RateLimitError: 429"', Status.ERROR, ErrorKind.AGENT_UNREACHABLE),
        ('message="connect ECONNREFUSED 127.0.0.1:9" type="Error"', Status.ERROR, ErrorKind.AGENT_UNREACHABLE),
        (
            "message=\"httpx.HTTPStatusError: Client error '401 Unauthorized'\"",
            Status.ERROR,
            ErrorKind.AGENT_UNREACHABLE,
        ),
        ('message="Error: Request failed with status code 429"', Status.ERROR, ErrorKind.AGENT_UNREACHABLE),
        ('message="Exception: You exceeded your current quota"', Status.ERROR, ErrorKind.AGENT_UNREACHABLE),
        ('message="RuntimeError: the agent broke"', Status.FAILED, ErrorKind.AGENT_ERROR),
        ("message=\"KeyError: 'quota'\"", Status.FAILED, ErrorKind.AGENT_ERROR),
        ('message="ValueError: order 429 has no refund"', Status.FAILED, ErrorKind.AGENT_ERROR),
        ('message="TypeError: NoneType in row 403"', Status.FAILED, ErrorKind.AGENT_ERROR),
        ('message="RuntimeError: refund refused: unauthorized for this user"', Status.FAILED, ErrorKind.AGENT_ERROR),
        ('message="expected order 402 to be refunded" type="Error"', Status.FAILED, ErrorKind.AGENT_ERROR),
        ('message="AssertionError: got 429 in place of 200"', Status.FAILED, ErrorKind.AGENT_ERROR),
        ('message="assert 429 == 200"', Status.FAILED, ErrorKind.AGENT_ERROR),
        ('message="expected 429 to be 200" type="AssertionError"', Status.FAILED, ErrorKind.AGENT_ERROR),
    ],
)
def test_read_junit__a_failure_by_an_exception_of_no_connection__says_nothing_of_the_agent(
    ending, status, error_kind, tmp_path
) -> None:
    [row] = load(tmp_path, f'<testcase name="a"><failure {ending}>…</failure></testcase>').rows
    assert (row.status, row.error_kind) == (status, error_kind)


def test_read_junit__a_traceback_that_quotes_code__is_not_whose_fault_it_is(tmp_path) -> None:
    said = 'message="failed on setup with &quot;KeyError&quot;"'
    [row] = load(tmp_path, f'<testcase name="a"><error {said}>if code == 429: …</error></testcase>').rows
    assert row.error_kind is ErrorKind.AGENT_ERROR


@pytest.mark.parametrize(
    ("inner", "status"),
    [
        ('<skipped/><failure message="no"/>', Status.FAILED),
        ('<failure message="no"/><skipped/>', Status.FAILED),
        ('<error message="broke"/><failure message="no"/>', Status.FAILED),
        ('<skipped/><error message="broke"/>', Status.ERROR),
        ('<n:failure xmlns:n="urn:junit" message="no"/>', Status.FAILED),
        ('<failure xmlns="urn:junit" message="no"/>', Status.FAILED),
    ],
)
def test_read_junit__several_ends_of_one_test__the_gravest_counts(tmp_path, inner, status) -> None:
    [row] = load(tmp_path, f'<testcase name="a">{inner}</testcase>').rows
    assert row.status is status


@pytest.mark.parametrize(
    ("attribute", "status"),
    [
        ('status="failed"', Status.FAILED),
        ('status="Error"', Status.ERROR),
        ('status="notrun" result="suppressed"', Status.SKIPPED),
        ('status="run" result="completed"', Status.PASSED),
        ('status="passed"', Status.PASSED),
        ('status="panicked"', Status.ERROR),
        ('status="odd"', Status.ERROR),
    ],
)
def test_read_junit__attribute_says_how_a_test_ended__it_counts(tmp_path, attribute, status) -> None:
    [row] = load(tmp_path, f'<testcase name="a" {attribute}/>').rows
    assert row.status is status


def read(tmp_path, text: str) -> ExternalResults:
    file = tmp_path / "junit.xml"
    file.write_text(text)
    return load_external_results([str(file)], ResultsFormat.AUTO, ScoreRules())


SUREFIRE = """<testsuite name="s" failures="1" errors="0" flakes="1">
    <testcase name="a"><failure message="1"/><rerunFailure message="2"/></testcase>
    <testcase name="b"><flakyFailure message="1"/></testcase></testsuite>"""
"""A flaky test is counted as such, and re-runs of one that failed are not counted again."""
TORN_DOWN = """<testsuites name="pytest tests"><testsuite name="pytest" failures="1" errors="1">
    <testcase classname="c" name="a"><failure message="no"/></testcase>
    <testcase classname="c" name="a"><error message="failed on teardown with x"/></testcase></testsuite></testsuites>"""
"""Of pytest: a test that failed and could not be torn down stands there twice."""
GOTESTSUM = """<testsuites failures="2"><testsuite name="s" failures="2">
    <testcase name="A"><failure message="Failed"/></testcase>
    <testcase name="A/b"><failure message="Failed"/></testcase></testsuite></testsuites>"""
"""A test fails where one within it does, and both are counted."""
TWO = '<testcase name="a"/><testcase name="b"><failure message="no"/></testcase>'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            f'<testsuites><testsuite name="s" failures="2">{TWO}</testsuite></testsuites>',
            "2 failures and errors, but has 1",
        ),
        (
            f'<testsuites failures="1" errors="1"><testsuite name="s">{TWO}</testsuite></testsuites>',
            "2 failures and errors",
        ),
        (
            f'<testsuite name="s">{TWO}<error message="no set-up"/></testsuite>',
            "the suite s failed outside of its tests: no",
        ),
        (
            f'<testsuite name="s" failures="1"><testsuite name="t" errors="1"/>{TWO}</testsuite>',
            "1 failures and errors, but",
        ),
    ],
)
def test_read_junit__file_says_of_more_failures_than_it_holds__is_no_result(tmp_path, text, said) -> None:
    with pytest.raises(GateError) as caught:
        read(tmp_path, text)
    assert (caught.value.code, caught.value.exit_code) == ("results-incomplete", ExitCode.INCOMPLETE)
    assert said in str(caught.value.problems[0])


@pytest.mark.parametrize(
    "text",
    [
        SUREFIRE,
        TORN_DOWN,
        GOTESTSUM,
        '<testsuite name="s" failures="1"><testcase name="a" status="failed"/></testsuite>',
        '<testsuite name="s" failures="many"><testcase name="a"/></testsuite>',
    ],
)
def test_read_junit__file_counts_what_it_holds__is_read(tmp_path, text) -> None:
    assert list(read(tmp_path, text).cases)


@pytest.mark.parametrize(
    ("time", "milliseconds"),
    [
        ("0,03", 30),
        ("12,5", 12_500),
        ("1,234.5", 1_234_500),
        ("1.234,5", 1_234_500),
        ("0,125", 125),
        ("1,234", None),
        ("0.03", 30),
        ("1,2,3", None),
        (",", None),
    ],
)
def test_read_junit__comma_in_a_time__is_read_by_where_it_stands_or_unknown(tmp_path, time, milliseconds) -> None:
    [row] = load(tmp_path, f'<testcase name="a" time="{time}"/>').rows
    assert row.duration_ms == milliseconds


def found_in(tmp_path, document: str) -> dict[tuple[str, str], Status | None]:
    return {(key.suite, key.case_id): rows[0].status for key, rows in read(tmp_path, document).cases.items()}


@pytest.mark.parametrize(
    ("case", "id_", "status"),
    [
        ('<testcase name="" classname="com.X"><skipped message="off"/></testcase>', "com.X", Status.SKIPPED),
        ('<testcase name="" classname="com.X"><error message="boom"/></testcase>', "com.X", Status.ERROR),
        ('<testcase name="" classname=""><failure message="env"/></testcase>', "Env", Status.ERROR),
    ],
    ids=["Surefire, a class that is off", "Surefire, before all tests", "GoogleTest, outside of tests"],
)
def test_read_junit__what_happened_to_a_class__is_a_case_of_its_name(tmp_path, case, id_, status) -> None:
    document = (
        f'<testsuites><testsuite name="Env">{case}<testcase name="a" classname="com.Y"/></testsuite></testsuites>'
    )
    assert found_in(tmp_path, document) == {("Env", id_): status, ("com.Y", "a"): Status.PASSED}


@pytest.mark.parametrize(
    ("classname", "name"),
    [
        ("shop.AgentTest", "initializationError"),
        ("", "TestMain"),
        ("example.com/shop", "[build failed]"),
        ("Agent Suite", "[BeforeSuite]"),
        ("unittest.loader._FailedTest", "tests.test_bot"),
        ("PHPUnit.Framework.ErrorTestCase", "Error"),
        ("Shop", "UninstantiatedParameterizedTestSuite<Agent>"),
    ],
)
def test_read_junit__failure_under_a_name_of_the_runners_own__is_an_evaluation_error(tmp_path, classname, name) -> None:
    name = name.replace("<", "&lt;")
    case = f'<testcase classname="{classname}" name="{name}"><failure message="no"/></testcase>'
    [row] = load(tmp_path, case).rows
    assert (row.status, row.error_kind, row.error) == (Status.ERROR, ErrorKind.EVALUATION_ERROR, "no")


def test_read_junit__nodes_runner__tells_tests_by_their_suites_also_where_names_differ(tmp_path) -> None:
    inner = '<testsuite name="open"><testcase name="works" classname="test"/></testsuite>'
    orders, refunds = (f'<testsuite name="{name}">{inner}</testsuite>' for name in ("orders", "refunds"))
    alone = found_in(tmp_path, f"<testsuites>{orders}</testsuites>")
    both = found_in(tmp_path, f"<testsuites>{orders}{refunds}</testsuites>")
    assert list(alone) == [("orders > open", "works")], "the name stays when another one comes"
    assert list(both) == [*alone, ("refunds > open", "works")]


def test_read_junit__playwrights_projects__are_told_apart_by_the_host(tmp_path) -> None:
    def suites(*hosts: str) -> str:
        case = '<testcase name="title" classname="a.spec.ts"/>'
        return "".join(f'<testsuite name="a.spec.ts" hostname="{host}">{case}</testsuite>' for host in hosts)

    found = found_in(tmp_path, f'<testsuites id="" name="">{suites("chromium", "firefox")}</testsuites>')
    assert list(found) == [("chromium: a.spec.ts", "title"), ("firefox: a.spec.ts", "title")]
    with pytest.raises(GateError, match="same name"):  # elsewhere it is the machine
        found_in(tmp_path, f"<testsuites>{suites('vm-1', 'vm-2')}</testsuites>")


def test_read_junit__same_class_and_name_in_two_suites__have_the_suite_before_them(tmp_path) -> None:
    suites = "".join(f'<testsuite name="{name}"><testcase classname="c" name="a"/></testsuite>' for name in "xy")
    assert list(found_in(tmp_path, f"<testsuites>{suites}</testsuites>")) == [("x: c", "a"), ("y: c", "a")]


@pytest.mark.parametrize(
    ("attributes", "inner", "decided"),
    [
        ('tests="1" failures="0"', '<testcase name="a"/>', True),
        ("", '<testcase name="a"/>', False),
        ('tests="1" failures="0" errors="0"', '<testcase name="a"/>', False),
    ],
    ids=["gotestsum", "no counts", "counts of its own"],
)
def test_read_junit__errors_of_the_root__are_the_runners_where_no_suite_counts_any(
    tmp_path, attributes, inner, decided
) -> None:
    document = f'<testsuites tests="1" failures="0" errors="1"><testsuite {attributes}>{inner}</testsuite></testsuites>'
    if decided:
        assert list(found_in(tmp_path, document).values()) == [Status.PASSED]
    else:
        with pytest.raises(GateError) as caught:
            found_in(tmp_path, document)
        assert caught.value.exit_code is ExitCode.INCOMPLETE


@pytest.mark.parametrize("order", [("{skipped}{failure}"), ("{failure}{skipped}")])
def test_read_junit__catch2s_test_that_may_fail__is_no_failure(tmp_path, order) -> None:
    ends = order.format(
        skipped='<skipped message="TEST_CASE tagged with !mayfail"/>', failure='<failure message="1 == 2"/>'
    )
    document = f'<testsuite failures="0" skipped="1"><testcase name="known">{ends}</testcase></testsuite>'
    assert list(found_in(tmp_path, document).values()) == [Status.SKIPPED]


@pytest.mark.parametrize(("root", "refused"), [("jest tests", True), ("AllTests", True), ("pytest tests", False)])
def test_read_junit__more_tests_counted_than_there_are__is_refused_of_who_counts_only_tests(
    tmp_path, root, refused
) -> None:
    document = (
        f'<testsuites name="{root}" tests="120"><testsuite name="s"><testcase name="a"/></testsuite></testsuites>'
    )
    if not refused:
        assert found_in(tmp_path, document)
        return
    with pytest.raises(GateError) as caught:
        found_in(tmp_path, document)
    assert "counts 120 tests, but has 1" in str(caught.value.problems[0])
    assert caught.value.exit_code is ExitCode.INCOMPLETE


def test_read_junit__attempts_of_pytest_rerunfailures__are_refused_with_what_to_do(tmp_path) -> None:
    case = '<testcase classname="t" name="bad"/><testcase classname="t" name="bad"><failure message="0"/></testcase>'
    with pytest.raises(GateError) as caught:
        found_in(tmp_path, f'<testsuite name="pytest" failures="1">{case}</testsuite>')
    assert "--reruns" in (caught.value.hint or "")
