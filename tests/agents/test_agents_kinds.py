"""The kinds of agents of docs/targets.md, each by its own lines, against the real framework's server."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.test_integration_run import gate, record
from tests.support.frameworks import A2A, AIMOCK, FASTAPI, LANGGRAPH, LANGSERVE, PYDANTIC_AI, Server, rows


@dataclass(frozen=True)
class Kind:
    """A row of the page, and what stands for its agent here."""

    row: int
    server: Server
    path: str
    calls: bool = True
    """Whether its answers can say which tools were called."""
    streams: bool = False
    more: tuple[tuple[str, object], ...] = ()
    """What the page says behind the `;`."""

    def __str__(self) -> str:
        return f"{self.row}-{self.server.command[-2] if self.server is FASTAPI else self.server}{self.path}"


STREAM = (("responseFormat", "sse"),)
KINDS = (
    Kind(1, FASTAPI, "/chat"),
    Kind(2, FASTAPI, "/sidecar"),
    Kind(3, AIMOCK, "/v1/chat/completions"),
    Kind(4, AIMOCK, "/v1/chat/completions", streams=True),
    Kind(5, AIMOCK, "/v1/responses"),
    Kind(6, AIMOCK, "/v1/responses", streams=True),
    Kind(7, LANGGRAPH, "/runs/wait"),
    Kind(8, LANGGRAPH, "/runs/stream", streams=True),
    Kind(9, LANGSERVE, "/chat/invoke"),
    Kind(9, LANGSERVE, "/text/invoke", calls=False),
    Kind(10, LANGSERVE, "/chat/stream", streams=True),
    Kind(10, LANGSERVE, "/text/stream", calls=False, streams=True),
    Kind(11, A2A, "/message", calls=False),
    Kind(11, A2A, "/task", calls=False),
    Kind(12, A2A, "/message", calls=False),
    Kind(12, A2A, "/slow", calls=False),
    Kind(13, PYDANTIC_AI, "/ag-ui", streams=True),
    Kind(14, PYDANTIC_AI, "/vercel", streams=True),
    Kind(15, AIMOCK, "/api/chat"),
    Kind(15, AIMOCK, "/api/chat", streams=True, more=(("responseFormat", "ndjson"),)),
    Kind(16, FASTAPI, "/text", calls=False),
    Kind(17, FASTAPI, "/events", streams=True),
    Kind(17, FASTAPI, "/lines", streams=True, more=(("responseFormat", "ndjson"),)),
    Kind(18, FASTAPI, "/ask"),
    Kind(18, FASTAPI, "/form", more=(("method", "POST"), ("query", {}), ("form", {"q": "{{message}}"}))),
    Kind(19, FASTAPI, "/jobs"),
    Kind(19, FASTAPI, "/jobs", more=(("poll", {}),)),
    Kind(20, LANGGRAPH, "/threads/{{session}}/runs/wait"),
)


def described(folder: Path, url: str, settings: dict[str, object]) -> None:
    target = {"name": "agent", "provider": "http", **settings, "url": url}
    (folder / "targets.yaml").write_text(json.dumps({"targets": [target]}))


def cases(folder: Path, *asked: tuple[str, dict]) -> None:
    listed = [{"id": name, "input": {"message": name}, "expect": expect} for name, expect in asked]
    (folder / "evals").mkdir(exist_ok=True)
    (folder / "evals" / "weather.golden.json").write_text(json.dumps(listed))


def judged(folder: Path, *arguments: str) -> tuple[int, list[dict]]:
    done = gate(folder, "run", *arguments, EVAL_GATE_WAIT_FOR="60")
    assert done.returncode != 2, done.stderr
    return done.returncode, record(folder)["suites"][0]["cases"]


def test_page__every_row__is_tested_here() -> None:
    assert {kind.row for kind in KINDS} == set(rows()) == set(range(1, 21))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_kind__by_the_lines_of_its_row__is_evaluated_as_it_is(kind, running, tmp_path) -> None:
    described(tmp_path, running(kind.server) + kind.path, rows()[kind.row] | dict(kind.more))
    tools = {"toolsCalled": ["get_weather"]} if kind.calls else {}
    none = {"toolsNotCalled": ["get_weather"]} if kind.calls else {}
    cases(
        tmp_path,
        ("weather?", {"responseContains": ["22 degrees"], **tools}),
        ("hello", {"responseContains": ["nothing"], **none}),
        ("weather, wrongly", {"responseContains": ["30 degrees"]}),
        ("crash", {"responseContains": ["out"]}),
    )
    code, found = judged(tmp_path)
    assert [(case["status"], case["errorKind"]) for case in found] == [
        ("passed", None),
        ("passed", None),
        ("failed", None),
        ("error", "agent_error"),
    ], [case["error"] for case in found]
    assert code == 1
    if kind.calls:
        (call,) = found[0]["details"]["toolCalls"]
        assert (call["name"], call["arguments"]) == ("get_weather", {"city": "Rome"})
    assert (found[0]["details"]["firstTokenMs"] is not None) is kind.streams


def test_langgraph__threads_that_remember__give_the_same_in_runs_and_trials(running, tmp_path) -> None:
    """The graph says how many messages its thread holds: 1, if every execution has a thread of its own."""
    url = running(LANGGRAPH) + "/threads/{{session}}/runs/wait"
    described(tmp_path, url, {"agentProtocol": "langgraph-thread"})
    cases(tmp_path, ("hello", {"responseContains": ["this is message 1"]}))
    for _ in range(2):
        code, (case,) = judged(tmp_path, "--trials", "3")
        assert (code, case["status"], case["flaky"]) == (0, "passed", False), case["error"]
    described(tmp_path, url, {"agentProtocol": "langgraph-thread", "session": "case"})
    assert judged(tmp_path, "--trials", "3")[1][0]["flaky"] is True
