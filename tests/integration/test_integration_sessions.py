"""An agent that remembers: every execution of a case is a new conversation, in trials, re-runs and later runs."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.integration.test_integration_run import gate, record, write_suite
from tests.support.agents import Exchange, agent


class Remembering:
    """Answers `ok` to the first message of a conversation, and to others that it was asked that before."""

    def __init__(self, wrong: frozenset[str] = frozenset()) -> None:
        self.asked: Counter[str] = Counter()
        self.wrong = wrong

    async def __call__(self, exchange: Exchange) -> None:
        session = exchange.json["session"]
        self.asked[session] += 1
        first = self.asked[session] == 1 and exchange.json["message"] not in self.wrong
        exchange.answer({"response": "ok" if first else "we had that", "toolCalls": []})


def described(folder: Path, url: str, placeholder: str, **more: object) -> None:
    template = {"message": "{{message}}", "session": placeholder}
    target = {"name": "a", "provider": "http", "url": url, "requestTemplate": template} | more
    (folder / "eval-gate.json").write_text(json.dumps({"targets": [target]}))


def statuses(folder: Path) -> list[tuple[str, bool, int]]:
    cases = record(folder)["suites"][0]["cases"]
    return [(case["status"], case["flaky"], len(case["trials"])) for case in cases]


def test_session__of_every_execution__is_another_in_trials_and_later_runs(tmp_path) -> None:
    write_suite(tmp_path, 3)
    remembering = Remembering()
    with agent(remembering) as running:
        described(tmp_path, running.url, "{{session}}")
        for _ in range(2):
            done = gate(tmp_path, "run", "--trials", "3")
            assert done.returncode == 0, done.stdout
            assert statuses(tmp_path) == [("passed", False, 3)] * 3
    assert set(remembering.asked.values()) == {1}
    assert len(remembering.asked) == 18


def test_session__of_a_re_run__is_another_too(tmp_path) -> None:
    """Re-runs of a case that fails for other reasons are judged for themselves: each is asked in a new conversation."""
    write_suite(tmp_path, 3)
    remembering = Remembering()
    with agent(remembering) as running:
        described(tmp_path, running.url, "{{session}}")
        assert gate(tmp_path, "run").returncode == 0
        remembering.wrong = frozenset({"ask 1"})
        done = gate(tmp_path, "run", "--baseline", "latest", "--fail-on", "regressions", "--reruns", "3")
    assert done.returncode == 1
    (broken,) = [case for case in record(tmp_path)["suites"][0]["cases"] if case["status"] != "passed"]
    assert (broken["id"], len(broken["trials"]) > 1) == ("gs-001", True)
    assert set(remembering.asked.values()) == {1}


def test_session__try_after_one_that_broke__begins_anew(tmp_path) -> None:
    write_suite(tmp_path, 1)
    seen = []

    async def handler(exchange: Exchange) -> None:
        seen.append(exchange.json["session"])
        exchange.answer({"response": "ok"}, "503 Service Unavailable" if len(seen) == 1 else "200 OK")

    with agent(handler) as running:
        described(tmp_path, running.url, "{{session}}")
        assert gate(tmp_path, "run").returncode == 0
    assert len(set(seen)) == 2


@pytest.mark.parametrize(("placeholder", "more"), [("{{caseId}}", {}), ("{{session}}", {"session": "case"})])
def test_session__that_the_target_wants_for_a_case__is_remembered_by_the_agent(tmp_path, placeholder, more) -> None:
    write_suite(tmp_path, 1)
    with agent(Remembering()) as running:
        described(tmp_path, running.url, placeholder, **more)
        gate(tmp_path, "run", "--trials", "3")
    assert statuses(tmp_path) == [("failed", True, 3)]


def test_session__of_a_command__is_another_for_every_execution(tmp_path) -> None:
    write_suite(tmp_path, 2)
    line = "test -e seen-{SESSION} && echo again || { touch seen-{SESSION}; echo ok; }"
    target = {"name": "desk", "provider": "cli", "command_template": line}
    (tmp_path / "eval-gate.json").write_text(json.dumps({"targets": [target]}))
    for _ in range(2):
        assert gate(tmp_path, "run", "--trials", "2").returncode == 0
    assert len(list(tmp_path.rglob("seen-*"))) == 8
