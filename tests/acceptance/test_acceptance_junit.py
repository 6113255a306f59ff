"""A JUnit file is red exactly where the gate is: what blocks is a failure or an error, and nothing else is.

Through the whole program: the history of main, a change, the file that a CI system reads.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from tests.support.agents import unused_port

GOOD = "PPPPPPPF*4"
"""A main whose last case always fails."""
CHILDREN = ["properties", "skipped", "error", "failure", "system-out"]
"""What a test case may hold, in the order that every schema of the format accepts."""


def junit(made, letters: str, *arguments: str, **options: str):
    """The run, and what its file says of each test case: `passed`, or the element and its message."""
    seen = made.here(letters, "--report", "junit=junit.xml", *arguments, **options)
    root = ET.parse(made.folder / "junit.xml").getroot()
    check_form(root)
    assert (int(root.get("failures")) + int(root.get("errors")) == 0) == (seen.code == 0), ET.tostring(root)
    return seen, {case.get("name"): said_of(case) for case in root.iter("testcase")}


def said_of(case: ET.Element) -> tuple[str, str]:
    found = [one for one in case if one.tag in {"failure", "error", "skipped"}]
    assert len(found) <= 1
    assert all(one.text for one in found), "a reader that takes the text would show nothing"
    return (found[0].tag, found[0].get("message")) if found else ("passed", "")


def check_form(root: ET.Element) -> None:
    """What the schemas of the format have in common: Jenkins', Ant's and Surefire's."""
    assert (root.tag, {one.tag for one in root}) == ("testsuites", {"testsuite"})
    for suite in root:
        assert {"name", "tests", "failures", "errors", "skipped", "time"} <= set(suite.attrib)
        assert int(suite.get("tests")) == len(suite.findall("testcase")) == len(suite)
        for case in suite:
            assert {"name", "classname", "time"} <= set(case.attrib) <= {"name", "classname", "time", "file", "line"}
            order = [CHILDREN.index(one.tag) for one in case]
            assert order == sorted(order)
            assert all(set(one.attrib) == {"message", "type"} for one in case if one.tag in CHILDREN[1:4])
            assert all(set(one.attrib) == {"name", "value"} for one in case.iterfind("properties/property"))
    names = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    assert len(names) == len(set(names)), "GitLab takes only the first of a name"
    for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(root.get(count)) == len([*root.iter(tag)]) == sum(int(suite.get(count)) for suite in root)


def properties(made, name: str) -> dict[str, str]:
    root = ET.parse(made.folder / "junit.xml").getroot()
    case = next(case for case in root.iter("testcase") if case.get("name") == name)
    return {one.get("name"): one.get("value") for one in case.iterfind("properties/property")}


def test_junit__regression_beside_a_known_failure__only_the_regression_is_red(world) -> None:
    made = world(GOOD)
    seen, said = junit(made, "FPPPPPPF")
    assert seen.code == 1
    assert said["gs-000"][0] == "failure"
    assert said["gs-000"][1].startswith("regression: confirmed: failed ")
    assert said["gs-007"][0] == "skipped"
    assert said["gs-007"][1].startswith("does not block: still failing")
    assert said["gs-001"] == ("passed", "")
    told = properties(made, "gs-000")
    assert (told["change"], told["suite"]) == ("regression", "evals/weather.golden.json")
    assert told["history"].startswith("passed 4 of 4 ")
    assert (told["baseline"], told["current"][:4]) == ("pass (history: 4 of 4 pass)", "0 of")


def test_junit__nothing_is_worse__is_green_with_what_fails_as_skipped(world) -> None:
    seen, said = junit(world(GOOD), "PPPPPPPF")
    assert (seen.code, said["gs-007"][0]) == (0, "skipped")


def test_junit__failed_once_and_passes_again__is_no_failure(world) -> None:
    made = world(GOOD)
    seen, said = junit(made, "F(P)PPPPPPF")
    assert seen.code == 0
    assert said["gs-000"][0] in {"passed", "skipped"}


def test_junit__accepted__is_skipped_by_whose_word(world) -> None:
    made = world(GOOD)
    assert made.here("FPPPPPPF").code == 1
    assert made.gate("waive", "gs-000", "--reason", "known to #481", "--until", "14d", "--owner", "Kim").returncode == 0
    seen, said = junit(made, "FPPPPPPF")
    assert (seen.code, said["gs-000"][0]) == (0, "skipped")
    assert "by Kim" in said["gs-000"][1]
    assert "by Kim" in properties(made, "gs-000")["waived"]


@pytest.mark.parametrize(
    ("fail_on", "code", "red"),
    [("failures", 1, {"gs-000", "gs-007"}), ("regressions", 1, {"gs-000"}), ("never", 0, set())],
)
def test_junit__rules__say_what_is_red(world, fail_on, code, red) -> None:
    seen, said = junit(world(GOOD), "FPPPPPPF", fail_on=fail_on)
    assert (seen.code, {name for name, (tag, _) in said.items() if tag == "failure"}) == (code, red)


def test_junit__all__brings_back_everything_that_fails(world) -> None:
    made = world(GOOD)
    made.here("PPPPPPPF", "--report", "junit=junit.xml", junit_failures="all")
    assert ET.parse(made.folder / "junit.xml").getroot().get("failures") == "1"
    told = made.gate("report", "latest", "--format", "junit", "--junit-failures", "all")
    assert 'failures="1"' in told.stdout.splitlines()[1]
    assert 'failures="0"' in made.gate("report", "latest", "--format", "junit").stdout.splitlines()[1]
    refused = made.gate("report", "latest", "--format", "junit", "--junit-failures", "some")
    assert (refused.returncode, '--junit-failures: "some" is not known' in refused.stderr) == (2, True)


def test_junit__could_not_be_judged__is_an_error_only_where_it_counts(world) -> None:
    made = world(GOOD)
    seen, said = junit(made, "LPPPPPPF", "--max-retries", "0")
    assert (seen.code, said["gs-000"][0]) == (3, "error")
    seen, said = junit(made, "LPPPPPPF", "--max-retries", "0", max_errors="1")
    assert (seen.code, said["gs-000"][0]) == (0, "skipped")


def test_junit__agent_is_gone__what_was_not_run_is_an_error_with_its_reason(world) -> None:
    made = world(GOOD)
    url = f"http://127.0.0.1:{unused_port()}/chat"
    seen = made.here("PPPPPPPF", "--report", "junit=junit.xml", "--max-retries", "0", "--concurrency", "1", url=url)
    root = ET.parse(made.folder / "junit.xml").getroot()
    check_form(root)
    said = {case.get("name"): said_of(case) for case in root.iter("testcase")}
    assert (seen.code, root.get("errors")) == (3, "8")
    assert said["gs-007"][0] == "error"
    assert "not run" in said["gs-007"][1]


def test_junit__rule_about_no_case__is_a_test_case_of_the_gate(world) -> None:
    made = world("PPPPPPPP*2")
    made.cases.pop()
    made.write()
    seen, said = junit(made, "PPPPPPP", fail_on="regressions,removed")
    assert seen.code == 1
    assert said["removed"][0] == "failure"
    assert "1 case that passed in the baseline was removed" in said["removed"][1]


def test_junit__no_baseline_that_tells__is_no_green_file(world) -> None:
    made = world("")
    assert made.here("FPPP", baseline="", fail_on="failures").code == 1
    seen, said = junit(made, "FPPP", baseline="latest")
    assert seen.code == 3
    assert [tag for tag, _ in said.values()].count("error") >= 1
