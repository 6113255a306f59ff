"""Two results of one tool beside each other: `check NOW --baseline BEFORE`, from files to verdict."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import gate
from tests.support.tool_results import FILES


def junit(folder: Path, name: str, **cases: str) -> str:
    """A file of JUnit XML whose tests ended so: `P`, `F` or `E`."""
    ends = {"P": "", "F": '<failure message="no"/>', "E": '<error message="ECONNREFUSED"/>'}
    body = "".join(f'<testcase classname="t" name="{case}">{ends[end]}</testcase>' for case, end in cases.items())
    (folder / name).write_text(f'<testsuites><testsuite name="t">{body}</testsuite></testsuites>')
    return name


def check(folder: Path, now: str, before: str, *options: str) -> tuple[int, str]:
    done = gate(folder, "check", now, "--baseline", before, *options)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize(
    ("before", "now", "options", "code", "said"),
    [
        ("PP", "PP", (), 0, "GATE PASSED: all rules hold for 2 cases"),
        ("PP", "PF", (), 1, "REGRESSIONS (1): b"),
        ("PP", "PF", ("--fail-on", "regressions", "--reruns", "0"), 1, "1 case that passed in the baseline failed"),
        ("PF", "PF", ("--fail-on", "regressions"), 0, "1 still failing"),
        ("PF", "PP", ("--fail-on", "regressions"), 0, "NEW PASSES (1): b"),
        ("PP", "EE", (), 3, "2 agent unreachable"),
    ],
)
def test_check__results_of_the_same_tool_as_baseline__decide(tmp_path, before, now, options, code, said) -> None:
    names = (junit(tmp_path, f"{name}.xml", **dict(zip("ab", ends, strict=True))) for name, ends in
             (("before", before), ("now", now)))  # fmt: skip
    before_file, now_file = names
    ended, words = check(tmp_path, now_file, before_file, *options)
    assert (ended, said in words) == (code, True), words
    assert "baseline before.xml-" in words
    assert "2 of 2 cases are in the baseline by classname and name" in words


def test_check__the_baselines_file__names_the_baseline_and_its_time_and_no_commit(tmp_path) -> None:
    before, now = junit(tmp_path, "before.xml", a="P"), junit(tmp_path, "now.xml", a="P")
    os.utime(tmp_path / before, (1_600_000_000, 1_600_000_000))
    done = gate(tmp_path, "check", now, "--baseline", before, "--json")
    compared = json.loads(done.stdout)["comparison"]["baseline"]
    assert (compared["source"], compared["timestamp"], compared.get("sha")) == (
        "before.xml",
        "2020-09-13T12:26:40Z",
        None,
    )
    again = json.loads(gate(tmp_path, "check", now, "--baseline", before, "--json").stdout)
    assert again["comparison"]["baseline"]["runId"] == compared["runId"]
    stored = [path.name for path in (tmp_path / "evals" / "results").iterdir() if path.is_dir()]
    assert len(stored) == 2, "of the baseline nothing is stored"


@pytest.mark.parametrize(
    ("file", "rules"),
    [
        ("promptfoo-output.json", ()),
        ("adk-cli.evalset_result.json", ()),
        ("azure-target.json", ()),
        ("braintrust-spans.json", ("--score", "exact>=1", "--score", "policy>=0.3")),
        ("langsmith-table.csv", ()),
    ],
)
def test_check__a_real_file_beside_its_copy__has_no_regression(tmp_path, file, rules) -> None:
    for name in (file, f"now-{file}"):
        (tmp_path / name).write_bytes((FILES / file).read_bytes())
    _, words = check(tmp_path, f"now-{file}", file, "--fail-on", "regressions", *rules)
    assert " are in the baseline by " in words
    assert f"baseline {file}-" in words
    assert "REGRESSIONS" not in words


def test_check__folder_of_results_as_baseline__is_read_whole(tmp_path) -> None:
    (tmp_path / "main").mkdir()
    junit(tmp_path / "main", "a.xml", a="P")
    junit(tmp_path / "main", "b.xml", b="P")
    ended, words = check(tmp_path, junit(tmp_path, "now.xml", a="P", b="F"), "main")
    assert (ended, "REGRESSIONS (1): b" in words) == (1, True), words


@pytest.mark.parametrize(
    ("before", "code", "said"),
    [
        ("promptfoo-output.json", 2, "has results of promptfoo, and now.xml of junit"),
        ("gone.xml", 2, "error[baseline-not-found]"),
        ("broken.xml", 3, "broken.xml:1: ends in the middle"),
        ("odd.json", 2, "error[invalid-run-result]"),
        ("scores.jsonl", 2, 'scores.jsonl:1: "a" has scores but no verdict'),
    ],
)
def test_check__a_baseline_that_cannot_be_one__is_an_error_in_its_place(tmp_path, before, code, said) -> None:
    (tmp_path / "promptfoo-output.json").write_bytes((FILES / "promptfoo-output.json").read_bytes())
    (tmp_path / "broken.xml").write_text("<testsuite><testcase")
    (tmp_path / "odd.json").write_text('{"a": 1}')
    (tmp_path / "scores.jsonl").write_text('{"id": "a", "score": 0.5}\n')
    now = junit(tmp_path, "now.xml", a="P") if before != "scores.jsonl" else "now.jsonl"
    (tmp_path / "now.jsonl").write_text('{"id": "a", "status": "passed"}\n')
    ended, words = check(tmp_path, now, before)
    assert (ended, said in words) == (code, True), words


def test_check__baseline_that_was_half_as_many_again__is_of_a_tool_that_did_not_finish(tmp_path) -> None:
    before = junit(tmp_path, "before.xml", a="P", b="P", c="P")
    ended, words = check(tmp_path, junit(tmp_path, "now.xml", a="P"), before)
    assert (ended, "have 1 case, less than 50.0 % of the 3" in words) == (3, True), words


def test_check__secrets_in_the_baseline__are_masked(tmp_path) -> None:
    (tmp_path / "b.jsonl").write_text('{"id": "a", "status": "passed", "output": "key sk-canary-123456"}\n')
    (tmp_path / "n.jsonl").write_text('{"id": "a", "status": "failed", "output": "no"}\n')
    found = gate(
        tmp_path,
        "check",
        "n.jsonl",
        "--baseline",
        "b.jsonl",
        "--report",
        "html=p.html",
        OPENAI_API_KEY="sk-canary-123456",
    )
    assert found.returncode == 1, found.stderr
    page = (tmp_path / "p.html").read_text()
    assert "key ***" in page
    assert "sk-canary" not in found.stdout + found.stderr + page


@pytest.mark.parametrize("before", ["now.xml", "./now.xml", "linked.xml", "*.xml", "folder"])
def test_check__baseline_is_the_file_that_is_checked__is_an_error(tmp_path, before) -> None:
    """A gate that compares a file with itself can never fail."""
    now = junit(tmp_path, "now.xml", a="F")
    (tmp_path / "folder").mkdir()
    for link in ("linked.xml", "folder/other.xml"):
        (tmp_path / link).symlink_to(tmp_path / now)
    ended, words = check(tmp_path, now, before, "--fail-on", "regressions")
    assert (ended, "error[baseline-is-checked]" in words) == (2, True), words


def test_check__case_loses_the_tag_by_which_it_has_to_pass__is_said(tmp_path) -> None:
    """Both sides are held to the same policy: what it no longer means is a loosened rule."""
    lines = [{"id": name, "status": "passed", "tags": ["critical"]} for name in "ab"]
    (tmp_path / "before.jsonl").write_text("\n".join(map(json.dumps, lines)))
    lines[1] |= {"status": "failed", "tags": []}
    (tmp_path / "now.jsonl").write_text("\n".join(map(json.dumps, lines)))
    rules = ("--must-pass", "tag:critical", "--allowed-regressions", "1")
    ended, words = check(tmp_path, "now.jsonl", "before.jsonl", "--fail-on", "regressions", *rules)
    assert (ended, "`must-pass` loosened: no longer covers `b`" in words) == (0, True), words
    ended, words = check(tmp_path, "now.jsonl", "before.jsonl", "--fail-on", "regressions,changed", *rules)
    assert (ended, "1 rule was loosened" in words) == (1, True), words


def change_threshold(document: Any, new: float) -> Any:
    """Return results with other thresholds, wherever they stand."""
    if isinstance(document, dict):
        return {
            name: new if name.endswith("threshold") and one is not None else change_threshold(one, new)
            for name, one in document.items()
        }
    return [change_threshold(one, new) for one in document] if isinstance(document, list) else document


@pytest.mark.parametrize(
    "file", ["adk-cli.evalset_result.json", "azure-target.json", "deepeval-test-run.json", "own.json"]
)
def test_check__the_change_lowers_a_threshold_of_its_tool__is_said(tmp_path, file) -> None:
    own = {"id": "a", "score": 0.8, "threshold": 0.7}
    document = own if file == "own.json" else json.loads((FILES / file).read_text())
    (tmp_path / "before.json").write_text(json.dumps(document))
    (tmp_path / "now.json").write_text(json.dumps(change_threshold(document, 0.05)))
    (tmp_path / "same.json").write_text(json.dumps(document))
    _, words = check(tmp_path, "now.json", "before.json", "--fail-on", "regressions")
    assert "grader of" in words
    _, words = check(tmp_path, "same.json", "before.json", "--fail-on", "regressions")
    assert "grader of" not in words


def test_check__case_breaks_that_has_a_threshold__its_grader_is_the_same(tmp_path) -> None:
    line = {"id": "a", "score": 0.8, "threshold": 0.7}
    (tmp_path / "before.jsonl").write_text(json.dumps(line))
    (tmp_path / "now.jsonl").write_text(json.dumps({"id": "a", "status": "error", "error": "boom"}))
    ended, words = check(tmp_path, "now.jsonl", "before.jsonl", "--fail-on", "regressions")
    assert (ended, "grader of" in words) == (1, False), words


def test_check__secret_in_the_name_of_the_baseline__is_stored_nowhere(tmp_path) -> None:
    before, now = junit(tmp_path, "sk-canary-123456.xml", a="P"), junit(tmp_path, "now.xml", a="P")
    given = ("check", f"sk-canary-123456={now}", "--baseline", f"sk-canary-123456={before}", "--report", "html=p.html")
    done = gate(tmp_path, *given, OPENAI_API_KEY="sk-canary-123456")
    assert done.returncode == 0, done.stderr
    written = [file.read_text() for file in (tmp_path / "evals").rglob("*") if file.is_file()]
    assert "sk-canary" not in "".join([*written, done.stdout, (tmp_path / "p.html").read_text()])
