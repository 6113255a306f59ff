"""Tool definitions of an MCP server that the run starts, through the command line."""

import json
import os
import sys

import pytest

from tests.integration.test_integration_run import gate, record
from tests.support.agents import agent
from tests.support.processes import gone

SERVER = """\
import os, sys
from mcp.server.mcpserver import MCPServer

open("started", "a").write(str(os.getpid()) + "\\n")
server = MCPServer("weather", log_level="CRITICAL")


@server.tool(name="get_weather", description="Gets the weather.", meta={"version": "2.0.0"})
def get_weather(city: str) -> str:
    return city


with open("environment", "w") as file:
    file.write(" ".join(sorted(os.environ)))
server.run("stdio")
"""
EVALS = {
    "metadata": {"toolName": "get_weather", "tier": "golden", "toolVersion": "1.0.0"},
    "cases": [{"id": "gs-1", "input": {"message": "Hi"}, "expect": {"responseContains": ["ok"]}}],
}


@pytest.fixture
def project(tmp_path):
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "a.golden.json").write_text(json.dumps(EVALS))
    (tmp_path / "server.py").write_text(SERVER)
    server = {"command": sys.executable, "args": ["server.py"], "env": {"MODE": "${MODE:-eval}"}}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"weather": server}}))
    return tmp_path


def test_run__registry_is_a_program__is_started_once_with_what_programs_get_and_evals_are_held_against_it(
    project,
) -> None:
    with agent() as running:
        options = ("--agent-endpoint", running.url, "--tool-registry", ".mcp.json", "--pass-env", "PASSED")
        done = gate(project, "run", *options, GITHUB_TOKEN="ghs_abcdefgh", PASSED="x", OTHER_KEY="key-of-the-test")
    assert done.returncode == 0, done.stdout + done.stderr
    [suite] = record(project)["suites"]
    assert suite["stale"]
    assert "2.0.0" in json.dumps(suite["stalenessWarnings"])
    seen = (project / "environment").read_text().split()
    assert {"PATH", "PASSED", "MODE"} <= set(seen)
    assert not {"GITHUB_TOKEN", "OTHER_KEY"} & set(seen)
    assert gone(project / "started")


def test_validate__registry_is_a_program__is_not_started_but_its_file_is_checked(project) -> None:
    done = gate(project, "validate", "--tool-registry", ".mcp.json#weather")
    assert done.returncode == 0, done.stderr
    assert "warning: .mcp.json#weather was not contacted, so its tools are unknown" in done.stderr
    assert not (project / "started").exists()
    (project / ".mcp.json").write_text('{"mcpServers": {"weather": {"command": 3}}}')
    wrong = gate(project, "validate", "--tool-registry", ".mcp.json")
    assert wrong.returncode == 2
    assert ".mcp.json:1: mcpServers.weather.command: expected a text" in wrong.stderr


@pytest.mark.slow
def test_run__server_that_ends__is_exit_3_and_asks_nobody(project) -> None:
    (project / "server.py").write_text("raise SystemExit('no database')")
    with agent() as running:
        done = gate(project, "run", "--agent-endpoint", running.url, "--tool-registry", ".mcp.json")
        assert not running.requests
    assert done.returncode == 3
    assert (
        "error[registry-unreachable]: the tools of the MCP server weather (.mcp.json) cannot be listed" in done.stderr
    )
    assert "it exited with code 1; its last output: no database" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="whom commands run as is a question for root only")
def test_run__root_in_a_workflow_and_a_closed_workspace__starts_no_server(project) -> None:
    (project.parent).chmod(0o700)
    with agent() as running:
        options = ("--agent-endpoint", running.url, "--tool-registry", ".mcp.json")
        done = gate(project, "run", *options, GITHUB_ACTIONS="true")
    assert done.returncode == 2
    assert "error[commands-as-root]" in done.stderr
    assert not (project / "started").exists()


BROKEN = """\
read -r _
printf '{"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "'
printf '%290s' | tr ' ' x
echo "$PASSED\\"}}"
sleep 0.2
"""
SECRET = "s3cr3t-of-the-test-0123456789"


def with_secret(project, *arguments: str, **server: object):
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"weather": server}}))
    with agent() as running:
        options = ("--agent-endpoint", running.url, "--tool-registry", ".mcp.json", "--pass-env", "PASSED", *arguments)
        return gate(project, "run", *options, PASSED=SECRET)


@pytest.mark.slow
def test_run__server_says_a_secret_in_its_definitions__nobody_is_told_it(project) -> None:
    said = SERVER.replace('"2.0.0"', 'os.environ["PASSED"]').replace('"Gets', 'os.environ["PASSED"] + "Gets')
    (project / "server.py").write_text(said)
    done = with_secret(project, command=sys.executable, args=["server.py"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"***" does not begin with a number' in json.dumps(record(project)["suites"]).replace("\\", "")
    kept = [file for file in project.rglob("*") if file.is_file() and SECRET in file.read_text(errors="replace")]
    assert kept == []


@pytest.mark.parametrize(
    "server",
    [
        {"url": "http://127.0.0.1:1/${PASSED}/mcp"},
        {"command": "sh", "args": ["-c", "printf '%190s' | tr ' ' x; echo \"$PASSED\"; sleep 0.2"]},
        {"command": "sh", "args": ["-c", BROKEN]},
    ],
    ids=["in its address", "where its words are cut", "where its error is cut"],
)
@pytest.mark.slow
def test_run__server_that_cannot_be_asked_and_a_secret__not_even_its_beginning_is_shown(project, server) -> None:
    done = with_secret(project, **server)
    assert done.returncode == 3, done.stdout + done.stderr
    assert SECRET[:8] not in done.stdout + done.stderr


@pytest.mark.parametrize(
    "server",
    [
        {"command": "true", "cwd": "a\0b"},
        {"command": "true", "cwd": "a\ud800b"},
        {"command": "true", "cwd": "x" * 5_000},
        {"command": "true", "cwd": "circle"},
        {"url": "http://a\0b/"},
        {"url": "http://\ud800/"},
    ],
)
def test_run__server_with_a_place_that_is_none__is_refused_in_a_sentence(project, server) -> None:
    (project / "circle").symlink_to("circle")
    done = with_secret(project, **server)
    assert done.returncode in {2, 3}
    assert "error[internal-error]" not in done.stderr
    assert "error[" in done.stderr
