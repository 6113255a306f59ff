"""MCP servers that are started: the protocol's own server in Python, and programs that are none."""

import asyncio
import json
import os
import sys
import time
from pathlib import Path

import pytest

from eval_gate.errors import ExitCode, GateError
from eval_gate.process.environment import WithheldVariables
from eval_gate.staleness import mcp_servers
from eval_gate.staleness.mcp_servers import ProgramEnvironment
from eval_gate.staleness.registry_loader import load_registry
from eval_gate.staleness.tool_registry import ToolRegistry
from eval_gate.text.redaction import Redactor
from tests.unit.process.test_process_run import gone

SERVER = """\
import os, sys
from mcp.server.mcpserver import MCPServer

server = MCPServer("weather", log_level="CRITICAL")


@server.tool(description=" ".join(sorted(os.environ)), meta={"version": "2.1.0"})
def environment(city: str) -> str:
    return city


@server.tool(name=sys.argv[1] if len(sys.argv) > 1 else "second", description=os.environ.get("TOKEN", "none"))
def second() -> str:
    return os.getcwd()


server.run("stdio")
"""
PATH = {"PATH": os.environ["PATH"]}


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)  # programs run as whom this folder belongs to
    (tmp_path / "server.py").write_text(SERVER)
    return tmp_path


def written(root: Path, **servers: object) -> str:
    (root / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))
    return ".mcp.json"


def python(*arguments: str, **more: object) -> dict[str, object]:
    return {"command": sys.executable, "args": ["server.py", *arguments], **more}


def shell(line: str) -> dict[str, object]:
    return {"command": "sh", "args": ["-c", line]}


def load(location: str, root: Path, **given: str) -> ToolRegistry:
    secrets = Redactor(given.values())
    return asyncio.run(
        load_registry(location, root, ProgramEnvironment({**PATH, **given}, WithheldVariables(), secrets.mask_bytes))
    )


def refused(location: str, root: Path, **given: str) -> GateError:
    with pytest.raises(GateError) as caught:
        load(location, root, **given)
    return caught.value


def ended(pid_file: Path) -> bool:
    """Whether the process whose number stands there is gone."""
    return gone(int(pid_file.read_text()))


@pytest.mark.slow
def test_load_registry__server_that_is_started__gives_names_versions_and_schemas(root) -> None:
    found = load(written(root, weather=python()), root)
    assert [(tool.name, tool.version) for tool in found.tools] == [("environment", "2.1.0"), ("second", None)]
    assert found.tools[0].parameters["required"] == ["city"]
    assert (found.source, found.notices) == (".mcp.json", ())


@pytest.mark.slow
def test_load_registry__one_server_alone_in_a_file__needs_no_name(root) -> None:
    (root / "server.json").write_text(json.dumps(python()))
    assert load("server.json", root).size == 2


@pytest.mark.slow
def test_load_registry__programs_get__what_they_are_given_and_what_the_file_says(root, monkeypatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "ghs_of_ours")
    file = written(root, weather=python("x", env={"TOKEN": "${SECRET} ${MODE:-quiet}", "LC_ALL": "C"}))
    first, second = load(file, root, SECRET="s3cret-value").tools
    seen = set(first.description.split())
    assert {"SECRET", "TOKEN", "PATH"} <= seen
    assert "GITHUB_TOKEN" not in seen
    assert second.description == "s3cret-value quiet"


def test_load_registry__variable_that_programs_do_not_get__is_named(root) -> None:
    error = refused(written(root, weather=python(env={"TOKEN": "${SECRET}"})), root)
    assert (error.code, error.exit_code) == ("invalid-registry", ExitCode.USAGE)
    assert "the variable SECRET is not passed to programs" in str(error.problems[0])
    assert "passEnv" in str(error.hint)


@pytest.mark.slow
def test_load_registry__several_servers__are_joined_and_one_is_chosen_by_name(root) -> None:
    file = written(root, a=python("only-a"), off=python(disabled=True))
    assert load(file, root).size == 2
    file = written(root, a=python("only-a"), b=python("only-b"))
    assert [tool.name for tool in load(f"{file}#b", root).tools] == ["environment", "only-b"]
    both = refused(file, root)
    assert "more than one of its servers has the tool environment" in str(both.problems[0])
    assert both.hint == "choose a server: .mcp.json#a"
    assert '"c"' in str(refused(f"{file}#c", root).problems[0])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("echo broken >&2; exit 3", "it exited with code 3; its last output: broken"),
        ("echo Welcome; exit 0", "it exited with code 0; it printed output that is not MCP: «Welcome»"),
        ("kill -9 $$", "it was ended by signal 9"),
    ],
)
def test_load_registry__server_that_ends__says_how_and_its_last_words(root, line, said) -> None:
    error = refused(written(root, weather=shell(line)), root)
    assert (error.code, error.exit_code) == ("registry-unreachable", ExitCode.INCOMPLETE)
    assert error.message == f"the tools of the MCP server weather (.mcp.json) cannot be listed: {said}"


def test_load_registry__program_that_is_not_there__is_named(root) -> None:
    said = refused(written(root, weather={"command": "no-such-server"}), root).message
    assert '"no-such-server" cannot be started' in said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("cat > /dev/null", "no list of tools within 0.5 s"),
        ("echo Hello; cat > /dev/null", "no list of tools within 0.5 s; it printed output that is not MCP: «Hello»"),
        ("trap '' TERM; sleep 60 & wait", "no list of tools within 0.5 s"),
    ],
)
def test_load_registry__server_that_hangs__is_given_up_and_ended_with_its_children(
    root, monkeypatch, line, said
) -> None:
    monkeypatch.setattr(mcp_servers, "PROGRAM_TIME_LIMIT_S", 0.5)
    error = refused(written(root, weather=shell(f"echo $$ > pid; {line}")), root)
    assert error.message.endswith(said)
    assert ended(root / "pid")


@pytest.mark.slow
def test_load_registry__server_that_answers__is_ended_afterwards(root) -> None:
    (root / "server.py").write_text("open('pid', 'w').write(str(__import__('os').getpid()))\n" + SERVER)
    load(written(root, weather=python()), root)
    assert ended(root / "pid")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bounds", "line", "said"),
    [
        ({"MAX_BYTES": 1000}, "yes", "it printed more than 1,000 bytes"),
        ({"MAX_LINES": 50}, "yes | head -60; cat > /dev/null", "it printed more than 50 lines"),
        ({"MAX_BYTES": 100_000}, "head -c 200000 /dev/zero; cat > /dev/null", "it printed more than 100,000 bytes"),
        ({}, "printf '%0300d\\n' 0 | tr 0 '['; cat > /dev/null", "nested deeper"),
    ],
    ids=["bytes", "lines", "one line", "nested"],
)
def test_load_registry__server_that_says_too_much__is_given_up_at_once(root, monkeypatch, bounds, line, said) -> None:
    for name, value in bounds.items():
        monkeypatch.setattr(mcp_servers, name, value)
    began = time.perf_counter()
    assert said in refused(written(root, weather=shell(line)), root).message
    assert time.perf_counter() - began < 30


def test_load_registry__what_a_failing_server_says__has_no_secrets(root) -> None:
    file = written(root, weather=shell("echo at $SECRET; echo by $SECRET >&2; exit 1"))
    said = refused(file, root, SECRET="s3cret-value").message
    assert "s3cret-value" not in said
    assert said.count("***") == 2
