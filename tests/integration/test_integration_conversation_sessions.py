"""A thousand conversations, fifty at once, on an agent over HTTP that reports each mixture of sessions."""

from __future__ import annotations

import json
import random
import uuid
from collections import defaultdict

import pytest

from tests.integration.test_integration_run import record
from tests.support.agents import Exchange, agent
from tests.support.program import gate

CASES, BROKEN, AT_ONCE = 490, 20, 50

ROWS = {
    "our id": {"requestTemplate": {"message": "{{message}}", "session": "{{session}}"}},
    "its id": {"requestTemplate": {"message": "{{message}}", "session": "{{session}}"}, "sessionPath": "session"},
    "cookie": {"requestTemplate": {"message": "{{message}}"}, "sessionCookie": "sid"},
}
"""Settings of a target by the way in which it names a session."""


class Witness:
    """An agent that remembers what it was told in each session, and notes what does not belong there.

    One request in thirty ends with a 502, half of them after the turn was taken in, and one in 500 with a 503.
    """

    def __init__(self, way: str) -> None:
        self.way = way
        self.broken = False
        self.sessions: defaultdict[str, list[str]] = defaultdict(list)
        self.mixtures: list[object] = []
        self.unknown: list[str] = []
        self._random = random.Random(61)

    async def __call__(self, exchange: Exchange) -> None:
        message = exchange.json["message"]
        fault = self._random.random()
        if fault < 1 / 60:
            exchange.answer({}, "502 Bad Gateway")
            return
        session = self._find_session(exchange)
        turns = self.sessions[session]
        turns.append(message)
        case = message.partition(":")[0]
        if turns != [f"{case}: message {number}" for number in range(1, len(turns) + 1)]:
            self.mixtures.append(turns)
        if fault > 1 - 1 / 60:
            exchange.answer({}, "503 Service Unavailable" if fault > 1 - 1 / 500 else "502 Bad Gateway")
            return
        is_wrong = self.broken and int(case) < BROKEN and len(turns) == 3
        headers = {"Set_Cookie": f"sid={session}"} if self.way == "cookie" else {}
        # what the agent was told first, as its memory has it
        text = "no" if is_wrong else f"{len(turns)} of {turns[0]}"
        exchange.answer({"response": text, "session": session, "toolCalls": []}, **headers)

    def _find_session(self, exchange: Exchange) -> str:
        cookie = (exchange.header("cookie") or "").removeprefix("sid=")
        named = cookie if self.way == "cookie" else exchange.json.get("session")
        if self.way == "our id":
            return named
        if named and named not in self.sessions:
            self.unknown.append(named)
        return named or uuid.uuid4().hex


@pytest.mark.slow
@pytest.mark.parametrize("way", ROWS)
def test_run__thousand_conversations_with_re_runs_and_faults__never_share_a_session(tmp_path, way) -> None:
    (tmp_path / "evals").mkdir()
    expected = [{"responseContains": [f"{number} of "]} for number in (1, 2, 3)]
    cases = [
        {
            "id": f"gs-{case:03}",
            "turns": [
                {"message": f"{case:03}: message {number}", "expect": expect}
                for number, expect in enumerate(expected, 1)
            ],
        }
        for case in range(CASES)
    ]
    (tmp_path / "evals" / "desk.golden.json").write_text(json.dumps(cases))
    witness = Witness(way)
    with agent(witness) as running:
        row = {"name": "a", "provider": "http", "url": running.url, "maxRetries": 20, "initialDelayMs": 1} | ROWS[way]
        (tmp_path / "targets.yaml").write_text(json.dumps({"targets": [row]}))
        options = ("run", "--targets", "targets.yaml", "--target", "a", "--concurrency", str(AT_ONCE))
        done = gate(tmp_path, *options)
        assert done.returncode == 0, done.stdout + done.stderr
        witness.broken = True
        done = gate(tmp_path, *options, "--baseline", "latest", "--fail-on", "regressions", "--reruns", "6")
    assert done.returncode == 1, done.stdout + done.stderr
    assert (witness.mixtures, witness.unknown) == ([], [])
    whole = [turns for turns in witness.sessions.values() if len(turns) == 3]
    assert len(whole) >= 1_000
    results = record(tmp_path)["suites"][0]["cases"]
    assert [case["failedTurn"] for case in results] == [3] * BROKEN + [None] * (CASES - BROKEN)
    assert any("the conversation was started again" in line for case in results for line in case["warnings"])
