"""Graded results on the command line: compared, gated, reported and exported."""

import json
from pathlib import Path

import msgspec
import pytest

from eval_gate.model.result import RunResult
from tests.support.graded import make_graded, make_graded_baseline, make_graded_run
from tests.support.program import gate


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder with an earlier run, `then.json`, and one to judge, `now.json`."""
    runs = {
        "then": make_graded_baseline({"a": 0.9, "b": 0.85, "c": 1.0}),
        "now": make_graded_run([make_graded("a", evaluators={"policy": 0.4, "style": 0.8}), *_rest()]),
    }
    for name, run in runs.items():
        (tmp_path / f"{name}.json").write_text(msgspec.json.encode(run).decode())
    return tmp_path


def _rest():
    return make_graded("b", 0.9), make_graded("c", 1.0)


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ((), 1, "GATE FAILED: 2 cases failed (limit 0)"),
        (("--fail-on", "regressions"), 0, "SCORE DROPS OVER 0.10 (1)"),
        (("--fail-on", "regressions", "--score-tolerance", "0.4"), 0, "GATE PASSED"),
        (("--fail-on", "regressions", "--pass-score", "0.85"), 1, "REGRESSIONS (1): a"),
        (("--pass-score", "0.6"), 0, "GATE PASSED"),
        (("--fail-on", "regressions", "--max-score-drop", "0.25"), 1, "fell by more than 0.25 (largest drop: 0.30)"),
        (("--pass-score", "0.6", "--max-score-drop", "0.25"), 1, "fell by more than 0.25 (largest drop: 0.30)"),
    ],
)
def test_compare__graded_results__are_held_to_what_was_asked(results, options, code, words) -> None:
    done = gate(results, "compare", "then.json", "now.json", *options)
    assert (done.returncode, words in done.stdout) == (code, True), done.stdout + done.stderr
    assert "a" in done.stdout
    assert ("SCORE DROPS" in done.stdout) == ("0.4" not in options and "0.85" not in options)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (("--pass-score", "0"), "--pass-score"),
        (("--pass-score", "1.1"), "--pass-score"),
        (("--pass-score", "nan"), "--pass-score"),
        (("--score-tolerance", "-1"), "--score-tolerance"),
        (("--max-score-drop", "2"), "--max-score-drop"),
        (("--export", "agentv"), "--export"),
        (("--fail-on", "nothing"), "--fail-on"),
    ],
)
def test_compare__what_is_no_score__is_a_usage_error(results, options, field) -> None:
    done = gate(results, "compare", "then.json", "now.json", *options)
    assert done.returncode == 2
    assert field in done.stderr
    assert done.stdout == ""


def test_compare__export_and_record__agree_about_everything_but_the_threshold(results) -> None:
    options = ("--pass-score", "0.6", "--export", "agentv=out/a.jsonl", "--export", "agentv=out/b.jsonl", "--json")
    done = gate(results, "compare", "then.json", "now.json", *options)
    assert done.returncode == 0, done.stderr
    run = msgspec.json.decode(done.stdout, type=RunResult)
    assert run.verdict is not None
    assert run.verdict.pass_score == 0.6
    records = [json.loads(line) for line in (results / "out" / "a.jsonl").read_text().splitlines()]
    assert [(record["eval_id"], record["status"]) for record in records] == [
        ("a", "fail"),
        ("b", "fail"),
        ("c", "pass"),
    ]
    assert [record["score"] for record in records] == pytest.approx([0.6, 0.9, 1.0])
    assert (results / "out" / "b.jsonl").read_text() == (results / "out" / "a.jsonl").read_text()


def test_report__agentv__is_the_same_on_standard_output(results) -> None:
    done = gate(results, "report", "now.json", "--format", "agentv")
    assert done.returncode == 0
    assert [json.loads(line)["dataset"] for line in done.stdout.splitlines()] == ["support"] * 3


def test_report__judged_with_a_pass_score__counts_by_it_later_too(results) -> None:
    done = gate(results, "compare", "then.json", "now.json", "--pass-score", "0.85", "--json")
    (results / "judged.json").write_text(done.stdout)
    text = gate(results, "report", "judged.json").stdout
    assert "Graded cases pass with a score of 0.85 or more." in text
    assert "3 cases: 2 pass, 1 does not pass (1 regression)" in text
