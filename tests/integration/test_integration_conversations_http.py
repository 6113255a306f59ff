"""Whole runs of a conversation over HTTP: what is refused before, begun again, and said after them."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tests.integration.test_integration_run import gate, record
from tests.support.agents import Agent, Exchange, agent

TURNS = [
    {"message": "I am Ada."},
    {"message": "I like tea."},
    {"message": "who am I?", "expect": {"responseContains": ["Ada"], "toolsCalled": []}},
]


@dataclass
class Rememberer:
    """An agent that keeps the messages of each session by its cookie, and is away for one request after it took it."""

    away_at: int = -1
    sessions: list[list[str]] = field(default_factory=list)

    async def __call__(self, exchange: Exchange) -> None:
        sid = re.search(r"\bsid=(\d+)", exchange.header("cookie") or "")
        number = int(sid[1]) if sid else len(self.sessions)
        if not sid:
            self.sessions.append([])
        self.sessions[number].append(exchange.json["q"])
        if exchange.number == self.away_at:
            exchange.answer({"error": "away"}, "503 Service Unavailable")
            return
        names = re.findall(r"I am (\w+)", " ".join(self.sessions[number]))
        answer = {"response": f"You are {names[0]}." if names else "Who are you?", "toolCalls": []}
        exchange.answer(answer, **({} if sid else {"Set_Cookie": f"sid={number}; Path=/; HttpOnly"}))


def run(folder: Path, handler: Rememberer, **target: object) -> tuple[subprocess.CompletedProcess[str], Agent]:
    (folder / "evals").mkdir()
    (folder / "evals" / "tea.golden.json").write_text(json.dumps([{"id": "tea", "turns": TURNS}]))
    with agent(handler) as running:
        described = {"name": "agent", "url": running.url, "initialDelayMs": 1, **target}
        (folder / "targets.yaml").write_text(json.dumps({"targets": [described]}))
        return gate(folder, "run"), running


def test_run__agent_that_would_not_know_the_turns_before__is_refused_before_any_request(tmp_path) -> None:
    done, running = run(tmp_path, Rememberer(), requestTemplate={"q": "{{message}}"})
    assert done.returncode == 2
    assert "unsupported-conversation" in done.stderr
    said = " ".join(done.stderr.split())
    assert "it sends neither {{session}} nor {{conversation}} nor {{prompt}}" in said, said
    assert 'such as `requestFields: { session: "{{session}}" }` (targets.yaml:1: targets[agent].url)' in said, said
    assert running.requests == []


def test_run__agent_away_in_turn_2__begins_again_without_the_cookie_of_the_session_before(tmp_path) -> None:
    desk = Rememberer(away_at=1)
    done, _ = run(tmp_path, desk, requestTemplate={"q": "{{message}}"}, sessionCookie="sid")
    assert done.returncode == 0, done.stdout
    assert desk.sessions == [["I am Ada.", "I like tea."], [turn["message"] for turn in TURNS]]
    assert "the conversation was started again 1 time: turn 2: HTTP 503" in done.stdout
    [case] = record(tmp_path)["suites"][0]["cases"]
    assert [turn["response"] for turn in case["details"]["turns"]] == ["You are Ada."] * 3
    assert "sid" not in json.dumps(case)


def test_run__turns_that_are_remembered_and_repeated__are_said_once(tmp_path) -> None:
    body = {"q": "{{message}}", "messages": "{{conversation}}", "thread": "{{session}}"}
    done, _ = run(tmp_path, Rememberer(), requestTemplate=body, responsePath="response")
    assert done.stdout.count("got earlier turns again in {{conversation}}") == 1
