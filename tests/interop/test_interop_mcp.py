"""An MCP server that nobody here wrote, started for its tools: `npm ci` in `tests/interop/mcp` installs it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.integration.test_integration_run import write_suite
from tests.support.agents import agent
from tests.support.program import gate

SERVER = Path(__file__).parent / "mcp" / "node_modules" / "@modelcontextprotocol" / "server-everything"

pytestmark = pytest.mark.skipif(
    not (shutil.which("node") and SERVER.exists()) and os.environ.get("EVAL_GATE_REQUIRE_INTEROP") != "1",
    reason="the server is not installed: run `npm ci` in tests/interop/mcp",
)


def test_server_everything__over_its_streams__lists_its_tools_and_a_stale_eval_is_seen(tmp_path) -> None:
    server = {"command": "node", "args": [str(SERVER / "dist" / "index.js"), "stdio"]}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"everything": server}}))
    suite = json.loads(write_suite(tmp_path).read_text())
    metadata = {"toolName": "echo", "tier": "golden", "descriptionHash": "0" * 64, "registrySize": 1}
    (tmp_path / "evals" / "weather.golden.json").write_text(json.dumps({"metadata": metadata, "cases": suite}))
    with agent() as running:
        done = gate(tmp_path, "run", "--agent-endpoint", running.url, "--tool-registry", ".mcp.json#everything")
    assert done.returncode == 0, done.stdout + done.stderr
    [kept] = (tmp_path / "evals" / "results").glob("*/run.json")
    [suite] = json.loads(kept.read_text())["suites"]
    assert suite["stale"]
    said = json.dumps(suite["stalenessWarnings"])
    assert "echo" in said
    assert "13" in said
