"""The first run against an agent that is described wrongly: the next step is that of the error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from tests.support.agents import Exchange, agent
from tests.support.program import gate

PAGE = b"<!DOCTYPE html><title>Welcome</title>"
CHAT = {"agentProtocol": "openai-chat", "requestFields": {"model": "gpt-9"}}


class Mistake(NamedTuple):
    """What the server answers, and the step that follows from it."""

    status: str
    body: bytes | dict[str, Any]
    cause: str
    step: str
    target: Mapping[str, Any] = MappingProxyType({})
    headers: Mapping[str, str] = MappingProxyType({})


MISTAKES = {
    "401": Mistake("401 Unauthorized", {}, "access_refused", "It requires authentication: set the target's headers"),
    "403": Mistake("403 Forbidden", {}, "access_refused", "It requires authentication: set the target's headers"),
    "404": Mistake("404 Not Found", {}, "not_found", "The server has nothing at this path: check the path"),
    "405": Mistake("405 Method Not Allowed", {}, "wrong_method", "It expects another method: set the target's method"),
    "422": Mistake("422 Unprocessable Entity", {}, "wrong_request", "It expects other fields: set the target"),
    "web page": Mistake("200 OK", PAGE, "web_page", "This is a web page: check the port and the path"),
    "wrong field": Mistake("200 OK", {"reply": "hi"}, "wrong_shape", "Describe the shape of the response"),
    "empty body": Mistake("200 OK", b"", "empty_response", "The body is empty: check the path and the method"),
    "redirect": Mistake(
        "307 Temporary Redirect", {}, "redirected", "It redirects: set the agent's URL", headers={"Location": "/chat/"}
    ),
    "model by its code": Mistake(
        "404 Not Found",
        {"error": {"message": "No access to it", "code": "model_not_found"}},
        *("model_not_found", "It has no such model: correct the model", CHAT),
    ),
    "model by its name": Mistake(
        "404 Not Found",
        {"error": {"message": "model 'gpt-9' not found, try pulling it first"}},
        *("model_not_found", "It has no such model: correct the model", CHAT),
    ),
    "path of a model": Mistake(
        "404 Not Found", {"detail": "Not Found"}, "not_found", "The server has nothing at this path", CHAT
    ),
}


class Quiet(BaseHTTPRequestHandler):
    """A server of plain HTTP: it answers what it cannot read, and writes no log."""

    def log_message(self, *_: object) -> None:
        pass


def run_first(folder: Path, target: dict[str, Any]) -> tuple[int, str, dict[str, Any]]:
    """Exit code, what the console says is to be done, and the first case."""
    (folder / "evals").mkdir()
    case = {"id": "a", "input": {"message": "hi"}, "expect": {"responseContains": ["ok"]}}
    cases = [case, case | {"id": "b"}]
    (folder / "evals" / "faq.golden.json").write_text(json.dumps(cases))
    (folder / "eval-gate.json").write_text(json.dumps({"targets": [{"name": "a", "provider": "http"} | target]}))
    done = gate(folder, "run", "--max-retries", "0", EVAL_GATE_WAIT_FOR="1")
    results = folder / "evals" / "results"
    record = json.loads((results / json.loads((results / "latest.json").read_text())["path"]).read_text())
    step = " ".join(done.stdout.partition("Next step: ")[2].partition("result:")[0].split())
    return done.returncode, step, record["suites"][0]["cases"][0]


@pytest.mark.parametrize("name", MISTAKES)
def test_first_run__every_case_has_the_same_mistake__its_own_advice_is_the_next_step(tmp_path, name) -> None:
    mistake = MISTAKES[name]

    async def answers(exchange: Exchange) -> None:
        exchange.answer(mistake.body, mistake.status, **mistake.headers)

    with agent(answers) as running:
        code, step, case = run_first(tmp_path, {"url": running.url} | mistake.target)
    assert code == 3
    assert step.startswith(mistake.step), step
    assert case["errorCause"] == mistake.cause
    assert case["errorHint"].casefold() in step.casefold()
    assert case["errorHint"] not in case["error"]
    assert case["trials"][0]["errorHint"] == case["errorHint"]
    expected = None if mistake.status == "200 OK" else int(mistake.status[:3])
    assert case["httpStatus"] == case["trials"][0]["httpStatus"] == expected


def test_first_run__https_to_a_port_of_http__names_the_scheme(tmp_path) -> None:
    with HTTPServer(("127.0.0.1", 0), Quiet) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        code, step, case = run_first(tmp_path, {"url": f"https://127.0.0.1:{server.server_port}/chat"})
        server.shutdown()
    assert (code, case["errorCause"]) == (3, "tls_failed")
    assert step == "Check whether the agent expects http:// at this port."
