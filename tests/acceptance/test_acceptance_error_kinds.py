"""Results of other tools in which something broke: whose fault it is decides between exit code 1 and 3.

Each file is one that the tool itself wrote, with one thing in it as the tool writes it where that breaks.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import gate

FILES = Path(__file__).parents[1] / "unit" / "external_results" / "files"
NAN = float("nan")
SCORER = 'File "/usr/lib/python3/site-packages/inspect_ai/scorer/_model.py", line 176, in score'
SOLVER = 'File "/app/agent.py", line 12, in solve'


def promptfoo(change: Callable[[dict[str, Any]], None] | None, version: str = "0.121.19") -> str:
    document = json.loads((FILES / "promptfoo-output.json").read_text())
    document["metadata"]["promptfooVersion"] = version
    row = document["results"]["results"][0]
    row["gradingResult"]["componentResults"].append(component(True, "It is polite.", "llm-rubric"))
    if change:
        change(row)
    document["results"] = {"prompts": document["results"]["prompts"], "results": [row]}
    return json.dumps(document)


def component(passed: bool, reason: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"pass": passed, "score": int(passed), "reason": reason, "assertion": {"type": kind, "value": "v"}, **more}


def graded(*components: dict[str, Any], passed: bool = False) -> Callable[[dict[str, Any]], None]:
    """A result with these components beside the one that passes."""

    def change(row: dict[str, Any]) -> None:
        said = row["gradingResult"]
        said["componentResults"][1:] = components
        said |= {"pass": passed, "score": int(passed), "reason": components[-1]["reason"]}
        row |= {"success": passed, "failureReason": int(not passed), "error": None if passed else said["reason"]}

    return change


BROKE = component(False, "API error: 503 unavailable", "llm-rubric", metadata={"graderError": True})


DIST = "(file:///app/node_modules/promptfoo/dist/src/"
AGENT_FRAMES = (
    "    at module.exports.callApi (/app/prov.js:429:81)\n"
    f"    at callApi {DIST}evaluator-8V_ULngs.js:6995:39)\n"
    f"    at ProviderRateLimitState.executeWithRetry {DIST}shared-qTexMujx.js:628:26)\n"
    f"    at async RateLimitRegistry.execute {DIST}shared-qTexMujx.js:857:19)"
)
GRADER_FRAMES = (
    "    at module.exports.callApi (/app/grade.js:2:24)\n"
    f"    at callApi {DIST}graders-D8C-P60-.js:88:50)\n"
    f"    at ProviderRateLimitState.executeWithRetry {DIST}shared-qTexMujx.js:628:26)"
)
ASSERTION_FRAMES = (
    f"    at importModule {DIST}esm-B0TE2H68.js:275:41)\n    at async runAssertion {DIST}evaluator-8V_ULngs.js:5223:22)"
)


def threw(error: str, frames: str = "") -> Callable[[dict[str, Any]], None]:
    """A result that ended with an error, as promptfoo 0.121.20 wrote it."""
    said = f"{error}\n{frames}" if frames else error
    return lambda row: row.update(success=False, failureReason=2, error=said, response=None, gradingResult=None)


def inspect(change: Callable[[dict[str, Any]], None] | None) -> str:
    document = json.loads((FILES / "inspect-log.json").read_text())
    sample = document["samples"][0]
    sample["scores"] = {"quality": {"value": "C", "explanation": "GRADE: C"}}
    if change:
        change(sample)
    document |= {"samples": [sample], "results": {"total_samples": 1}}
    return json.dumps(document)


def scored(value: Any, **more: Any) -> Callable[[dict[str, Any]], None]:
    return lambda sample: sample["scores"]["quality"].update(value=value, **more)


def ended(where: str) -> Callable[[dict[str, Any]], None]:
    error = {"message": "RuntimeError('no')", "traceback": f"Traceback:\n  {where}\nRuntimeError: no"}
    return lambda sample: sample.update(error=error, scores=None)


def agentv(change: Callable[[dict[str, Any]], None] | None) -> str:
    row = json.loads((FILES / "agentv-index.jsonl").read_text().splitlines()[0])
    if change:
        change(row)
    return json.dumps(row)


def overruled(row: dict[str, Any]) -> None:
    """AgentV says that all is well, and its only scorer says no."""
    row.update(execution_status="ok", score=0)
    row["scores"] = [row["scores"][0] | {"verdict": "fail", "score": 0}]


def outvoted(row: dict[str, Any]) -> None:
    """One of two scorers says no, and the score of both is enough."""
    row.update(execution_status="ok", score=0.9)
    row["scores"] = [row["scores"][0], row["scores"][0] | {"name": "other", "verdict": "fail", "score": 0.8}]


def stopped(stage: str, said: str, status: str = "execution_error") -> Callable[[dict[str, Any]], None]:
    error = {"failure_stage": stage, "execution_error": {"message": said, "stage": stage}, "error": said}
    return lambda row: row.update(execution_status=status, score=0, **error)


def deepeval(change: Callable[[dict[str, Any]], None] | None) -> str:
    document = json.loads((FILES / "deepeval-test-run.json").read_text())
    case = document["testCases"][0]
    if change:
        change(case)
    document |= {"testCases": [case], "testPassed": 0, "testFailed": 0, "metricsScores": []}
    return json.dumps(document)


def metric(*, passed: bool = False, **first: Any) -> Callable[[dict[str, Any]], None]:
    """The first metric of a case that `passed`; None is what DeepEval leaves out."""

    def change(case: dict[str, Any]) -> None:
        case["success"] = passed
        given = case["metricsData"][0] | {"success": False, "score": 0} | first
        case["metricsData"][0] = {name: value for name, value in given.items() if value is not None}

    return change


def pydantic_evals(change: Callable[[dict[str, Any]], None] | None) -> str:
    document = json.loads((FILES / "pydantic-evals-report.json").read_text())
    case = document["cases"][0]
    case |= {"assertions": {"a": {"name": "a", "value": True}}, "scores": {}}
    document |= {"cases": [case], "failures": []}
    if change:
        change(document)
    return json.dumps(document)


def broken_evaluator(document: dict[str, Any]) -> None:
    document["cases"][0]["evaluator_failures"] = [{"name": "Judge", "error_message": "no verdict"}]


def broken_task(said: str) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        case = document["cases"].pop()
        document["failures"] = [{"name": case["name"], "inputs": case["inputs"], "error_message": said}]
        document["failures"][0] |= {"expected_output": case["expected_output"], "source_case_name": "refund-1"}

    return change


def adk(change: Callable[[dict[str, Any]], None] | None) -> str:
    document = json.loads((FILES / "adk-cli.evalset_result.json").read_text())
    [case] = [one for one in document["eval_case_results"] if one["eval_id"] == "refund"]
    if change:
        change(case)
    document["eval_case_results"] = [case]
    return json.dumps(document)


def adk_case(name: str) -> Callable[[dict[str, Any]], None]:
    """As another case of the same file ended."""

    def change(case: dict[str, Any]) -> None:
        document = json.loads((FILES / "adk-cli.evalset_result.json").read_text())
        [other] = [one for one in document["eval_case_results"] if one["eval_id"] == name]
        case.clear()
        case.update(other | {"eval_id": "refund"})

    return change


def adk_metric(final: int) -> Callable[[dict[str, Any]], None]:
    """A metric that fails, in a case of this status."""

    def change(case: dict[str, Any]) -> None:
        case["overall_eval_metric_results"][0] |= {"eval_status": 2, "score": 0}
        case["final_eval_status"] = final

    return change


def table_row(file: str, question: str) -> tuple[Any, dict[str, Any]]:
    """A file of a tool that writes a row for each case, and its row that asks this."""
    document = json.loads((FILES / file).read_text())
    rows = document["rows"] if isinstance(document, dict) else document
    return document, next(row for row in rows if question in json.dumps(row))


def azure(change: Callable[[dict[str, Any]], None] | None) -> str:
    document, row = table_row("azure-target.json", "Refund")
    if change:
        change(row)
    return json.dumps(document | {"rows": [row]})


def braintrust(change: Callable[[dict[str, Any]], None] | None) -> str:
    _, row = table_row("braintrust-results.json", "Refund")
    row["scores"] = {"exact": True}
    if change:
        change(row)
    return json.dumps([row])


def langsmith(change: Callable[[dict[str, Any]], None] | None) -> str:
    _, row = table_row("langsmith-rows.json", "Refund")
    if change:
        change(row)
    return json.dumps([row])


def without_result(error: str | None) -> Callable[[dict[str, Any]], None]:
    """A row of Azure's as its library writes it where the target returned nothing, or its error in place of that."""

    def change(row: dict[str, Any]) -> None:
        row.update({key: NAN for key in row if key.startswith("outputs.")} | {"outputs.response": None})
        row["outputs.error"] = error

    return change


def judged_by(**score: Any) -> Callable[[dict[str, Any]], None]:
    """A run of LangSmith's whose first evaluator said this."""
    return lambda row: row["evaluation_results"]["results"][0].update(score)


def trx(change: str | None) -> str:
    outcome, message = (change or "Passed/").split("/", 1)
    said = f"<Output><ErrorInfo><Message>{message}</Message></ErrorInfo></Output>" if message else ""
    return (
        f'<TestRun><Results><UnitTestResult testId="1" testName="A" outcome="{outcome}">{said}</UnitTestResult>'
        "</Results></TestRun>"
    )


TOOLS = {
    "promptfoo": (promptfoo, "r.json"),
    "inspect": (inspect, "r.json"),
    "agentv": (agentv, "index.jsonl"),
    "deepeval": (deepeval, "r.json"),
    "pydantic-evals": (pydantic_evals, "r.json"),
    "adk": (adk, "r.json"),
    "azure": (azure, "r.json"),
    "braintrust": (braintrust, "r.json"),
    "langsmith": (langsmith, "r.json"),
    "trx": (trx, "r.trx"),
}
OURS, AWAY, CRASHED, FAILED = (
    (3, "evaluation error"),
    (3, "unreachable"),
    (1, "agent error"),
    (1, "usually passes failed"),
)
GREEN = (0, "1 of 1 pass")
CASES: dict[str, tuple[Callable[..., Any], tuple[int, str]]] = {
    "promptfoo: grader error": (graded(BROKE), OURS),
    "promptfoo: grader error in a set": (graded(component(False, "set", "assert-set", componentResults=[BROKE])), OURS),
    "promptfoo: no mark, 401": (graded(component(False, "API error: 401 Unauthorized", "g-eval")), OURS),
    "promptfoo: no mark, 429": (graded(component(False, "429 Too many requests", "factuality")), OURS),
    "promptfoo: no mark, no JSON": (
        graded(component(False, "Could not extract JSON from llm-rubric response", "llm-rubric")),
        OURS,
    ),
    "promptfoo: passes although the grader broke": (
        graded(component(True, "API error: 503", "not-llm-rubric", metadata={"graderError": True}), passed=True),
        OURS,
    ),
    "promptfoo: another assertion failed beside": (graded(BROKE, component(False, "Expected x", "equals")), FAILED),
    "promptfoo: the rubric speaks of 401": (graded(component(False, "It hides the 401 error.", "llm-rubric")), FAILED),
    "promptfoo: no model was asked": (graded(component(False, "Error: 5 is not 4", "javascript")), FAILED),
    "promptfoo: provider broke": (lambda row: row.update(success=False, failureReason=2, error="it broke"), CRASHED),
    "promptfoo: provider refused": (lambda row: row.update(success=False, failureReason=2, error="429 quota"), AWAY),
    "promptfoo: passes and failed for a reason": (lambda row: row.update(success=True, failureReason=1), OURS),
    "promptfoo: passes and its grading does not": (lambda row: row["gradingResult"].update({"pass": False}), OURS),
    "promptfoo: passes and no component does": (
        lambda row: row["gradingResult"].update(componentResults=[component(False, "no", "equals")]),
        OURS,
    ),
    "promptfoo: passes by its threshold": (graded(component(False, "no", "equals"), passed=True), GREEN),
    "promptfoo: provider threw": (threw("Error: boom in agent", AGENT_FRAMES), CRASHED),
    "promptfoo: provider found nobody": (threw("Error: connect ECONNREFUSED 127.0.0.1:1", AGENT_FRAMES), AWAY),
    "promptfoo: grader threw": (threw("Error: grader down", GRADER_FRAMES), OURS),
    "promptfoo: assertion broke": (threw("Error: ENOENT: no such file, open 'x.js'", ASSERTION_FRAMES), OURS),
    "promptfoo: out of time for all": (threw("Evaluation exceeded max duration of 2500ms"), OURS),
    "promptfoo: out of time for one": (threw("Evaluation timed out after 1500ms: Error: …"), CRASHED),
    "promptfoo: webhook is down": (graded(component(False, "Webhook error: fetch failed", "webhook")), OURS),
    "promptfoo: script is wrong": (
        graded(
            component(
                False, "Custom function threw error: x\nStack Trace: ReferenceError: x is not defined", "javascript"
            )
        ),
        OURS,
    ),
    "promptfoo: script met another answer": (
        graded(
            component(False, "Custom function threw error: x\nStack Trace: SyntaxError: x is no JSON", "javascript")
        ),
        FAILED,
    ),
    "promptfoo: python is wrong": (
        graded(component(False, "Python code execution failed: Error running Python script: NameError: x", "python")),
        OURS,
    ),
    "inspect: not a number": (scored(NAN, reason="grader_failed"), OURS),
    "inspect: none of several": (scored({"a": NAN, "b": NAN}, reason="grader_failed"), OURS),
    "inspect: a list": (scored([NAN], reason="grader_failed"), OURS),
    "inspect: one of several": (scored({"a": "C", "b": NAN}), OURS),
    "inspect: one of several failed": (scored({"a": "I", "b": NAN}), FAILED),
    "inspect: no score was given": (lambda sample: sample.update(scores={}), OURS),
    "inspect: no value of several": (scored({}), OURS),
    "inspect: an error of the scorer": (ended(SCORER), OURS),
    "inspect: an error of the solver": (ended(SOLVER), CRASHED),
    "agentv: evaluator": (stopped("evaluator", "Grader parse failure after 3 attempts"), OURS),
    "agentv: evaluator of an answer": (stopped("evaluator", "no JSON", "quality_failure"), OURS),
    "agentv: set-up": (stopped("repo_setup", "git clone failed: exit code 128"), OURS),
    "agentv: agent": (stopped("agent", "Provider crashed"), CRASHED),
    "agentv: agent refused": (stopped("agent", "429 rate limit"), AWAY),
    "agentv: nothing is said": (lambda row: row.update(execution_status=None), OURS),
    "agentv: quality": (lambda row: row.update(execution_status="quality_failure", score=0), FAILED),
    "agentv: well and no scorer says so": (overruled, OURS),
    "agentv: well by the score of both": (outvoted, GREEN),
    "deepeval: passes and a metric does not": (metric(passed=True), OURS),
    "deepeval: passes and a flaky metric does not": (metric(passed=True, flaky=True), GREEN),
    "deepeval: metric broke": (metric(error="no verdict"), OURS),
    "deepeval: metric failed": (metric(reason="wrong"), FAILED),
    "deepeval: metric that raised": (metric(passed=True, score=None, success=None, reason=None), OURS),
    "deepeval: metric without a score": (metric(score=None, reason=None), OURS),
    "deepeval: flaky metric without a score": (metric(passed=True, score=None, flaky=True), GREEN),
    "pydantic-evals: evaluator broke": (broken_evaluator, OURS),
    "pydantic-evals: task broke": (broken_task("ValueError: no"), CRASHED),
    "pydantic-evals: task found nobody": (broken_task("connection refused"), AWAY),
    "adk: metric failed": (adk_metric(2), FAILED),
    "adk: metric broke": (adk_case("thanks"), OURS),
    "adk: agent raised": (adk_case("crash"), CRASHED),
    "adk: agent found nobody": (adk_case("unreachable"), AWAY),
    "adk: model refused": (adk_case("quota"), AWAY),
    "adk: passes and a metric does not": (adk_metric(1), OURS),
    "azure: evaluator failed": (lambda row: row.update({"outputs.f1.f1_score_result": "fail"}), FAILED),
    "azure: evaluator broke": (
        lambda row: row.update({key: NAN for key in row if key.startswith("outputs.f1.")}),
        OURS,
    ),
    "azure: target returned nothing": (without_result(None), CRASHED),
    "azure: target returned its error": (without_result("ValueError: no"), CRASHED),
    "azure: target found nobody": (without_result("connection refused"), AWAY),
    "braintrust: scorer failed": (lambda row: row["scores"].update(exact=False), FAILED),
    "braintrust: scorer broke": (
        lambda row: row.update(scores={}, metadata={"scorer_errors": {"exact": "no verdict"}}),
        OURS,
    ),
    "braintrust: task broke": (lambda row: row.update(error="ValueError('no')", scores={}), CRASHED),
    "braintrust: task found nobody": (lambda row: row.update(error="connection refused", scores={}), AWAY),
    "langsmith: evaluator failed": (judged_by(score=False), FAILED),
    "langsmith: evaluator broke": (judged_by(score=None, comment="no", extra={"error": True}), OURS),
    "langsmith: target broke": (lambda row: row["run"].update(error="ValueError('no')"), CRASHED),
    "langsmith: target found nobody": (lambda row: row["run"].update(error="connection refused"), AWAY),
    "trx: failed": ("Failed/Assert.True() Failure", FAILED),
    "trx: threw": ("Error/System.Exception : no", CRASHED),
    "trx: found nobody": ("Failed/System.Net.Http.HttpRequestException : Connection refused", AWAY),
    "trx: inconclusive": ("Inconclusive/Assert.Inconclusive failed.", OURS),
}


@pytest.mark.parametrize("name", CASES)
def test_judge__what_broke__says_whose_fault_it_is(tmp_path, name) -> None:
    write, file = TOOLS[name.partition(":")[0]]
    change, (code, said) = CASES[name]
    (tmp_path / file).write_text(write(None))
    assert gate(tmp_path, "check", file).returncode == 0
    (tmp_path / file).write_text(write(copy.deepcopy(change)))
    done = gate(tmp_path, "check", file, "--baseline", "latest", "--fail-on", "regressions")
    assert (done.returncode, said in done.stdout) == (code, True), done.stdout + done.stderr


def scored_by(*scores: tuple[str, ...], counted: int | None = None) -> str:
    """A log of Inspect's with a sample for each of these, passed by these scorers; `counted` is what Inspect says."""
    document = json.loads((FILES / "inspect-log.json").read_text())
    sample, names = document["samples"][0], {name for of_one in scores for name in of_one}
    document["samples"] = [
        sample | {"id": f"s{at}", "scores": {name: {"value": "C"} for name in of_one}}
        for at, of_one in enumerate(scores)
    ]
    said = [
        {"scorer": name, "scored_samples": counted or sum(name in of_one for of_one in scores)}
        for name in sorted(names)
    ]
    document["results"] = {"total_samples": len(scores), "scores": said}
    return json.dumps(document)


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (scored_by(("a", "b"), ("a", "b")), 0, "2 of 2 pass"),
        (scored_by(("a", "b"), ("a",)), 3, "s1: b: it graded other samples, but not this one"),
        (scored_by(("a", "b"), ("a",), counted=2), 3, "counts 2 samples that b graded, but has 1"),
    ],
)
def test_inspect__scorer_that_did_not_look_at_a_sample__is_no_pass(tmp_path, text, code, said) -> None:
    (tmp_path / "log.json").write_text(text)
    done = gate(tmp_path, "check", "log.json")
    assert (done.returncode, said in done.stdout + done.stderr) == (code, True), done.stdout + done.stderr


@pytest.mark.parametrize(("values", "code"), [("CI", 1), ("CC", 3)])
def test_inspect__accuracy_that_its_samples_do_not_make__is_of_another_log(tmp_path, values, code) -> None:
    document = json.loads(scored_by(*[("a",)] * 2))
    for sample, value in zip(document["samples"], values, strict=True):
        sample["scores"]["a"]["value"] = value
    document["results"]["scores"][0]["metrics"] = {"accuracy": {"value": 0.5}}
    (tmp_path / "log.json").write_text(json.dumps(document))
    assert gate(tmp_path, "check", "log.json").returncode == code


def evaluated(name: str, *by: str, of: str | None = None) -> dict[str, Any]:
    assertions = {one: {"name": one, "value": True, "source": {"name": one}} for one in by}
    repeat = {"source_case_name": of} if of else {}
    return {"name": name, "inputs": "q", "assertions": assertions, "scores": {}, "evaluator_failures": []} | repeat


@pytest.mark.parametrize(
    ("cases", "code", "said"),
    [
        ([evaluated("x", "A", "B"), evaluated("y", "A"), evaluated("z", "A", "B")], 0, "B graded 2 of 3 cases"),
        ([evaluated("x", "A"), evaluated("y", "A"), evaluated("z", "A", "B")], 0, "3 of 3 pass"),
        (
            [evaluated("x [1/2]", "A", "B", of="x"), evaluated("x [2/2]", "A", of="x")],
            0,
            "1 of 1 pass",
        ),
    ],
)
def test_pydantic_evals__evaluator_that_said_nothing_of_a_case__is_said(tmp_path, cases, code, said) -> None:
    (tmp_path / "r.json").write_text(json.dumps({"name": "e", "cases": cases, "failures": []}))
    done = gate(tmp_path, "check", "r.json")
    assert (done.returncode, said in done.stdout + done.stderr) == (code, True), done.stdout + done.stderr


def frame(where: str, line: str, function: str, says: str) -> str:
    return f'  File "{where}", line {line}, in {function}\n    {says}\n    ^^^^^^\n'


RUN = "/v/site-packages/inspect_ai/_eval/task/run.py"
SCORED = frame(RUN, "3094", "_task_run_sample_attempt", "score_result = await scorer(")
SOLVED = frame(RUN, "2847", "run", "state = await plan(state, generate)") + frame(
    "/v/site-packages/inspect_ai/solver/_plan.py", "109", "__call__", "state = await solver(state, generate)"
)
ITSELF = frame("/v/site-packages/inspect_ai/scorer/_score.py", "65", "score", "score = await scorer(state, target)")


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        (SCORED + frame("/repo/evals/refund.py", "23", "grade", "json.loads(text)"), 3),
        (SCORED + frame("/repo/evals/refund.py", "23", "__call__", "json.loads(text)"), 3),
        (SOLVED + ITSELF + frame("/repo/evals/refund.py", "23", "grade", "json.loads(text)"), 3),
        (SOLVED + frame("/repo/agent.py", "2", "credit_score", 'return d["x"]'), 1),
        (SOLVED + frame("/repo/agent.py", "2", "score", 'return d["x"]'), 1),
        (frame("/repo/agent.py", "2", "credit_score", 'return d["x"]'), 1),
        (frame("/repo/evals/refund.py", "2", "score", 'return d["x"]'), 3),
    ],
    ids=["grade", "class", "a solver that scores", "credit_score", "a solver's score", "cut", "cut scorer"],
)
def test_inspect__error__is_the_scorers_where_inspects_own_frames_say_so(tmp_path, frames, code) -> None:
    error = {"message": "KeyError('x')", "traceback": f"Traceback (most recent call last):\n{frames}KeyError: 'x'"}
    (tmp_path / "log.json").write_text(inspect(None))
    assert gate(tmp_path, "check", "log.json").returncode == 0
    (tmp_path / "log.json").write_text(inspect(lambda sample: sample.update(error=error, scores=None)))
    done = gate(tmp_path, "check", "log.json", "--baseline", "latest", "--fail-on", "regressions")
    assert done.returncode == code, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("kind", "reason", "version", "code"),
    [
        ("llm-rubric", "Unauthorized refund was granted: nobody checked.", "0.121.20", 1),
        ("llm-rubric", "Unauthorized refund was granted: nobody checked.", "0.121.19", 1),
        ("g-eval", "Error handling is missing: it gives up.", "0.120.0", 1),
        ("factuality", "Quota rules are wrong in the answer", "0.121.20", 1),
        ("llm-rubric", "403 is what it says, and not why", "0.121.19", 1),
        ("llm-rubric", "Bot returned an invalid order", "0.121.19", 1),
        ("llm-rubric", "API error: 401 is all that it says", "0.121.20", 1),
        ("factuality", "API error: 401 Unauthorized", "0.121.20", 3),
        ("llm-rubric", "API error: 401 Unauthorized", "0.121.19", 3),
        ("model-graded-closedqa", "Model grader produced a malformed response:\nmaybe", "0.122.0", 3),
        ("g-eval", "LLM-proposed evaluation result is not in JSON format: yes", "0.119.0", 3),
        ("llm-rubric", "No output", "0.119.0", 3),
        ("llm-rubric", "429 Too Many Requests", "0.119.0", 3),
    ],
)
def test_promptfoo__reason__is_the_graders_only_in_promptfoos_own_words(tmp_path, kind, reason, version, code) -> None:
    (tmp_path / "r.json").write_text(promptfoo(None))
    assert gate(tmp_path, "check", "r.json").returncode == 0
    (tmp_path / "r.json").write_text(promptfoo(graded(component(False, reason, kind)), version))
    done = gate(tmp_path, "check", "r.json", "--baseline", "latest", "--fail-on", "regressions")
    assert done.returncode == code, done.stdout + done.stderr
