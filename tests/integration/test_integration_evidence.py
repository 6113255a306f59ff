"""What the record keeps so that somebody can look at it: question, expectation, answer and calls of each execution."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from eval_gate import evaluate
from tests.integration.test_integration_models import KEY, completion
from tests.integration.test_integration_run import gate, record
from tests.support.agents import Exchange, agent

RESULT = {"status": "shipped", "day": "Sunday"}
CALL = {"name": "lookup_order", "success": True, "durationMs": 12.5, "result": RESULT}
KEPT = {"name": "lookup_order", "arguments": {"orderId": "A17"}, "result": RESULT, "success": True, "durationMs": 12.5}
CASE = {
    "id": "gs-order",
    "input": {"message": "Where is order A17?"},
    "expect": {
        "toolsCalled": ["lookup_order"],
        "toolParams": [{"tool": "lookup_order", "paramName": "orderId", "assertion": "equals", "value": "A17"}],
        "responseContains": ["Sunday"],
        "responseNotContains": ["{"],
        "maxLatencyMs": 30000,
    },
}
EXPECTED = [
    "calls only lookup_order",
    'calls lookup_order with orderId = "A17"',
    'response contains "Sunday"',
    'response does not contain "{"',
    "at most 30,000 ms",
]


def write(folder: Path, *cases: dict, targets: str = "", name: str = "orders.golden.json") -> None:
    (folder / "evals").mkdir(exist_ok=True)
    (folder / "evals" / name).write_text(json.dumps(cases))
    (folder / "targets.yaml").write_text(targets)


def cases_of(found: dict) -> list[dict]:
    return [case for suite in found["suites"] for case in suite["cases"]]


def answers(body: dict):
    async def handler(exchange: Exchange) -> None:
        exchange.answer(body)

    return handler


def openai_body() -> dict:
    body = completion("It comes on Sunday.", ("lookup_order", {"orderId": "A17"}))
    body["choices"][0]["message"]["tool_calls"][0] |= {"result": RESULT, "success": True, "durationMs": 12.5}
    return body


@pytest.mark.parametrize(
    ("settings", "body"),
    [
        ("", {"response": "It comes on Sunday.", "toolCalls": [{**CALL, "params": {"orderId": "A17"}}]}),
        (
            "  agentProtocol: tool-forge-sidecar\n",
            {"message": "It comes on Sunday.", "toolCalls": [{**CALL, "args": {"orderId": "A17"}}]},
        ),
        ("  agentProtocol: openai-chat\n", openai_body()),
        (
            "  responsePath: data.text\n  toolCallsPath: data.steps\n",
            {"data": {"text": "It comes on Sunday.", "steps": [{**CALL, "params": {"orderId": "A17"}}]}},
        ),
    ],
    ids=["eval-gate", "sidecar", "openai", "paths"],
)
def test_run__http_agent__record_has_question_expectation_answer_and_calls(tmp_path, settings, body) -> None:
    with agent(answers(body)) as running:
        write(tmp_path, CASE, targets=f"targets:\n- name: shop\n  provider: http\n  url: {running.url}\n{settings}")
        done = gate(tmp_path, "run", "--targets", "targets.yaml", "--target", "shop")
    assert done.returncode == 0, done.stdout + done.stderr
    (case,) = cases_of(record(tmp_path))
    assert case["text"] == {"prompt": "Where is order A17?", "expectation": EXPECTED, "truncated": False}
    assert case["details"]["response"] == "It comes on Sunday."
    assert case["details"]["toolCalls"] == [KEPT | {"truncatedParts": []}]


def test_run__command_with_messages__record_has_the_calls_with_their_outputs(tmp_path) -> None:
    call = {"tool": "lookup_order", "input": {"orderId": "A17"}, "output": RESULT}
    said = {"output_messages": [{"role": "assistant", "content": "It comes on Sunday.", "tool_calls": [call]}]}
    program = tmp_path / "agent.py"
    program.write_text(f"print({json.dumps(json.dumps(said))})")
    write(tmp_path, CASE, targets=f"targets:\n- name: cli\n  provider: cli\n  command: {sys.executable} {program}\n")
    done = gate(tmp_path, "run", "--targets", "targets.yaml", "--target", "cli")
    assert done.returncode == 0, done.stdout + done.stderr
    (kept,) = cases_of(record(tmp_path))[0]["details"]["toolCalls"]
    assert (kept["arguments"], kept["result"], kept["success"]) == ({"orderId": "A17"}, RESULT, None)


def test_run__model_with_stubs__calls_have_what_the_stubs_gave_back(tmp_path) -> None:
    async def model(exchange: Exchange) -> None:
        if exchange.json["messages"][-1]["role"] == "tool":
            exchange.answer(completion("It comes on Sunday."))
        else:
            exchange.answer(completion(None, ("lookup_order", {"orderId": "A17"})))

    write(tmp_path, CASE | {"stubs": {"lookup_order": RESULT}})
    with agent(model) as running:
        arguments = ("--model", "openai:gpt-4o", "--base-url", running.url.removesuffix("/chat"))
        done = gate(tmp_path, "run", *arguments, **KEY)
    assert done.returncode == 0, done.stdout + done.stderr
    details = cases_of(record(tmp_path))[0]["details"]
    (kept,) = details["toolCalls"]
    assert (kept["arguments"], kept["result"]) == ({"orderId": "A17"}, RESULT)
    assert [message["role"] for message in details["conversation"]] == ["user", "assistant", "tool", "assistant"]


def test_evaluate__function__calls_have_their_results(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, CASE)
    body = {"response": "It comes on Sunday.", "toolCalls": [{**CALL, "params": {"orderId": "A17"}}]}
    evaluate("evals", target=lambda _: body)
    assert cases_of(record(tmp_path))[0]["details"]["toolCalls"] == [KEPT | {"truncatedParts": []}]


def test_run__several_trials__each_keeps_its_answer(tmp_path) -> None:
    async def wavering(exchange: Exchange) -> None:
        number = len(running.requests)
        exchange.answer({"response": f"{'Sunday' if number != 2 else 'who knows'} {number}", "toolCalls": []})

    write(tmp_path, {"id": "a", "input": {"message": "When?"}, "expect": {"responseContains": ["Sunday"]}})
    with agent(wavering) as running:
        gate(tmp_path, "run", "--agent-endpoint", running.url, "--trials", "3", "--concurrency", "1")
    (case,) = cases_of(record(tmp_path))
    assert case["details"]["response"] == "Sunday 1"
    assert [trial["decisive"] for trial in case["trials"]] == [True, False, False]
    told = [trial["details"] and trial["details"]["response"] for trial in case["trials"]]
    assert told == [None, "who knows 2", "Sunday 3"]
    assert case["trials"][1]["evaluatorResults"][0]["misses"] == [
        "responseContains: expected 'Sunday' in response but not found"
    ]


def test_run__cases_that_are_skipped_or_not_run__are_asked_for_all_the_same(tmp_path) -> None:
    async def refuses(exchange: Exchange) -> None:
        exchange.reset()

    held = {
        "id": "rb",
        "input": {"message": "Is it kind?"},
        "rubric": [{"dimension": "tone", "maxScore": 3, "criteria": "3: kind"}],
    }
    write(tmp_path, *(CASE | {"id": f"gs-{number}"} for number in range(8)))
    write(tmp_path, held, name="x.rubric.json")
    gate(tmp_path, "run", "--agent-endpoint", "http://127.0.0.1:9/", "--max-retries", "0")
    found = {case["id"]: case for case in cases_of(record(tmp_path))}
    assert {case["status"] for case in found.values()} >= {"not_run", "skipped"}
    assert all(case["text"]["prompt"] and case["text"]["expectation"] for case in found.values())
    assert found["rb"]["text"]["expectation"] == [
        "an LLM judge grades by this rubric:",
        "  tone: at least 1.8 of 3: 3: kind",
    ]


def says(*days: str):
    """Answers the cases a, b, … with these days, whatever they ask."""

    async def handler(exchange: Exchange) -> None:
        number = "abcdefgh".index(exchange.json["message"][-1])
        call = {**CALL, "params": {"order": days[number]}}
        exchange.answer({"response": f"It comes on {days[number]}.", "toolCalls": [call]})

    return handler


def write_letters(folder: Path, count: int) -> None:
    write(
        folder,
        *(
            {"id": letter, "input": {"message": f"order {letter}"}, "expect": {"responseContains": ["Sunday"]}}
            for letter in "abcdefgh"[:count]
        ),
    )


def changes_of(found: dict) -> dict[str, dict]:
    return {change["caseId"]: change for change in found["comparison"]["changes"]}


def test_run_then_compare_then_merge__regression__carries_the_baselines_side_everywhere(tmp_path) -> None:
    write_letters(tmp_path, 3)
    for days in (("Sunday", "Monday", "Sunday"), ("Sunday", "Monday", "Sunday")):
        with agent(says(*days)) as running:
            gate(tmp_path, "run", "--agent-endpoint", running.url, "--baseline", "latest", "--fail-on", "never")
    main = record(tmp_path)["runId"]
    with agent(says("Friday", "Friday", "Sunday")) as running:
        arguments = ("run", "--agent-endpoint", running.url, "--reruns", "2", "--baseline", main)
        gate(tmp_path, *arguments)
        whole = record(tmp_path)
        parts = []
        for part in ("1/2", "2/2"):
            gate(tmp_path, *arguments, "--shard", part)
            parts.append(record(tmp_path)["runId"])
    gate(tmp_path, "merge", *parts)
    merged = json.loads(gate(tmp_path, "compare", main, record(tmp_path)["runId"], "--json").stdout)
    again = json.loads(gate(tmp_path, "compare", main, whole["runId"], "--json").stdout)
    found = changes_of(whole)
    assert {name: change["change"] for name, change in found.items()} == {
        "a": "regression",
        "b": "still_failing",
        "c": "still_passing",
    }
    assert found["c"]["baselineResult"] is None
    assert found["b"]["baselineResult"]["details"]["response"] == "It comes on Monday."
    before = found["a"]["baselineResult"]
    assert (before["status"], before["details"]["response"]) == ("passed", "It comes on Sunday.")
    assert before["details"]["toolCalls"][0]["arguments"] == {"order": "Sunday"}
    assert (found["a"]["recentResults"], found["b"]["recentResults"], found["c"]["recentResults"]) == ("PP", "FF", "")
    assert [(run["passed"], run["failed"]) for run in whole["comparison"]["recentRuns"]] == [(2, 1), (2, 1)]
    for other in (again, merged):
        told = changes_of(other)
        assert {name: (one["baselineResult"], one["recentResults"]) for name, one in told.items()} == {
            name: (one["baselineResult"], one["recentResults"]) for name, one in found.items()
        }
        assert other["comparison"]["recentRuns"] == whole["comparison"]["recentRuns"]


def test_run__baseline_of_an_older_version__is_read_without_the_evidence(tmp_path) -> None:
    write_letters(tmp_path, 1)
    with agent(says("Sunday")) as running:
        gate(tmp_path, "run", "--agent-endpoint", running.url)
    older = record(tmp_path)
    for case in cases_of(older):
        case.pop("text")
        case["details"] = {"toolsCalled": ["lookup_order"], "responseLength": 19, "response": "It comes on Sunday."}
        for trial in case["trials"]:
            for name in ("decisive", "details", "evaluatorResults"):
                trial.pop(name)
    (tmp_path / "older.json").write_text(json.dumps(older))
    with agent(says("Friday")) as running:
        gate(tmp_path, "run", "--agent-endpoint", running.url, "--baseline", "older.json")
    (change,) = changes_of(record(tmp_path)).values()
    assert (change["change"], change["baselineResult"]["details"]["response"]) == ("regression", "It comes on Sunday.")
    assert change["baselineResult"]["details"]["toolCalls"] == []
