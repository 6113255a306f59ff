"""Names in results of other tools: read exactly or refused, and several results of one name by one rule."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from eval_gate.external_results.result_rows import ResultRow
from eval_gate.model.execution import Status
from tests.support.program import gate
from tests.support.tool_results import READABLE, copy_recorded, load, name_recorded

LINES = ("id,status,output", "hours,passed,Open.", "résumé,{},Ein Lebenslauf.", "parcel,passed,At the depot.", "")
XML = (
    '<?xml version="1.0" encoding="{encoding}"?><testsuite name="s"><testcase name="hours"/>'
    '<testcase name="résumé">{inner}</testcase><testcase name="parcel"/></testsuite>'
)


def check(folder: Path, now: str, base: str, *options: str) -> tuple[int, str]:
    """`check NOW --baseline BASE`: its exit code and all that it says."""
    done = gate(folder, "check", now, "--baseline", base, "--fail-on", "regressions", *options)
    return done.returncode, f"{done.stdout}{done.stderr}"


def table(status: str, separator: str = ",") -> str:
    return "\r\n".join(LINES).format(status).replace(",", separator)


def promptfoo(status: bool) -> str:
    results = [
        {"testIdx": at, "promptIdx": 0, "provider": {"id": "bot"}, "success": passed, "vars": {"q": name}}
        for at, (name, passed) in enumerate((("hours", True), ("résumé", status), ("parcel", True)))
    ]
    return json.dumps({"evalId": "e", "results": {"results": results}}, ensure_ascii=False)


@pytest.mark.parametrize(
    ("name", "base", "now", "line"),
    [
        ("table.csv", table("passed"), table("failed"), ":3: is not UTF-8: byte 40 is 0xE9"),
        ("out.json", promptfoo(status=True), promptfoo(status=False), ":1: is not UTF-8"),
        ("lines.jsonl", '{"id": "é", "status": "passed"}\n', '{"id": "é", "status": "failed"}\n', ":1: is not UTF-8"),
        ("out.xml", XML.format(encoding="utf-8", inner=""), XML.format(encoding="utf-8", inner="<failure/>"), ":1: "),
    ],
)
def test_check__file_is_not_utf_8__is_refused_with_its_place_or_read_in_its_encoding(
    tmp_path, name, base, now, line
) -> None:
    (tmp_path / f"base-{name}").write_text(base, encoding="utf-8")
    (tmp_path / name).write_bytes(now.encode("cp1252"))
    code, said = check(tmp_path, name, f"base-{name}")
    assert (code, f"{name}{line}" in said, "--encoding" in said) == (2, True, True), said
    code, said = check(tmp_path, name, f"base-{name}", "--encoding", "windows-1252")
    assert (code, "\ufffd" in said, "é" in said, "1 regression" in said) == (1, False, True, True), said


@pytest.mark.parametrize("encoding", ["iso-8859-1", "windows-1252", "shift_jis", "gb18030"])
def test_check__xml_declares_its_encoding__is_read_in_it(tmp_path, encoding) -> None:
    name = "résumé" if encoding in {"iso-8859-1", "windows-1252"} else "会社"
    for file, inner in (("base.xml", ""), ("now.xml", "<failure/>")):
        text = XML.format(encoding=encoding, inner=inner).replace("résumé", name)
        (tmp_path / file).write_bytes(text.encode(encoding))
    code, said = check(tmp_path, "now.xml", "base.xml")
    assert (code, f"REGRESSIONS (1): {name}" in said) == (1, True), said


def test_check__declaration_says_utf_16_of_a_file_in_utf_8__is_read(tmp_path) -> None:
    """As .NET's StringWriter declares it."""
    for file, inner in (("base.xml", ""), ("now.xml", "<failure/>")):
        (tmp_path / file).write_text(XML.format(encoding="utf-16", inner=inner), encoding="utf-8")
    assert check(tmp_path, "now.xml", "base.xml")[0] == 1


def test_check__encoding_that_nobody_knows__is_a_mistake(tmp_path) -> None:
    (tmp_path / "a.csv").write_text(table("passed"), encoding="utf-8")
    code, said = check(tmp_path, "a.csv", "a.csv", "--encoding", "zip")
    assert (code, "--encoding: expected the name of an encoding" in said) == (2, True), said


def trx(*outcomes: str) -> str:
    """What xunit 3 writes of a theory whose rows have arguments without a text of their own."""
    rows = "".join(
        f'<UnitTestResult executionId="{at}" testId="1" testName="Bot.Ask(q: Question {{ }})" outcome="{outcome}"/>'
        for at, outcome in enumerate(outcomes)
    )
    ended = "Failed" if "Failed" in outcomes else "Completed"
    return f'<TestRun><Results>{rows}</Results><ResultSummary outcome="{ended}"/></TestRun>'


def test_check__rows_of_a_theory_have_one_name__are_no_executions_of_one_case(tmp_path) -> None:
    (tmp_path / "base.trx").write_text(trx("Passed"))
    (tmp_path / "now.trx").write_text(trx("Passed", "Failed", "Passed"))
    code, said = check(tmp_path, "now.trx", "base.trx")
    assert (code, '"Bot.Ask(q: Question { })" occurs twice' in said, "theory" in said) == (2, True, True), said


def repeated(*tests: tuple[str, bool], repeat: int | None = None) -> str:
    """A file of promptfoo with one result for each test, in their order, and the `--repeat` that it states."""
    results = [
        {"testIdx": at, "promptIdx": 0, "provider": {"id": "bot"}, "success": passed, "vars": {"q": name}}
        for at, (name, passed) in enumerate(tests)
    ]
    document = {"evalId": "e", "results": {"results": results}}
    return json.dumps(document if repeat is None else document | {"runtimeOptions": {"repeat": repeat}})


TWICE = (("a", True), ("b", True), ("a", False), ("b", True))


@pytest.mark.parametrize(
    ("now", "code"),
    [
        (repeated(*TWICE, repeat=2), 3),  # one of its two trials failed
        (repeated(*TWICE), 3),  # an older version: each test is there equally often
        (repeated(*TWICE, repeat=1), 2),
        (repeated(*TWICE[:3]), 2),
        (repeated(*TWICE, *TWICE, repeat=2), 2),
    ],
    ids=["stated", "counted", "not repeated", "only one of them", "two tests, both repeated"],
)
def test_check__tests_of_promptfoo_ask_the_same__are_trials_where_it_was_told_to_repeat(tmp_path, now, code) -> None:
    (tmp_path / "base.json").write_text(repeated(("a", True), ("b", True)))
    (tmp_path / "now.json").write_text(now)
    ended, said = check(tmp_path, "now.json", "base.json")
    assert (ended, "duplicate-results" in said and "--repeat" in said) == (code, code == 2), said
    assert ("RE-RUNS" in said, "INCONCLUSIVE, TOO LITTLE EVIDENCE (1)" in said) == (False, code == 3), said


def test_check__class_is_added_and_the_clock_went_on__neither_target_nor_suites_change(tmp_path) -> None:
    """A file for each class, as Surefire writes them, and times in names, as unittest-xml-reporting does."""
    suite = '<testsuite name="{}-2026110{}102242"><testcase name="a">{}</testcase></testsuite>'
    for folder, day, classes in (("base", 1, ("Bot", "Shop")), ("now", 2, ("Agent", "Bot", "Shop"))):
        (tmp_path / folder).mkdir()
        for name in classes:
            failed = "<failure/>" if (folder, name) == ("now", "Shop") else ""
            (tmp_path / folder / f"TEST-{name}.xml").write_text(suite.format(name, day, failed))
    code, said = check(tmp_path, "now", "base")
    assert (code, "2 of 3 cases are in the baseline" in said, "setup changed" in said) == (1, True, False), said
    assert "2026110" not in said


def is_pass(row: ResultRow) -> bool:
    return row.status is Status.PASSED or (row.is_graded and (row.score or 0.0) >= 0.7)


@pytest.mark.parametrize("file", READABLE, ids=name_recorded)
def test_check__recorded_file_has_a_failing_case__the_report_names_it(tmp_path, file) -> None:
    copy = copy_recorded(file, tmp_path)
    cases = load(copy, pass_score=0.7).cases
    failing = {
        "".join(key.case_id.split())
        for key, rows in cases.items()
        if rows[0].status is not Status.SKIPPED and 2 * sum(map(is_pass, rows)) <= len(rows)
    }
    done = gate(tmp_path, "check", str(copy), "--pass-score", "0.7", "--fail-on", "never")
    said = "".join(done.stdout.split())
    assert [one for one in failing if one[:40] not in said] == [], done.stdout
    if "flakyFailure" in copy.read_bytes().decode(errors="replace"):
        assert "failed and passed in a retry" in done.stdout


def test_check__the_same_tool_ran_again_with_one_more_test__every_case_is_known(tmp_path) -> None:
    """Pytest, really run twice: other times, durations and lines, and a test in front of the others."""
    tests = "import pytest\n@pytest.mark.parametrize('q', ['hours', 'résumé'])\ndef test_bot(q): assert q\n"
    for file, more in (("base.xml", ""), ("now.xml", "def test_new(): pass\n")):
        (tmp_path / "test_bot.py").write_text(more + tests, encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "test_bot.py"]
        subprocess.run([*command, f"--junitxml={file}"], cwd=tmp_path, check=True, capture_output=True)
    code, said = check(tmp_path, "now.xml", "base.xml")
    assert (code, "2 of 3 cases are in the baseline" in said, "setup changed" in said) == (0, True, False), said
