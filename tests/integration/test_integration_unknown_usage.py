"""Cost and tokens that the baseline knows and a change does not tell any more: nobody knows, so that is not green."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.test_integration_run import gate, record, write_suite
from tests.support.agents import Exchange, agent

TOLD = {"costUsd": 0.01, "usage": {"inputTokens": 300, "outputTokens": 60}}
UNTOLD = {
    "absent": {},
    "text": {"costUsd": "0.01", "usage": {"inputTokens": "300", "outputTokens": "60"}},
    "negative": {"costUsd": -0.01, "usage": {"inputTokens": -300, "outputTokens": -60}},
    "in part": TOLD | {"usage": {"inputTokens": 300}, "costUsd": None},
}


def run(folder: Path, more: dict[str, object], *arguments: str, cases: int = 8):
    async def answer(exchange: Exchange) -> None:
        number = int(exchange.json["message"].split()[1])
        told = more if number < cases else TOLD
        exchange.answer({"response": "ok", "toolCalls": [], **told})

    with agent(answer) as running:
        return gate(folder, "run", "--agent-endpoint", running.url, "--fail-on", "regressions", *arguments)


@pytest.mark.parametrize("budget", ["--max-cost-increase", "--max-token-increase"])
@pytest.mark.parametrize("untold", UNTOLD)
def test_budget__known_in_the_baseline_and_not_told_here__could_not_decide(tmp_path, untold, budget) -> None:
    write_suite(tmp_path, 8)
    assert run(tmp_path, TOLD).returncode == 0
    done = run(tmp_path, UNTOLD[untold], "--baseline", "latest", budget, "20")
    assert done.returncode == 3, done.stdout
    said = " ".join(done.stdout.split())
    assert "GATE INCONCLUSIVE: 8 cases had " in said
    assert "in the baseline and have none in this run, so the limit of +20 % cannot be checked" in said
    assert record(tmp_path)["verdict"]["outcome"] == "inconclusive"
    assert run(tmp_path, UNTOLD[untold], "--baseline", "latest").returncode == 0  # nobody asked


def test_budget__a_few_do_not_tell__is_decided_by_the_typical_case(tmp_path) -> None:
    write_suite(tmp_path, 8)
    run(tmp_path, TOLD)
    done = run(tmp_path, {}, "--baseline", "latest", "--max-cost-increase", "20", cases=2)
    assert done.returncode == 0, done.stdout


def test_budget__durations_of_another_tool_are_missing__could_not_decide(tmp_path) -> None:
    lines = [{"id": f"c{at}", "status": "passed", "duration_ms": 100} for at in range(3)]
    (tmp_path / "then.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "here.jsonl").write_text("\n".join(json.dumps(one | {"duration_ms": None}) for one in lines))
    assert gate(tmp_path, "check", "then.jsonl").returncode == 0
    done = gate(tmp_path, "check", "here.jsonl", "--baseline", "latest", "--max-latency-increase", "20")
    assert done.returncode == 3, done.stdout + done.stderr
