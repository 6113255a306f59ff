"""Results of other tools in which a check says less than it did: it is named, and `fail-on: changed` blocks it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.program import gate

CORRECT, POLITE = {"name": "correct", "passed": True}, {"name": "polite", "passed": True}
DECIDED = {"suite": "s", "status": "passed", "input": "q", "expected": "e", "checks": [CORRECT, POLITE]}


def check(folder: Path, line: dict, *more: str):
    """What `check` says of three cases, of which the last one is this line, beside three as they were."""
    then = [{**DECIDED, "id": f"c{number}", "input": f"q{number}"} for number in range(3)]
    for name, rows in (("then", then), ("now", [*then[:2], {**line, "id": "c2"}])):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = gate(folder, "check", "then.jsonl", "--output-dir", "then")
    assert made.returncode == 0, made.stderr
    return gate(folder, "check", "now.jsonl", "--baseline", "then", *more)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"checks": [{"name": "correct", "score": 0.0}, POLITE]}, "has an evaluator that no longer decides: `c2`"),
        ({"checks": [POLITE]}, "has fewer checks: `c2`"),
        ({"checks": []}, "no longer has a check: `c2`"),
        ({"input": None, "expected": None}, "no longer says what its prompt or expectation is: `c2`"),
        ({"input": None}, "no longer says what its prompt or expectation is: `c2`"),
        ({"expected": None}, "has a changed expectation: `c2`"),
    ],
)
def test_check__a_case_that_says_less_than_it_did__is_named_and_blocks(tmp_path, changes, said) -> None:
    line = {key: value for key, value in {**DECIDED, "input": "q2", **changes}.items() if value is not None}
    done = check(tmp_path, line, "--fail-on", "regressions,changed")
    assert (done.returncode, said in " ".join(done.stdout.split())) == (1, True), done.stdout + done.stderr


@pytest.mark.parametrize("correct", [{"name": "correct"}, {"name": "correct", "passed": None}])
def test_check__a_check_without_a_verdict_and_a_number__could_not_judge(tmp_path, correct) -> None:
    line = {**DECIDED, "input": "q2", "checks": [correct, POLITE]}
    done = check(tmp_path, line, "--fail-on", "regressions,changed")
    assert (done.returncode, "c2: correct gave no score" in done.stdout) == (3, True), done.stdout + done.stderr


def langsmith(**feedback) -> list:
    row = {"example_id": "x", "execution_time": 1.0, "inputs.q": "q", "outputs.a": "r"}
    return [row | {"feedback.polite": True} | {f"feedback.{key}": value for key, value in feedback.items()}]


def braintrust(value) -> list:
    return [{"input": "q", "output": "r", "expected": "e", "scores": {"polite": True, "correct": value}}]


def azure(**correct) -> dict:
    row = {"inputs.id": "x", "inputs.query": "q", "outputs.polite.polite_result": "pass"}
    return {"rows": [row | {f"outputs.correct.correct_{key}": value for key, value in correct.items()}], "metrics": {}}


def deepeval(**correct) -> dict:
    polite, metric = {"name": "polite", "score": 1, "success": True}, {"name": "correct", "score": 1, "success": True}
    case = {"name": "x", "input": "q", "success": True, "metricsData": [polite, metric | correct]}
    return {"testFile": "t", "testCases": [case]}


def adk(status: int) -> dict:
    metrics = [{"metric_name": name, "score": 1, "eval_status": 1} for name in ("polite", "correct")]
    metrics[1]["eval_status"] = status
    case = {"eval_set_id": "s", "eval_id": "x", "final_eval_status": 1, "overall_eval_metric_results": metrics}
    return {"eval_set_result_id": "r", "eval_case_results": [case]}


def pydantic(kind: str, value) -> dict:
    polite, correct = ({"value": one, "source": {"name": name}} for name, one in (("polite", True), ("correct", value)))
    assertions, scores = {"polite": polite}, {}
    (assertions if kind == "assertions" else scores)["correct"] = correct
    return {
        "name": "d",
        "cases": [{"name": "x", "inputs": "q", "assertions": assertions, "scores": scores}],
        "failures": [],
    }


LESS = {
    "LangSmith, a number": (langsmith(correct=True), langsmith(correct=0.0)),
    "LangSmith, a text": (langsmith(correct=True), langsmith(correct="fine")),
    "Braintrust, a number": (braintrust(value=True), braintrust(value=0.1)),
    "Azure, skipped": (azure(result="pass"), azure(result="not_applicable", status="skipped")),
    "DeepEval, no threshold": (deepeval(), deepeval(success=None)),
    "DeepEval, flaky": (deepeval(), deepeval(flaky=True)),
    "Google ADK, a measure": (adk(1), adk(4)),
    "pydantic-evals, a number": (pydantic("assertions", value=True), pydantic("scores", value=0.1)),
}
"""Results in which a scorer decided, and in which it has a number, a text or nothing."""


@pytest.mark.parametrize("row", LESS)
def test_check__a_scorer_of_any_tool_that_decided_and_only_measures__is_named_and_blocks(tmp_path, row) -> None:
    for name, results in zip(("then", "now"), LESS[row], strict=True):
        (tmp_path / f"{name}.json").write_text(json.dumps(results))
    done = gate(tmp_path, "check", "now.json", "--baseline", "then.json", "--fail-on", "regressions,changed")
    words = " ".join(done.stdout.split())
    assert (done.returncode, "has an evaluator that no longer decides" in words) == (1, True), words + done.stderr


def test_check__a_case_that_decides_more_than_it_did__is_no_setup_change(tmp_path) -> None:
    line = {**DECIDED, "input": "q2", "checks": [CORRECT, POLITE, {"name": "short", "score": 0.4}]}
    done = check(tmp_path, line, "--fail-on", "regressions,changed")
    assert (done.returncode, "setup changed" in done.stdout) == (0, False), done.stdout + done.stderr
