"""Servers of the frameworks that agents are written with, installed as their users install them, and started.

A framework's folder in `tests/agents/` holds `requirements.txt` or `package.json` with its lock, and agents written
with it. It is installed as the eval tools of others are (`tools.py`), once.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.support.agents import unused_port
from tests.support.program import CLEAN

ROOT = Path(__file__).parents[2]
AGENTS = ROOT / "tests" / "agents"
PAGE = ROOT / "docs" / "targets.md"
SILENT = {"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1", "DO_NOT_TRACK": "1"}
"""Where frameworks are asked not to call home: a test needs no network for it."""


@dataclass(frozen=True)
class Server:
    """One agent: its framework's folder, and the command that starts it, where `PORT` stands for its port."""

    framework: str
    command: tuple[str, ...]
    shared: tuple[str, ...] = ()
    """Files of `tests/agents/` that several frameworks' agents share."""

    @property
    def name(self) -> str:
        """What its installation is called."""
        return f"agents-{self.framework}"

    @property
    def folder(self) -> Path:
        """What it is made of."""
        return AGENTS / self.framework

    def __str__(self) -> str:
        return self.framework


FASTAPI = Server("asgi", ("python", "fastapi_agent.py", "PORT"))
ROUTED = Server("asgi", ("python", "routed_agent.py", "PORT"))
PYDANTIC_AI = Server("asgi", ("python", "pydantic_ai_agent.py", "PORT"))
A2A = Server("asgi", ("python", "a2a_agent.py", "PORT"))
DESK = ("conversations/order_desk.py",)
FASTAPI_DESK = Server("asgi", ("python", "desk_agent.py", "PORT"), DESK)
LANGSERVE = Server("langserve", ("python", "langserve_agent.py", "PORT"))
LANGGRAPH = Server("langgraph", ("langgraph", "dev", "--no-browser", "--no-reload", "--port", "PORT"))
LANGGRAPH_DESK = Server("langgraph", (*LANGGRAPH.command, "--config", "desk.json"), DESK)
AIMOCK = Server("aimock", ("llmock", "--port", "PORT", "--fixtures", "fixtures.json", "--log-level", "warn"))
MODELS = Server("aimock", ("llmock", "--port", "PORT", "--fixtures", "programs.json", "--log-level", "warn"))
"""What stands for the servers of coding agents' models."""
PROGRAMS = Server("programs", ())
"""Coding agents that are commands: installed, and never started as a server."""


@contextmanager
def started(server: Server, installed: Path, folder: Path) -> Iterator[str]:
    """The agent, running in a copy of its folder; its address. Whether it listens yet, the gate has to find out."""
    place = folder / server.framework
    shutil.copytree(server.folder, place)
    for name in server.shared:
        shutil.copy(AGENTS / name, place)
    port = unused_port()
    programs = [installed / "venv" / "bin", installed / "node_modules" / ".bin"]
    path = os.pathsep.join([*map(str, programs), CLEAN["PATH"]])
    words = [str(port) if word == "PORT" else word for word in server.command]
    program = shutil.which(words[0], path=path)
    assert program is not None, f"{words[0]} is not installed in {installed}"
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [program, *words[1:]],
            cwd=place,
            env={**CLEAN, "PATH": path, **SILENT},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def rows() -> dict[int, dict[str, object]]:
    """The lines of each row of docs/targets.md as data. "the same" adds to the row before; `;` ends it."""
    found: dict[int, dict[str, object]] = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        row = re.match(r"\| (\d+) \| (.*?) \| (.*) \|$", line)
        if row is None:
            continue
        number, needed = int(row[1]), row[3].partition("; ")[0]
        settings: dict[str, object] = dict(found[number - 1]) if row[2].startswith("the same") else {}
        for code in re.findall(r"`([^`]+)`", needed):
            if re.match(r"\w+: ", code):
                settings |= yaml.safe_load(code)
        found[number] = settings
    return found
