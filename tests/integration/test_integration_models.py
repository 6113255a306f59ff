"""Evaluating a model without an agent: real processes against a server that speaks OpenAI's protocol."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.test_integration_run import gate, record
from tests.support.agents import Exchange, agent

KEY = {"OPENAI_API_KEY": "sk-test-abcdef"}
TOOLS = [
    {
        "name": "get_weather",
        "description": "The weather of a city.",
        "version": "1.0.0",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    }
]


def completion(text: str | None = None, *calls: tuple[str, dict]) -> dict:
    """One answer of OpenAI's chat completions."""
    message: dict = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": f"call_{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(params)}}
            for number, (name, params) in enumerate(calls)
        ]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": "gpt-4o-2024-08-06",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }


def model(grade: int = 3):
    """A weather model: it calls its tool, then says what the tool said; as a judge it gives this grade."""

    async def handler(exchange: Exchange) -> None:
        messages = exchange.json["messages"]
        if "You grade" in str(messages[0]["content"]):
            verdict = {"dimensions": [{"dimension": "accuracy", "score": grade, "reasoning": "as asked"}]}
            exchange.answer(completion(json.dumps(verdict)))
        elif messages[-1]["role"] == "tool":
            exchange.answer(completion(f"It is {json.loads(messages[-1]['content'])['celsius']} degrees."))
        elif exchange.json.get("tools"):
            exchange.answer(completion(None, ("get_weather", {"city": "Lisbon"})))
        else:
            exchange.answer(completion("I know no tools."))

    return handler


@pytest.fixture
def project(tmp_path) -> Path:
    cases = [
        {"id": "gs-routing", "input": {"message": "weather in Lisbon?"}, "expect": {"toolsCalled": ["get_weather"]}},
        {
            "id": "gs-stubbed",
            "input": {"message": "weather in Porto?"},
            "stubs": {"get_weather": {"celsius": 19}},
            "expect": {"toolsCalled": ["get_weather"], "noToolErrors": True, "responseContains": ["19"]},
        },
    ]
    rubric = [
        {
            "id": "rb-1",
            "input": {"message": "how is Lisbon?"},
            "referenceData": {"celsius": 21},
            "rubric": [{"dimension": "accuracy", "maxScore": 3, "criteria": "3: right"}],
        }
    ]
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "weather.golden.json").write_text(json.dumps(cases))
    (tmp_path / "evals" / "weather.rubric.json").write_text(json.dumps(rubric))
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    (tmp_path / "prompt.md").write_text("Be brief.")
    return tmp_path


def run(project: Path, url: str, *arguments: str, **environment: str):
    return gate(
        project,
        *("run", "--provider", "openai", "--model", "gpt-4o", "--base-url", f"{url.removesuffix('/chat')}/v1"),
        *("--tool-registry", "tools.json", "--system-prompt", "prompt.md"),
        *arguments,
        **(KEY | environment),
    )


def cases_of(project: Path) -> dict[str, dict]:
    return {case["id"]: case for suite in record(project)["suites"] for case in suite["cases"]}


def test_model__routing_stubs_and_rubric__in_one_run(project) -> None:
    with agent(model()) as running:
        done = run(project, running.url)
    assert done.returncode == 0, done.stdout + done.stderr
    found = cases_of(project)
    assert {case["status"] for case in found.values()} == {"passed"}
    assert [one["role"] for one in found["gs-stubbed"]["details"]["conversation"]] == [
        *("system", "user", "assistant", "tool", "assistant")
    ]
    assert found["rb-1"]["evaluatorResults"][0]["hits"] == ["accuracy 3/3: as asked"]
    summary = record(project)["summary"]
    assert (summary["inputTokens"], summary["outputTokens"]) == (400, 80)
    assert summary["estimatedCostUsd"] == pytest.approx(4 * (100 * 2.5 + 20 * 10) / 1e6)
    assert summary["judgeCostUsd"] == pytest.approx((100 * 2.5 + 20 * 10) / 1e6)
    first = running.requests[0]
    assert first.head.startswith("POST /v1/chat/completions ")
    assert first.header("authorization") == "Bearer sk-test-abcdef"
    assert first.json["messages"][0] == {"role": "system", "content": "Be brief."}
    assert first.json["tools"][0]["function"]["name"] == "get_weather"
    assert "sk-test-abcdef" not in done.stdout + done.stderr + json.dumps(record(project))


def test_rubric__when_the_others_do_not_pass__is_not_asked_and_says_so(project) -> None:
    (project / "tools.json").write_text("[]")
    with agent(model()) as running:
        done = run(project, running.url)
        asked = len(running.requests)
        assert done.returncode == 1
        assert cases_of(project)["rb-1"]["status"] == "skipped"
        assert "rubric cases run only if the other cases pass the gate" in cases_of(project)["rb-1"]["error"]
        run(project, running.url, "--rubric", "always")
        assert len(running.requests) > 2 * asked
        assert cases_of(project)["rb-1"]["status"] == "passed"


def test_rubric__too_low__fails_with_dimension_and_score(project) -> None:
    with agent(model(grade=1)) as running:
        done = run(project, running.url)
    assert done.returncode == 1
    assert "rubric: accuracy 1/3" in done.stdout


def test_rubric__never__is_skipped_and_no_judge_is_asked(project) -> None:
    with agent(model()) as running:
        done = run(project, running.url, "--rubric", "never")
    assert (done.returncode, len(running.requests)) == (0, 3)
    assert "switched off" in cases_of(project)["rb-1"]["error"]


def test_judge__cannot_be_reached__is_an_error_of_the_case_and_no_bad_grade(project) -> None:
    targets = {
        "targets": [
            {"name": "model", "provider": "openai", "model": "gpt-4o", "baseUrl": "@", "judgeTarget": "judge"},
            {
                "name": "judge",
                "provider": "openai",
                "model": "gpt-4o",
                "baseUrl": "http://127.0.0.1:9",
                "maxRetries": 0,
            },
        ]
    }
    with agent(model()) as running:
        text = json.dumps(targets).replace('"@"', json.dumps(running.url.removesuffix("/chat") + "/v1"))
        (project / "targets.yaml").write_text(text)
        arguments = ("--targets", "targets.yaml", "--target", "model", "--tool-registry", "tools.json")
        done = gate(project, "run", *arguments, **KEY)
    assert done.returncode == 3
    case = cases_of(project)["rb-1"]
    assert (case["status"], case["passed"]) == ("error", False)
    assert "gave no response" in case["error"]
    assert "1 evaluation error" in done.stdout


def test_cache__asked_once__is_replayed_without_key_and_without_server(project) -> None:
    with agent(model()) as running:
        first = run(project, running.url, "--recording", "auto")
        asked = len(running.requests)
        again = run(project, running.url, "--recording", "auto")
        assert len(running.requests) == asked
    assert (first.returncode, again.returncode) == (0, 0)
    assert record(project)["summary"]["estimatedCostUsd"] == 0
    offline = run(project, running.url, "--recording", "replay", OPENAI_API_KEY="")
    assert offline.returncode == 0, offline.stderr
    found = cases_of(project)
    assert all(case["details"]["replayed"] for case in found.values())
    answers = (project / "evals" / "results" / record(project)["runId"] / "recording.jsonl").read_text()
    assert len(answers.splitlines()) == 5
    assert "sk-test-abcdef" not in answers


@pytest.mark.slow
def test_cache__nothing_changed_since_the_baseline__is_no_change_until_somebody_writes_a_response(project) -> None:
    fail_on = ("--recording", "auto", "--fail-on", "regressions,changed", "--baseline", "latest")
    shared = project / "evals" / "results" / "recording.jsonl"
    with agent(model()) as running:
        for _ in range(3):
            done = run(project, running.url, *fail_on)
            assert done.returncode == 0, done.stdout
            assert "recorded answers" not in done.stdout
        shared.write_text(shared.read_text().replace('"text":"', '"text":" '))
        done = run(project, running.url, *fail_on)
    assert done.returncode == 1, done.stdout
    assert "recorded responses or scores (`evals/results/recording.jsonl`) instead of new ones" in " ".join(
        done.stdout.split()
    )


def test_cache__recording_with_damage__what_cannot_be_read_is_asked_anew_and_the_file_is_whole_again(project) -> None:
    shared = project / "evals" / "results" / "recording.jsonl"
    with agent(model()) as running:
        run(project, running.url, "--recording", "auto")
        first, second, *others = shared.read_bytes().splitlines()
        newer = b'{"schemaVersion": 9, "request": "x"}'
        shared.write_bytes(b"\n".join([newer, first[:40] + second, *others, b'{"key": "x", "tu']))
        asked = len(running.requests)
        healing = run(project, running.url, "--recording", "auto")
        assert (healing.returncode, len(running.requests) - asked) == (0, 2), healing.stderr
        said = "3 lines of evals/results/recording.jsonl cannot be read: damaged, or of another version of eval-gate."
        assert said in healing.stdout + healing.stderr
        whole = run(project, running.url, "--recording", "auto")
        assert (whole.returncode, len(running.requests) - asked) == (0, 2)
        assert "cannot be read" not in whole.stdout + whole.stderr
    assert sorted(shared.read_bytes().splitlines()) == sorted([first, second, *others])


def test_cache__replay_of_what_was_never_asked__is_an_error_and_no_pass(project) -> None:
    done = run(project, "http://127.0.0.1:9/chat", "--recording", "replay", OPENAI_API_KEY="")
    assert done.returncode == 3
    assert "no response is recorded for this prompt, and the model must not be called" in done.stdout


def test_budget__used_up__the_rest_is_not_run_and_nothing_passes_unseen(project) -> None:
    with agent(model()) as running:
        done = run(project, running.url, "--max-cost-usd", "0.0001")
    assert done.returncode == 3
    found = record(project)
    assert (found["summary"]["passed"], found["summary"]["notRun"]) == (1, 2)
    assert found["stopReason"].startswith("the budget of $0.0001 is used up")


@pytest.mark.slow
def test_model__limits_the_rate__is_slowed_down_and_says_so(project) -> None:
    answers = iter([True, True, False])

    async def limits(exchange: Exchange) -> None:
        if next(answers, False):
            body = {"error": {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}}
            exchange.answer(body, "429 Too Many Requests", Retry_After="0")
        else:
            await model()(exchange)

    with agent(limits) as running:
        done = run(project, running.url, "--rubric", "never", "--concurrency", "2")
    assert done.returncode == 0, done.stdout
    assert any(
        "the provider answered 429 to 2 requests: concurrency was lowered from 2 to 1" in warning
        for warning in record(project)["warnings"]
    )


def test_model__no_key__is_a_usage_error_that_names_the_variable(project) -> None:
    done = gate(project, "run", "--provider", "anthropic", "--model", "claude-sonnet-4-5")
    assert done.returncode == 2
    assert "ANTHROPIC_API_KEY" in done.stderr


def test_mock__target__tries_a_workflow_without_keys(project) -> None:
    answer = {"response": "ok", "tool_calls": [{"tool": "get_weather"}]}
    canned = {"name": "canned", "provider": "mock", "responses": {"gs-routing": answer}}
    (project / "targets.yaml").write_text(json.dumps({"targets": [canned]}))
    done = gate(project, "run", "--targets", "targets.yaml", "--case", "gs-routing")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the responses are fixed" in json.dumps(record(project)["warnings"])


def test_http__target__loads_no_library_of_a_provider(project) -> None:
    heavy = ("pydantic_ai", "openai", "anthropic", "google.genai", "github")
    code = (
        "import sys, eval_gate.cli.main, eval_gate.cli.runs.single_run;"
        "import eval_gate.targets.build, eval_gate.targets.http.target;"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
