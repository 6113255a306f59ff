"""Whose fault it is that a case could not be judged: real processes against agents that break in every way."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.integration.test_integration_models import completion
from tests.integration.test_integration_run import gate, record, write_suite
from tests.support.agents import Exchange, agent, vanishing_agent

HOW = {
    "fine": ("passed", None, False),
    "500": ("error", "agent_error", False),
    "404": ("error", "agent_error", False),
    "reset": ("error", "agent_error", False),
    "cut": ("error", "agent_error", False),
    "html": ("error", "agent_error", False),
    "slow": ("error", "agent_error", True),
    "429": ("error", "agent_unreachable", False),
    "429-later": ("error", "agent_unreachable", False),
    "401": ("error", "agent_unreachable", False),
    "wrong": ("failed", None, False),
}
"""What an agent does, and what becomes of it: status, error_kind, whether it timed out."""


async def breaks(exchange: Exchange) -> None:
    match exchange.json["message"]:
        case "fine":
            exchange.answer({"response": "ok"})
        case "wrong":
            exchange.answer({"response": "no"})
        case "reset":
            exchange.reset()
        case "cut":
            exchange.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
            await exchange.writer.drain()
            exchange.writer.close()
        case "html":
            exchange.answer(b"<html>")
        case "slow":
            await asyncio.sleep(60)
        case "429-later":
            exchange.answer({"error": "slow down"}, "429 Too Many Requests", Retry_After="50")
        case status:
            exchange.answer({"error": "no"}, f"{status} As Asked")


def cases_of(folder: Path) -> dict[str, dict]:
    return {case["id"]: case for suite in record(folder)["suites"] for case in suite["cases"]}


def write_cases(folder: Path, cases: dict[str, dict], name: str = "weather.golden.json") -> None:
    file = folder / "evals" / name
    file.parent.mkdir(exist_ok=True)
    written = [
        {"id": case_id, "input": {"message": fields.pop("message", case_id)}, "expect": fields}
        for case_id, fields in cases.items()
    ]
    file.write_text(json.dumps(written))


@pytest.mark.slow
def test_error_kind__every_way_to_break__is_said_of_case_trial_and_journal(tmp_path) -> None:
    write_cases(tmp_path, {f"gs-{how}": {"message": how, "responseContains": ["ok"]} for how in HOW})
    with agent(breaks) as running:
        done = gate(
            *(tmp_path, "run", "--agent-endpoint", running.url, "--timeout-ms", "3000", "--concurrency", "4"),
        )
    found = cases_of(tmp_path)
    said = {
        how: (case["status"], case["errorKind"], case["trials"][0]["timedOut"])
        for how, case in ((how, found[f"gs-{how}"]) for how in HOW)
    }
    assert said == HOW, done.stderr
    assert all(case["trials"][0]["errorKind"] == case["errorKind"] for case in found.values())
    slow = found["gs-slow"]
    assert (slow["passed"], slow["error"], slow["assertionsRun"]) == (False, "timeout: no response within 3000 ms", 0)
    assert found["gs-reset"]["error"].startswith("agent error: the connection broke before the response")
    assert "HTTP 429" in found["gs-429-later"]["error"]
    assert "no time left to retry within 3000 ms" in found["gs-429-later"]["error"]
    journal = tmp_path / "evals" / "results" / record(tmp_path)["runId"] / "cases.jsonl"
    written = {line["caseId"]: line for line in map(json.loads, journal.read_text().splitlines())}
    assert written["gs-slow"]["timedOut"] is True
    assert {case_id: line.get("errorKind") for case_id, line in written.items()} == {
        case_id: case["errorKind"] for case_id, case in found.items()
    }


def test_error_kind__nobody_listens_any_more__is_unreachable(tmp_path) -> None:
    write_suite(tmp_path, 2)
    with vanishing_agent() as url:
        gate(tmp_path, "run", "--agent-endpoint", url, "--max-retries", "0")
    assert {case["errorKind"] for case in cases_of(tmp_path).values()} == {"agent_unreachable"}


def test_error_kind__command_exits_or_is_too_slow__has_crashed(tmp_path) -> None:
    write_suite(tmp_path, 2)
    line = "case {EVAL_ID} in gs-000) exit 3;; *) sleep 30;; esac"
    target = {"name": "desk", "provider": "cli", "command_template": line, "timeout_seconds": 0.5}
    (tmp_path / "eval-gate.json").write_text(json.dumps({"targets": [target]}))
    gate(tmp_path, "run")
    exits, slow = cases_of(tmp_path).values()
    assert (exits["errorKind"], exits["trials"][0]["timedOut"]) == ("agent_error", False)
    assert (slow["errorKind"], slow["trials"][0]["timedOut"]) == ("agent_error", True)


def test_rubric__judge_without_a_verdict__is_ours_and_paid_for(tmp_path) -> None:
    rubric = [{"dimension": "accuracy", "maxScore": 3, "criteria": "3: right"}]
    case = {"id": "rb-1", "input": {"message": "how is it?"}, "rubric": rubric}
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "weather.rubric.json").write_text(json.dumps([case]))

    async def model(exchange: Exchange) -> None:
        judging = "You grade" in str(exchange.json["messages"][0]["content"])
        exchange.answer(completion("I would rather not say." if judging else "Fine."))

    with agent(model) as running:
        url = f"{running.url.removesuffix('/chat')}/v1"
        done = gate(
            *(tmp_path, "run", "--provider", "openai", "--model", "gpt-4o", "--base-url", url),
            OPENAI_API_KEY="sk-test-abcdef",
        )
    assert done.returncode == 3, done.stdout
    (found,) = cases_of(tmp_path).values()
    assert (found["status"], found["passed"], found["errorKind"]) == ("error", False, "evaluation_error")
    said = "rubric: none of 3 replies of the judge held a valid JSON verdict; the last reply: I would rather not say."
    assert found["error"] == said
    assert (found["judgeUsage"]["inputTokens"], found["usage"]["inputTokens"]) == (300, 100)
    assert found["details"]["response"] == "Fine."
    assert found["judgeCostUsd"] > 0


def test_code_judge__exits_with_an_error__is_ours(tmp_path) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "desk.eval.yaml").write_text(
        "evalcases:\n- id: one\n  expected_outcome: says ok\n"
        "  input_messages: [{role: user, content: hi}]\n"
        "  execution: {evaluators: [{name: script, type: code_judge, script: exit 4}]}\n"
    )
    with agent() as running:
        gate(tmp_path, "run", "--agent-endpoint", running.url)
    (found,) = cases_of(tmp_path).values()
    assert (found["status"], found["errorKind"]) == ("error", "evaluation_error")
    assert "exited with code 4" in found["error"]


def test_veto__required_check_is_not_met__is_said_of_every_trial(tmp_path) -> None:
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "desk.eval.yaml").write_text(
        "evalcases:\n- id: one\n  expected_outcome: names the city\n"
        "  input_messages: [{role: user, content: hi}]\n"
        "  rubrics:\n  - {id: city, description: names it, required: true}\n"
        "  - {id: tone, description: kind, weight: 9, required: false}\n"
    )
    asked = 0

    async def handler(exchange: Exchange) -> None:
        nonlocal asked
        if "checks" not in exchange.json["message"]:
            exchange.answer({"response": "ok"})
            return
        asked += 1
        checks = [{"id": "city", "satisfied": asked > 1}, {"id": "tone", "satisfied": asked == 1}]
        exchange.answer({"response": json.dumps({"checks": checks})})

    with agent(handler) as running:
        targets = [
            {"name": "a", "provider": "http", "url": running.url, "judge_target": "grader"},
            {"name": "grader", "provider": "http", "url": running.url},
        ]
        (tmp_path / "eval-gate.json").write_text(json.dumps({"targets": targets, "target": "a"}))
        gate(tmp_path, "run", "--trials", "2")
    (found,) = cases_of(tmp_path).values()
    trials = [(trial["status"], round(trial["score"], 1), trial["vetoed"]) for trial in found["trials"]]
    assert trials == [("failed", 0.9, True), ("failed", 0.1, False)]


@pytest.mark.parametrize("concurrency", [1, 8])
@pytest.mark.slow
def test_hung_agent__many_cases__ends_early_and_nothing_is_run_again(tmp_path, concurrency) -> None:
    write_suite(tmp_path, 40)
    hangs = False

    async def handler(exchange: Exchange) -> None:
        if hangs:
            await asyncio.sleep(60)
        exchange.answer({"response": "ok"})

    with agent(handler) as running:
        options = ("run", "--agent-endpoint", running.url, "--concurrency", str(concurrency))
        assert gate(tmp_path, *options).returncode == 0
        hangs = True
        before = len(running.requests)
        options += ("--timeout-ms", "400", "--baseline", "latest", "--reruns", "6", "--fail-on", "regressions")
        done = gate(tmp_path, *options)
        asked = len(running.requests) - before
    limit = max(5, concurrency)
    assert asked <= 2 * limit
    found = record(tmp_path)
    errored = found["summary"]["errored"]
    assert (limit <= errored <= 2 * limit, found["summary"]["notRun"]) == (True, 40 - errored)
    said = f"no response from the target in time, {limit} cases in a row: timeout: no response within 400 ms"
    assert (found["stopReason"], found["stopCause"]) == (said, "timed_out")
    assert found["stopHint"] == "increase timeoutMs if it needs longer"
    assert all(case["reruns"] == 0 for case in found["suites"][0]["cases"])
    assert (done.returncode, f"GATE INCONCLUSIVE: {said}" in done.stdout) == (3, True), done.stdout


TOOL_CASES = {
    "gs-none": {"toolsAcceptable": [["__none__"]]},
    "gs-not": {"toolsNotCalled": ["sell"]},
    "gs-empty": {"toolsCalled": []},
    "gs-one": {"toolsCalled": ["look"]},
    "gs-words": {"responseContains": ["ok"]},
}


def lists(*, calls: str | None, none: object = "left out"):
    """An agent that lists its calls under the key `calls`, and `none` there where it called nothing."""

    async def handler(exchange: Exchange) -> None:
        made = [{"name": "look"}] if exchange.json["message"] == "gs-one" else none
        exchange.answer({"response": "ok"} | ({calls: made} if calls and made != "left out" else {}))

    return handler


@pytest.mark.parametrize("backwards", [False, True], ids=["in order", "backwards"])
@pytest.mark.parametrize(
    ("handler", "settings", "place"),
    [
        (lists(calls="toolCalls", none=[]), {"toolCallsPath": "tolCalls"}, "`tolCalls`"),
        (lists(calls=None), {}, "`toolCalls`"),
        (lists(calls="tools", none=[]), {}, "`toolCalls`"),
        (lists(calls="toolCalls"), {"toolCallsPath": "trace.tools"}, "`trace.tools`"),
    ],
    ids=["mistyped path", "never lists", "another key", "path that is nowhere"],
)
def test_tool_calls__no_answer_of_the_run_lists_any__are_not_known(
    tmp_path, handler, settings, place, backwards
) -> None:
    cases = dict(reversed(TOOL_CASES.items())) if backwards else TOOL_CASES
    write_cases(tmp_path, {case_id: dict(fields) for case_id, fields in cases.items()})
    with agent(handler) as running:
        target = {"name": "a", "provider": "http", "url": running.url} | settings
        (tmp_path / "eval-gate.json").write_text(json.dumps({"targets": [target]}))
        done = gate(tmp_path, "run")
    found = cases_of(tmp_path)
    assert found.pop("gs-words")["status"] == "passed"
    assert {(case["status"], case["passed"], case["errorKind"], case["score"]) for case in found.values()} == {
        ("error", False, "evaluation_error", 0.0)
    }
    said = f"no response of this run has a list of tool calls at {place} (toolCallsPath, agentProtocol)"
    assert all(said in case["error"] for case in found.values())
    assert (done.returncode, said in done.stdout) == (3, True), done.stdout


@pytest.mark.parametrize(
    ("key", "settings", "change"),
    [
        ("toolCalls", {"toolCallsPath": "tolCalls"}, "`toolCallsPath` `toolCalls` → `tolCalls`"),
        (None, {}, None),
        (None, {"responseFormat": "text"}, "`responseFormat` `json` → `text`"),
    ],
    ids=["mistyped path", "field is gone", "format without calls"],
)
@pytest.mark.slow
def test_tool_calls__baseline_lists_them_and_this_run_does_not__could_not_decide(
    tmp_path, key, settings, change
) -> None:
    done = run_after_baseline(tmp_path, lists(calls=key, none=[]), settings)
    found = cases_of(tmp_path)
    assert found.pop("gs-words")["status"] == "passed"
    assert {(case["status"], case["errorKind"]) for case in found.values()} == {("error", "evaluation_error")}
    assert (done.returncode, "REGRESSIONS" in done.stdout) == (3, False), done.stdout
    decided = done.stdout.partition("GATE INCONCLUSIVE")[2]
    assert "In 4 cases, tool calls are unknown, because the agent does not list its tool calls" in decided
    assert change is None or change in decided


@pytest.mark.slow
def test_tool_calls__agent_calls_none_any_more_and_says_so__is_a_regression(tmp_path) -> None:
    async def lists_none(exchange: Exchange) -> None:
        exchange.answer({"response": "ok", "toolCalls": []})

    done = run_after_baseline(tmp_path, lists_none, {})
    assert {case_id: case["status"] for case_id, case in cases_of(tmp_path).items() if not case["passed"]} == {
        "gs-one": "failed"
    }
    assert (done.returncode, "REGRESSIONS (1): gs-one" in done.stdout) == (1, True), done.stdout


def run_after_baseline(folder: Path, handler, settings: dict[str, str]):
    """A run of an agent whose calls were listed in the baseline, and that answers or is read otherwise by now."""
    write_cases(folder, {case_id: dict(fields) for case_id, fields in TOOL_CASES.items()})
    first = lists(calls="toolCalls", none=[])
    answered_by = [first]

    async def answers(exchange: Exchange) -> None:
        await answered_by[-1](exchange)

    with agent(answers) as running:
        target = {"name": "a", "provider": "http", "url": running.url}
        (folder / "eval-gate.json").write_text(json.dumps({"targets": [target]}))
        assert gate(folder, "run").returncode == 0
        answered_by.append(handler)
        (folder / "eval-gate.json").write_text(json.dumps({"targets": [target | settings]}))
        return gate(folder, "run", "--baseline", "latest", "--fail-on", "regressions")


@pytest.mark.parametrize("none", ["left out", [], None], ids=["left out", "empty", "null"])
def test_tool_calls__some_answers_list_them__missing_means_none(tmp_path, none) -> None:
    write_cases(tmp_path, {case_id: dict(fields) for case_id, fields in TOOL_CASES.items()})
    with agent(lists(calls="toolCalls", none=none)) as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url)
    assert {case["status"] for case in cases_of(tmp_path).values()} == {"passed"}
    assert done.returncode == 0


def test_tool_calls__path_was_mistyped__a_resumed_run_asks_every_case_again(tmp_path) -> None:
    write_cases(tmp_path, {case_id: dict(fields) for case_id, fields in TOOL_CASES.items()})
    with agent(lists(calls="tools", none=[])) as running:
        target = {"name": "a", "provider": "http", "url": running.url}
        (tmp_path / "eval-gate.json").write_text(json.dumps({"targets": [target]}))
        gate(tmp_path, "run")
        target["toolCallsPath"] = "tools"
        (tmp_path / "eval-gate.json").write_text(json.dumps({"targets": [target]}))
        before = len(running.requests)
        done = gate(tmp_path, "run", "--resume", record(tmp_path)["runId"])
        assert len(running.requests) - before == len(TOOL_CASES)
    assert "target a: toolCallsPath toolCalls → tools" in " ".join(done.stdout.split())
    assert {case["status"] for case in cases_of(tmp_path).values()} == {"passed"}
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("body", "what_to_do"),
    [
        (
            b'{"reply": "hi"}',
            "describe the shape of the response with the target's responsepath, toolcallspath or agentprotocol",
        ),
        (b"<!DOCTYPE html><h1>hi</h1>", "this is a web page: check the port and the path of the agent's url"),
    ],
)
def test_run__answer_of_another_shape__the_verdict_says_what_to_do(tmp_path, body, what_to_do) -> None:
    async def answers(exchange: Exchange) -> None:
        exchange.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    write_suite(tmp_path, 1)
    with agent(answers) as there:
        done = gate(tmp_path, "run", "--agent-endpoint", there.url)
    assert done.returncode == 3
    verdict = " ".join(done.stdout.partition("GATE INCONCLUSIVE")[2].split())
    assert what_to_do in verdict.casefold()
