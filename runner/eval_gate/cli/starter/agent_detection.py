"""Detects the agent in a repository: framework, protocol, and start command.

Told by a look at its sources, for the frameworks that `tests/agents` tries it with. Nothing is run or imported: what
cannot be told is left to the person, who is told where to say it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from eval_gate.cli.starter.route_contract import RouteContract, read_route_contract
from eval_gate.config.preset import PresetName
from eval_gate.formats.discovery import SKIPPED_FOLDERS
from eval_gate.struct import FrozenStruct

MAX_SOURCES: Final = 300
MAX_FOLDERS: Final = 2_000
MAX_BYTES: Final = 200_000
_PLAIN_PATH: Final = re.compile(r"(?!-)[\w@.-]+(/[\w@.-]+)*", re.ASCII)
"""What needs no quoting in a shell, and is no expression of a workflow."""
_PLAIN_ROUTE: Final = re.compile(r"/[\w./~-]*", re.ASCII)
_OTHER_FOLDERS: Final = SKIPPED_FOLDERS | {"test", "tests", "evals", "dist", "build", "docs", "examples", "venv"}
_REQUIREMENTS: Final = "requirements.txt"
_PYPROJECT: Final = "pyproject.toml"
_LANGGRAPH: Final = "langgraph.json"
_DEFAULT_PORT: Final = 8000


class FoundAgent(FrozenStruct):
    """An agent detected in the repository from the file `source`.

    `install` are the shell lines that install it. `start` is the line that starts it, without redirection; None if
    unknown.
    """

    source: str
    framework: str
    preset: PresetName | None
    url: str
    install: tuple[str, ...]
    start: str | None
    contract: RouteContract | None = None
    """What the source says about requests and responses, where the protocol is not a known one."""


class _Framework(FrozenStruct):
    """Detection rule and default settings for agents of one framework.

    `sign` is a pattern for the source that serves them, `route` one whose group is the path of their requests.
    """

    title: str
    sign: str
    route: str
    preset: PresetName | None
    path: str
    subpath: str = ""
    """What is asked below the route."""


_FRAMEWORKS: Final = (
    _Framework(
        "LangServe",
        r"\bfrom langserve\b",
        r"""(?s)add_routes\((?:(?!add_routes).){0,1000}?path\s*=\s*["'](/[^"']*)["']""",
        PresetName.LANGSERVE,
        "",
        "/invoke",
    ),
    _Framework(
        "the A2A SDK",
        r"\bfrom a2a\.server\b",
        r"""(?s)create_jsonrpc_routes\([^,()]+,\s*(?:rpc_url\s*=\s*)?["'](/[^"']*)["']""",
        PresetName.A2A,
        "/",
    ),
    _Framework(
        "pydantic-ai (AG-UI)",
        r"\bfrom pydantic_ai\.[\w.]*\bag_ui\b|\bto_ag_ui\b",
        r"""(?s)Route\(\s*["'](/[^"']*)["']""",
        PresetName.AG_UI,
        "/",
    ),
    _Framework("FastAPI", r"\bFastAPI\(", r"""\.post\(\s*["'](/[^"'{:]*)["']""", None, "/chat"),
)
DEFAULT_URLS: Final = {
    PresetName.LANGGRAPH: "http://localhost:2024/runs/wait",
    PresetName.LANGSERVE: "http://localhost:8000/invoke",
    PresetName.A2A: "http://localhost:8000/",
    PresetName.A2A_0_3: "http://localhost:8000/",
    PresetName.AG_UI: "http://localhost:8000/",
    PresetName.VERCEL_AI: "http://localhost:3000/api/chat",
    PresetName.OPENAI_CHAT: "http://localhost:8000/v1/chat/completions",
    PresetName.OPENAI_RESPONSES: "http://localhost:8000/v1/responses",
    PresetName.OLLAMA: "http://localhost:11434/api/chat",
}
"""Where agents that speak so listen unless somebody says otherwise."""


def find_agent(folder: Path) -> FoundAgent | None:
    """Find the agent of the repository by its files.

    Return None if it uses none of the supported frameworks, or if no manifest names its packages.
    """
    install = _build_install_commands(folder)
    if not install:
        return None
    if _has_graphs(folder):
        return FoundAgent(
            _LANGGRAPH,
            "LangGraph's server",
            PresetName.LANGGRAPH,
            DEFAULT_URLS[PresetName.LANGGRAPH],
            (*install, 'pip install --quiet "langgraph-cli[inmem]"'),
            "langgraph dev --host 0.0.0.0 --port 2024 --no-browser --no-reload",
        )
    sources = dict(islice(_iter_sources(folder), MAX_SOURCES))
    for framework in _FRAMEWORKS:
        signed = [name for name, text in sources.items() if re.search(framework.sign, text)]
        if signed:
            # of several, the one that starts a server
            source = min(signed, key=lambda name: (not _SERVER_PATTERN.search(sources[name]), name.count("/"), name))
            text = sources[source]
            port = _find_port(text)
            url = f"http://localhost:{port}{_find_route(framework, text)}"
            start = _build_start_command(source, text, port)
            contract = None if framework.preset else _read_contract(framework, text)
            return FoundAgent(source, framework.title, framework.preset, url, install, start, contract)
    return None


_SERVER_PATTERN: Final = re.compile(r"uvicorn\.run\(|\bapp\s*=")


def _find_route(framework: _Framework, text: str) -> str:
    found = re.search(framework.route, text)
    if found is not None and _PLAIN_ROUTE.fullmatch(found[1]):
        return found[1].rstrip("/") + framework.subpath or "/"
    return framework.path + framework.subpath


def _read_contract(framework: _Framework, text: str) -> RouteContract | None:
    found = re.search(framework.route, text)
    return read_route_contract(text, found[1]) if found is not None and _PLAIN_ROUTE.fullmatch(found[1]) else None


def _find_port(text: str) -> int:
    found = re.search(r"\bport\s*=\s*(\d{2,5})\b", text)
    return int(found[1]) if found and int(found[1]) < 65_536 else _DEFAULT_PORT


def _build_start_command(source: str, text: str, port: int) -> str | None:
    if not _PLAIN_PATH.fullmatch(source):
        return None
    if "uvicorn.run(" in text:
        return f"python {source}"
    app = re.search(r"(?m)^(\w+)\s*(?::[^=\n]+)?=\s*(?:FastAPI|Starlette)\(", text) or re.search(
        r"(?m)^(app)\s*=", text
    )
    if app is None:
        return None
    module = source.removesuffix(".py").replace("/", ".")
    return f"uvicorn {module}:{app[1]} --host 0.0.0.0 --port {port}"


def _build_install_commands(folder: Path) -> tuple[str, ...]:
    """Build the commands that install the agent's packages into a separate environment.

    Return an empty tuple if there is no manifest.
    """
    if (folder / _REQUIREMENTS).is_file():
        wanted = f"--requirement {_REQUIREMENTS}"
    elif (folder / _PYPROJECT).is_file():
        wanted = "."
    else:
        return ()
    environment = '"$RUNNER_TEMP/agent"'
    return (
        f"python3 -m venv {environment} && . {environment}/bin/activate",
        f"pip install --quiet {wanted}",
    )


def _has_graphs(folder: Path) -> bool:
    """Whether LangGraph's own server serves graphs of this folder: its configuration says so."""
    try:
        read = json.loads(_read_text(folder / _LANGGRAPH) or "{}")
    except (ValueError, RecursionError):
        return False
    return isinstance(read, dict) and isinstance(read.get("graphs"), dict)


def _iter_sources(folder: Path) -> Iterator[tuple[str, str]]:
    """Files of a program below the folder with their texts, by their paths relative to it."""
    for where, folders, names in islice(os.walk(folder), MAX_FOLDERS):
        if "pyvenv.cfg" in names:
            folders.clear()
            continue
        if Path(where) != folder and {_PYPROJECT, _REQUIREMENTS} & set(names):
            folders.clear()  # a program of its own
            continue
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _OTHER_FOLDERS)
        for name in sorted(names):
            if name.endswith(".py"):
                yield Path(where, name).relative_to(folder).as_posix(), _read_text(Path(where, name))


def _read_text(file: Path) -> str:
    """Read a plain file as text, up to `MAX_BYTES` bytes.

    Return an empty string for anything that is not a plain file or cannot be read.
    """
    try:
        if file.is_symlink() or not file.is_file():
            return ""
        with file.open("rb") as stream:
            return stream.read(MAX_BYTES).decode("utf-8", errors="replace")
    except OSError:
        return ""
