"""An agent that takes fewer requests at the same time than it gets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from tests.integration.test_integration_run import gate, record, write_suite
from tests.support.agents import Exchange, agent


@dataclass
class CrowdedAgent:
    """What an agent did with its requests, in this order."""

    url: str = ""
    answered: list[bool] = field(default_factory=list)

    @property
    def refusals(self) -> int:
        return self.answered.count(False)


@contextmanager
def crowded(
    room: int, status: str = "429 Too Many Requests", *, wrong: range = range(0), said: str = "ok"
) -> Iterator[CrowdedAgent]:
    """An agent that answers `room` requests at the same time with `said`, and refuses the others.

    The answers to the questions of `wrong` are other ones.
    """
    made, here = CrowdedAgent(), 0

    async def handler(exchange: Exchange) -> None:
        nonlocal here
        made.answered.append(here < room)
        if here >= room:
            exchange.answer({"error": "busy"}, status)
            return
        here += 1
        await asyncio.sleep(0.02)
        here -= 1
        words = exchange.json["message"].split()
        is_wrong = bool(wrong) and int(words[1]) in wrong
        exchange.answer({"response": "no" if is_wrong else said, "toolCalls": []})

    with agent(handler) as running:
        made.url = running.url
        yield made


def find_notice(found: dict) -> str:
    (said,) = [one for one in found["warnings"] if "concurrency" in one]
    return said


def list_results(found: dict) -> list[tuple]:
    """What must not depend on how many cases ran at the same time."""
    kept = "id", "status", "score", "error", "fingerprint", "fingerprints"
    return [tuple(str(case.get(key)) for key in kept) for suite in found["suites"] for case in suite["cases"]]


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
def test_run__agent_takes_two_requests_at_once__ends_well_and_says_what_was_lowered(tmp_path, status) -> None:
    write_suite(tmp_path, 64)
    with crowded(2, status) as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url, "--concurrency", "8")
    assert done.returncode == 0, done.stdout + done.stderr
    assert record(tmp_path)["summary"]["passed"] == 64
    said = find_notice(record(tmp_path))
    what = f"the agent answered {status[:3]} to {running.refusals} requests"
    assert said == f"{what}: concurrency was lowered from 8 to 2"
    assert said in done.stdout


def test_run__concurrency_was_lowered__results_and_verdict_are_those_of_one_case_at_a_time(tmp_path) -> None:
    write_suite(tmp_path, 12)
    found, refusals = [], []
    with crowded(2, wrong=range(3)) as running:
        for options in ((), ("--concurrency", "8")):
            done = gate(tmp_path, "run", "--agent-endpoint", running.url, *options)
            result = record(tmp_path)
            found.append((done.returncode, result["verdict"], result["setup"], list_results(result)))
            refusals.append(running.refusals)
    assert found[0] == found[1]
    assert found[0][0] == 1
    assert refusals[0] == 0 < refusals[1]


def test_run__concurrency_was_lowered__re_runs_keep_to_it(tmp_path) -> None:
    cases = 64
    write_suite(tmp_path, cases)
    with agent() as running:
        assert gate(tmp_path, "run", "--agent-endpoint", running.url).returncode == 0
    with crowded(2, wrong=range(8)) as broken:
        asking = ("--agent-endpoint", broken.url, "--concurrency", "8", "--baseline", "latest", "--reruns", "2")
        done = gate(tmp_path, "run", *asking)
    assert done.returncode == 1, done.stdout
    assert broken.answered.count(True) > cases, "nothing was run again: this test says nothing"
    last_refusal = max(at for at, answered in enumerate(broken.answered) if not answered)
    assert broken.answered[:last_refusal].count(True) < cases
    assert find_notice(record(tmp_path)).endswith("lowered from 8 to 2")


def test_run__judge_is_refused__only_what_the_judge_gets_is_lowered(tmp_path) -> None:
    cases = [
        {
            "id": f"rb-{number}",
            "input": {"message": f"ask {number}"},
            "rubric": [{"dimension": "accuracy", "maxScore": 3, "criteria": "3: right"}],
        }
        for number in range(48)
    ]
    (tmp_path / "cases.rubric.json").write_text(json.dumps(cases))
    grades = json.dumps({"dimensions": [{"dimension": "accuracy", "score": 3, "reasoning": "right"}]})
    with agent() as desk, crowded(1, said=grades) as grader:
        listed = [
            {"name": "desk", "provider": "http", "url": desk.url, "judgeTarget": "grader", "workers": 4},
            {"name": "grader", "provider": "http", "url": grader.url, "workers": 4},
        ]
        (tmp_path / "targets.yaml").write_text(json.dumps({"targets": listed}))
        done = gate(tmp_path, "run", "cases.rubric.json", "--target", "desk")
    assert done.returncode == 0, done.stdout + done.stderr
    what = f"judge grader: the agent grader answered 429 to {grader.refusals} requests"
    assert find_notice(record(tmp_path)) == f"{what}: concurrency was lowered from 4 to 1"
