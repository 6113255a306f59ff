"""A re-run shares nothing with the executions before it: no connection, session, process or cached response."""

from __future__ import annotations

import json
import sys
from collections import defaultdict

import pytest

from tests.support.agents import Exchange, agent
from tests.support.model_server import model_server, openai_answer
from tests.support.program import gate
from tests.support.world import cases_of

QUICK = ("--max-retries", "0", "--fail-on", "regressions", "--reruns", "6", "--baseline", "latest")
CASES = 8
BROKEN = "ask 3"

PROGRAM = """
import json, os, pathlib, sys
prompt, session = sys.argv[1:]
with open("asked.jsonl", "a") as file:
    file.write(json.dumps({"prompt": prompt, "process": os.getpid(), "session": session}) + "\\n")
print("no" if pathlib.Path("broken").exists() and prompt.endswith("ask 3") else "ok")
"""
"""A command that says who it is each time, and breaks one case."""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "weather.golden.json").write_text(json.dumps(cases_of(CASES)))
    return tmp_path


class Witness:
    """An agent that notes over which connection, in which session and with which headers it was asked."""

    def __init__(self) -> None:
        self.broken = False
        self.asked: dict[str, list[tuple[object, ...]]] = defaultdict(list)
        self.nonces: list[str | None] = []

    async def __call__(self, exchange: Exchange) -> None:
        body = exchange.json
        message = body["message"]
        connection = exchange.writer.get_extra_info("peername")
        self.asked[message].append((connection, body.get("session"), exchange.header("cache-control")))
        self.nonces.append(exchange.header("x-eval-gate-nonce"))
        exchange.answer({"response": "no" if self.broken and message == BROKEN else "ok", "toolCalls": []})

    def column(self, at: int, *, first: bool) -> list[object]:
        """One of the facts of all first executions, or of all that came after them."""
        return [fact[at] for facts in self.asked.values() for fact in (facts[:1] if first else facts[1:])]


def run_twice(folder, witness: Witness, *options: str) -> None:
    """Fill the baseline, then run a broken agent, of which the witness tells."""
    with agent(witness) as running:
        row = {"name": "a", "provider": "http", "url": running.url, "session": "case"}
        row["requestTemplate"] = {"message": "{{message}}", "session": "{{session}}"}
        (folder / "targets.yaml").write_text(json.dumps({"targets": [row]}))
        args = ("--targets", "targets.yaml", "--target", "a", "--concurrency", "1", *QUICK, *options)
        assert gate(folder, "run", *args).returncode == 0
        witness.broken = True
        witness.asked.clear()
        witness.nonces.clear()
        done = gate(folder, "run", *args)
        assert done.returncode in {0, 1}, done.stdout + done.stderr


def test_re_runs__of_an_http_agent__have_connections_and_sessions_of_their_own(folder) -> None:
    witness = Witness()
    run_twice(folder, witness)
    first, again = (witness.column(0, first=which) for which in (True, False))
    assert len(set(first)) == 1  # a pool, as long as nothing is asked twice
    assert len(set(again)) == len(again) >= 1
    assert not set(first) & set(again)
    sessions = [witness.column(1, first=which) for which in (True, False)]
    assert len({*sessions[0], *sessions[1]}) == CASES + len(again)
    assert (set(witness.column(2, first=True)), set(witness.column(2, first=False))) == ({None}, {"no-cache"})
    nonces = [nonce for nonce in witness.nonces if nonce]
    assert len(set(nonces)) == len(nonces) == len(again)


def test_trials__of_an_http_agent__share_the_session_that_was_asked_for_and_nothing_else(folder) -> None:
    witness = Witness()
    run_twice(folder, witness, "--trials", "3", "--case", "gs-000", "--case", "gs-003")
    alone = witness.asked["ask 0"]
    assert [len({fact[at] for fact in alone}) for at in (0, 1)] == [3, 1]
    assert [fact[2] for fact in alone] == [None, "no-cache", "no-cache"]


def test_re_runs__of_a_command__are_processes_and_sessions_of_their_own(folder) -> None:
    (folder / "evals" / "agent.py").write_text(PROGRAM)
    row = {"name": "c", "provider": "cli", "command": f"{sys.executable} agent.py {{PROMPT}} {{SESSION}}"}
    (folder / "targets.yaml").write_text(json.dumps({"targets": [row]}))
    args = ("--targets", "targets.yaml", "--target", "c", *QUICK)
    assert gate(folder, "run", *args).returncode == 0
    (folder / "evals" / "asked.jsonl").unlink()
    (folder / "evals" / "broken").touch()
    done = gate(folder, "run", *args)
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    asked = [json.loads(line) for line in (folder / "evals" / "asked.jsonl").read_text().splitlines()]
    assert len(asked) > CASES
    for fact in ("process", "session"):
        assert len({one[fact] for one in asked}) == len(asked)


def test_re_runs__behind_a_cache_that_keeps_a_bad_answer__get_past_it(folder) -> None:
    known: dict[bytes, dict] = {}
    unlucky = False

    async def cache(exchange: Exchange) -> None:
        body = exchange.body
        if body not in known or exchange.header("cache-control") == "no-cache":
            wrong = unlucky and BROKEN.encode() in body and body not in known
            known[body] = {"response": "no" if wrong else "ok", "toolCalls": []}
        exchange.answer(known[body])

    with agent(cache) as running:
        args = ("--agent-endpoint", running.url, *QUICK)
        for _ in range(4):
            assert gate(folder, "run", *args).returncode == 0
        known.clear()
        unlucky = True
        done = gate(folder, "run", *args)
    assert done.returncode == 0, done.stdout


def test_trials__of_a_model__have_connections_and_headers_of_their_own(folder) -> None:
    rows = [{"name": "m", "provider": "openai", "model": "gpt", "apiKey": "${{ A_KEY }}"}]
    with model_server(openai_answer("ok")) as server:
        rows[0]["baseUrl"] = server.url
        (folder / "targets.yaml").write_text(json.dumps({"targets": rows}))
        options = ("--targets", "targets.yaml", "--target", "m", "--trials", "3", "--concurrency", "1")
        done = gate(folder, "run", *options, "--case", "gs-000", "--case", "gs-001", A_KEY="sk-very-secret")
        assert done.returncode == 0, done.stdout + done.stderr
        asked = server.requests
        nonces = [one.header("x-eval-gate-nonce") for one in asked]
        connections = server.connections
    assert (len(asked), connections) == (6, 1 + 4)
    assert nonces[:2] == [None, None]
    assert len({*nonces[2:]}) == 4
