"""What servers of the real frameworks say of themselves, and what `eval-gate init` makes of it."""

from __future__ import annotations

import json
import time
import urllib.request
from urllib.error import URLError

import pytest
import yaml

from tests.integration.test_integration_run import gate
from tests.support.described import KEY
from tests.support.described import ROUTED as RECORDED
from tests.support.frameworks import A2A, LANGGRAPH, LANGSERVE, PYDANTIC_AI, ROUTED, Server

ROWS: dict[str, tuple[Server, str, tuple[str, ...], str, str | None]] = {
    "A2A": (A2A, "", (), "/message", "a2a"),
    "LangGraph": (LANGGRAPH, "", (), "/runs/wait", "langgraph"),
    "LangServe": (LANGSERVE, "/chat", (), "/chat/invoke", "langserve"),
    "AG-UI": (PYDANTIC_AI, "/ag-ui", ("--agent-protocol", "ag-ui"), "/ag-ui", "ag-ui"),
    "FastAPI": (ROUTED, "/v2/desk/ask", (), "/v2/desk/ask", None),
}


def wait_for(url: str) -> None:
    for _ in range(120):
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except URLError as error:
            if getattr(error, "code", None):  # it answers
                return
            time.sleep(0.5)
    raise AssertionError(f"nobody at {url}")


@pytest.mark.parametrize("row", ROWS)
def test_init__server_of_a_framework__is_described_by_what_it_says(row, running, tmp_path) -> None:
    server, below, words, path, protocol = ROWS[row]
    url = running(server)
    wait_for(url)
    done = gate(
        tmp_path, "init", "--agent-endpoint", url + below, "--probe", "How is the weather?", *words, AGENT_KEY=KEY
    )
    assert done.returncode == 0, done.stderr
    assert 'response    "It is 22 degrees' in done.stdout
    written = yaml.safe_load((tmp_path / "eval-gate.yaml").read_text())
    if protocol is None:
        (target,) = yaml.safe_load((tmp_path / "targets.yaml").read_text())["targets"]
        assert (target["url"], target["responsePath"]) == (url + path, "data.answer")
    else:
        assert (written["agentEndpoint"], written["agentProtocol"]) == (url + path, protocol)
    assert gate(tmp_path, "run", AGENT_KEY=KEY).returncode == 0


def test_description__of_fastapi__is_as_recorded(running) -> None:
    url = running(ROUTED)
    wait_for(url)
    with urllib.request.urlopen(f"{url}/openapi.json") as answer:
        assert json.load(answer) == RECORDED
