"""Statuses of other tools that are no pass: a part that could not look is an evaluation error, and never green."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.program import gate
from tests.support.tool_results import FILES

CTEST = (FILES / "ctest.xml").read_text()
RUN = '<testcase name="{0}" classname="{0}" time="0" status="run"/>'
NOT_RUN = '<testcase name="{0}" classname="{0}" time="0" status="notrun"><skipped message="{1}"/></testcase>'
PROVIDER = (
    r'<testcase name="Warning" class="PHPUnit\Framework\WarningTestCase" classname="PHPUnit.Framework.WarningTestCase">'
    r'<warning type="PHPUnit\Framework\Warning">The data provider threw</warning></testcase>'
)
SCORE = {"value": "C", "answer": "a", "explanation": "e", "history": []}
JUDGED = {
    "inputs.query": "q",
    "outputs.judge.relevance": 5.0,
    "outputs.judge.relevance_score": 5.0,
    "outputs.judge.relevance_passed": True,
    "outputs.judge.relevance_result": "pass",
    "outputs.judge.relevance_threshold": 3,
    "outputs.judge.relevance_status": "completed",
}
BLIND = {"relevance": float("nan"), "relevance_score": float("nan"), "relevance_passed": False}


def suite(*cases: str, name: str = "(empty)") -> str:
    return f'<testsuite name="{name}">{RUN.format("hours")}{"".join(cases)}</testsuite>'


def inspect(**more) -> str:
    samples = [
        {"id": name, "epoch": 1, "input": name, "target": "t", "scores": {"policy": SCORE}} for name in ("a", "b", "c")
    ]
    return json.dumps({"status": "success", "eval": {"task": "orders"}, "samples": [samples[0] | more, *samples[1:]]})


def azure(**more) -> str:
    changed = {f"outputs.judge.{key}": value for key, value in more.items()}
    rows = [JUDGED | {"inputs.id": name} for name in ("a", "b", "c")]
    return json.dumps({"rows": [rows[0] | changed, *rows[1:]], "metrics": {}})


def deepeval(score: float = 1.0) -> str:
    metric = {"name": "Exact", "threshold": 0.5, "success": True}
    cases = [
        {"name": name, "input": name, "success": True, "metricsData": [metric | {"score": one}]}
        for name, one in (("a", score), ("b", 1.0), ("c", 1.0))
    ]
    return json.dumps({"testFile": "t", "testCases": cases})


def promptfoo(**more) -> str:
    part = {"pass": True, "score": 1, "reason": "ok", "assertion": {"type": "llm-rubric", "threshold": 0.5}}
    cases = [
        {
            "success": True,
            "score": 1,
            "failureReason": 0,
            "vars": {"q": name},
            "gradingResult": {"pass": True, "componentResults": [part]},
        }
        for name in ("a", "b", "c")
    ]
    return json.dumps({"evalId": "e", "results": {"results": [cases[0] | more, *cases[1:]]}})


def graded(score: float) -> dict:
    part = {"pass": True, "score": score, "assertion": {"type": "llm-rubric", "threshold": 0.5}}
    return {"gradingResult": {"pass": True, "componentResults": [part]}}


BROKE = {"success": False, "failureReason": 1, "score": 0, "error": "Scoring function error: no such name"}
HOOK = '<testcase classname="f" name="refund" status="hook_error"><error message="HOOK-ERROR"/></testcase>'
FIXTURE = '<testcase classname="t" name="a"><error message="failed on setup with &quot;KeyError&quot;"/></testcase>'
PASSES = '<testcase classname="{}" name="{}"/>'
ROWS = {
    "ctest, not built": (
        suite(RUN.format("refund")),
        suite(NOT_RUN.format("refund", "Unable to find executable")),
        "it was not run: Unable to find executable",
    ),
    "ctest, fixture": (
        suite(RUN.format("refund")),
        suite(NOT_RUN.format("refund", "Fixture dependency failed")),
        "it was not run: Fixture dependency failed",
    ),
    "ctest, a new reason": (
        suite(RUN.format("refund")),
        suite(NOT_RUN.format("refund", "The moon is full")),
        "its `message` is The moon is full, which is not a known status",
    ),
    "PHPUnit, data provider": (suite(), suite(PROVIDER), "Warning: The data provider threw"),
    "behave, hook": (suite(PASSES.format("f", "refund")), suite(HOOK), "its `status` is hook_error: HOOK-ERROR"),
    "pytest, fixture": (
        suite(PASSES.format("t", "a"), name="pytest"),
        suite(FIXTURE, name="pytest"),
        'failed on setup with "KeyError"',
    ),
    "an element that nobody knows": (
        suite(PASSES.format("t", "a")),
        suite('<testcase classname="t" name="a"><exploded message="boom"/></testcase>'),
        "its `element` is exploded, which is not a known status: boom",
    ),
    "Inspect, invalidated": (
        inspect(),
        inspect(scores={"policy": SCORE | {"value": "I"}}, invalidation={"author": "ada", "reason": "no sandbox"}),
        "ada invalidated the sample: no sandbox",
    ),
    "Inspect, operator": (inspect(), inspect(limit={"type": "operator", "limit": 1}), "its `limit` is operator"),
    "Azure, unknown": (azure(), azure(**BLIND, relevance_result="unknown"), "judge.relevance: its `result` is unknown"),
    "Azure, no number": (azure(), azure(**BLIND, relevance_result="fail"), "gave no number, but result fail"),
    "Azure, below": (azure(), azure(relevance=1.0, relevance_score=1.0), "below the threshold of 3"),
    "DeepEval, below": (deepeval(), deepeval(0.1), "Exact passed, but also a score of 0.1, below the threshold of 0.5"),
    "promptfoo, below": (promptfoo(), promptfoo(**graded(0.1)), "a score of 0.1, below the threshold of 0.5"),
    "promptfoo, test below": (
        promptfoo(),
        promptfoo(score=0.1, testCase={"threshold": 0.5}),
        "it passed, but also a score of 0.1, below the threshold of 0.5",
    ),
    "promptfoo, scoring function": (promptfoo(), promptfoo(**BROKE), "Scoring function error: no such name"),
}


def check(folder: Path, base: str, now: str):
    suffix = "xml" if base.startswith("<") else "json"
    for name, text in (("base", base), ("now", now)):
        (folder / f"{name}.{suffix}").write_text(text)
    return gate(
        folder, "check", f"now.{suffix}", "--baseline", f"base.{suffix}", "--fail-on", "regressions", "--reruns", "0"
    )


@pytest.mark.parametrize("row", ROWS)
def test_check__a_part_that_could_not_look__is_an_evaluation_error_and_never_green(tmp_path, row) -> None:
    base, now, said = ROWS[row]
    done = check(tmp_path, base, now)
    words = " ".join(done.stdout.split())
    assert (done.returncode, said in words, "EVALUATION ERRORS (1)" in words) == (3, True, True), words + done.stderr
    assert "look up in the log of the tool" in words, words
    assert "check the LLM judge" not in words, "only the tool knows what broke"


@pytest.mark.parametrize(
    "now",
    [
        suite(NOT_RUN.format("refund", "SKIP_RETURN_CODE=77")),
        suite('<testcase name="refund" classname="refund" time="0" status="disabled"/>'),
        suite(PASSES.format("refund", "refund"), PASSES.format("orders", "Warning")),
    ],
    ids=["skipped by its return code", "disabled", "a test of the team's that is called Warning"],
)
def test_check__what_its_author_left_out_or_named__is_green(tmp_path, now) -> None:
    done = check(tmp_path, suite(RUN.format("refund")), now)
    assert done.returncode == 0, done.stdout


def test_check__file_of_ctest__has_errors_where_ctest_fails_and_skips_where_it_does_not(tmp_path) -> None:
    (tmp_path / "ctest.xml").write_text(CTEST)
    done = gate(tmp_path, "check", "ctest.xml")
    words = " ".join(done.stdout.split())
    assert "EVALUATION ERRORS (4)" in words, words
    assert "SKIPPED (3)" in words, words
