"""`rerunCacheBusting`: what is asked once more is no request that a cache on the way knows already."""

from __future__ import annotations

import json

import pytest

from tests.support.agents import Exchange, agent
from tests.support.model_server import model_server, openai_answer
from tests.support.program import gate
from tests.support.world import cases_of

QUICK = ("--max-retries", "0", "--fail-on", "regressions", "--reruns", "6")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "weather.golden.json").write_text(json.dumps(cases_of(8)))
    return tmp_path


class Cache:
    """A cache before an agent that is unlucky at first: it answers what it was asked already, if it may."""

    def __init__(self) -> None:
        self.known: dict[bytes, dict] = {}
        self.unlucky = False
        self.nonces: list[str | None] = []

    async def __call__(self, exchange: Exchange) -> None:
        self.nonces.append(exchange.header("x-eval-gate-nonce"))
        body = exchange.body
        fresh = exchange.header("cache-control") == "no-cache"
        if body not in self.known or fresh:
            wrong = self.unlucky and b"ask 3" in body and not fresh
            self.known[body] = {"response": "no" if wrong else "ok", "toolCalls": []}
        exchange.answer(self.known[body])


def run(folder, cache: Cache, *options: str):
    cache.known, cache.nonces = {}, []
    with agent(cache) as running:
        return gate(folder, "run", "--agent-endpoint", running.url, *QUICK, "--baseline", "latest", *options)


@pytest.mark.slow
def test_re_runs__behind_a_cache_that_keeps_a_bad_answer__pass_it_with_a_nonce_only(folder) -> None:
    cache = Cache()
    for _ in range(4):
        assert run(folder, cache).returncode == 0
    cache.unlucky = True
    without = run(folder, cache)
    assert (without.returncode, set(cache.nonces)) == (1, {None}), without.stdout
    done = run(folder, cache, "--rerun-cache-busting")
    assert done.returncode == 0, done.stdout
    sent = [nonce for nonce in cache.nonces if nonce]
    assert len(cache.nonces) - len(sent) == 8  # the first execution of each may come from wherever it comes
    assert len(set(sent)) == len(sent) > 0


@pytest.mark.slow
def test_re_runs__of_a_model__are_sent_with_a_nonce_too(folder) -> None:
    rows = [{"name": "m", "provider": "openai", "model": "gpt", "apiKey": "${{ A_KEY }}"}]
    with model_server(openai_answer("ok")) as server:
        rows[0]["baseUrl"] = server.url
        (folder / "targets.yaml").write_text(json.dumps({"targets": rows}))
        options = (
            "--targets",
            "targets.yaml",
            "--target",
            "m",
            "--trials",
            "2",
            "--case",
            "gs-000",
            "--rerun-cache-busting",
        )
        done = gate(folder, "run", *options, A_KEY="sk-very-secret")
        assert done.returncode == 0, done.stdout + done.stderr
        first, second = (asked.header("x-eval-gate-nonce") for asked in server.requests)
    assert first is None
    assert second
