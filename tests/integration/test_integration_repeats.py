"""Re-runs that come from a cache, or from an agent without chance in it, with the installed program."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.integration.test_integration_run import gate, record, write_suite
from tests.support.agents import Exchange, agent


class Cached:
    """An agent whose case 3 fails; what stands before it answers a question it knows at once, and as before."""

    def __init__(self) -> None:
        self.dead = False
        self.fast = True
        self.varies = False
        self.slow_starts = 0
        self.asked = 0

    async def __call__(self, exchange: Exchange) -> None:
        if self.slow_starts:
            self.slow_starts -= 1
            await asyncio.sleep(0.5)
        if not self.dead or exchange.json["message"].split()[1] != "3":
            exchange.answer({"response": "ok", "toolCalls": []})
            return
        self.asked += 1
        if self.asked == 1 and self.fast:
            await asyncio.sleep(0.5)
        exchange.answer({"response": f"no {self.asked}" if self.varies else "no", "toolCalls": []})


@pytest.fixture
def cached(tmp_path):
    write_suite(tmp_path, 8)
    behaviour = Cached()
    with agent(behaviour) as running:
        for _ in range(4):
            assert gate(tmp_path, "run", "--agent-endpoint", running.url).returncode == 0
        behaviour.dead = True
        yield tmp_path, running.url, behaviour


def run(folder: Path, url: str, *arguments: str):
    always = ("--baseline", "evals/results", "--reruns", "6", "--fail-on", "regressions")
    return gate(folder, "run", "--agent-endpoint", url, *always, *arguments)


def grounds(folder: Path) -> dict:
    changes = record(folder)["comparison"]["changes"]
    return next(change["grounds"] for change in changes if change["caseId"] == "gs-003")


@pytest.mark.contract("verdict.repeats")
def test_run__re_runs_come_from_a_cache__the_report_says_so_and_what_to_do(cached) -> None:
    folder, url, _ = cached
    main = record(folder)["runId"]
    done = run(folder, url)
    assert done.returncode == 1, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    assert "2 re-runs returned the same response byte for byte, in" in said
    assert "this looks like a cache that re-runs do not get past" in said
    found = grounds(folder)
    assert found["repeats"]["cached"]
    assert found["current"]["failures"] == found["reruns"] + 1 > 1
    again = gate(folder, "compare", main, record(folder)["runId"], "--fail-on", "regressions")
    assert again.returncode == 1
    assert "returned the same response byte for byte, in" in " ".join(again.stdout.split())


def test_run__agent_without_chance_in_it__is_a_regression_without_a_word_of_repeats(cached) -> None:
    folder, url, behaviour = cached
    behaviour.fast = False
    done = run(folder, url)
    assert done.returncode == 1, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    assert "confirmed: failed" in said
    assert "byte for byte" not in said
    assert "looks like a cache" not in said
    assert not grounds(folder)["repeats"]["cached"]


def test_run__each_worker_of_the_agent_starts_slowly__does_not_look_like_a_cache(cached) -> None:
    """Four cases at once start four workers, and what is run again finds one that has started."""
    folder, url, behaviour = cached
    behaviour.fast, behaviour.slow_starts = False, 4
    done = run(folder, url, "--concurrency", "4")
    assert done.returncode == 1, done.stdout + done.stderr
    found = grounds(folder)["repeats"]
    assert found["firstMs"] > 5 * found["slowestMs"]
    assert not found["cached"]
    assert "looks like a cache" not in done.stdout


@pytest.mark.parametrize("options", [(), ("--keep-responses", "none")])
def test_run__answers_differ_or_are_not_kept__nothing_is_said_of_them(cached, options) -> None:
    folder, url, behaviour = cached
    behaviour.varies = not options
    done = run(folder, url, *options)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "byte for byte" not in done.stdout
    assert grounds(folder)["repeats"] is None
