"""Three turns with each kind of agent of docs/targets.md: the first tells a name that the third asks for."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.agents.test_agents_kinds import described, judged
from tests.support.frameworks import A2A, AIMOCK, FASTAPI, LANGGRAPH, LANGSERVE, PYDANTIC_AI, Server, rows


@dataclass(frozen=True)
class Memory:
    """A row of the page, what stands for its agent here, and what the agent needs to go on with a conversation."""

    row: int
    server: Server
    path: str
    calls: bool = True
    """Whether its answers can say which tools were called."""
    more: tuple[tuple[str, object], ...] = ()

    def __str__(self) -> str:
        return f"{self.row}-{self.server}{self.path}"


OUR_ID = ("requestTemplate", {"message": "{{message}}", "session": "{{session}}"})
MESSAGE = ("requestTemplate", {"message": "{{message}}"})
NDJSON = (("responseFormat", "ndjson"),)
MEMORIES = (
    Memory(1, FASTAPI, "/session"),
    Memory(1, FASTAPI, "/session", more=(OUR_ID,)),
    Memory(1, FASTAPI, "/session", more=(("sessionPath", "session"),)),
    Memory(
        1, FASTAPI, "/header", more=(MESSAGE, ("sessionHeader", "X-Session"), ("headers", {"X-Session": "{{session}}"}))
    ),
    Memory(1, FASTAPI, "/cookie", more=(MESSAGE, ("sessionCookie", "sid"))),
    Memory(3, AIMOCK, "/v1/chat/completions"),
    Memory(4, AIMOCK, "/v1/chat/completions"),
    Memory(5, AIMOCK, "/v1/responses"),
    Memory(6, AIMOCK, "/v1/responses"),
    Memory(7, LANGGRAPH, "/runs/wait"),
    Memory(8, LANGGRAPH, "/runs/stream"),
    Memory(9, LANGSERVE, "/chat/invoke"),
    Memory(10, LANGSERVE, "/chat/stream"),
    Memory(11, A2A, "/message", calls=False),
    Memory(11, A2A, "/plain", calls=False),
    Memory(11, A2A, "/task", calls=False),
    Memory(11, A2A, "/slow", calls=False),
    Memory(11, A2A, "/asking", calls=False),
    Memory(12, A2A, "/message", calls=False),
    Memory(12, A2A, "/asking", calls=False),
    Memory(13, PYDANTIC_AI, "/ag-ui"),
    Memory(14, PYDANTIC_AI, "/vercel"),
    Memory(15, AIMOCK, "/api/chat"),
    Memory(15, AIMOCK, "/api/chat", more=NDJSON),
    Memory(20, LANGGRAPH, "/threads/{{session}}/runs/wait"),
    Memory(20, LANGGRAPH, "/threads/{{session}}/runs/stream", more=(("responseFormat", "sse"),)),
)


def converse(folder: Path, *, calls: bool) -> None:
    """Write one case: a name, a tool call, and whether the agent still knows the name."""
    once, none = ({"toolsCalled": ["get_weather"]}, {"toolsCalled": []}) if calls else ({}, {})
    turns = [
        {"message": "I am Ada.", "expect": {"responseContains": ["nothing"], **none}},
        {"message": "weather?", "expect": {"responseContains": ["22 degrees"], **once}},
        {"message": "who am I?", "expect": {"responseContains": ["You are Ada."], **none}},
    ]
    (folder / "evals").mkdir()
    case = {
        "id": "memory",
        "description": "remembers a name",
        "turns": turns,
        "expect": once or {"maxLatencyMs": 60_000},
    }
    (folder / "evals" / "memory.golden.json").write_text(json.dumps([case]))


@pytest.mark.parametrize("memory", MEMORIES, ids=str)
def test_conversation__by_the_lines_of_its_row__is_remembered_in_three_executions(memory, running, tmp_path) -> None:
    described(tmp_path, running(memory.server) + memory.path, rows()[memory.row] | dict(memory.more))
    converse(tmp_path, calls=memory.calls)
    code, (case,) = judged(tmp_path, "--trials", "3")
    assert (code, case["status"], case["flaky"]) == (0, "passed", False), case["error"]
    assert [turn["status"] for turn in case["details"]["turns"]] == ["passed"] * 3
    assert [turn["calls"] for turn in case["details"]["turns"]] == ([0, 1, 0] if memory.calls else [0, 0, 0])
