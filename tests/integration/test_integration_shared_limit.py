"""Shards at the same time, as processes of their own, against one agent that limits all of them together."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.integration.test_integration_run import write_suite
from tests.support.agents import agent
from tests.support.program import gate

SHARDS = 3


def side_by_side(folder: Path, url: str, *options: str) -> list:
    """All shards at once; each in a folder of its own."""

    def one(part: int):
        asking = ("--agent-endpoint", url, "--shard", f"{part}/{SHARDS}", "--output-dir", f"parts/{part}")
        return gate(folder, "run", *asking, *options)

    with ThreadPoolExecutor(SHARDS) as pool:
        return list(pool.map(one, range(1, SHARDS + 1)))


@pytest.mark.slow
def test_shards__agent_limits_all_of_them_together__settle_on_it_and_every_case_is_judged(tmp_path) -> None:
    per_second, cases = 30, 180
    left, second, served, refused = 0, -1, [], 0
    there: set[int] = set()
    all_there = asyncio.Event()

    async def handler(exchange) -> None:
        nonlocal left, second, refused
        who = int(exchange.json["message"].split()[1]) % SHARDS
        there.add(who)
        if len(there) == SHARDS:
            all_there.set()
        await all_there.wait()  # who starts seconds earlier on a busy machine would have been served by then
        now = int(asyncio.get_running_loop().time())
        if now != second:
            second, left = now, per_second
        if left <= 0:
            refused += 1
            exchange.answer({"error": "slow down"}, "429 Too Many Requests", Retry_After="1")
            return
        left -= 1
        served.append(who)
        exchange.answer({"response": "ok", "toolCalls": []})

    write_suite(tmp_path, cases)
    with agent(handler) as running:
        done = side_by_side(tmp_path, running.url, "--concurrency", "10")
    assert [one.returncode for one in done] == [0] * SHARDS, [one.stdout[-500:] for one in done]
    assert refused, "the limit was never met: this test says nothing"
    assert refused < len(served)
    assert Counter(served) == dict.fromkeys(range(SHARDS), cases // SHARDS)
    first = Counter(served[: cases // 3])
    assert min(first[who] for who in range(SHARDS)) >= cases // 3 // SHARDS // 4, first  # nobody starves
    records = [json.loads(file.read_text()) for file in tmp_path.glob("parts/*/*/run.json")]
    assert any("this shard was reduced to" in warning for record in records for warning in record["warnings"])


@pytest.mark.slow
def test_shards__requests_per_minute_are_set__each_begins_its_even_part_of_them(tmp_path) -> None:
    began: dict[int, list[float]] = {}

    async def handler(exchange) -> None:
        number = int(exchange.json["message"].split()[1])
        began.setdefault(number % SHARDS, []).append(asyncio.get_running_loop().time())
        exchange.answer({"response": "ok", "toolCalls": []})

    write_suite(tmp_path, 8 * SHARDS)
    with agent(handler) as running:
        options = ("--concurrency", "10", "--requests-per-minute", str(600 * SHARDS))
        done = side_by_side(tmp_path, running.url, *options)
    assert [one.returncode for one in done] == [0] * SHARDS
    # eight begin seven tenths of a second apart at least; that they are later than that is no mistake
    assert min(max(times) - min(times) for times in began.values()) >= 0.55, began
