"""Coding agents that are commands, by docs/coding-agents.md: the real programs, a stand-in for their models."""

from __future__ import annotations

import json
import os
import re
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import yaml

from tests.agents.test_agents_kinds import cases, judged
from tests.support.frameworks import MODELS, ROOT
from tests.support.program import CLEAN

NOWHERE = "http://127.0.0.1:9"
"""What programs would tell their makers goes here: a test needs no network for it."""
HOP = {"host", "content-length", "connection", "accept-encoding", "transfer-encoding"}
"""Headers that are not forwarded."""
CODEX_CONFIG = """
model = "stand-in"
model_provider = "stand-in"
[model_providers.stand-in]
name = "stand-in"
base_url = "{url}/v1"
env_key = "CODEX_API_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""
GEMINI_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
}


@dataclass(frozen=True)
class Program:
    """One program: its section, where it finds its model, the tool it calls here, and what its answers tell."""

    name: str
    title: str
    address: str
    tool: str
    cost: bool = False
    durations: bool = False

    def __str__(self) -> str:
        return self.name


PROGRAMS = (
    Program("claude-code", "Claude Code", "ANTHROPIC_BASE_URL", "Bash", cost=True),
    Program("gemini-cli", "Gemini CLI", "GOOGLE_GEMINI_BASE_URL", "run_shell_command", durations=True),
    Program("codex", "Codex", "CODEX_BASE_URL", "command_execution"),
)


def section(program: Program) -> str:
    page = (ROOT / "docs" / "coding-agents.md").read_text()
    _, heading, rest = page.partition(f"\n## {program.title}\n")
    assert heading
    return rest.partition("\n## ")[0]


def described(folder: Path, program: Program, programs: Path, url: str) -> None:
    """The target of its section, but for a home of its own, and its model's address."""
    block = re.search(r"```yaml\n(.*?)```", section(program), re.DOTALL)
    assert block is not None
    document = yaml.safe_load(block[1])
    (target,) = document["targets"]
    home = folder / "home"
    (home / ".codex").mkdir(parents=True)
    (home / ".codex" / "config.toml").write_text(CODEX_CONFIG.format(url=url))
    (home / ".gemini").mkdir()
    (home / ".gemini" / "settings.json").write_text(json.dumps(GEMINI_SETTINGS))
    key = next(iter(target["env"]))
    target["env"] |= {
        key: "no-key-at-all",
        program.address: url,
        "HOME": str(home),
        "PATH": os.pathsep.join([str(programs), CLEAN["PATH"]]),
        "HTTPS_PROXY": NOWHERE,
        "NO_PROXY": "127.0.0.1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    if program.name == "codex":
        # its sandbox asks the kernel for what containers may not have
        target["args"] = ["--sandbox", "danger-full-access"]
    (folder / "targets.yaml").write_text(json.dumps(document))


def resumed(folder: Path, program: Program) -> None:
    """The same target with the lines of the section about conversations, if it needs any."""
    page = (ROOT / "docs" / "coding-agents.md").read_text()
    block = re.search(rf"```yaml\n# {program.title}\n(.*?)```", page, re.DOTALL)
    assert (block is None) is (program.name == "codex")
    if block is not None:
        document = json.loads((folder / "targets.yaml").read_text())
        document["targets"][0] |= yaml.safe_load(block[1])
        (folder / "targets.yaml").write_text(json.dumps(document))


@contextmanager
def overheard(url: str) -> Iterator[tuple[str, list[str]]]:
    """An address that forwards to the model's, and the bodies of the requests: the stand-in keeps no long ones."""
    bodies: list[str] = []

    class Forward(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            bodies.append(body.decode())
            headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP}
            asked = urllib.request.Request(url + self.path, body, headers)
            with urllib.request.urlopen(asked, timeout=60) as response:
                self.send_response(response.status)
                self.send_header("Content-Type", response.headers["Content-Type"])
                self.end_headers()
                self.wfile.write(response.read())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Forward) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", bodies
        server.shutdown()


def listens(url: str) -> None:
    for _ in range(100):
        try:
            urllib.request.urlopen(url, timeout=1)
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
        else:
            return


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_program__by_the_target_of_its_section__passes_fails_and_crashes(program, programs, running, tmp_path) -> None:
    url = running(MODELS)
    listens(url)
    described(tmp_path, program, programs, url)
    weather = f"ask {program.name} for the weather"
    cases(
        tmp_path,
        (weather, {"toolsCalled": [program.tool], "noToolErrors": True, "responseContains": ["22 degrees"]}),
        ("hello", {"toolsNotCalled": [program.tool], "responseContains": ["nothing"]}),
        (f"{weather}, wrongly", {"responseContains": ["30 degrees"]}),
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
    first, crashed = found[0], found[3]
    (call,) = first["details"]["toolCalls"]
    assert (call["name"], call["success"], "22 degrees" in json.dumps(call)) == (program.tool, True, True)
    assert (call["durationMs"] is not None) is program.durations
    assert "out of order" in str(crashed["error"])
    assert ("reports a failure" in str(crashed["error"])) is (program.name != "codex")
    assert first["usage"] == {"inputTokens": 22, "outputTokens": 12}
    assert (first["costUsd"] is not None) is program.cost


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_conversation__by_the_lines_of_its_section__goes_on_in_the_session_of_the_program(
    program, programs, running, tmp_path
) -> None:
    url = running(MODELS)
    listens(url)
    first, second = f"ask {program.name} for the weather, order 4711", f"and tomorrow, {program.name}?"
    turns = [
        {"message": first, "expect": {"toolsCalled": [program.tool], "responseContains": ["22 degrees"]}},
        {"message": second, "expect": {"toolsCalled": []}},
        {"message": f"{second} and then?", "expect": {"toolsCalled": []}},
    ]
    (tmp_path / "evals").mkdir()
    case = {"id": "gs-chat", "turns": turns, "expect": {"toolsCalled": [program.tool]}}
    (tmp_path / "evals" / "chat.golden.json").write_text(json.dumps([case]))
    with overheard(url) as (forwarding, bodies):
        described(tmp_path, program, programs, forwarding)
        resumed(tmp_path, program)
        code, (found,) = judged(tmp_path)
    assert (code, found["status"]) == (0, "passed"), found["error"]
    later = [body for body in bodies if second in body]
    assert len(later) == 2  # of the second turn and of the third
    assert all(first in body and "22 degrees" in body for body in later)
    usages = [turn["usage"] for turn in found["details"]["turns"]]
    assert usages[0] == {"inputTokens": 22, "outputTokens": 12}
    assert usages[1:] == [{"inputTokens": 30, "outputTokens": 3}] * 2  # their own, not those of the whole session
    assert found["usage"] == {"inputTokens": 82, "outputTokens": 18}


def test_conversation__codex_forgets_its_thread__is_an_agent_error_that_names_the_turn(
    programs, running, tmp_path
) -> None:
    url = running(MODELS)
    listens(url)
    codex = PROGRAMS[2]
    described(tmp_path, codex, programs, url)
    document = json.loads((tmp_path / "targets.yaml").read_text())
    document["targets"][0]["args"].append("--ephemeral")
    (tmp_path / "targets.yaml").write_text(json.dumps(document))
    (tmp_path / "evals").mkdir()
    case = {"id": "gs-chat", "turns": [{"message": "hi"}, {"message": "again"}], "expect": {"responseContains": ["n"]}}
    (tmp_path / "evals" / "chat.golden.json").write_text(json.dumps([case]))
    _, (found,) = judged(tmp_path)
    assert (found["errorKind"], found["failedTurn"]) == ("agent_error", 2)
    assert found["error"].startswith("turn 2: Codex CLI exited with code 1")
    assert "no rollout found for thread id" in found["error"]
