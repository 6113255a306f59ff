"""Results of test runners in which a failure has another name than the test that it is of: never green."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.program import gate

PASSED, SKIPPED, FAILED = "", "<skipped/>", '<failure message="boom"/>'


class Case(NamedTuple):
    """A test as a runner writes it."""

    classname: str
    name: str
    inner: str = PASSED
    file: str | None = None


def junit(*tests: Case, tool: str = "") -> str:
    """The tests, each in a suite of its own, as it is in a file of its own."""
    cases = []
    for one in tests:
        file = f' file="{one.file}"' if one.file else ""
        named = f'classname="{escape(one.classname)}" name="{escape(one.name)}"{file}'
        cases.append(f'<testsuite name="one"><testcase {named}>{one.inner}</testcase></testsuite>')
    return f'<testsuites name="{tool}">{"".join(cases)}</testsuites>'


def judged(folder: Path, before: str, now: str, fail_on: str = "regressions") -> tuple[int, str]:
    """The exit code and the words of a change, behind a run of the default branch."""
    (folder / "out.xml").write_text(before)
    gate(folder, "check", "out.xml", "--fail-on", "never")
    (folder / "out.xml").write_text(now)
    done = gate(folder, "check", "out.xml", "--baseline", "latest", "--fail-on", fail_on)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


KEPT = tuple(Case("c", name, file="test_c.py") for name in "xyz")
MOCHA = tuple(Case(name, f"one {name}") for name in ("ok", "b", "d", "e"))


@pytest.mark.parametrize(
    ("before", "now", "code", "says"),
    [
        (
            junit(*(Case("a.test.js", f"one > {name}") for name in "abc"), tool="vitest tests"),
            junit(
                Case("a.test.js", "one > a"),
                Case("a.test.js", "one > b", SKIPPED),
                Case("a.test.js", "one > c", SKIPPED),
                Case("a.test.js", "one", FAILED),
                tool="vitest tests",
            ),
            3,
            "2 cases that passed there are missing or skipped in this run (one > b, one > c)",
        ),
        (
            junit(*(Case("a.test.js", f"one > two > {name}") for name in "ab"), tool="vitest tests"),
            junit(
                *(Case("a.test.js", f"one > two > {name}") for name in "ab"),
                Case("a.test.js", "two", FAILED),
                tool="vitest tests",
            ),
            3,
            "1 evaluation error",
        ),
        (
            junit(*MOCHA),
            junit(*MOCHA[2:], Case("", 'one "before all" hook for "ok"', FAILED)),
            3,
            "2 cases that passed there are missing",
        ),
        (junit(*MOCHA), junit(*MOCHA, Case("", '"after each" hook', FAILED)), 3, "1 evaluation error"),
        (
            junit(*MOCHA),
            junit(*MOCHA, Case("", " Test execution failure: could be caused by test hooks like 'afterAll'.", FAILED)),
            3,
            "1 evaluation error",
        ),
        (junit(*KEPT), junit(*KEPT, Case("", "tearDownClass (ut.T)", FAILED)), 3, "1 evaluation error"),
        (
            junit(*KEPT),
            junit(*KEPT[1:], Case("c", "x (i=1)", FAILED, "test_c.py")),
            3,
            "1 failing case is not in the baseline (x (i=1))",
        ),
        (junit(*KEPT), junit(*KEPT[1:], Case("d", "w", FAILED, "test_c.py")), 3, "1 case that passed"),
        (junit(*KEPT), junit(*KEPT[1:], Case("", "c", FAILED)), 3, "1 case that passed"),
        (junit(*KEPT), junit(*KEPT, Case("c", "w", FAILED, "test_c.py")), 0, "GATE PASSED"),
        (junit(*KEPT), junit(*KEPT[1:], Case("d", "w", FAILED, "test_d.py")), 0, "GATE PASSED"),
    ],
    ids=[
        "vitest, before tests",
        "vitest, after tests of a block within",
        "mocha, before tests",
        "mocha, after a test",
        "jest-junit",
        "unittest, after a class",
        "renamed",
        "renamed with its class",
        "Surefire, before a class",
        "new, and all others are there",
        "new in another file",
    ],
)
def test_judge__failure_under_a_name_that_no_test_had__is_not_new_where_tests_are_missing(
    tmp_path, before, now, code, says
) -> None:
    assert (found := judged(tmp_path, before, now))[0] == code, found[1]
    assert says in found[1]


def test_judge__renamed_on_purpose__is_new_where_min_coverage_says_so(tmp_path) -> None:
    (tmp_path / "eval-gate.yaml").write_text("minCoverage: 0\n")
    assert judged(tmp_path, junit(*KEPT), junit(*KEPT[1:], Case("c", "w", FAILED)))[0] == 0


@pytest.mark.parametrize("parts", [1, 2])
def test_judge__part_of_a_test_of_unittest_fails__is_the_tests_regression(tmp_path, parts) -> None:
    kept = tuple(Case("ut.T", name, file="ut.py") for name in ("test_a", "test_b", "test_sub"))
    failing = (Case("ut.T", f"test_sub [m] (i={number})", FAILED, "ut.py") for number in range(parts))
    code, said = judged(tmp_path, junit(*kept), junit(*kept[:2], *failing))
    assert (code, "REGRESSIONS (1): test_sub" in said) == (1, True), said


def jest(*cases: tuple[str, str]) -> str:
    """Tests of jest-junit, which have no class, by name and file; those that fail have a `!`."""
    return junit(*(Case(name.strip("!"), name.strip("!"), FAILED * ("!" in name), file) for name, file in cases))


MANY = [("one a", "a.js"), ("one c", "a.js"), ("one d", "a.js"), ("one e", "a.js")]


@pytest.mark.parametrize(
    ("before", "now", "code"),
    [
        ([("one b", "a.js")], [("one b", "new.js"), ("one b!", "a.js")], 1),
        ([("one b", "a.js"), ("one b", "old.js")], [("one b!", "a.js")], 1),
        ([("one b", "a.js")], [("one b!", "new.js"), ("one b", "a.js")], 0),
        ([("one b", "a.js")], [("one b!", "moved.js"), ("one b", "new.js")], 3),
    ],
    ids=["one more of the name", "one less of the name", "the new one fails", "nobody knows which one it was"],
)
def test_judge__test_of_the_same_name_in_another_file__takes_no_record_away(tmp_path, before, now, code) -> None:
    assert (found := judged(tmp_path, jest(*MANY, *before), jest(*MANY, *now)))[0] == code, found[1]


UNTESTED = '<testcase classname="f" name="{}" status="untested"><skipped/></testcase>'


@pytest.mark.parametrize(("first", "code"), [(PASSED, 3), (FAILED, 1)], ids=["nothing fails", "stopped at a failure"])
def test_judge__scenario_of_behave_that_was_not_run__is_not_skipped(tmp_path, first, code) -> None:
    kept = [Case("f", name) for name in "abc"]
    now = junit(Case("f", "a", first), Case("f", "b")).replace("</testsuites>", UNTESTED.format("c") + "</testsuites>")
    assert (found := judged(tmp_path, junit(*kept), now))[0] == code, found[1]


@pytest.mark.parametrize(
    ("now", "says"),
    [
        (
            junit(Case("t", "a"), tool="pytest tests").replace("</testsuite>", '<testcase time="0"/></testsuite>'),
            "out.xml:1: is the test at which pytest was stopped: the tests after it were not run",
        ),
        (
            junit(Case("Test suite failed to run", "z.js", "<error>● Test suite failed to run\n\nno module</error>")),
            "reports that z.js could not be loaded, so none of its tests ran: no module",
        ),
    ],
    ids=["pytest was stopped", "jest could not load a file"],
)
def test_judge__runner_did_not_come_to_its_tests__is_no_result(tmp_path, now, says) -> None:
    assert (found := judged(tmp_path, junit(Case("t", "a")), now))[0] == 3, found[1]
    assert says in found[1]
