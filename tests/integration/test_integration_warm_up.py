"""Warm-up rounds as a process: resumed after a kill, within their limits, and none where they would say nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.integration.test_integration_run import gate, record, started, wait_until, write_suite
from tests.support.agents import Exchange, agent
from tests.support.world import plain

CASES = 4
OPTIONS = ("--baseline", "latest", "--warm-up", "4")


def answers(reply: Callable[[int, Exchange], Awaitable[None]] | None = None):
    """An agent that gives its `reply` to the n-th request, from 1, and `ok` without one."""
    asked = 0

    async def answer(exchange: Exchange) -> None:
        nonlocal asked
        asked += 1
        if reply is not None:
            await reply(asked, exchange)
        exchange.answer({"response": "ok", "toolCalls": [], "costUsd": 0.01})

    return answer


def history(folder: Path) -> list[dict]:
    run = record(folder)
    return json.loads((folder / "evals/results" / run["runId"] / "history.json").read_text())["runs"]


def test_warm_up__killed_in_a_round_and_resumed__takes_up_the_rounds_where_they_were(tmp_path) -> None:
    write_suite(tmp_path, CASES)

    async def hang(number: int, exchange: Exchange) -> None:
        if number == 2 * CASES + 3:
            await asyncio.sleep(60)

    with agent(answers(hang)) as running:
        arguments = ["--agent-endpoint", running.url, "--concurrency", "1", *OPTIONS]
        process = started(tmp_path, *arguments)
        wait_until(lambda: len(running.requests) >= 2 * CASES + 3)
        process.kill()
        process.communicate()
        killed = record(tmp_path)
        assert (killed["complete"], killed["verdict"]["outcome"]) == (True, "passed"), "the run itself is stored"
        assert [run.get("warmUpOf") for run in history(tmp_path)] == [None, killed["runId"]]
        done = gate(tmp_path, "run", *arguments, "--resume", killed["runId"])
        asked = len(running.requests)
    assert done.returncode == 0, done.stderr
    assert "3 warm-up rounds: the history has 4 runs now; 12 executions, $0.12" in plain(done.stdout)
    assert asked == 4 * CASES + 1, "only the execution that hung was made again"
    assert [run.get("warmUpOf") for run in history(tmp_path)] == [None, *[killed["runId"]] * 3]


def test_warm_up__ended_by_a_signal_in_a_round__keeps_the_finished_rounds_and_exits_by_the_signal(tmp_path) -> None:
    write_suite(tmp_path, CASES)

    async def hang(number: int, _: Exchange) -> None:
        if number == 2 * CASES + 1:
            await asyncio.sleep(60)

    with agent(answers(hang)) as running:
        process = started(tmp_path, "--agent-endpoint", running.url, "--concurrency", "1", *OPTIONS)
        wait_until(lambda: len(running.requests) > 2 * CASES)
        process.terminate()
        said, _ = process.communicate()
    assert process.returncode == 143
    assert "1 warm-up round: the history has 2 runs now; 4 executions, $0.0400; terminated (SIGTERM)" in " ".join(
        plain(said).split()
    )
    assert (record(tmp_path)["verdict"]["outcome"], len(history(tmp_path))) == ("passed", 2)


def test_warm_up__agent_stops_answering__ends_the_rounds_and_a_round_without_answers_is_no_run(tmp_path) -> None:
    write_suite(tmp_path, CASES)

    async def vanish(number: int, exchange: Exchange) -> None:
        if number > 2 * CASES:
            exchange.reset()

    with agent(answers(vanish)) as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url, "--max-retries", "0", *OPTIONS)
    assert done.returncode == 0, done.stdout + done.stderr
    said = plain(done.stdout)
    assert "1 warm-up round: the history has 2 runs now; 4 executions" in said
    assert "in round 2" in said
    assert len(history(tmp_path)) == 2


@pytest.mark.parametrize(
    ("more", "rounds", "said"),
    [
        (("--rerun-budget", "9"), 2, "the limit of 9 re-runs is used up"),
        (("--max-cost-usd", "0.1"), 1, "maxCostUsd leaves $0.0200 for a round of about $0.0400"),
        (("--recording", "auto"), 0, "no warm-up round: the history has 1 run now; recorded responses are the same"),
        (("--shard", "1/2"), None, "warmUp does not go with shards"),
        (("--case", "gs-*1"), 0, None),
    ],
)
def test_warm_up__limits__end_it_and_say_so(tmp_path, more, rounds, said) -> None:
    write_suite(tmp_path, CASES)
    with agent(answers()) as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url, *OPTIONS, *more)
        asked = len(running.requests)
    text = plain(done.stdout + done.stderr)
    assert said is None or said in text
    if rounds is None:
        assert (done.returncode, asked) == (2, 0), text
    else:
        assert done.returncode == 0, text
        assert asked == (1 + rounds) * (1 if "--case" in more else CASES)
        assert ("warm-up round" in text) is (said is not None)


def test_warm_up__a_round__gets_past_caches_as_re_runs_do(tmp_path) -> None:
    write_suite(tmp_path, CASES)
    with agent(answers()) as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url, *OPTIONS)
        nonces = [one.header("x-eval-gate-nonce") for one in running.requests]
    assert done.returncode == 0, done.stderr
    assert nonces[:CASES] == [None] * CASES
    assert [len(set(nonces[at * CASES : (at + 1) * CASES])) for at in (1, 2, 3)] == [1, 1, 1]
    assert len(set(nonces)) == 4, "each round has one of its own"


def test_warm_up__a_pull_request_changes_it__is_no_reason_for_rounds(tmp_path) -> None:
    write_suite(tmp_path, CASES)
    with agent(answers()) as running:
        assert gate(tmp_path, "run", "--agent-endpoint", running.url).returncode == 0
        run = record(tmp_path)["runId"]
        done = gate(tmp_path, "run", "--agent-endpoint", running.url, "--baseline", run, "--warm-up", "4")
        assert len(running.requests) == 2 * CASES
    assert done.returncode == 0
    assert "warm-up" not in plain(done.stdout)
